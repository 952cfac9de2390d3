"""On which line of a TOML file a key stands, which its parser does not tell.

A document that parses is cut into statements: a statement ends with the first line at which it
parses alone. What it then holds are the keys that begin on its first line. In a list of tables,
`[[bodies.rod.shapes]]`, the place in the list is a part of the path.
"""

import tomllib
from typing import Any

# A value over more lines than these is not searched to its end, and no more lines than these are
# parsed in all: a file may be made to be slow. What is not found has the line of its table.
_LONGEST, _MOST = 200, 200_000

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line of every key, every table and every table in a list."""
    lines: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    rows, row = text.replace("\r\n", "\n").split("\n"), 0
    spent = 0
    while row < len(rows) and spent < _MOST:
        found, count, parsed = _statement(rows, row)
        spent += parsed
        if rows[row].lstrip().startswith("["):
            table = _header_path(found, counts)
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], row + 1)
        else:
            for path in _paths(found):
                lines.setdefault((*table, *path), row + 1)
            for path, below in _table_rows(found, rows[row : row + count]):
                lines.setdefault((*table, *path), row + 1 + below)
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


def _header_path(found: Any, counts: dict[Path, int]) -> Path:
    """The path of `[a.b]` or `[[a.b]]`; `counts` has the tables of each list so far."""
    path: Path = ()
    while isinstance(found, dict) and found:
        ((key, found),) = found.items()
        path = (*path, key)
        if isinstance(found, list):
            counts[path] = counts.get(path, 0) + 1
            found = found[0]
        if path in counts:
            path = (*path, str(counts[path] - 1))
    return path


def _paths(found: dict[str, Any]) -> list[Path]:
    paths: list[Path] = []
    for key, value in found.items():
        paths.append((key,))
        if isinstance(value, dict):
            paths += [(key, *rest) for rest in _paths(value)]
    return paths


def _table_rows(found: dict[str, Any], rows: list[str]) -> list[tuple[Path, int]]:
    """How far below its key each table of a list over several lines stands."""
    below: list[tuple[Path, int]] = []
    for key, value in found.items():
        if not (isinstance(value, list) and value and isinstance(value[-1], dict)):
            continue
        for count in range(1, len(rows)):
            try:
                begun = tomllib.loads("\n".join(rows[:count]) + "]")[key]
            except ValueError:
                continue
            below += [((key, str(n)), count - 1) for n in range(len(below), len(begun))]
    return below
