"""Names: values by name, unknown names with the nearest known one, and a user's own code.

What users bring along, such as an activation or a schedule, stands in configurations by its name,
`module:name`. It is imported where a user names it, and never because a file does: who reads files
asks `known_object`, which imports nothing.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from mbdnode.errors import UserError

# What was given or named in this process.
_OBJECTS: dict[str, Any] = {}


def by_name(values: Any) -> Any:
    """What has names for its values as a mapping, so that their order does not matter.

    That is a mapping, a frame with named columns (of pandas, Polars or PyArrow), a pandas `Series`
    whose index is names, or a structured array; single values from a frame of one row. Anything
    without names stays as it is.
    """
    if isinstance(values, Mapping):
        return values
    names = _names(values)
    if names is None:
        return values
    import numpy as np  # The command line starts without it.

    for name in names:
        if names.count(name) > 1:
            raise UserError(
                f"Column {name!r} is there {names.count(name)} times; rename the others."
            )
    columns = {str(name): np.asarray(values[name]) for name in names}
    return {name: x[0] if x.shape == (1,) else x for name, x in columns.items()}


def _names(values: Any) -> list[Any] | None:
    """Of columns or entries; None where there are none."""
    for attribute in ("column_names", "columns"):
        if hasattr(type(values), attribute):
            return list(getattr(values, attribute))
    index = getattr(values, "index", None)  # A list has a method of this name.
    if index is not None and not callable(index):
        return list(index) if all(isinstance(name, str) for name in index) else None
    fields = getattr(getattr(values, "dtype", None), "names", None)
    return None if fields is None else list(fields)


def unknown_name(kind: str, name: Any, known: Iterable[str]) -> UserError:
    """The error for a name that is not among those known, with the nearest of these.

    `kind` is what was looked up, such as "coordinate".
    """
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), [k.lower() for k in known], 1, 0.5)
    hint = next((k for k in known if near and k.lower() == near[0]), None)
    suggestion = f" Did you mean {hint!r}?" if hint else ""
    if kind == "model" and is_own(str(name)):
        suggestion = f" Code of your own is named first: `mbdnode --import {name} ...`."
    listing = ", ".join(known) if known else "there are none"
    return UserError(f"Unknown {kind} {name!r}.{suggestion} Known: {listing}.")


def import_object(name: str) -> Any:
    """What a user names as `module:name`; the module may stand in the working folder.

    Raises `UserError` for what cannot be imported.
    """
    if name in _OBJECTS:
        return _OBJECTS[name]
    module, _, attribute = name.partition(":")
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        _OBJECTS[name] = getattr(importlib.import_module(module), attribute)
    except (ImportError, ValueError) as error:
        raise UserError(f"The module {module!r} cannot be imported: {error}.") from error
    except AttributeError as error:
        raise UserError(f"The module {module!r} has no {attribute!r}.") from error
    finally:
        if added:
            sys.path.remove(here)
    return _OBJECTS[name]


def object_name(value: Any) -> str:
    """A name for what was given in Python, by which this process finds it again.

    `module:name` of what other processes can import; a name in angle brackets for anything else.
    """
    for name, known in _OBJECTS.items():
        if known is value:
            return name
    module = getattr(value, "__module__", "") or ""
    attribute = getattr(value, "__qualname__", "")
    name = f"{module}:{attribute}"
    if module == "__main__" or getattr(sys.modules.get(module), attribute, None) is not value:
        kind = attribute or type(value).__qualname__
        name = f"<{kind} {1 + sum(key.startswith(f'<{kind} ') for key in _OBJECTS)}>"
    _OBJECTS[name] = value
    return name


def is_own(name: str) -> bool:
    """Whether a name is one of a user's own code."""
    return ":" in name or name.startswith("<")


def known_object(name: str) -> Any:
    """What was given or named in this process by this name; nothing is imported.

    Raises `UserError` for a name of what was not.
    """
    if name in _OBJECTS:
        return _OBJECTS[name]
    if name.startswith("<"):
        raise UserError(
            f"{name} was given in Python and cannot be found again by its name. Put it in a module "
            "of yours and give 'module:name'."
        )
    raise UserError(
        f"{name!r} is code of a user's own, and nothing is imported because a file names it. Name "
        f"it yourself first: mbdnode.naming.import_object({name!r}), or on the command line "
        f"`mbdnode --import {name} ...`."
    )
