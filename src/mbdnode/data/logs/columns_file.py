"""The roles of columns in a TOML file, so that they are written once and used again.

The keys are the arguments of `read`; names that differ from the columns are written as a table.
"""

import inspect
import os
from collections.abc import Mapping
from typing import Any

from mbdnode.config import parse_toml, read_toml
from mbdnode.data.files import check_new_file, replace_file
from mbdnode.data.logs.reading import read
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

_KEYS = tuple(inspect.signature(read).parameters)[1:]
_LISTS_OR_TABLES = ("coordinates", "rates", "inputs", "parameters")
_NUMBERS = ("longest_step_s",)


def load_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file of roles.

    **Arguments:**

    - `path`: a TOML file.

    **Returns:**

    The arguments of `read`, by name. Raises `UserError` for a key that is not known or a value of
    the wrong kind.
    """
    content = parse_toml(read_toml(path, "a file of roles"), f"'{path}'", "Correct that line.")
    check_roles(content, f"'{path}'")
    return content


def check_roles(content: Mapping[str, Any], label: str) -> None:
    """Raise `UserError` for a key that is not known, or a value of the wrong kind.

    **Arguments:**

    - `content`: the arguments of `read`, by name, from a file.
    - `label`: what to call the file.
    """
    for key, value in content.items():
        if key not in _KEYS:
            raise unknown_name(f"key in {label}:", key, _KEYS)
        _check(label, key, value)


def _check(label: str, key: str, value: Any) -> None:
    # A rate that is to be estimated is None.
    kinds = (str, type(None)) if key == "rates" else str
    words = isinstance(value, (list, tuple)) and all(isinstance(x, kinds) for x in value)
    if key in _LISTS_OR_TABLES:
        numbers_too = (str, int, float) if key == "parameters" else (str,)
        table = isinstance(value, dict) and all(type(x) in numbers_too for x in value.values())
        good, kind = words or table, 'a list such as ["theta"], or a table of names and columns'
    elif key == "angles":
        good, kind = words, 'a list such as ["theta"]'
    elif key == "units":
        good = isinstance(value, dict) and all(isinstance(x, str) for x in value.values())
        kind = "a table of columns and units"
    elif key in _NUMBERS:
        good, kind = isinstance(value, (int, float)) and not isinstance(value, bool), "a number"
    elif key == "input_files":
        good, kind = words or isinstance(value, str), "a file, a pattern or a list of them"
    else:
        good, kind = isinstance(value, str), "a word in quotes"
    if not good:
        raise UserError(f"{key} in {label} is {value!r}; it must be {kind}.")


def columns_text(roles: Mapping[str, Any]) -> str:
    """Roles as the content of such a file."""
    return "\n".join(f"{key} = {_written(value)}" for key, value in roles.items()) + "\n"


def write_columns(roles: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write roles to a new file, for the user to correct.

    **Arguments:**

    - `roles`: the arguments of `read`, by name.
    - `path`: must not exist: what a user wrote there is worth more than a guess.
    """
    path = check_new_file(path)
    text = columns_text(roles).encode("utf-8")
    replace_file(path, lambda file: file.write(text))


def _written(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_written(k)} = {_written(v)}" for k, v in value.items()) + " }"
    return "[" + ", ".join(_written(x) for x in value) + "]"
