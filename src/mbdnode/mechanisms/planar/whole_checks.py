"""What is wrong with a planar mechanism's file though every value is right by itself."""

from typing import Any

from mbdnode.mechanisms.planar.description import (
    Description,
    all_columns,
    all_parameters,
    make_profiles,
)
from mbdnode.mechanisms.toml_files.values import Source
from mbdnode.mechanisms.toml_files.whole_checks import (
    DRIVE_LENGTHS,
    check_driven_once,
    check_friction_keys,
    check_listed,
    check_meters,
    check_unique,
)

_COLUMNS = "columns (time, coordinates, velocities and inputs)"


def check_whole(source: Source, description: Description, drives: dict[str, Any]) -> None:
    """Raise `UserError` for what only shows when all parts are known."""
    for drive in description.drives:
        _check_moves(source, description, ("drives", drive.name), drive.joint)
        if description.joint(drive.joint).type == "prismatic":
            why = f"the joint {drive.joint!r} slides"
            path = ("drives", drive.name)
            check_meters(source, path, drives[drive.name], DRIVE_LENGTHS, why)
    check_driven_once(source, description.drives)
    for part in description.friction:
        _check_moves(source, description, ("friction", part.name), part.joint)
        check_friction_keys(source, part)
    check_unique(source, _COLUMNS, all_columns(description))
    check_unique(source, "parameters", all_parameters(description))
    coordinates = [name for body in description.bodies for name in body.coordinates]
    check_listed(source, "independent", "coordinate", description.independent or (), coordinates)
    parameters = [name for name, _ in all_parameters(description)]
    parameters += [one.name for one in make_profiles(description)]
    check_listed(source, "unknown", "parameter", description.unknown, parameters)


def _check_moves(
    source: Source, description: Description, path: tuple[str, ...], name: str
) -> None:
    """Raise unless a joint has a coordinate for a drive or for friction."""
    joint = description.joint(name)
    if joint.type not in ("revolute", "prismatic"):
        needs = {
            "drives": "only a revolute or a prismatic one can be driven",
            "friction": "dry friction is in a revolute or a prismatic one",
        }
        raise source.error(
            (*path, "joint"),
            f"{name!r} is a {joint.type} joint; {needs[path[0]]}. Name one of those.",
        )
