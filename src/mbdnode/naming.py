"""Values by name, and the error for a name that nobody knows, with the nearest known one."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from mbdnode.errors import UserError


def by_name(values: Any) -> Any:
    """What has names for its values as a mapping, so that their order does not matter.

    That is a mapping, a frame with named columns (of pandas, Polars or PyArrow), a pandas `Series`
    whose index is names, or a structured array.

    **Arguments:**

    - `values`: anything.

    **Returns:**

    A mapping; single values from a frame of one row. Anything without names as it is.
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
    """Build the error.

    **Arguments:**

    - `kind`: what was looked up, such as "coordinate".
    - `name`: what the user wrote.
    - `known`: what could have been written.

    **Returns:**

    A `UserError` to raise.
    """
    known = list(known)
    near = difflib.get_close_matches(str(name).lower(), [k.lower() for k in known], 1, 0.5)
    hint = next((k for k in known if near and k.lower() == near[0]), None)
    suggestion = f" Did you mean {hint!r}?" if hint else ""
    listing = ", ".join(known) if known else "there are none"
    return UserError(f"Unknown {kind} {name!r}.{suggestion} Known: {listing}.")
