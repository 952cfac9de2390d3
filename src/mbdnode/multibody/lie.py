"""Rotations in space: about an axis, by Euler parameters, and what they do to vectors.

A body's rotation matrix `R` turns vectors in its axes into vectors in the world's, and its angular
velocity `omega` in the world's axes gives `R' = [omega]x R`. Euler parameters `e = (e0, ev)` with
`|e| = 1` are

    R = I + 2 e0 [ev]x + 2 [ev]x^2,      omega = 2 (e0 ev' - e0' ev + ev x ev').

Divided by `|e|^2` both hold for any `e` that is not zero, so that only directions matter.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def cross_matrix(vector: Any) -> np.ndarray:
    """`[a]x` of constants, with `[a]x b = a x b`; of one vector or of several."""
    a = np.asarray(vector, float)
    matrix = np.zeros((*a.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -a[..., 2], a[..., 1], -a[..., 0]
    return matrix - np.swapaxes(matrix, -1, -2)


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Turned about the x axis, then about the fixed y axis, then about the fixed z axis."""
    one = lambda axis, angle: rotation_about(np.eye(3)[axis], angle)  # noqa: E731
    return one(2, yaw) @ one(1, pitch) @ one(0, roll)


def rotation_about(axis: Any, angle: float) -> np.ndarray:
    """By a constant angle about a constant unit vector."""
    turn = cross_matrix(axis)
    return np.eye(3) + np.sin(angle) * turn + (1 - np.cos(angle)) * turn @ turn


def quaternion_from_matrix(matrix: Any) -> np.ndarray:
    """The Euler parameters of a constant rotation, with the largest one positive."""
    r = np.asarray(matrix, float)
    outer = np.empty((4, 4))  # 4 e e^T, less nothing: each row is e times one of its entries.
    outer[0, 0] = 1 + np.trace(r)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        outer[i + 1, i + 1] = 1 + r[i, i] - r[j, j] - r[k, k]
        outer[0, i + 1] = outer[i + 1, 0] = r[k, j] - r[j, k]
        outer[i + 1, j + 1] = outer[j + 1, i + 1] = r[i, j] + r[j, i]
    best = outer[np.argmax(np.diag(outer))]
    return best / np.linalg.norm(best)


def cross(a: Float[Array, "*n 3"], b: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """`a x b`, written out, so that it is compiled together with what surrounds it."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def turned(rotation: Float[Array, "*n 3 3"], vector: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """`R a`, of each."""
    return jnp.sum(rotation * vector[..., None, :], axis=-1)


def composed(
    first: Float[Array, "*n 3 3"], second: Float[Array, "*n 3 3"]
) -> Float[Array, "*n 3 3"]:
    """`R1 R2`, of each."""
    return jnp.sum(first[..., :, :, None] * second[..., None, :, :], axis=-2)


def quaternion_rotation(e: Float[Array, "*n 4"]) -> Float[Array, "*n 3 3"]:
    """`R(e)` of Euler parameters of any length."""
    e0, x, y, z = (e[..., k] for k in range(4))
    rows = [
        [e0 * e0 + x * x - y * y - z * z, 2 * (x * y - e0 * z), 2 * (x * z + e0 * y)],
        [2 * (x * y + e0 * z), e0 * e0 - x * x + y * y - z * z, 2 * (y * z - e0 * x)],
        [2 * (x * z - e0 * y), 2 * (y * z + e0 * x), e0 * e0 - x * x - y * y + z * z],
    ]
    squared = jnp.sum(e * e, axis=-1)[..., None, None]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2) / squared


def quaternion_rates(e: Float[Array, "*n 4"]) -> Float[Array, "*n 4 3"]:
    """What each Euler parameter's velocity adds to the body's angular velocity in its own axes."""
    e0, x, y, z = (e[..., k] for k in range(4))
    rows = [[-x, -y, -z], [e0, -z, y], [z, e0, -x], [-y, x, e0]]
    matrix = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
    return 2 * matrix / jnp.sum(e * e, axis=-1)[..., None, None]
