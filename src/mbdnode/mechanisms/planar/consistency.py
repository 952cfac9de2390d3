"""What is wrong with a mechanism file although each of its values is right."""

from typing import Any

from mbdnode.mechanisms.planar.checking import Source
from mbdnode.mechanisms.planar.description import Description
from mbdnode.mechanisms.planar.names import all_columns, all_parameters
from mbdnode.naming import unknown_name


def check_whole(source: Source, description: Description, drives: dict[str, Any]) -> None:
    """Raise `UserError` for what only shows when all parts are known.

    **Arguments:**

    - `source`: where the description comes from.
    - `description`: of which every value is right by itself.
    - `drives`: as they were written.
    """
    _check_drives(source, description, drives)
    _check_names(source, description)
    _check_independent(source, description)


def _check_drives(source: Source, description: Description, drives: dict[str, Any]) -> None:
    driven: dict[str, str] = {}
    for drive in description.drives:
        path, joint = ("drives", drive.name), description.joint(drive.joint)
        if joint.type not in ("revolute", "prismatic"):
            raise source.error(
                (*path, "joint"),
                f"{joint.name!r} is a {joint.type} joint; only a revolute or a prismatic one can "
                "be driven. Name one of those.",
            )
        if joint.name in driven:
            raise source.error(
                (*path, "joint"),
                f"{joint.name!r} is driven by {driven[joint.name]!r} already; a joint has one "
                "drive. Remove one of them.",
            )
        driven[joint.name] = drive.name
        for key in ("start", "offset", "amplitude"):
            value = drives[drive.name].get(key)
            if joint.type == "prismatic" and isinstance(value, str):
                raise source.error(
                    (*path, key),
                    f"it is {value!r}, but the joint {joint.name!r} slides. Give a number in "
                    "metres.",
                )


def _check_names(source: Source, description: Description) -> None:
    for kind, names in (
        ("columns (time, coordinates, velocities and inputs)", all_columns(description)),
        ("parameters", all_parameters(description)),
    ):
        seen: set[str] = set()
        for name, path in names:
            if name in seen:
                raise source.error(
                    path,
                    f"there would be two {kind} called {name!r}. Give one of the parts another "
                    "name.",
                )
            seen.add(name)


def _check_independent(source: Source, description: Description) -> None:
    columns = [name for body in description.bodies for name in body.coordinates]
    independent = description.independent or ()
    for name in independent:
        if name not in columns:
            raise source.error(("independent",), str(unknown_name("coordinate", name, columns)))
        if independent.count(name) > 1:
            raise source.error(("independent",), f"it names {name!r} twice. Name each once.")
