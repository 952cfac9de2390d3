"""What is wrong with the file of a mechanism in space though every value is right by itself."""

from collections.abc import Iterator
from typing import Any

from mbdnode.mechanisms.spatial.description import (
    COORDINATES,
    GROUND,
    OUTPUT_COLUMNS,
    Body,
    Joint,
    SpatialDescription,
    coordinate_names,
)
from mbdnode.mechanisms.spatial.parameters import all_parameters, is_turning
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.parts import Tables
from mbdnode.mechanisms.toml_files.values import Source
from mbdnode.mechanisms.toml_files.whole_checks import (
    DRIVE_LENGTHS,
    check_driven_once,
    check_friction_keys,
    check_listed,
    check_meters,
    check_unique,
)

_COLUMNS = "columns (time, coordinates, velocities, inputs and outputs)"


def coordinate_units(bodies: tuple[Body, ...], joints: tuple[Joint, ...]) -> dict[str, str]:
    """The coordinates that there may be, with their units; Euler parameters have none."""
    return {
        f"{joint.name}{suffix}": unit
        for joint in (*joints, *free_joints(bodies, joints))
        for suffix, unit in COORDINATES.get(joint.type, ())
        if not joint.cut
    }


def free_joints(bodies: tuple[Body, ...], joints: tuple[Joint, ...]) -> list[Joint]:
    """A free joint for the first of the bodies that no joint connects to the ground."""
    connected = {GROUND}
    free: list[Joint] = []
    trees = [set(j.bodies) for j in joints if j.type in COORDINATES and not j.cut]
    for body in bodies:
        _grow(connected, trees)
        if body.name not in connected:
            free.append(Joint(body.name, "free", (GROUND, body.name)))
            connected.add(body.name)
    return free


def _grow(connected: set[str], pairs: list[set[str]]) -> None:
    """Add all that pairs connect to what is connected already."""
    while near := [pair for pair in pairs if len(pair & connected) == 1]:
        connected.update(*near)


def check_start(source: Source, path: Path, joint: Joint) -> None:
    """Raise unless a joint's start has a value for each of its coordinates."""
    if not joint.start:
        return
    names = coordinate_names(joint)
    if len(joint.start) != len(names):
        raise source.error(
            (*path, "start"),
            f"it has {len(joint.start)} values, but a {joint.type} joint has {len(names)}: "
            f"{', '.join(names)}. Give one for each.",
        )
    if joint.type in ("spherical", "free") and not any(joint.start[-4:]):
        raise source.error(
            (*path, "start"), "its Euler parameters are zero. Without a turn they are [1, 0, 0, 0]."
        )


def check_spring(source: Source, path: Path, values: dict[str, Any]) -> None:
    """Raise unless a spring is between two bodies or along a coordinate."""
    if ("bodies" in values) == ("coordinate" in values):
        raise source.error(path, "it needs two bodies or a coordinate. Give one of the two.")
    if "coordinate" in values and "points" in values:
        raise source.error(
            (*path, "points"), "it acts along a coordinate, which has no points. Leave them out."
        )


def check_whole(source: Source, description: SpatialDescription, tables: Tables) -> None:
    """Raise `UserError` for what only shows when all parts are known."""
    units = coordinate_units(description.bodies, description.joints)
    for joint in description.joints:
        _check_start_units(source, joint, tables["joints"][joint.name].get("start"))
    for spring in description.springs:
        kind = "springs" if spring.name in tables["springs"] else "dampers"
        path, table = (kind, spring.name), tables[kind][spring.name]
        if units.get(spring.coordinate) != "rad":
            check_meters(source, path, table, ("free",), "it is a length")
    for drive in description.drives:
        if units[drive.joint] == "m":
            path, why = ("drives", drive.name), f"{drive.joint!r} slides"
            check_meters(source, path, tables["drives"][drive.name], DRIVE_LENGTHS, why)
    check_driven_once(source, description.drives)
    for part in description.friction:
        check_friction_keys(source, part)
    _check_followers(source, description)
    check_unique(source, _COLUMNS, _columns(description, units))
    parameters = [(parameter.name, path) for parameter, path in all_parameters(description)]
    check_unique(source, "parameters", parameters)
    check_listed(source, "independent", "coordinate", description.independent or (), units)
    names = [name for name, _ in parameters]
    for part in description.friction:
        turning = is_turning(description, part)
        names += [profile.name for profile in part.profiles(turning=turning)]
    check_listed(source, "unknown", "parameter", description.unknown, names)


def _check_start_units(source: Source, joint: Joint, given: Any) -> None:
    """Raise where a start gives an angle for a length."""
    values = given if isinstance(given, list) else [given]
    for (suffix, unit), value in zip(COORDINATES.get(joint.type, ()), values, strict=False):
        if unit != "rad":
            why = f"{joint.name + suffix!r} is no angle"
            check_meters(source, ("joints", joint.name), {"start": value}, ("start",), why)


def _check_followers(source: Source, description: SpatialDescription) -> None:
    seen: dict[str, str] = {}
    for coupling in description.couplings:
        follower = coupling.coordinates[0]
        if follower in seen:
            raise source.error(
                ("couplings", coupling.name, "coordinates"),
                f"{follower!r} follows by {seen[follower]!r} already. Remove one of the two.",
            )
        seen[follower] = coupling.name


def _columns(description: SpatialDescription, units: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """The columns of a trajectory, each with its place in the file."""
    yield "t", ()
    free = [joint.name for joint in free_joints(description.bodies, description.joints)]
    for joint in (*description.joints, *free_joints(description.bodies, description.joints)):
        path = ("bodies" if joint.name in free else "joints", joint.name)
        for name in coordinate_names(joint):
            if name in units:
                yield name, path
                yield f"{name}_dot", path
    for load in description.loads:
        if load.value is None:
            yield load.name, (f"{load.kind}s", load.name)
    for motor in description.motors:
        yield motor.name, ("motors", motor.name)
    for output in description.outputs:
        for suffix in OUTPUT_COLUMNS[output.type][0]:
            yield f"{output.name}{suffix}", ("outputs", output.name)
