"""From a TOML file to the description of a mechanism in space, or to an error that says what to do.

A file whose vectors have three numbers is one in space, one whose points have two is planar.
"""

from dataclasses import replace
from typing import Any

from mbdnode.mechanisms.planar.schema import JOINTS as PLANAR_JOINTS
from mbdnode.mechanisms.spatial.description import (
    Body,
    Coupling,
    Drive,
    Frame,
    Friction,
    Joint,
    Load,
    Motor,
    Output,
    SpatialDescription,
    Spring,
)
from mbdnode.mechanisms.spatial.inertia import check_inertia
from mbdnode.mechanisms.spatial.schema import JOINTS, TABLES, TOP
from mbdnode.mechanisms.spatial.shapes import inertial
from mbdnode.mechanisms.spatial.whole_checks import (
    check_spring,
    check_start,
    check_whole,
    coordinate_units,
)
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.parts import read_part, read_tables
from mbdnode.mechanisms.toml_files.values import Source

_EXAMPLE = 'Write, for instance, a line "[bodies.arm]" and below it "mass = 1.2".'
# Tables and keys that only files in space have.
_ONLY_TABLES = ("couplings", "motors", "outputs")
_ONLY_BODY_KEYS = ("shapes",)
_ONLY_JOINT_KEYS = ("frames", "axis", "second_axis", "pitch", "cut", "start", "armature")
# Parts whose lists of numbers are points or vectors.
_PLACES = ("gravity", "bodies", "joints", "springs", "dampers", "forces", "torques")


def is_spatial(data: dict[str, Any]) -> bool:
    """Whether a file's content is that of a mechanism in space.

    **Arguments:**

    - `data`: tables, lists, numbers and text, right or wrong.

    **Returns:**

    False for `plane = "xy"`, and where points of two numbers prevail.
    """
    if "plane" in data:
        return False
    parts = {kind: data.get(kind) for kind in _PLACES}
    sizes = [size for part in parts.values() for size in _vector_sizes(part)]
    space, plane = sum(size in (3, 6) for size in sizes), sizes.count(2)
    space += sum(table in data for table in _ONLY_TABLES)
    for body in _tables(parts["bodies"]):
        space += sum(key in body for key in _ONLY_BODY_KEYS)
        plane += isinstance(body.get("inertia"), (int, float))
    for joint in _tables(parts["joints"]):
        space += sum(key in joint for key in _ONLY_JOINT_KEYS)
        kind = str(joint.get("type"))
        space += kind in JOINTS and kind not in PLANAR_JOINTS
    return space > plane


def _tables(part: Any) -> list[dict[str, Any]]:
    tables = part.values() if isinstance(part, dict) else ()
    return [table for table in tables if isinstance(table, dict)]


def _vector_sizes(part: Any) -> list[int]:
    """How many numbers the lists of numbers in a part have."""
    if isinstance(part, dict):
        return [size for value in part.values() for size in _vector_sizes(value)]
    if not isinstance(part, list):
        return []
    if all(isinstance(value, (int, float)) for value in part):
        return [len(part)]
    return [size for value in part for size in _vector_sizes(value)]


def described(data: dict[str, Any], source: Source, name: str) -> SpatialDescription:
    """A checked description of what a file holds.

    **Arguments:**

    - `data`: tables, lists, numbers and text.
    - `source`: where they come from, for messages.
    - `name`: of the mechanism, if the data give none.

    **Returns:**

    A `SpatialDescription`. Raises `UserError` naming the line and what is wrong.
    """
    values, tables = read_tables(source, data, TOP, TABLES, _EXAMPLE)
    source = replace(source, bodies=tuple(tables["bodies"]), joints=tuple(tables["joints"]))

    def parts(kind: str) -> list[tuple[Path, dict[str, Any]]]:
        return [
            ((kind, part), {"name": part, **read_part(source, kind, TABLES[kind], part, table)})
            for part, table in tables[kind].items()
        ]

    bodies = tuple(_body(source, path, values) for path, values in parts("bodies"))
    joints = tuple(_joint(source, path, values) for path, values in parts("joints"))
    units = coordinate_units(bodies, joints)
    source = replace(source, coordinates=tuple(name for name, unit in units.items() if unit))
    springs = [*parts("springs"), *parts("dampers")]
    loads = [("force", *part) for part in parts("forces")]
    loads += [("torque", *part) for part in parts("torques")]
    description = SpatialDescription(
        **{"name": name, **values},
        bodies=bodies,
        joints=joints,
        couplings=tuple(_coupling(source, path, values) for path, values in parts("couplings")),
        springs=tuple(_spring(source, path, values) for path, values in springs),
        loads=tuple(Load(kind=kind, **values) for kind, _, values in loads),
        motors=tuple(_motor(source, path, values) for path, values in parts("motors")),
        drives=tuple(Drive(**values) for _, values in parts("drives")),
        friction=tuple(Friction(**values) for _, values in parts("friction")),
        outputs=tuple(_output(source, path, values) for path, values in parts("outputs")),
    )
    check_whole(source, description, tables)
    return description


def _body(source: Source, path: Path, values: dict[str, Any]) -> Body:
    shapes = list(values.pop("shapes", ()))
    given = [key for key in ("mass", "center", "inertia") if key in values]
    if any(density for _, density in shapes):
        if given:
            raise source.error(
                (*path, given[0]),
                f"its shapes have a density, from which its {given[0]} follows. Leave out "
                f"{given[0]}, or the densities.",
            )
        values["mass"], values["center"], values["inertia"] = inertial(shapes)
    elif "inertia" in values:
        check_inertia(source, (*path, "inertia"), values["inertia"])
    return Body(**values, shapes=tuple(shape for shape, _ in shapes))


def _joint(source: Source, path: Path, values: dict[str, Any]) -> Joint:
    if values["type"] == "rolling":
        values.setdefault("axis", (0.0, 0.0, 0.0))
    joint = Joint(**values)
    check_start(source, path, joint)
    return joint


def _coupling(source: Source, path: Path, values: dict[str, Any]) -> Coupling:
    ratio = values.pop("ratio", None)
    if (ratio is None) == ("coefficients" not in values):
        raise source.error(path, "it needs a ratio or coefficients. Give one of the two.")
    if ratio is not None:
        values["coefficients"] = (0.0, ratio)
    return Coupling(**values)


def _spring(source: Source, path: Path, values: dict[str, Any]) -> Spring:
    check_spring(source, path, values)
    return Spring(**values)


def _motor(source: Source, path: Path, values: dict[str, Any]) -> Motor:
    motor = Motor(**values)
    if motor.gear == 0.0:
        raise source.error((*path, "gear"), "it is 0, so the motor drives nothing. Write 1.")
    return motor


def _output(source: Source, path: Path, values: dict[str, Any]) -> Output:
    name = values.pop("name")
    if len(values) != 1:
        kinds = ", ".join(key.name for key in TABLES["outputs"].keys[""])
        raise source.error(
            path, f"it has {len(values)} of the keys that say what is measured. Give one: {kinds}."
        )
    ((kind, given),) = values.items()
    if kind == "distance":
        points = given.get("points", ((0.0,) * 3,) * 2)
        first, second = given["bodies"]
        return Output(name, kind, first, Frame(points[0]), second, points[1])
    body = given.pop("body")
    return Output(name, kind, body, Frame(**given))
