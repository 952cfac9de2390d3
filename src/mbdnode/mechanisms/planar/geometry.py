"""Points of bodies in the plane, and what two bodies see of each other.

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

from mbdnode.mechanisms.planar.description import Description
from mbdnode.multibody import Coords


class Map(NamedTuple):
    """Something that is linear in `w`: a matrix, and what the ground adds."""

    matrix: np.ndarray
    constant: np.ndarray

    def __call__(self, w: Float[Array, " nw"]) -> Float[Array, " n"]:
        """Its value."""
        value = jnp.asarray(self.matrix, w.dtype) @ w
        return value + jnp.asarray(self.constant, w.dtype) if np.any(self.constant) else value

    def __sub__(self, other: "Map") -> "Map":
        return Map(self.matrix - other.matrix, self.constant - other.constant)


def features(q: Coords) -> Float[Array, " nw"]:
    """`w`: all coordinates, the cosines of the angles, their sines."""
    angle = q[2::3]
    return jnp.concatenate([q, jnp.cos(angle), jnp.sin(angle)])


def reference_of(description: Description) -> np.ndarray:
    """The coordinates that the description gives, near which the mechanism is assembled."""
    return np.array([(*body.centre, body.angle) for body in description.bodies], float).reshape(-1)


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
