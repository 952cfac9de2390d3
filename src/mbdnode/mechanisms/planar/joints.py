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
counted from the pose in the file, `d0` and `turn0`. The residual of a distance is in meters and has
a slope of one, and it is smooth where the points meet.

Points of bodies in the plane, and what two bodies see of each other.

A body at `r` with angle `theta` has its point `p` at `r + R(theta) p`, which is linear in
`w = (q, cos theta, sin theta)` of all bodies. So are distances between points and angles between
bodies: each is a constant matrix times `w`, whatever the size of the mechanism, and little has to
be compiled.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.planar.description import Description, Drive, Joint, drive_terms
from mbdnode.multibody import Coords, Params, Time

# A larger matrix, most of which is zero, is multiplied entry by entry.
_LARGE = 2_000


class Map(NamedTuple):
    """Something that is linear in `w`: a matrix, and what the ground adds."""

    matrix: np.ndarray
    constant: np.ndarray

    def __call__(self, w: Float[Array, " nw"]) -> Float[Array, " n"]:
        """Its value."""
        if self.matrix.size > _LARGE:
            places, factors = _entries(self.matrix)
            value = jnp.sum(jnp.asarray(factors, w.dtype) * w[places], axis=1)
        else:
            value = jnp.asarray(self.matrix, w.dtype) @ w
        return value + jnp.asarray(self.constant, w.dtype) if np.any(self.constant) else value

    def __sub__(self, other: "Map") -> "Map":
        return Map(self.matrix - other.matrix, self.constant - other.constant)


def _entries(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of every row that are not zero: their columns and values, as many for each."""
    most = int(np.max(np.sum(matrix != 0, axis=1), initial=1))
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :most]
    return places, np.take_along_axis(matrix, places, axis=1)


def coordinates_and_angles(q: Coords) -> Float[Array, " nw"]:
    """`w`: all coordinates, the cosines of the angles, their sines."""
    angle = q[2::3]
    return jnp.concatenate([q, jnp.cos(angle), jnp.sin(angle)])


def reference_of(description: Description) -> np.ndarray:
    """The coordinates that the description gives, near which the mechanism is assembled."""
    return np.array([(*body.center, body.angle) for body in description.bodies], float).reshape(-1)


def vectors(description: Description, bodies: Sequence[str], values: Any) -> Map:
    """Vectors of bodies as they point in the plane, two rows for each."""
    count = len(description.bodies)
    matrix, constant = np.zeros((len(bodies), 2, 5 * count)), np.zeros((len(bodies), 2))
    for row, (body, (x, y)) in enumerate(zip(bodies, values, strict=True)):
        number = description.number(body) - 1
        if number < 0:
            constant[row] = x, y
        else:
            matrix[row, :, 3 * count + number] = x, y
            matrix[row, :, 4 * count + number] = -y, x
    return Map(matrix.reshape(-1, 5 * count), constant.reshape(-1))


def points(description: Description, bodies: Sequence[str], values: Any) -> Map:
    """Points of bodies in the plane, two rows for each."""
    matrix, constant = vectors(description, bodies, values)
    for row, body in enumerate(bodies):
        number = description.number(body) - 1
        if number >= 0:
            matrix[2 * row, 3 * number] = matrix[2 * row + 1, 3 * number + 1] = 1.0
    return Map(matrix, constant)


def between(description: Description, parts: Sequence[Any]) -> Map:
    """From the point on the first body of every part to that on the second, two rows for each."""
    first, second = (
        points(description, [p.bodies[side] for p in parts], [p.points[side] for p in parts])
        for side in (0, 1)
    )
    return second - first


def turn(description: Description, parts: Sequence[Any]) -> Map:
    """The angle of the second body of every part against the first."""
    matrix = np.zeros((len(parts), 5 * len(description.bodies)))
    for row, part in enumerate(parts):
        for body, sign in zip(part.bodies, (-1.0, 1.0), strict=True):
            number = description.number(body) - 1
            if number >= 0:
                matrix[row, 3 * number + 2] = sign
    return Map(matrix, np.zeros(len(parts)))


def size(apart: Float[Array, " twice"]) -> Float[Array, " n"]:
    """Lengths of vectors, given two entries for each; of nothing the slope is taken as zero."""
    squared = jnp.sum(apart.reshape(-1, 2) ** 2, axis=1)
    there = squared > 0
    return jnp.where(there, jnp.sqrt(jnp.where(there, squared, 1.0)), 0.0)


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
Block = tuple[list[Key], Float[Array, " n"]]


def constraint_names(description: Description) -> tuple[str, ...]:
    """A name for each constraint: that of the joint or drive, and what it holds."""
    return tuple(f"{name} ({row})" for name, row in _keys(description))


def constraints(description: Description, t: Time, q: Coords, mu: Params) -> Float[Array, " nc"]:
    """The residuals, joints in the order of the file, then drives."""
    if not description.joints:
        return jnp.zeros(0, q.dtype)
    w = coordinates_and_angles(q)
    blocks = [
        *_linear(description, w),
        *_guides(description, w),
        *_lengths(description, w, mu),
        *_wheels(description, w, mu),
        *_drives(description, t, w, mu),
    ]
    found = [key for keys, _ in blocks for key in keys]
    values = jnp.concatenate([residuals for _, residuals in blocks])
    order = [found.index(key) for key in _keys(description)]
    return values if order == list(range(len(order))) else values[np.array(order)]


def _keys(description: Description) -> list[Key]:
    joints = [(joint.name, row) for joint in description.joints for row in _ROWS[joint.type]]
    return joints + [(drive.name, _DRIVE) for drive in description.drives]


def _of_type(description: Description, *types: str) -> list[Joint]:
    return [joint for joint in description.joints if joint.type in types]


def _linear(description: Description, w: Array) -> list[Block]:
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


def _guides(description: Description, w: Array) -> list[Block]:
    guides = _of_type(description, "prismatic")
    if not guides:
        return []
    keys = [(joint.name, "across") for joint in guides]
    return [(keys, _across(description, guides, w))]


def _lengths(description: Description, w: Array, mu: Params) -> list[Block]:
    links = _of_type(description, "distance")
    if not links:
        return []
    length = jnp.stack([mu[f"{joint.name}_length"] for joint in links])
    squared = jnp.sum(between(description, links)(w).reshape(-1, 2) ** 2, axis=1)
    return [([(joint.name, "length") for joint in links], (squared - length**2) / (2 * length))]


def _wheels(description: Description, w: Array, mu: Params) -> list[Block]:
    wheels = _of_type(description, "rolling")
    if not wheels:
        return []
    radius = jnp.stack([mu[f"{joint.name}_radius"] for joint in wheels])
    start = coordinates_and_angles(jnp.asarray(reference_of(description), w.dtype))
    ahead = [_along(description, wheels, at) for at in (w, start)]
    turned = turn(description, wheels)(w - start)
    return [
        (
            [(joint.name, "height") for joint in wheels],
            _across(description, wheels, w) - radius,
        ),
        ([(joint.name, "rolling") for joint in wheels], ahead[0] - ahead[1] + radius * turned),
    ]


def joint_motions(
    description: Description, joints: Sequence[Joint], w: Array
) -> Float[Array, " n"]:
    """The angle or the displacement of revolute and prismatic joints."""
    turning = joints[0].type == "revolute"
    return turn(description, joints)(w) if turning else _along(description, joints, w)


def _drives(description: Description, t: Time, w: Array, mu: Params) -> list[Block]:
    blocks: list[Block] = []
    for kind in ("revolute", "prismatic"):
        drives = [d for d in description.drives if description.joint(d.joint).type == kind]
        if drives:
            joints = [description.joint(drive.joint) for drive in drives]
            moved = joint_motions(description, joints, w)
            wanted = jnp.stack([_motion(description, drive, t, mu) for drive in drives])
            blocks.append(([(drive.name, _DRIVE) for drive in drives], moved - wanted))
    return blocks


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
