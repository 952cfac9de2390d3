"""Functions that suit joints: trigonometric of angles, polynomial of lengths.

A term is a product of one factor for each coordinate: `1, cos q, sin q, cos 2q, ...` for an angle,
`1, x, x^2, ...` for a length in units of its own size. A basis holds all terms up to a degree,
without those that depend on coordinates that it is told to leave out.
"""

import itertools

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.multibody import Coordinate


class Basis(eqx.Module):
    """Products of factors.

    **Arguments:**

    - `terms`: for each term, which factor of each coordinate; 0 is the constant.
    - `angles`: which coordinates are angles.
    - `size`: the unit of each length; one for angles.
    """

    terms: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    angles: tuple[bool, ...] = eqx.field(static=True)
    size: Float[Array, " nz"]

    def __len__(self) -> int:
        return len(self.terms)

    def __call__(self, z: Float[Array, " nz"]) -> Float[Array, " terms"]:
        """Every term's value."""
        highest = [max(term[i] for term in self.terms) for i in range(len(self.angles))]
        factors = [
            _harmonics(z[i], highest[i]) if angle else _powers(z[i] / self.size[i], highest[i])
            for i, angle in enumerate(self.angles)
        ]
        one = jnp.ones((), z.dtype)
        values = []
        for term in self.terms:
            value = one
            for i, factor in enumerate(term):
                value = value * factors[i][factor] if factor else value
            values.append(value)
        return jnp.stack(values)


def make_basis(
    coordinates: tuple[Coordinate, ...],
    size: Float[Array, " nz"],
    degree: int,
    left_out: frozenset[int] = frozenset(),
) -> Basis:
    """All products up to a degree.

    **Arguments:**

    - `coordinates`: of which.
    - `size`: the unit of each length.
    - `degree`: the greatest sum of the factors' own degrees.
    - `left_out`: coordinates, by index, on which no term depends.

    **Returns:**

    A `Basis`, the constant first.
    """
    angles = tuple(c.is_angle for c in coordinates)
    choices = []
    for i, angle in enumerate(angles):
        count = 0 if i in left_out else degree
        choices.append(range(2 * count + 1) if angle else range(count + 1))
    terms = [
        term
        for term in itertools.product(*choices)
        if sum(_degree(f, a) for f, a in zip(term, angles, strict=True)) <= degree
    ]
    terms.sort(key=lambda term: sum(_degree(f, a) for f, a in zip(term, angles, strict=True)))
    unit = jnp.where(jnp.asarray(angles), 1.0, jnp.where(size > 0, size, 1.0))
    return Basis(tuple(terms), angles, unit)


def _degree(factor: int, angle: bool) -> int:
    """Of a factor: 0 for the constant; harmonics come in pairs."""
    return (factor + 1) // 2 if angle else factor


def _powers(x, highest: int) -> list:
    powers = [jnp.ones_like(x)]
    for _ in range(highest):
        powers.append(powers[-1] * x)
    return powers


def _harmonics(q, highest: int) -> list:
    """1, cos q, sin q, cos 2q, sin 2q, ..."""
    values = [jnp.ones_like(q)]
    for order in range(1, (highest + 1) // 2 + 1):
        values += [jnp.cos(order * q), jnp.sin(order * q)]
    return values
