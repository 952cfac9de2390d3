"""The page on mechanism files lists every key that the reader knows, and no other."""

import re
from pathlib import Path

from mbdnode.mechanisms.planar.schema import TABLES, TOP
from mbdnode.mechanisms.spatial import schema as spatial
from mbdnode.mechanisms.spatial.shapes import SHAPES
from mbdnode.mechanisms.spatial.values import FRAME

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "mechanism-files.md"


def rows_of(keys_by_type):
    """A row for each key: for which types, whether it must be there, what it means."""
    rows = {}
    for type_, keys in keys_by_type.items():
        for key in keys:
            rows.setdefault((key.name, key.required, key.meaning), []).append(type_)
    every = len(keys_by_type)
    return [
        f"| `{name}` | {'all' if len(types) == every else ', '.join(types)} | "
        f"{'yes' if required else 'no'} | {meaning} |"
        for (name, required, meaning), types in rows.items()
    ]


def rows_in_space():
    """The tables of a file in space; drives and friction are those of the plane."""
    tables = {"": {"": spatial.TOP}, **{kind: t.keys for kind, t in spatial.TABLES.items()}}
    beside = {"bodies": SHAPES, "joints": {"": FRAME}}
    for kind, keys in tables.items():
        if kind not in ("drives", "friction", "outputs"):
            yield from rows_of(keys)
            yield from rows_of(beside.get(kind, {}))
    for name, (keys, meaning) in spatial.OUTPUTS.items():
        yield f"| `{name}` | {', '.join(f'`{key.name}`' for key in keys)} | {meaning} |"


def test_the_tables_of_the_page_are_those_of_the_reader():
    tables = {"the file itself": {"": TOP}, **{kind: t.keys for kind, t in TABLES.items()}}
    shown = re.findall(r"^\| `.*$", PAGE.read_text(), flags=re.MULTILINE)
    expected = [row for keys in tables.values() for row in rows_of(keys)]
    assert shown == [*expected, *rows_in_space()]
