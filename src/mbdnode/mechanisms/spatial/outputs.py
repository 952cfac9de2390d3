"""What sensors on the bodies see: points, velocities, orientations, accelerations, distances."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.spatial.description import (
    OUTPUT_COLUMNS,
    Output,
    SpatialDescription,
)
from mbdnode.mechanisms.spatial.graph import Layout
from mbdnode.multibody import Coordinate
from mbdnode.multibody.lie import cross, turned
from mbdnode.multibody.tree import Poses, Twist


def output_quantities(description: SpatialDescription) -> tuple[Coordinate, ...]:
    """A name and a unit for every column."""
    return tuple(
        Coordinate(f"{output.name}{suffix}", unit=OUTPUT_COLUMNS[output.type][1])
        for output in description.outputs
        for suffix in OUTPUT_COLUMNS[output.type][0]
    )


def measure(
    description: SpatialDescription,
    layout: Layout,
    poses: Poses,
    origin: Float[Array, "3"],
    twists: Twist,
    accelerations: Twist,
    gravity: Float[Array, "3"],
) -> Float[Array, " outputs"]:
    """Every column, at one state with known accelerations."""
    found = [
        jnp.atleast_1d(_one(output, layout, poses, origin, twists, accelerations, gravity))
        for output in description.outputs
    ]
    return jnp.concatenate(found) if found else jnp.zeros(0, origin.dtype)


def _one(output: Output, layout, poses, origin, twists, accelerations, gravity):
    place = layout.bodies[output.body].frame(output.frame)
    node, at = place.node, poses.point(place.node, place.offset)
    if output.type == "point":
        return at
    if output.type == "distance":
        other = layout.bodies[output.other]
        end = poses.point(other.node, other.rotation @ np.array(output.other_at) + other.offset)
        return jnp.linalg.norm(end - at)
    rotation = poses.rotation[node] @ jnp.asarray(place.rotation, at.dtype)
    if output.type == "orientation":
        return _euler_parameters(rotation)
    spin = twists.angular[node]
    if output.type == "angular_velocity":
        return spin
    if output.type == "gyroscope":
        return turned(rotation.T, spin)
    if output.type == "angular_acceleration":
        return accelerations.angular[node]
    speed = twists.linear[node] + cross(spin, at - origin)
    if output.type == "velocity":
        return speed
    # From the spatial acceleration to that of the body's point.
    moved = accelerations.linear[node] + cross(accelerations.angular[node], at - origin)
    moved = moved + cross(spin, speed)
    return turned(rotation.T, moved - gravity) if output.type == "accelerometer" else moved


def _euler_parameters(r: Float[Array, "3 3"]) -> Float[Array, "4"]:
    """Of a rotation matrix, by its largest entry; the first of them is not negative."""
    diagonal = jnp.stack([r[0, 0], r[1, 1], r[2, 2]])
    trace = jnp.sum(diagonal)
    rows = [
        [1 + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
        [r[2, 1] - r[1, 2], 1 + 2 * r[0, 0] - trace, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
        [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 1 + 2 * r[1, 1] - trace, r[1, 2] + r[2, 1]],
        [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 1 + 2 * r[2, 2] - trace],
    ]
    outer = jnp.stack([jnp.stack(row) for row in rows])
    best = outer[jnp.argmax(jnp.diagonal(outer))]
    e = best / jnp.linalg.norm(best)
    return jnp.where(e[0] < 0, -e, e)
