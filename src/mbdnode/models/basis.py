"""Functions that suit joints: trigonometric of angles, polynomial of lengths.

A term is a product of one factor for each coordinate: `1, cos q, sin q, cos 2q, ...` for an angle,
`1, x, x^2, ...` for a length, from an origin and in a unit that suit the data. A basis holds all
terms up to a degree.

Laws of single joints: springs, drag and friction.

A joint's stretch is one coordinate, or the difference of two of the same kind: the angle between
two links, the distance between two masses. What acts in a joint depends on its own stretch or rate
alone, so few numbers describe it, and few data find them.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.multibody import Coordinate


class Basis(eqx.Module):
    """Products of factors.

    **Arguments:**

    - `terms`: for each term, which factor of each coordinate; 0 is the constant.
    - `angles`: which coordinates are angles.
    - `origin`, `size`: of each length; zero and one for angles.
    """

    terms: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    angles: tuple[bool, ...] = eqx.field(static=True)
    origin: Float[Array, " nz"]
    size: Float[Array, " nz"]

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def degrees(self) -> tuple[int, ...]:
        """Of every term: the sum of its factors' own."""
        return tuple(
            sum(_degree(f, a) for f, a in zip(term, self.angles, strict=True))
            for term in self.terms
        )

    @property
    def pairs(self) -> tuple[bool, ...]:
        """Of every term whether it is a product of the first harmonics of two angles."""
        couples = set(_angle_pairs(self.angles))
        return tuple(term in couples for term in self.terms)

    def __call__(self, z: Float[Array, " nz"]) -> Float[Array, " terms"]:
        """Every term's value."""
        # Taken from a table of factors: a product written out for each term compiles slowly.
        choice = np.array(self.terms)
        value = jnp.ones(len(self.terms), z.dtype)
        for i, angle in enumerate(self.angles):
            highest = int(choice[:, i].max())
            if highest:
                table = (
                    _harmonics(z[i], highest)
                    if angle
                    else _powers((z[i] - self.origin[i]) / self.size[i], highest)
                )
                value = value * selected(table, choice[:, i])
        return value


def selected(values: Float[Array, " n"], index: np.ndarray) -> Float[Array, " m"]:
    """`values[index]` as a product with a matrix of zeros and ones.

    Each gather, and each scatter of its derivative, is a loop of its own for XLA on a processor.
    """
    return jnp.asarray(np.eye(values.shape[0])[index], values.dtype) @ values


def make_basis(
    coordinates: tuple[Coordinate, ...],
    degree: int,
    scale: "Scale | None" = None,
    *,
    pairs: bool = False,
) -> Basis:
    """All products up to a degree.

    **Arguments:**

    - `scale`: of the lengths; as they are if None.
    - `pairs`: whether products of the first harmonics of every two angles are among them in any
        case.
    """
    angles = tuple(c.is_angle for c in coordinates)
    choices = []
    for angle in angles:
        choices.append(range(2 * degree + 1) if angle else range(degree + 1))
    terms = [
        term
        for term in itertools.product(*choices)
        if sum(_degree(f, a) for f, a in zip(term, angles, strict=True)) <= degree
    ]
    if pairs:
        terms += [term for term in _angle_pairs(angles) if term not in terms]
    terms.sort(key=lambda term: sum(_degree(f, a) for f, a in zip(term, angles, strict=True)))
    scale = scale or plain_scale(len(angles))
    turning = np.array(angles, bool)
    origin, size = (np.asarray(x) for x in (scale.origin, scale.size))
    placed = jax.device_put((np.where(turning, 0.0, origin), np.where(turning, 1.0, size)))
    return Basis(tuple(terms), angles, *placed)


def _angle_pairs(angles: tuple[bool, ...]) -> list[tuple[int, ...]]:
    """Products of a sine or cosine of one angle and one of another."""
    turning = [i for i, angle in enumerate(angles) if angle]
    return [
        tuple(factors.get(i, 0) for i in range(len(angles)))
        for i, j in itertools.combinations(turning, 2)
        for factors in ({i: a, j: b} for a in (1, 2) for b in (1, 2))
    ]


class Scale(eqx.Module):
    """Where each length is measured from, and in which unit."""

    origin: Float[Array, " nz"]
    size: Float[Array, " nz"]


def plain_scale(count: int) -> Scale:
    """Lengths as they are."""
    return Scale(*jax.device_put((np.zeros(count), np.ones(count))))


def scale_of(z: Float[Array, "n nz"]) -> Scale:
    """From the data: lengths that pass zero keep it as their origin, which is often a rest.

    Others are measured from the middle of their range: powers of a length that hardly changes
    would be all alike.
    """
    values = np.asarray(z)  # By NumPy, since JAX would compile each of these.
    low, high = np.min(values, axis=0), np.max(values, axis=0)
    origin = np.where((low <= 0) & (high >= 0), 0.0, (low + high) / 2)
    size = np.max(np.abs(values - origin[None]), axis=0)
    return Scale(jax.device_put(origin), jax.device_put(np.where(size > 0, size, 1.0)))


def _degree(factor: int, angle: bool) -> int:
    """Of a factor: 0 for the constant; harmonics come in pairs."""
    return (factor + 1) // 2 if angle else factor


def _powers(x, highest: int) -> Float[Array, " factors"]:
    powers = [jnp.ones_like(x)]
    for _ in range(highest):
        powers.append(powers[-1] * x)
    return jnp.stack(powers)


def _harmonics(q, highest: int) -> Float[Array, " factors"]:
    """1, cos q, sin q, cos 2q, sin 2q, ..."""
    orders = jnp.arange(1, (highest + 1) // 2 + 1, dtype=q.dtype)
    pairs = jnp.stack([jnp.cos(orders * q), jnp.sin(orders * q)], axis=1)
    return jnp.concatenate([jnp.ones(1, q.dtype), pairs.reshape(-1)])


# The highest power of a stretch in its potential: that of a cubic spring.
_HIGHEST = 4


class Joints(eqx.Module):
    """Stretches of single coordinates and of pairs.

    **Arguments:**

    - `stretches`: each as a row of coefficients of the coordinates.
    - `springs`: the terms of their potential, each as a joint and a power.
    - `origin`: where each coordinate is measured from.
    - `resisting`: how many of them have drag and friction: all or none.
    """

    stretches: tuple[tuple[int, ...], ...] = eqx.field(static=True, default=())
    springs: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    origin: Float[Array, " nz"] = eqx.field(default_factory=lambda: jnp.zeros(0))
    resisting: int = eqx.field(static=True, default=0)

    @property
    def matrix(self) -> np.ndarray:
        """One row for each joint."""
        return np.array(self.stretches, float)

    def potentials(self, z: Float[Array, " nz"]) -> Float[Array, " springs"]:
        """Every term of the springs' potential."""
        stretch = jnp.asarray(self.matrix, z.dtype) @ (z - self.origin)
        joint, power = np.array(self.springs).T
        powers = jnp.cumprod(jnp.broadcast_to(stretch, (power.max(), stretch.size)), axis=0)
        return selected(powers.reshape(-1), (power - 1) * stretch.size + joint)

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

    - `degree`: of the polynomials of lengths that the potential has already; springs of lengths add
        the powers above it.
    """
    rows = _stretches(coordinates)
    springs = [
        (joint, power)
        for joint, (_, angle) in enumerate(rows)
        for power in range(1 if angle else degree + 1, _HIGHEST + 1)
    ]
    return Joints(tuple(row for row, _ in rows), tuple(springs), origin, len(rows))


def make_angle_springs(coordinates: tuple[Coordinate, ...]) -> Joints:
    """Linear springs of angles and of twists between two, and constant torques.

    The `Joints`, without drag and friction; none for lengths, whose potential has such terms.
    """
    rows = [row for row, angle in _stretches(coordinates) if angle]
    # The first power of a twist is the difference of those of its two angles.
    lowest = [1 if sum(map(abs, row)) == 1 else 2 for row in rows]
    springs = [(joint, power) for joint, low in enumerate(lowest) for power in range(low, 3)]
    return Joints(tuple(rows), tuple(springs), jax.device_put(np.zeros(len(coordinates))))


def _stretches(coordinates: tuple[Coordinate, ...]) -> list[tuple[tuple[int, ...], bool]]:
    """Rows of coefficients, and whether they are of angles; single coordinates first."""
    unit = np.eye(len(coordinates), dtype=int)
    kinds = [c.is_angle for c in coordinates]
    rows = [(unit[i], kind) for i, kind in enumerate(kinds)]
    rows += [
        (unit[i] - unit[j], kinds[i])
        for i, j in itertools.combinations(range(len(kinds)), 2)
        if kinds[i] == kinds[j]
    ]
    return [(tuple(int(x) for x in row), kind) for row, kind in rows]
