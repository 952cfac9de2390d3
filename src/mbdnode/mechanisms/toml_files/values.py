"""Values of a mechanism file, read by the kind of their key; what is wrong is said with its place.

A message names the file, the line and the key, the rule, the value and the way out. A kind of value
is a function that reads it: of the source, the path of the key, the key and the value.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import GROUND
from mbdnode.mechanisms.toml_files.key_lines import Path, find_line, key_lines
from mbdnode.naming import unknown_name

# Names become columns of files and words of a command line.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_ANGLE = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*(deg|rad)\s*")
# No mechanism is this large or this stiff; squares of such numbers must not overflow.
_LARGEST = 1e100


@dataclass(frozen=True)
class Source:
    """Where a description comes from, and what it calls its parts.

    **Arguments:**

    - `label`: the file's name, or a word for what is no file.
    - `text`: in which to look for the line of a key; empty for what is no text.
    - `bodies`, `joints`, `coordinates`: the names that other parts may refer to.
    - `folder`: in which to look for files that it names; None for what is no file.
    """

    label: str
    text: str = ""
    bodies: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()
    folder: str | None = None

    def error(self, path: Path, sentence: str) -> UserError:
        """The error to raise for a key."""
        line = find_line(key_lines(self.text), path)
        where = self.label if line is None else f"{self.label}, line {line}"
        return UserError(f"{where}, key '{'.'.join(path)}': {sentence}")


@dataclass(frozen=True)
class Key:
    """One key of a table.

    **Arguments:**

    - `kind`: reads its value.
    - `meaning`: for the documentation, with the unit.
    - `required`: whether it must be there.
    - `minimum`: the value must not be less; `strict` makes it greater.
    - `choices`: the texts that it may be.
    """

    name: str
    kind: "Kind"
    meaning: str
    required: bool = False
    minimum: float | None = None
    strict: bool = False
    choices: tuple[str, ...] = ()


Kind = Callable[[Source, Path, Key, Any], Any]


def needed(name: str, kind: Kind, meaning: str, **rules: Any) -> Key:
    """A key that must be there."""
    return Key(name, kind, meaning, required=True, **rules)


def check_table(source: Source, path: Path, value: Any, example: str) -> dict[str, Any]:
    """A table as a dictionary, or the error that it is none."""
    if not isinstance(value, dict):
        raise source.error(path, f"it is {said(value)}, but it must be a table. {example}")
    return value


def check_name(source: Source, path: Path, name: str) -> None:
    """Raise unless a name can be used in files and on the command line."""
    if not _NAME.fullmatch(name):
        raise source.error(
            path,
            f"the name {name!r} must begin with a letter and hold only letters without accents, "
            "digits and underscores. Write it like 'left_arm'.",
        )


def read_keys(
    source: Source, path: Path, keys: tuple[Key, ...], table: dict[str, Any], what: str
) -> dict[str, Any]:
    """The values of a table, checked.

    Values by key, only of those that were given. Raises `UserError` for the first that is unknown,
    missing or wrong.
    """
    known = {key.name: key for key in keys}
    for name in table:
        if name not in known:
            raise source.error((*path, name), str(unknown_name("key", name, known)))
    for key in keys:
        if key.required and key.name not in table:
            raise source.error(
                (*path, key.name), f"it is missing from {what}. Add {key.name}: {key.meaning}."
            )
    return {
        name: known[name].kind(source, (*path, name), known[name], value)
        for name, value in table.items()
    }


def said(value: Any) -> str:
    """A value in a message, short."""
    kinds = {dict: "a table", list: "a list", bool: "true or false"}
    written = repr(value)
    shown = written if len(written) <= 40 else f"{written[:37]}..."
    return f"{kinds[type(value)]} ({shown})" if type(value) in kinds else shown


def number(source: Source, path: Path, key: Key, value: Any) -> float:
    """A finite number within the bounds of its key."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise source.error(path, f"it is {said(value)}, but it must be a number, such as 1.5.")
    if not abs(value) < _LARGEST:  # Also what is not a number.
        raise source.error(path, f"it is {said(value)}; it must be a finite number.")
    if key.minimum is not None and (value < key.minimum or (key.strict and value == key.minimum)):
        rule = f"above {key.minimum:g}" if key.strict else f"at least {key.minimum:g}"
        raise source.error(path, f"it is {value:g}; it must be {rule} ({key.meaning}).")
    return float(value)


def angle(source: Source, path: Path, key: Key, value: Any) -> float:
    """A number in radians, or a text with its unit."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(source, path, key, value)
    match = _ANGLE.fullmatch(value) if isinstance(value, str) else None
    try:
        size = float(match[1]) if match else math.nan
    except ValueError:
        size = math.nan
    if match is None or not abs(size) < _LARGEST:
        raise source.error(
            path,
            f"it is {said(value)}, but an angle is a number in radians, or a text such as "
            '"30 deg" or "0.5 rad".',
        )
    return math.radians(size) if match[2] == "deg" else size


def check_list(
    source: Source, path: Path, value: Any, count: int | None, example: str
) -> list[Any]:
    """A list of so many values, or of at least one; or the error that it is none."""
    fits = isinstance(value, list) and (len(value) == count if count else len(value) > 0)
    if not fits:
        raise source.error(path, f"it is {said(value)}, but it must be a list such as {example}.")
    return value


def point(source: Source, path: Path, key: Key, value: Any) -> tuple[float, float]:
    """Two numbers."""
    x, y = (number(source, path, key, v) for v in check_list(source, path, value, 2, "[0.5, 0.0]"))
    return x, y


def points(source: Source, path: Path, key: Key, value: Any) -> tuple[Any, Any]:
    """A point on each of two bodies."""
    both = check_list(source, path, value, 2, "[[0.0, 0.0], [-0.5, 0.0]], one point for each body")
    first, second = (point(source, path, key, each) for each in both)
    return first, second


def numbers(source: Source, path: Path, key: Key, value: Any) -> tuple[float, ...]:
    """At least one number."""
    values = check_list(source, path, value, None, "[0.0, 1.5]")
    return tuple(number(source, path, key, v) for v in values)


def along(source: Source, path: Path, key: Key, value: Any) -> float | tuple[float, ...]:
    """A number, or several along a joint."""
    if not isinstance(value, list):
        return number(source, path, key, value)
    if len(value) < 2:
        raise source.error(
            path, f"it is {said(value)}; give a number, or two or more along the joint."
        )
    return numbers(source, path, key, value)


def text(source: Source, path: Path, key: Key, value: Any) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise source.error(path, f"it is {said(value)}, but it must be a text in quotes.")
    return value


def texts(source: Source, path: Path, key: Key, value: Any) -> tuple[str, ...]:
    """At least one text."""
    values = check_list(source, path, value, None, '["crank_angle"]')
    return tuple(text(source, path, key, v) for v in values)


def names(source: Source, path: Path, key: Key, value: Any) -> tuple[str, ...]:
    """Names of the three coordinates of a planar body."""
    three = check_list(source, path, value, 3, '["x1", "y1", "theta1"]')
    for name in three:
        check_name(source, path, text(source, path, key, name))
    return tuple(three)


def flag(source: Source, path: Path, key: Key, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise source.error(path, f"it is {said(value)}, but it must be true or false.")
    return value


def choice(source: Source, path: Path, key: Key, value: Any) -> str:
    """One of the texts of the key."""
    if value not in key.choices:
        raise source.error(path, str(unknown_name(key.name, str(value), key.choices)))
    return value


def body(source: Source, path: Path, key: Key, value: Any) -> str:
    """The name of a body, or the ground."""
    name = text(source, path, key, value)
    if name not in (GROUND, *source.bodies):
        raise source.error(path, str(unknown_name("body", name, (GROUND, *source.bodies))))
    return name


def pair(source: Source, path: Path, key: Key, value: Any) -> tuple[str, str]:
    """Two different bodies."""
    both = check_list(source, path, value, 2, '["ground", "crank"]')
    first, second = (body(source, path, key, name) for name in both)
    if first == second:
        raise source.error(
            path, f"it names {first!r} twice; a part acts between two different bodies."
        )
    return first, second


def joint(source: Source, path: Path, key: Key, value: Any) -> str:
    """The name of a joint."""
    name = text(source, path, key, value)
    if name not in source.joints:
        raise source.error(path, str(unknown_name("joint", name, source.joints)))
    return name
