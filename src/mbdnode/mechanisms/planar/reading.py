"""From what a TOML file holds to the description of a planar mechanism, or to an error that says
what to change on which line.
"""

from dataclasses import replace
from typing import Any

from mbdnode.mechanisms.planar.description import PARTS, Description
from mbdnode.mechanisms.planar.schema import TABLES, TOP
from mbdnode.mechanisms.planar.whole_checks import check_whole
from mbdnode.mechanisms.toml_files.parts import read_part, read_tables
from mbdnode.mechanisms.toml_files.values import Source

_EXAMPLE = 'Write, for instance, a line "[bodies.crank]" and below it "center = [0.5, 0.0]".'


def described(data: dict[str, Any], source: Source, name: str) -> Description:
    """A checked description of what a file holds.

    **Arguments:**

    - `data`: tables, lists, numbers and text.
    - `source`: where they come from, for messages.
    - `name`: of the mechanism, if the data give none.

    **Returns:**

    A `Description`. Raises `UserError` as `read_mechanism`.
    """
    values, tables = read_tables(source, data, TOP, TABLES, _EXAMPLE)
    values.pop("plane", None)  # There is one.
    source = replace(source, bodies=tuple(tables["bodies"]), joints=tuple(tables["joints"]))
    parts: dict[str, Any] = {
        kind: tuple(_part(source, kind, part, table) for part, table in tables[kind].items())
        for kind in TABLES
    }
    description = Description(**{"name": name, **values}, **parts)
    check_whole(source, description, tables["drives"])
    return description


def _part(source: Source, kind: str, name: str, given: Any) -> Any:
    """One body, joint, spring or the like."""
    values = read_part(source, kind, TABLES[kind], name, given)
    if kind == "bodies":
        values.setdefault("coordinates", (f"{name}_x", f"{name}_y", f"{name}_angle"))
        _check_mass(source, (kind, name), values)
    return PARTS[kind](name=name, **values)


def _check_mass(source: Source, path: tuple[str, ...], values: dict[str, Any]) -> None:
    given = [key for key in ("mass", "inertia") if key in values]
    if len(given) == 1:
        missing = "inertia" if given == ["mass"] else "mass"
        raise source.error(
            (*path, given[0]),
            f"a body with {given[0]} needs {missing}, too (0 for the inertia of a point). Give "
            "both, or neither if they are not known.",
        )
