"""Laws of single joints: springs, drag and friction.

A joint's stretch is one coordinate, or the difference of two of the same kind: the angle between
two links, the distance between two masses. What acts in a joint depends on its own stretch or rate
alone, so few numbers describe it, and few data find them.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.multibody import Coordinate

# The highest power of a stretch in its potential: that of a cubic spring.
_HIGHEST = 4


class Joints(eqx.Module):
    """Stretches of single coordinates and of pairs.

    **Arguments:**

    - `stretches`: each as a row of coefficients of the coordinates.
    - `springs`: the terms of their potential, each as a joint and a power.
    - `origin`: where each coordinate is measured from.
    """

    stretches: tuple[tuple[int, ...], ...] = eqx.field(static=True, default=())
    springs: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    origin: Float[Array, " nz"] = eqx.field(default_factory=lambda: jnp.zeros(0))

    def __len__(self) -> int:
        return len(self.stretches)

    @property
    def matrix(self) -> np.ndarray:
        """One row for each joint."""
        return np.array(self.stretches, float)

    def potentials(self, z: Float[Array, " nz"]) -> Float[Array, " springs"]:
        """Every term of the springs' potential."""
        stretch = jnp.asarray(self.matrix, z.dtype) @ (z - self.origin)
        joint, power = np.array(self.springs).T
        powers = jnp.cumprod(jnp.broadcast_to(stretch, (_HIGHEST, len(self))), axis=0)
        return powers[power - 1, joint]

    def resistances(
        self, s: Float[Array, " nz"], widths: Float[Array, " joints"]
    ) -> Float[Array, "nz resistances"]:
        """Drag `r |r|` and friction `tanh(r/width)` of every joint's rate `r`, as forces."""
        matrix = jnp.asarray(self.matrix, s.dtype)
        rate = matrix @ s
        laws = jnp.concatenate([rate * jnp.abs(rate), jnp.tanh(rate / widths)])
        return jnp.concatenate([matrix, matrix]).T * laws[None, :]


def make_joints(
    coordinates: tuple[Coordinate, ...], degree: int, origin: Float[Array, " nz"]
) -> Joints:
    """Every coordinate alone, and the difference of every two of the same kind.

    **Arguments:**

    - `coordinates`: of the model.
    - `degree`: of the polynomials of lengths that the potential has already; springs of lengths
        add the powers above it.
    - `origin`: where each coordinate is measured from.

    **Returns:**

    The `Joints`.
    """
    count = len(coordinates)
    angles = [c.is_angle for c in coordinates]
    unit = np.eye(count, dtype=int)
    rows = [(unit[i], angles[i]) for i in range(count)]
    rows += [
        (unit[i] - unit[j], angles[i])
        for i in range(count)
        for j in range(i + 1, count)
        if angles[i] == angles[j]
    ]
    springs = [
        (joint, power)
        for joint, (_, angle) in enumerate(rows)
        for power in range(1 if angle else degree + 1, _HIGHEST + 1)
    ]
    return Joints(tuple(tuple(int(x) for x in row) for row, _ in rows), tuple(springs), origin)
