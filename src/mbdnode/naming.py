"""The error for a name that nobody knows, with the nearest name that somebody does."""

import difflib
from collections.abc import Iterable

from mbdnode.errors import UserError


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error.

    **Arguments:**

    - `kind`: what was looked up, such as "coordinate".
    - `name`: what the user wrote.
    - `known`: what could have been written.

    **Returns:**

    A `UserError` to raise.
    """
    known = list(known)
    near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    hint = next((k for k in known if near and k.lower() == near[0]), None)
    suggestion = f" Did you mean {hint!r}?" if hint else ""
    listing = ", ".join(known) if known else "there are none"
    return UserError(f"Unknown {kind} {name!r}.{suggestion} Known: {listing}.")
