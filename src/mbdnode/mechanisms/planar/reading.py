"""From a TOML file to a planar mechanism, or to an error that says what to change on which line."""

import os
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from mbdnode.config import as_path, parse_toml, read_toml
from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import GROUND, PARTS, Description
from mbdnode.mechanisms.planar.located_errors import Source, check_name, check_table, read_keys
from mbdnode.mechanisms.planar.schema import TABLES, TOP, PartKeys
from mbdnode.mechanisms.planar.whole_checks import check_whole
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar.mechanism import PlanarKinematics, PlanarMechanism

# No mechanism needs more, and every one of them is compiled.
_MOST_PARTS = 1_000
_FIX = "Correct that line; docs/how-to/mechanism-files.md shows how a mechanism is written."
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
    return _described(parse_toml(text, label, _FIX), Source(label, text), FilePath(path).stem)


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
    data = parse_toml(text, label, _FIX)
    return _made(_described(data, Source(label, text), name))


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
    return _made(_described(data, Source(label), name))


def _made(description: Description) -> "PlanarMechanism | PlanarKinematics":
    from mbdnode.mechanisms.planar.mechanism import PlanarKinematics, PlanarMechanism

    return PlanarKinematics(description) if description.weightless else PlanarMechanism(description)


def _described(data: dict[str, Any], source: Source, name: str) -> Description:
    if not data:
        raise UserError(f"{source.label} is empty; a mechanism has a body. {_EXAMPLE}")
    tables = _tables(source, data)
    if not tables["bodies"]:
        raise UserError(f"{source.label} has no bodies. {_EXAMPLE}")
    count = sum(map(len, tables.values()))
    if count > _MOST_PARTS:
        raise UserError(
            f"{source.label} has {count:,} parts; a mechanism has at most {_MOST_PARTS:,} bodies, "
            "joints, springs and the like. Leave some out."
        )
    _check_part_names(source, tables)
    source = Source(source.label, source.text, tuple(tables["bodies"]), tuple(tables["joints"]))
    rest = {key: value for key, value in data.items() if key not in TABLES}
    values = read_keys(source, (), TOP, rest, "a mechanism")
    parts: dict[str, Any] = {
        kind: tuple(_part(source, kind, part, table) for part, table in tables[kind].items())
        for kind in TABLES
    }
    description = Description(**{"name": name, **values}, **parts)
    check_whole(source, description, tables["drives"])
    return description


def _tables(source: Source, data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parts of each kind by name; unknown keys of the file itself are refused."""
    known = [*(key.name for key in TOP), *TABLES]
    for key in data:
        if key not in known:
            raise source.error((key,), str(unknown_name("key", key, known)))
    return {
        kind: check_table(source, (kind,), data.get(kind, {}), f"Write [{kind}.NAME].")
        for kind in TABLES
    }


def _check_part_names(source: Source, tables: dict[str, dict[str, Any]]) -> None:
    seen: dict[str, str] = {}
    for kind, parts in tables.items():
        for name in parts:
            path, word = (kind, name), TABLES[kind].word
            check_name(source, path, name)
            if name == GROUND:
                raise source.error(
                    path, f"{GROUND!r} is the body that stands still. Choose another."
                )
            if name in seen:
                raise source.error(
                    path, f"there is a {seen[name]} called {name!r} already. Call the {word} other."
                )
            seen[name] = word


def _part(source: Source, kind: str, name: str, given: Any) -> Any:
    """One body, joint, spring or the like."""
    table, path = TABLES[kind], (kind, name)
    values = dict(check_table(source, path, given, f"Write [{kind}.{name}] and its keys below."))
    chosen = _chosen(source, path, table, values) if table.choice else ""
    values.pop(table.choice, None)
    what = f"the {chosen} {table.word} {name!r}".replace("  ", " ")
    values = read_keys(source, path, table.keys[chosen], values, what)
    if table.choice:
        values[table.choice] = chosen
    if kind == "bodies":
        values.setdefault("coordinates", (f"{name}_x", f"{name}_y", f"{name}_angle"))
        _check_mass(source, path, values)
    return PARTS[kind](name=name, **values)


def _chosen(source: Source, path: tuple[str, ...], table: PartKeys, values: dict[str, Any]) -> str:
    chosen = values.get(table.choice)
    where = (*path, table.choice)
    if chosen is None:
        choices = ", ".join(table.keys)
        raise source.error(where, f"it is missing. Say which {table.word}: {choices}.")
    if not isinstance(chosen, str) or chosen not in table.keys:
        kind = f"{table.choice} of a {table.word}"
        raise source.error(where, str(unknown_name(kind, str(chosen), table.keys)))
    return chosen


def _check_mass(source: Source, path: tuple[str, ...], values: dict[str, Any]) -> None:
    given = [key for key in ("mass", "inertia") if key in values]
    if len(given) == 1:
        missing = "inertia" if given == ["mass"] else "mass"
        raise source.error(
            (*path, given[0]),
            f"a body with {given[0]} needs {missing}, too (0 for the inertia of a point). Give "
            "both, or neither if they are not known.",
        )
