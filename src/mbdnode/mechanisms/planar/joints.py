"""Joints and drives as constraints.

With `d` from the joint's point on the first body to that on the second, `turn` the angle between
the bodies, and `e`, `n` the joint's direction in the first body and its normal to the left,

    revolute    d = 0
    prismatic   n.d = 0,         turn - angle = 0
    fixed       d = 0,           turn - angle = 0
    distance    (d.d - l^2)/(2 l) = 0
    rolling     n.d - r = 0,     (e.d - e.d0) + r (turn - turn0) = 0
    drive       turn - s(t) = 0, or e.d - s(t) = 0.

Rolling without slip along a straight line can be integrated to positions: what is rolled is
counted from the pose in the file, `d0` and `turn0`. The residual of a distance is in metres and has
a slope of one, and it is smooth where the points meet.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.planar.description import Description, Drive, Joint
from mbdnode.mechanisms.planar.geometry import (
    Map,
    between,
    features,
    reference_of,
    turn,
    vectors,
)
from mbdnode.mechanisms.planar.names import drive_terms
from mbdnode.multibody import Coords, Params, Time

# What each type of joint holds, in the order of its constraints.
_ROWS: dict[str, tuple[str, ...]] = {
    "revolute": ("x", "y"),
    "prismatic": ("across", "angle"),
    "fixed": ("x", "y", "angle"),
    "distance": ("length",),
    "rolling": ("height", "rolling"),
}
_DRIVE = "drive"

Key = tuple[str, str]
# Some constraints, in any order, and their residuals.
Piece = tuple[list[Key], Float[Array, " n"]]


def constraint_names(description: Description) -> tuple[str, ...]:
    """A name for each constraint: that of the joint or drive, and what it holds."""
    return tuple(f"{name} ({row})" for name, row in _keys(description))


def constraints(description: Description, t: Time, q: Coords, mu: Params) -> Float[Array, " nc"]:
    """The residuals, joints in the order of the file, then drives."""
    if not description.joints:
        return jnp.zeros(0, q.dtype)
    w = features(q)
    pieces = [
        *_linear(description, w),
        *_guides(description, w),
        *_lengths(description, w, mu),
        *_wheels(description, w, mu),
        *_drives(description, t, w, mu),
    ]
    found = [key for keys, _ in pieces for key in keys]
    values = jnp.concatenate([residuals for _, residuals in pieces])
    order = [found.index(key) for key in _keys(description)]
    return values if order == list(range(len(order))) else values[np.array(order)]


def _keys(description: Description) -> list[Key]:
    joints = [(joint.name, row) for joint in description.joints for row in _ROWS[joint.type]]
    return joints + [(drive.name, _DRIVE) for drive in description.drives]


def _of_type(description: Description, *types: str) -> list[Joint]:
    return [joint for joint in description.joints if joint.type in types]


def _linear(description: Description, w: Array) -> list[Piece]:
    """Points that meet and angles that are held, all at once."""
    pinned = _of_type(description, "revolute", "fixed")
    held = _of_type(description, "prismatic", "fixed")
    if not pinned and not held:
        return []
    keys = [(joint.name, axis) for joint in pinned for axis in "xy"]
    keys += [(joint.name, "angle") for joint in held]
    meeting, turned = between(description, pinned), turn(description, held)
    wanted = np.array([joint.angle for joint in held])
    whole = Map(
        np.concatenate([meeting.matrix, turned.matrix]),
        np.concatenate([meeting.constant, -wanted]),
    )
    return [(keys, whole(w))]


def _along(description: Description, joints: Sequence[Joint], w: Array) -> Float[Array, " n"]:
    """`e.d` of joints."""
    angle = np.array([joint.direction for joint in joints])
    return _component(description, joints, w, np.stack([np.cos(angle), np.sin(angle)], axis=1))


def _across(description: Description, joints: Sequence[Joint], w: Array) -> Float[Array, " n"]:
    """`n.d` of joints."""
    angle = np.array([joint.direction for joint in joints])
    return _component(description, joints, w, np.stack([-np.sin(angle), np.cos(angle)], axis=1))


def _component(
    description: Description, joints: Sequence[Joint], w: Array, units: np.ndarray
) -> Float[Array, " n"]:
    """Of `d`, along unit vectors of the joints' first bodies."""
    direction = vectors(description, [joint.bodies[0] for joint in joints], units)(w)
    return jnp.sum((direction * between(description, joints)(w)).reshape(-1, 2), axis=1)


def _guides(description: Description, w: Array) -> list[Piece]:
    guides = _of_type(description, "prismatic")
    if not guides:
        return []
    keys = [(joint.name, "across") for joint in guides]
    return [(keys, _across(description, guides, w))]


def _lengths(description: Description, w: Array, mu: Params) -> list[Piece]:
    links = _of_type(description, "distance")
    if not links:
        return []
    length = jnp.stack([mu[f"{joint.name}_length"] for joint in links])
    squared = jnp.sum(between(description, links)(w).reshape(-1, 2) ** 2, axis=1)
    return [([(joint.name, "length") for joint in links], (squared - length**2) / (2 * length))]


def _wheels(description: Description, w: Array, mu: Params) -> list[Piece]:
    wheels = _of_type(description, "rolling")
    if not wheels:
        return []
    radius = jnp.stack([mu[f"{joint.name}_radius"] for joint in wheels])
    start = features(jnp.asarray(reference_of(description), w.dtype))
    ahead = [_along(description, wheels, at) for at in (w, start)]
    turned = turn(description, wheels)(w - start)
    return [
        (
            [(joint.name, "height") for joint in wheels],
            _across(description, wheels, w) - radius,
        ),
        ([(joint.name, "rolling") for joint in wheels], ahead[0] - ahead[1] + radius * turned),
    ]


def _drives(description: Description, t: Time, w: Array, mu: Params) -> list[Piece]:
    pieces: list[Piece] = []
    for kind in ("revolute", "prismatic"):
        drives = [d for d in description.drives if description.joint(d.joint).type == kind]
        if drives:
            joints = [description.joint(drive.joint) for drive in drives]
            turning = kind == "revolute"
            moved = turn(description, joints)(w) if turning else _along(description, joints, w)
            wanted = jnp.stack([_motion(description, drive, t, mu) for drive in drives])
            pieces.append(([(drive.name, _DRIVE) for drive in drives], moved - wanted))
    return pieces


def _motion(description: Description, drive: Drive, t: Time, mu: Params) -> Float[Array, ""]:
    """`s(t)`."""
    terms = drive_terms(drive, description.joint(drive.joint))
    values = [mu[f"{drive.name}_{key}"] for key, _, _ in terms]
    if drive.motion == "sine":
        offset, amplitude, frequency, phase = values
        return offset + amplitude * jnp.sin(2 * np.pi * frequency * t + phase)
    # A constant rate is a polynomial of two terms.
    total = jnp.zeros_like(t)
    for value in reversed(values):
        total = total * t + value
    return total
