"""Kinds of values that only files of mechanisms in space have: vectors, frames, coordinates."""

import math
from collections.abc import Callable
from typing import Any

from mbdnode.mechanisms.spatial.description import Frame, Inertia, Vector
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.values import (
    Key,
    Kind,
    Source,
    angle,
    check_list,
    check_table,
    number,
    read_keys,
    text,
)
from mbdnode.naming import unknown_name


def vector(source: Source, path: Path, key: Key, value: Any) -> Vector:
    """Three numbers."""
    three = check_list(source, path, value, 3, "[0.5, 0.0, 0.0]")
    x, y, z = (number(source, path, key, v) for v in three)
    return x, y, z


def axis(source: Source, path: Path, key: Key, value: Any) -> Vector:
    """A vector that has a direction."""
    found = vector(source, path, key, value)
    if not any(found):
        raise source.error(
            path, "it is zero, so it has no direction. Write, for instance, [0, 0, 1]."
        )
    return found


def direction(source: Source, path: Path, key: Key, value: Any) -> Vector:
    """A vector of length one along the one that is given."""
    x, y, z = axis(source, path, key, value)
    length = math.hypot(x, y, z)
    # What has length one but for rounding stays as it is, so that it is read back as it was.
    return (x, y, z) if abs(length - 1) < 1e-12 else (x / length, y / length, z / length)


def vectors(source: Source, path: Path, key: Key, value: Any) -> tuple[Vector, Vector]:
    """Two vectors, one for each of two bodies or ends."""
    example = "[[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]"
    first, second = (
        vector(source, path, key, v) for v in check_list(source, path, value, 2, example)
    )
    return first, second


def six_numbers(source: Source, path: Path, key: Key, value: Any) -> Inertia:
    """The entries of a symmetric matrix."""
    six = check_list(source, path, value, 6, "[0.1, 0.2, 0.2, 0, 0, 0], of xx, yy, zz, xy, xz, yz")
    xx, yy, zz, xy, xz, yz = (number(source, path, key, v) for v in six)
    return xx, yy, zz, xy, xz, yz


def rpy(source: Source, path: Path, key: Key, value: Any) -> Vector:
    """Three angles."""
    three = check_list(source, path, value, 3, '["0 deg", "90 deg", "0 deg"]')
    roll, pitch, yaw = (angle(source, path, key, v) for v in three)
    return roll, pitch, yaw


def one_or_more(source: Source, path: Path, key: Key, value: Any) -> tuple[float, ...]:
    """Angles or lengths, one for each coordinate of a joint."""
    values = check_list(source, path, value, None, "[0.5]") if isinstance(value, list) else [value]
    return tuple(angle(source, path, key, v) for v in values)


FRAME = (
    Key("at", vector, "its origin in the body, `[x, y, z]` in m; default the body's origin"),
    Key("rpy", rpy, "roll, pitch and yaw: turned about x, then y, then z, rad; default 0"),
)


def frames(source: Source, path: Path, key: Key, value: Any) -> tuple[Frame, Frame]:
    """A frame on each of two bodies."""
    example = "[{ at = [0, 0, 1] }, { at = [0, 0, 0] }], one frame for each body"
    both = check_list(source, path, value, 2, example)
    first, second = (
        Frame(**table(FRAME, "a frame")(source, (*path, str(n)), key, each))
        for n, each in enumerate(both)
    )
    return first, second


def table(keys: tuple[Key, ...], what: str) -> Kind:
    """The kind of a table with certain keys; its value is a dictionary of theirs."""

    def kind(source: Source, path: Path, key: Key, value: Any) -> dict[str, Any]:
        example = f"Write it in braces, such as {{ {keys[0].name} = ... }}."
        return read_keys(source, path, keys, check_table(source, path, value, example), what)

    return kind


def list_of(kind: Callable[[Source, Path, Key, Any], Any], example: str) -> Kind:
    """The kind of a list of values, each with its own place."""

    def several(source: Source, path: Path, key: Key, value: Any) -> tuple[Any, ...]:
        values = check_list(source, path, value, None, example)
        return tuple(kind(source, (*path, str(n)), key, each) for n, each in enumerate(values))

    return several


def coordinate(source: Source, path: Path, key: Key, value: Any) -> str:
    """The name of a joint's coordinate."""
    name = text(source, path, key, value)
    if name not in source.coordinates:
        raise source.error(path, str(unknown_name("coordinate", name, source.coordinates)))
    return name


def coordinates(source: Source, path: Path, key: Key, value: Any) -> tuple[str, str]:
    """The names of two coordinates."""
    both = check_list(source, path, value, 2, '["second", "first"]')
    follower, leader = (coordinate(source, path, key, name) for name in both)
    if follower == leader:
        raise source.error(path, f"it names {leader!r} twice; a coordinate follows another one.")
    return follower, leader
