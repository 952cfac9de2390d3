"""What is wrong with a mechanism's file though every value is right by itself."""

from typing import Any

from mbdnode.mechanisms.planar.description import (
    Description,
    all_columns,
    all_parameters,
    make_profiles,
)
from mbdnode.mechanisms.planar.joint_friction import Friction
from mbdnode.mechanisms.toml_files.values import Source
from mbdnode.naming import unknown_name


def check_whole(source: Source, description: Description, drives: dict[str, Any]) -> None:
    """Raise `UserError` for what only shows when all parts are known."""
    _check_drives(source, description, drives)
    _check_friction(source, description)
    _check_names(source, description)
    _check_independent(source, description)
    _check_unknown(source, description)


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
                    "meters.",
                )


def _check_friction(source: Source, description: Description) -> None:
    for part in description.friction:
        joint = description.joint(part.joint)
        if joint.type not in ("revolute", "prismatic"):
            raise source.error(
                ("friction", part.name, "joint"),
                f"{joint.name!r} is a {joint.type} joint; dry friction is in a revolute or a "
                "prismatic one. Name one of those.",
            )
        _check_friction_keys(source, part)


def _check_friction_keys(source: Source, part: Friction) -> None:
    """Keys that need each other."""
    path = ("friction", part.name)
    several = [
        key
        for key in ("limit", "backward", "viscous", "viscous_backward")
        if isinstance(getattr(part, key), tuple)
    ]
    if several and part.over is None:
        raise source.error(
            (*path, several[0]),
            "it has several values along the joint. Add over = [low, high]: where the first and "
            "the last of them lie.",
        )
    if part.over is not None and (not several or not part.over[0] < part.over[1]):
        raise source.error(
            (*path, "over"),
            f"it is {list(part.over)}; it says where the first and the last of several values lie, "
            "the lower place first. Give such values, or leave it out.",
        )
    for key, needed in (("static", "speed"), ("speed", "static"), ("viscous_backward", "viscous")):
        if getattr(part, key) is not None and getattr(part, needed) is None:
            raise source.error((*path, key), f"it needs {needed}, too. Add it, or leave both out.")


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


def _check_unknown(source: Source, description: Description) -> None:
    names = [name for name, _ in all_parameters(description)]
    names += [one.name for one in make_profiles(description)]
    for name in description.unknown:
        if name not in names:
            raise source.error(("unknown",), str(unknown_name("parameter", name, names)))
        if description.unknown.count(name) > 1:
            raise source.error(("unknown",), f"it names {name!r} twice. Name each once.")
