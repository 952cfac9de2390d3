"""Joints that close loops, and other constraints, as residuals of the poses of two frames.

With `d` from the first frame's origin to the second's, `a` the axis, `n` and `m` two unit vectors
that are perpendicular to it, in the first frame, and primes for the same in the second,

    spherical     d = 0
    universal     d = 0,                        a.a2' = 0
    revolute      d = 0,                        n.a' = 0,  m.a' = 0
    cylindrical   n.d = 0,  m.d = 0,            n.a' = 0,  m.a' = 0
    prismatic     n.d = 0,  m.d = 0,            n.a' = 0,  m.a' = 0,  n.m' = 0
    planar        a.d = 0,                      n.a' = 0,  m.a' = 0
    fixed         d = 0,                        n.a' = 0,  m.a' = 0,  n.m' = 0
    distance      (d.d - l^2)/(2 l) = 0
    line          n.d = 0,  m.d = 0
    rolling       a.d = height of the center over the first frame's x-y plane

A residual of directions is the sine of the angle that is missing. Two types bind velocities: what
rolls without slip has no velocity where it touches the plane, and a blade none along its axis,

    rolling       x.u = 0,  y.u = 0      with u that of the point of contact,
    blade         a.u = 0                with u that of the first frame's origin on the second body.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.spatial.description import Joint
from mbdnode.mechanisms.spatial.graph import Layout, Placement, perpendicular, unit
from mbdnode.multibody import Params
from mbdnode.multibody.lie import composed, cross, turned
from mbdnode.multibody.tree import Poses, Twist

# What each type holds, in the order of its rows.
ROWS: dict[str, tuple[str, ...]] = {
    "spherical": ("x", "y", "z"),
    "universal": ("x", "y", "z", "angle"),
    "revolute": ("x", "y", "z", "tilt 1", "tilt 2"),
    "cylindrical": ("across 1", "across 2", "tilt 1", "tilt 2"),
    "prismatic": ("across 1", "across 2", "tilt 1", "tilt 2", "twist"),
    "planar": ("height", "tilt 1", "tilt 2"),
    "fixed": ("x", "y", "z", "tilt 1", "tilt 2", "twist"),
    "distance": ("length",),
    "line": ("across 1", "across 2"),
    "rolling": ("height",),
}
# Of those that bind velocities.
VELOCITY_ROWS: dict[str, tuple[str, ...]] = {
    "rolling": ("slip 1", "slip 2"),
    "blade": ("slip",),
}


class _Pair(NamedTuple):
    """The frames of several joints in the world, `a`, `n` and `m` of either side as columns."""

    apart: Float[Array, "joints 3"]
    first: Float[Array, "joints 3 3"]
    second: Float[Array, "joints 3 3"]

    def offset(self, column: int) -> Float[Array, " joints"]:
        """The distance along a direction of the first frame."""
        return jnp.sum(self.first[:, :, column] * self.apart, axis=-1)

    def between(self, column: int, other: int) -> Float[Array, " joints"]:
        """The cosine between a direction of the first frame and one of the second."""
        return jnp.sum(self.first[:, :, column] * self.second[:, :, other], axis=-1)


_AXIS, _N, _M = range(3)


def closure_names(closing: Sequence[Joint]) -> list[str]:
    """Of every residual: the joint, and what it holds."""
    return [
        f"{j.name} ({row})" for _, js in _by_type(closing, ROWS) for j in js for row in ROWS[j.type]
    ]


def closures(layout: Layout, poses: Poses, mu: Params) -> list[Float[Array, " n"]]:
    """The residuals of positions, joints of one type together."""
    found = []
    for kind, joints in _by_type(layout.closing, ROWS):
        pair = _pairs(layout, joints, poses)
        rows = _ROWS_OF[kind](pair, joints, mu)
        found.append(jnp.stack(rows, axis=1).reshape(-1))
    return found


def velocity_closures(
    layout: Layout, poses: Poses, twists: Twist, origin: Float[Array, "3"], mu: Params
) -> list[Float[Array, " n"]]:
    """What may not slip: velocities that are zero."""
    found = []
    for kind, joints in _by_type(layout.closing, VELOCITY_ROWS):
        for joint in joints:
            first, second = (layout.bodies[b].frame(f) for b, f in _sides(joint))
            if kind == "blade":
                touching, held = _point(poses, first), [unit(joint.axis)]
            else:
                touching, held = _contact(joint, first, second, poses, mu), np.eye(3)[:2]
            moving = [_velocity(twists, p.node, touching - origin) for p in (second, first)]
            along = _rotation(poses, first)
            slip = moving[0] - moving[1]
            found.append(
                jnp.stack([(along @ jnp.asarray(axis, slip.dtype)) @ slip for axis in held])
            )
    return found


def _by_type(joints: Sequence[Joint], kinds: Any) -> list[tuple[str, list[Joint]]]:
    groups = [(kind, [j for j in joints if j.type == kind]) for kind in kinds]
    return [(kind, members) for kind, members in groups if members]


def _sides(joint: Joint):
    return zip(joint.bodies, joint.frames, strict=True)


def _pairs(layout: Layout, joints: list[Joint], poses: Poses) -> _Pair:
    sides = []
    for side in (0, 1):
        places = [layout.bodies[j.bodies[side]].frame(j.frames[side]) for j in joints]
        own = np.stack(
            [p.rotation @ _directions(j, side) for p, j in zip(places, joints, strict=True)]
        )
        nodes = np.array([p.node for p in places], int)
        rotation = composed(poses.rotation[nodes], jnp.asarray(own, poses.place.dtype))
        sides.append((poses.point(nodes, np.stack([p.offset for p in places])), rotation))
    (start, first), (end, second) = sides
    return _Pair(end - start, first, second)


def _directions(joint: Joint, side: int) -> np.ndarray:
    """`a`, `n` and `m` of a frame as columns."""
    if joint.type in ("spherical", "distance", "rolling"):
        return np.eye(3)[:, [2, 0, 1]]
    axis = unit(joint.second_axis if joint.type == "universal" and side else joint.axis)
    return np.stack([axis, *perpendicular(axis)], axis=1)


def _position(pair, joints, mu):
    return [pair.apart[:, k] for k in range(3)]


def _across(pair, joints, mu):
    return [pair.offset(_N), pair.offset(_M)]


def _tilt(pair, joints, mu):
    return [pair.between(_N, _AXIS), pair.between(_M, _AXIS)]


def _twist(pair, joints, mu):
    return [pair.between(_N, _M)]


def _length(pair, joints, mu):
    length = jnp.stack([mu[f"{j.name}_length"] for j in joints])
    return [(jnp.sum(pair.apart**2, axis=1) - length**2) / (2 * length)]


def _height(pair, joints, mu):
    radius = jnp.stack([mu[f"{j.name}_radius"] for j in joints])
    return [pair.offset(_AXIS) - radius * _lift(joints, pair.first, pair.second)]


def _lift(joints, first, second):
    """The height of the center over the plane, for each unit of the radius."""
    disk = np.array([any(j.axis) for j in joints])
    own = np.stack([unit(j.axis) if any(j.axis) else np.zeros(3) for j in joints])
    # The second frame's columns are its z, x and y axes.
    axis = turned(second[:, :, [1, 2, 0]], jnp.asarray(own, second.dtype))
    leaning = jnp.sum(axis * first[:, :, _AXIS], axis=-1)
    # A disk that lies flat touches with its face, where the height has no slope.
    squared = jnp.where(disk, 1.0 - leaning**2, 1.0)
    return jnp.sqrt(jnp.maximum(squared, 1e-30))


def _joined(*parts):
    return lambda pair, joints, mu: [row for part in parts for row in part(pair, joints, mu)]


_ROWS_OF = {
    "spherical": _position,
    "universal": _joined(_position, lambda pair, joints, mu: [pair.between(_AXIS, _AXIS)]),
    "revolute": _joined(_position, _tilt),
    "cylindrical": _joined(_across, _tilt),
    "prismatic": _joined(_across, _tilt, _twist),
    "planar": _joined(lambda pair, joints, mu: [pair.offset(_AXIS)], _tilt),
    "fixed": _joined(_position, _tilt, _twist),
    "distance": _length,
    "line": _across,
    "rolling": _height,
}


def _point(poses: Poses, place: Placement) -> Float[Array, "3"]:
    return poses.place[place.node] + poses.rotation[place.node] @ jnp.asarray(
        place.offset, poses.place.dtype
    )


def _rotation(poses: Poses, place: Placement) -> Float[Array, "3 3"]:
    return poses.rotation[place.node] @ jnp.asarray(place.rotation, poses.place.dtype)


def _contact(joint: Joint, first: Placement, second: Placement, poses: Poses, mu: Params):
    """Where what rolls touches the plane."""
    center, up = _point(poses, second), _rotation(poses, first)[:, 2]
    down = -up
    if any(joint.axis):
        axis = _rotation(poses, second) @ jnp.asarray(unit(joint.axis), center.dtype)
        down = down - (down @ axis) * axis
        down = down / jnp.sqrt(jnp.maximum(down @ down, 1e-30))
    return center + mu[f"{joint.name}_radius"] * down


def _velocity(twists: Twist, node: int, arm: Float[Array, "3"]) -> Float[Array, "3"]:
    return twists.linear[node] + cross(twists.angular[node], arm)
