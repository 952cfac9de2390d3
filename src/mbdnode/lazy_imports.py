"""Names of a package that are loaded when they are first used.

Importing JAX takes a second and Matplotlib half of one; who asks for `--help`, or reads a log,
should not wait for either.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a package's `__init__.py`.

    **Arguments:**

    - `package`: its `__name__`.
    - `homes`: the module of every name, relative to the package; a module's own name is the module
        itself.

    **Returns:**

    What Python calls for a name that the package does not have yet.
    """

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{homes[name]}")
        return module if homes[name] == name else getattr(module, name)

    return __getattr__
