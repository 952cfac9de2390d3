"""On which line of a TOML file a key stands, which its parser does not tell.

A document that parses is cut into statements: a statement ends with the first line at which it
parses alone. What it then holds are the keys that begin on its first line.
"""

import tomllib
from typing import Any

# A value over more lines than these is not searched to its end, and no more lines than these are
# parsed in all: a file may be made to be slow. What is not found has the line of its table.
_LONGEST, _MOST = 200, 200_000

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line of every key and every table.

    **Arguments:**

    - `text`: a whole TOML document.

    **Returns:**

    Lines, counted from 1, by the path of the key.
    """
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
