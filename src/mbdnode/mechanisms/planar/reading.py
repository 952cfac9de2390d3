"""From a TOML file to a planar mechanism, or to an error that says what to change on which line."""

import os
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from mbdnode.config import as_path, parse_toml, read_toml
from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import PARTS, Description
from mbdnode.mechanisms.planar.schema import TABLES, TOP
from mbdnode.mechanisms.planar.whole_checks import check_whole
from mbdnode.mechanisms.toml_files.parts import WAY_OUT, read_part, read_tables
from mbdnode.mechanisms.toml_files.values import Source

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar.mechanism import PlanarKinematics, PlanarMechanism

_EXAMPLE = 'Write, for instance, a line "[bodies.crank]" and below it "center = [0.5, 0.0]".'


def read_mechanism(path: str | os.PathLike[str]) -> "PlanarMechanism | PlanarKinematics":
    """Read a mechanism from a TOML file.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    A `PlanarMechanism`; or, if a body has no mass, a `PlanarKinematics`, which has constraints but
    no accelerations. Raises `UserError` naming the line and the key of what is wrong.
    """
    return _made(read_description(path))


def read_description(path: str | os.PathLike[str]) -> Description:
    """What a mechanism's TOML file says; JAX is not loaded for it.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    A `Description`. Raises `UserError` as `read_mechanism`.
    """
    label, text = os.fspath(as_path(path)), read_toml(path, "a mechanism")
    return described(parse_toml(text, label, WAY_OUT), Source(label, text), FilePath(path).stem)


def from_text(
    text: str, *, label: str = "the text", name: str = "mechanism"
) -> "PlanarMechanism | PlanarKinematics":
    """A mechanism from the text of a TOML file.

    **Arguments:**

    - `text`: the file's content.
    - `label`: what to call it in messages.
    - `name`: of the mechanism, if the text gives none.

    **Returns:**

    As `read_mechanism`.
    """
    data = parse_toml(text, label, WAY_OUT)
    return _made(described(data, Source(label, text), name))


def from_dict(
    data: dict[str, Any], *, label: str = "the mechanism", name: str = "mechanism"
) -> "PlanarMechanism | PlanarKinematics":
    """A mechanism from what a TOML file would hold, as `to_dict` gives it.

    **Arguments:**

    - `data`: tables, lists, numbers and text.
    - `label`: what to call it in messages.
    - `name`: of the mechanism, if the data give none.

    **Returns:**

    As `read_mechanism`.
    """
    if not isinstance(data, dict):
        raise UserError(f"{label} is a {type(data).__name__}; it must be a dictionary.")
    return _made(described(data, Source(label), name))


def _made(description: Description) -> "PlanarMechanism | PlanarKinematics":
    from mbdnode.mechanisms.planar.mechanism import PlanarKinematics, PlanarMechanism

    return PlanarKinematics(description) if description.weightless else PlanarMechanism(description)


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
