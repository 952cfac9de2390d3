"""Which column is what, from a file and from the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mbdnode.errors import UserError

_MANY = ("coordinates", "rates", "inputs", "parameters", "angles")
_ONE = ("time", "run", "input_time", "interpolation", "gaps")
_NUMBER = ("longest_step_s",)


def columns_of(path: Path | None, roles: Sequence[str]) -> dict[str, Any]:
    """The arguments of `read`.

    **Arguments:**

    - `path`: a TOML file of roles, or None.
    - `roles`: such as `["time=t", "coordinates=theta,phi", "theta1=theta"]`; they go before the
        file's.

    **Returns:**

    Arguments by name. Raises `UserError` for what is not understood.
    """
    asked: dict[str, Any] = {}
    if path is not None:
        from mbdnode.data.logs.columns_file import load_columns

        asked = load_columns(path)
    for pair in roles:
        role, equals, text = pair.partition("=")
        if not (role and equals and text):
            raise UserError(f"--role {pair!r} is not role=column, such as --role time=t.")
        if role in _MANY:
            asked[role] = _several(text)
        elif role in _ONE:
            asked[role] = text
        elif role in _NUMBER:
            asked[role] = _number(role, text)
        else:
            from mbdnode.naming import unknown_name

            raise unknown_name("role", role, (*_ONE, *_MANY, *_NUMBER))
    return asked


def _several(text: str) -> Any:
    """Names with commas; `name:column` where the system's name is another one."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not any(":" in part for part in parts):
        return parts
    pairs = [part.partition(":") for part in parts]
    return {name: column if colon else name for name, colon, column in pairs}


def _number(role: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"--role {role}={text}: {text!r} is not a number.") from None


def holdout_of(text: str) -> tuple[float, tuple[str, ...]]:
    """A part of the runs, or files.

    **Arguments:**

    - `text`: such as "0.2", or "last.csv,other.csv".

    **Returns:**

    The part, and the files; one of the two is nothing.
    """
    try:
        fraction = float(text)
    except ValueError:
        return 0.0, tuple(part.strip() for part in text.split(",") if part.strip())
    if not 0 <= fraction < 1:
        raise UserError(f"--holdout is {text}; a part must be at least 0 and below 1.")
    return fraction, ()
