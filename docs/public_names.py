"""What the API pages list of a package whose stub says its names: those that it re-exports."""

from typing import Any

import griffe


class PublicNames(griffe.Extension):
    """`from .module import name as name` in an `__init__.pyi` makes a name public."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through the package and all that is in it."""
        for module in (pkg, *pkg.modules.values()):
            if module is not pkg and module.is_init_module:
                self.on_package(pkg=module)
        if pkg.exports is None and "lazy_loader" in pkg.imports:
            inside = f"{pkg.path}."
            pkg.exports = [name for name, at in pkg.imports.items() if at.startswith(inside)]
