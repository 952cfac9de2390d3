"""Shapes of bodies: how a file gives them, and mass, center and inertia of solid ones.

A capsule or a cylinder lies along the z axis of its frame; a file may give its two ends instead. A
capsule's length is between the centers of its caps.
"""

import math
import os
from typing import Any

import numpy as np

from mbdnode.mechanisms.spatial.description import Frame, Inertia, Shape, Vector
from mbdnode.mechanisms.spatial.inertia import inertia_entries
from mbdnode.mechanisms.spatial.values import FRAME, vector, vectors
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.values import (
    Key,
    Source,
    check_table,
    needed,
    number,
    read_keys,
    text,
)
from mbdnode.naming import unknown_name

_AT, _ = FRAME
_RADIUS = needed("radius", number, "m", minimum=0.0, strict=True)
_DENSITY = Key("density", number, "kg/m^3; of a shape with mass", minimum=0.0, strict=True)
_ROUND = (
    _RADIUS,
    Key("ends", vectors, "of its axis, `[[x, y, z], [x, y, z]]` in m; or `at`, `rpy`, `length`"),
    Key("length", number, "along the z axis of its frame, m", minimum=0.0, strict=True),
    *FRAME,
    _DENSITY,
)

SHAPES: dict[str, tuple[Key, ...]] = {
    "capsule": _ROUND,
    "cylinder": _ROUND,
    "box": (
        needed("size", vector, "its edges, `[x, y, z]` in m", minimum=0.0, strict=True),
        *FRAME,
        _DENSITY,
    ),
    "sphere": (_RADIUS, _AT, _DENSITY),
    "mesh": (
        needed("file", text, "of the mesh, beside the mechanism file"),
        Key("scale", vector, "factors along its axes; default `[1, 1, 1]`"),
        *FRAME,
    ),
}


def shape(source: Source, path: Path, key: Key, value: Any) -> tuple[Shape, float]:
    """A shape, and its density; 0 where it gives none."""
    given = dict(check_table(source, path, value, 'Write { type = "sphere", radius = 0.1 }.'))
    kind = given.pop("type", None)
    if kind not in SHAPES:
        sentence = unknown_name("type of a shape", kind, SHAPES) if kind else _missing_type()
        raise source.error((*path, "type"), str(sentence))
    values = read_keys(source, path, SHAPES[kind], given, f"this {kind}")
    frame = Frame(**{name: values[name] for name in ("at", "rpy") if name in values})
    if kind in ("capsule", "cylinder"):
        frame, length = _along_axis(source, path, values, frame)
        size = (values["radius"], length)
    else:
        size = {
            "box": lambda: values["size"],
            "sphere": lambda: (values["radius"],),
            "mesh": lambda: values.get("scale", (1.0, 1.0, 1.0)),
        }[kind]()
    file = _mesh(source, (*path, "file"), values["file"]) if kind == "mesh" else ""
    return Shape(kind, frame, size, file), values.get("density", 0.0)


def _missing_type() -> str:
    return f"it is missing. Say which shape: {', '.join(SHAPES)}."


def _along_axis(
    source: Source, path: Path, values: dict[str, Any], frame: Frame
) -> tuple[Frame, float]:
    """The frame and the length of a capsule or a cylinder."""
    ends = values.get("ends")
    if (ends is None) == ("length" not in values):
        raise source.error(path, "it needs its ends or its length. Give one of the two.")
    if ends is None:
        return frame, values["length"]
    if "at" in values or "rpy" in values:
        raise source.error((*path, "ends"), "they say where it is. Leave out `at` and `rpy`.")
    first, second = np.array(ends[0]), np.array(ends[1])
    length = float(np.linalg.norm(second - first))
    if length == 0.0:
        raise source.error((*path, "ends"), "they are one point. Write a sphere, or two points.")
    x, y, z = (second - first) / length
    at = (first + second) / 2
    # Pitch and yaw turn the z axis to (cos yaw sin pitch, sin yaw sin pitch, cos pitch).
    turned = (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x))
    return Frame((float(at[0]), float(at[1]), float(at[2])), turned), length


def _mesh(source: Source, path: Path, name: str) -> str:
    """The file of a mesh, which must be there if the mechanism is read from a file."""
    if source.folder is None:
        return name
    file = os.path.abspath(os.path.join(source.folder, name))
    if not os.path.isfile(file):
        raise source.error(
            path,
            f"there is no file '{file}'. Its name is read from the folder of the mechanism file; "
            "correct it, or leave the mesh out.",
        )
    return file


def inertial(shapes: list[tuple[Shape, float]]) -> tuple[float, Vector, Inertia]:
    """Mass, center and inertia of solid shapes, each with its density."""
    from mbdnode.multibody.lie import rotation_from_rpy  # Loads JAX, which few files need.

    solids = [(*_solid(shape, density), shape.frame) for shape, density in shapes if density]
    masses = np.array([mass for mass, _, _ in solids])
    places = np.array([frame.at for _, _, frame in solids])
    center = masses @ places / masses.sum()
    total = np.zeros((3, 3))
    for mass, moments, frame in solids:
        arm, turn = np.array(frame.at) - center, rotation_from_rpy(*frame.rpy)
        total += turn @ np.diag(moments) @ turn.T
        total += mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    x, y, z = center.tolist()
    return float(masses.sum()), (x, y, z), inertia_entries((total + total.T) / 2)


def _solid(shape: Shape, density: float) -> tuple[float, tuple[float, float, float]]:
    """Mass and principal moments of a homogeneous solid, about its center."""
    if shape.type == "box":
        a, b, c = shape.size
        mass = density * a * b * c
        return mass, (
            mass * (b * b + c * c) / 12,
            mass * (a * a + c * c) / 12,
            mass * (a * a + b * b) / 12,
        )
    r = shape.size[0]
    ball = density * 4 / 3 * math.pi * r**3
    if shape.type == "sphere":
        moment = 0.4 * ball * r * r
        return ball, (moment, moment, moment)
    length = shape.size[1]
    tube = density * math.pi * r * r * length
    across, along = tube * (3 * r * r + length * length) / 12, tube * r * r / 2
    if shape.type == "cylinder":
        return tube, (across, across, along)
    # The two halves of a ball, each with its mass center 3/8 r from its flat face.
    across += ball * (0.4 * r * r + length * length / 4 + 3 / 8 * length * r)
    return tube + ball, (across, across, along + 0.4 * ball * r * r)
