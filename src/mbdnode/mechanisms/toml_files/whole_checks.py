"""What is wrong with any mechanism's file though every value is right by itself."""

from collections.abc import Iterable
from typing import Any

from mbdnode.mechanisms.planar.description import Drive
from mbdnode.mechanisms.planar.joint_friction import Friction
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.values import Source
from mbdnode.naming import unknown_name


def check_driven_once(source: Source, drives: tuple[Drive, ...]) -> None:
    """Raise where two drives move one joint."""
    driven: dict[str, str] = {}
    for drive in drives:
        if drive.joint in driven:
            raise source.error(
                ("drives", drive.name, "joint"),
                f"{drive.joint!r} is driven by {driven[drive.joint]!r} already; a joint has one "
                "drive. Remove one of them.",
            )
        driven[drive.joint] = drive.name


def check_meters(
    source: Source, path: Path, table: dict[str, Any], keys: Iterable[str], why: str
) -> None:
    """Raise where a length is given as a text, which is an angle with its unit."""
    for key in keys:
        value = table.get(key)
        if isinstance(value, str):
            raise source.error(
                (*path, key), f"it is {value!r}, but {why}. Give a number in meters."
            )


# What a drive says in the unit of its joint.
DRIVE_LENGTHS = ("start", "offset", "amplitude")


def check_friction_keys(source: Source, part: Friction) -> None:
    """Raise where keys of friction that need each other are not together."""
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


def check_unique(source: Source, kinds: str, names: Iterable[tuple[str, Path]]) -> None:
    """Raise where two columns or two parameters would have one name."""
    seen: set[str] = set()
    for name, path in names:
        if name in seen:
            raise source.error(
                path,
                f"there would be two {kinds} called {name!r}. Give one of the parts another name.",
            )
        seen.add(name)


def check_listed(
    source: Source, key: str, kind: str, given: tuple[str, ...], known: Iterable[str]
) -> None:
    """Raise unless a list of the file names things that there are, each once."""
    known = list(known)
    for name in given:
        if name not in known:
            raise source.error((key,), str(unknown_name(kind, name, known)))
        if given.count(name) > 1:
            raise source.error((key,), f"it names {name!r} twice. Name each once.")
