"""Values of a mechanism file, read by the kind of their key; what is wrong is said with its place.

A message names the file, the line and the key, the rule, the value and the way out.

On which line of a TOML file a key stands, which its parser does not tell.

A document that parses is cut into statements: a statement ends with the first line at which it
parses alone. What it then holds are the keys that begin on its first line.
"""

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import GROUND
from mbdnode.mechanisms.planar.schema import Key
from mbdnode.naming import unknown_name

# A value over more lines than these is not searched to its end, and no more lines than these are
# parsed in all: a file may be made to be slow. What is not found has the line of its table.
_LONGEST, _MOST = 200, 200_000

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line of every key and every table."""
    lines: dict[Path, int] = {}
    table: Path = ()
    rows, row = text.replace("\r\n", "\n").split("\n"), 0
    spent = 0
    while row < len(rows) and spent < _MOST:
        found, count, parsed = _statement(rows, row)
        spent += parsed
        is_header = rows[row].lstrip().startswith("[")
        if is_header:
            table = _header_path(found)
        for path in _paths(found):
            lines.setdefault(path if is_header else (*table, *path), row + 1)
        row += count
    return lines


def find_line(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of the nearest table around it; None where nothing is known."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _statement(rows: list[str], row: int) -> tuple[dict[str, Any], int, int]:
    """What the statement on a line holds, over how many lines it goes, how many were parsed."""
    parsed = 0
    for count in range(1, min(_LONGEST, len(rows) - row) + 1):
        parsed += count
        try:
            return tomllib.loads("\n".join(rows[row : row + count])), count, parsed
        except ValueError:
            continue
    return {}, 1, parsed


def _header_path(found: Any) -> Path:
    path: list[str] = []
    while isinstance(found, dict) and found:
        ((key, found),) = found.items()
        path.append(key)
        found = found[0] if isinstance(found, list) else found
    return tuple(path)


def _paths(found: dict[str, Any]) -> list[Path]:
    paths: list[Path] = []
    for key, value in found.items():
        paths.append((key,))
        if isinstance(value, dict):
            paths += [(key, *rest) for rest in _paths(value)]
    return paths


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
    - `bodies`, `joints`: the names that other parts may refer to.
    """

    label: str
    text: str = ""
    bodies: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()

    def error(self, path: Path, sentence: str) -> UserError:
        """The error to raise for a key."""
        line = find_line(key_lines(self.text), path)
        where = self.label if line is None else f"{self.label}, line {line}"
        return UserError(f"{where}, key '{'.'.join(path)}': {sentence}")


def check_table(source: Source, path: Path, value: Any, example: str) -> dict[str, Any]:
    """A table as a dictionary, or the error that it is none."""
    if not isinstance(value, dict):
        raise source.error(path, f"it is {_say(value)}, but it must be a table. {example}")
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
        name: READERS[known[name].kind](source, (*path, name), known[name], value)
        for name, value in table.items()
    }


def _say(value: Any) -> str:
    """A value in a message, short."""
    kinds = {dict: "a table", list: "a list", bool: "true or false"}
    text = repr(value)
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return f"{kinds[type(value)]} ({shown})" if type(value) in kinds else shown


def _number(source: Source, path: Path, key: Key, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        hint = ' An angle may also be a text such as "30 deg".' if key.kind != "number" else ""
        raise source.error(
            path, f"it is {_say(value)}, but it must be a number, such as 1.5.{hint}"
        )
    if not abs(value) < _LARGEST:  # Also what is not a number.
        raise source.error(path, f"it is {_say(value)}; it must be a finite number.")
    if key.minimum is not None and (value < key.minimum or (key.strict and value == key.minimum)):
        rule = f"above {key.minimum:g}" if key.strict else f"at least {key.minimum:g}"
        raise source.error(path, f"it is {value:g}; it must be {rule} ({key.meaning}).")
    return float(value)


def _angle(source: Source, path: Path, key: Key, value: Any) -> float:
    if not isinstance(value, str):
        return _number(source, path, key, value)
    match = _ANGLE.fullmatch(value)
    try:
        number = float(match[1]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or not abs(number) < _LARGEST:
        raise source.error(
            path,
            f"it is {_say(value)}, but an angle is a number in radians, or a text such as "
            '"30 deg" or "0.5 rad".',
        )
    return math.radians(number) if match[2] == "deg" else number


def _list(source: Source, path: Path, value: Any, count: int | None, example: str) -> list[Any]:
    fits = isinstance(value, list) and (len(value) == count if count else len(value) > 0)
    if not fits:
        raise source.error(path, f"it is {_say(value)}, but it must be a list such as {example}.")
    return value


def _point(source: Source, path: Path, key: Key, value: Any) -> tuple[float, float]:
    x, y = (_number(source, path, key, v) for v in _list(source, path, value, 2, "[0.5, 0.0]"))
    return x, y


def _points(source: Source, path: Path, key: Key, value: Any):
    pair = _list(source, path, value, 2, "[[0.0, 0.0], [-0.5, 0.0]], one point for each body")
    return tuple(_point(source, path, key, point) for point in pair)


def _numbers(source: Source, path: Path, key: Key, value: Any) -> tuple[float, ...]:
    values = _list(source, path, value, None, "[0.0, 1.5]")
    return tuple(_number(source, path, key, v) for v in values)


def _along(source: Source, path: Path, key: Key, value: Any) -> float | tuple[float, ...]:
    if not isinstance(value, list):
        return _number(source, path, key, value)
    if len(value) < 2:
        raise source.error(
            path, f"it is {_say(value)}; give a number, or two or more along the joint."
        )
    return _numbers(source, path, key, value)


def _text(source: Source, path: Path, key: Key, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise source.error(path, f"it is {_say(value)}, but it must be a text in quotes.")
    return value


def _texts(source: Source, path: Path, key: Key, value: Any) -> tuple[str, ...]:
    values = _list(source, path, value, None, '["crank_angle"]')
    return tuple(_text(source, path, key, v) for v in values)


def _names(source: Source, path: Path, key: Key, value: Any) -> tuple[str, ...]:
    names = _list(source, path, value, 3, '["x1", "y1", "theta1"]')
    for name in names:
        check_name(source, path, _text(source, path, key, name))
    return tuple(names)


def _flag(source: Source, path: Path, key: Key, value: Any) -> bool:
    if not isinstance(value, bool):
        raise source.error(path, f"it is {_say(value)}, but it must be true or false.")
    return value


def _choice(source: Source, path: Path, key: Key, value: Any) -> str:
    if value not in key.choices:
        raise source.error(path, str(unknown_name(key.name, str(value), key.choices)))
    return value


def _body(source: Source, path: Path, key: Key, value: Any) -> str:
    name = _text(source, path, key, value)
    if name not in (GROUND, *source.bodies):
        raise source.error(path, str(unknown_name("body", name, (GROUND, *source.bodies))))
    return name


def _pair(source: Source, path: Path, key: Key, value: Any) -> tuple[str, str]:
    names = _list(source, path, value, 2, '["ground", "crank"]')
    first, second = (_body(source, path, key, name) for name in names)
    if first == second:
        raise source.error(
            path, f"it names {first!r} twice; a part acts between two different bodies."
        )
    return first, second


def _joint(source: Source, path: Path, key: Key, value: Any) -> str:
    name = _text(source, path, key, value)
    if name not in source.joints:
        raise source.error(path, str(unknown_name("joint", name, source.joints)))
    return name


READERS: dict[str, Callable[[Source, Path, Key, Any], Any]] = {
    "number": _number,
    "angle": _angle,
    "motion": _angle,
    "point": _point,
    "points": _points,
    "numbers": _numbers,
    "along": _along,
    "text": _text,
    "texts": _texts,
    "names": _names,
    "flag": _flag,
    "choice": _choice,
    "body": _body,
    "pair": _pair,
    "joint": _joint,
}
