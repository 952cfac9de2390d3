"""Coordinates that the constraints give explicitly, eliminated once and for all.

A pin at `r + R(theta) p` is nonlinear in the angle of a body, but its position `r` stands in it
with constant factors. Constraints that have constant factors in some coordinates x,

    A x + f(t, w) = 0      =>      x = -A^-1 f(t, w),       dx/dw = L = -A^-1 f_w,

are solved for them in every configuration by one matrix that is inverted at set-up. Substituted in
the others, they leave a system in the remaining coordinates w alone,

    Psi(t, w) = Phi_r(t, x(t, w), w) = 0,       Psi_w = Phi_rw + Phi_rx L.

Joints of a tree leave none: its dependent coordinates are an explicit function of the independent
ones, whatever its size. Every loop leaves as many rows as it closes; a slider-crank of nine
coordinates is one equation in one unknown. `det C_d` is that of `Psi_w` times a constant, so that
singular configurations are those of `Psi`, and x never has to be exchanged for another coordinate.

Since a joint couples two bodies, a column of `f_w` has few entries, and one of `L` is the sum of as
many columns of `A^-1`.
"""

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbdnode.multibody.sparsity.constraint_structure import Structure

# Pivots of a constant matrix with rows of unit length: below this it is not solved.
_SMALLEST_PIVOT = 1e-6
# Columns up to which they are pivoted without SciPy.
_FEW_COLUMNS = 48
# If columns of `f_w` have more entries than this, `L` is a product of full matrices.
_MOST_ENTRIES = 12
# Coordinates from which on `A` is solved by its entries, and how many of them may meet in one.
_MANY, _MOST_MEETING = 24, 4


def _indices(values: Any) -> np.ndarray:
    """Of 32 bits, since exported programs may be traced without larger integers."""
    return np.array(values, np.int32)


@dataclass(frozen=True)
class Elimination:
    """Which coordinates are eliminated by which constraints.

    **Arguments:**

    - `size`: the number of coordinates.
    - `columns`: the coordinates x.
    - `rows`: the constraints that are solved for them.
    - `entries`: of `A`, each a row, a column and a value.
    - `coupled`: for each remaining coordinate, the rows of `A` that depend on it.
    - `across`: of `Phi_x` in all constraints, each a row, a column and a value, if all of them are
        constant; None if one is not.
    """

    size: int
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    entries: tuple[tuple[int, int, float], ...]
    coupled: tuple[tuple[int, ...], ...]
    across: tuple[tuple[int, int, float], ...] | None = None

    @property
    def count(self) -> int:
        """How many coordinates are eliminated."""
        return len(self.columns)

    @functools.cached_property
    def others(self) -> np.ndarray:
        """The coordinates w."""
        return _indices(np.setdiff1d(np.arange(self.size), self.columns))

    @functools.cached_property
    def inverse(self) -> Float[np.ndarray, "nx nx"]:
        """`A^-1`."""
        matrix = np.zeros((self.count, self.count))
        for row, column, value in self.entries:
            matrix[row, column] = value
        inverse = np.linalg.inv(matrix)
        # Joints have factors of one, whose inverse is whole but for rounding.
        whole = np.round(inverse)
        return np.where(np.abs(inverse - whole) < 1e-12, whole, inverse)

    @functools.cached_property
    def place(self) -> np.ndarray:
        """Where each coordinate stands among `others`."""
        place = _indices([0] * self.size)
        place[self.others] = np.arange(len(self.others))
        return place

    @functools.cached_property
    def _factors(self) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """`A^-1` of many coordinates as `(I + E^4) (I + E^2) (I + E) D`; None if it is full.

        A joint gives the position of a body by that of the body before: `x = D r + E x`, where no
        coordinate comes back to itself, so that a power of `E` vanishes. `D` has one entry in a
        row, and in a tree so has every power of `E`.
        """
        if self.count < _MANY:
            return None
        matrix = np.zeros((self.count, self.count))
        for row, column, value in self.entries:
            matrix[row, column] = value
        first, before = np.zeros_like(matrix), np.zeros_like(matrix)
        open_rows, unknown = set(range(self.count)), matrix != 0
        while open_rows:
            ready = [row for row in sorted(open_rows) if unknown[row].sum() == 1]
            if not ready:
                return None
            for row in ready:
                own = np.flatnonzero(unknown[row])
                if len(own) != 1:  # Another row of this turn gives the same coordinate.
                    return None
                column = int(own[0])
                first[column, row] = 1 / matrix[row, column]
                before[column] = -matrix[row] / matrix[row, column]
                before[column, column] = 0.0
                open_rows.remove(row)
            unknown[:, [c for c in range(self.count) if first[c].any()]] = False
        powers = []
        while before.any():
            meeting = max((before != 0).sum(axis=0).max(), (before != 0).sum(axis=1).max())
            if meeting > _MOST_MEETING:
                return None
            powers.append(before)
            before = before @ before
        return first, powers

    def solve(self, right: Float[Array, "nx *k"]) -> Float[Array, "nx *k"]:
        """`A^-1 right`."""
        if self._factors is None:
            return jnp.asarray(self.inverse, right.dtype) @ right
        first, powers = self._factors
        return _substituted(_sparse_times(first, right), powers)

    def solve_own(self, right: Float[Array, " nc"]) -> Float[Array, " nx"]:
        """`A^-1` times those entries of a vector that belong to the rows of `A`."""
        if self._factors is not None:
            return self.solve(right[_indices(self.rows)])
        return jnp.asarray(self._own_inverse(right.shape[0]), right.dtype) @ right

    def _own_inverse(self, count: int) -> np.ndarray:
        # One product for both: XLA would evaluate a residual again for every entry of a gather.
        matrix = np.zeros((self.count, count))
        matrix[:, list(self.rows)] = self.inverse
        return matrix

    def substitute(
        self, residual: Float[Array, " nc"], rows: Int[Array, " nr"] | np.ndarray
    ) -> Float[Array, " nr"]:
        """These rows of `Psi`, from `Phi` at any x.

        With `Phi_x` constant, solving for x changes `Phi` by `-Phi_x A^-1` times its rows of `A`.
        """
        assert self.across is not None
        count = residual.shape[0]
        slopes = np.zeros((count, self.count))
        for row, column, value in self.across:
            slopes[row, column] = value
        matrix = np.eye(count) - slopes @ self._own_inverse(count)
        # Zero but for rounding, as are those of `A`.
        matrix = np.where(np.abs(matrix) < 1e-12, 0.0, matrix)
        if isinstance(rows, np.ndarray):
            return jnp.asarray(matrix[rows], residual.dtype) @ residual
        return (jnp.asarray(matrix, residual.dtype) @ residual)[rows]

    def solve_transposed(self, right: Float[Array, "nx *k"]) -> Float[Array, "nx *k"]:
        """`A^-T right`."""
        if self._factors is None:
            return jnp.asarray(self.inverse.T, right.dtype) @ right
        first, powers = self._factors
        return _sparse_times(first.T, _substituted(right, [power.T for power in powers]))

    def slopes(self, jacobian: Float[Array, "nc nq"]) -> Float[Array, "nx nw"]:
        """`L`, from the Jacobian of the constraints."""
        rows, columns = _indices(self.rows), self.others
        most = max((len(own) for own in self.coupled), default=0)
        if most > min(_MOST_ENTRIES, self.count):
            return -self.solve(jacobian[rows][:, columns])
        # A column with fewer entries has zeros for the others.
        own = _indices(np.zeros((most, len(columns))))
        used = np.zeros((most, len(columns)))
        for column, found in enumerate(self.coupled):
            own[: len(found), column], used[: len(found), column] = found, 1.0
        total = jnp.zeros((self.count, len(columns)), jacobian.dtype)
        for k in range(most):
            part = -self.inverse[:, own[k]] * used[k][None, :]
            entries = jacobian[rows[own[k]], columns]
            total = total + jnp.asarray(part, jacobian.dtype) * entries[None, :]
        return total

    def row_reduced(self, jacobian, xp=jnp):
        """A matrix with the same dependencies between its columns, solved for x.

        The rows of x have nothing in the columns w, and the others nothing in the columns x, so
        that a choice of pivots takes x first; what is left is `Psi_w`.
        """
        rows, columns = _indices(self.rows), _indices(self.columns)
        rest = _indices(np.setdiff1d(np.arange(jacobian.shape[0]), rows))
        given = xp.asarray(jacobian)
        slope = -xp.asarray(self.inverse) @ given[rows][:, self.others]
        left = given[rest][:, self.others] + given[rest][:, columns] @ slope
        if xp is np:
            found = np.zeros(jacobian.shape)
            found[np.ix_(rest, self.others)] = left
            found[rows, columns] = 1.0
            return found
        found = jnp.zeros(jacobian.shape, given.dtype)
        found = found.at[rest[:, None], self.others[None, :]].set(left)
        return found.at[rows, columns].set(1.0)


def _sparse_times(matrix: np.ndarray, right: Float[Array, "n *k"]) -> Float[Array, "m *k"]:
    """A constant matrix with few entries in a row times a vector, or several."""
    return _sum_of_entries(*_entries(matrix, _most_in_a_row(matrix)), right)


def _substituted(x: Float[Array, "n *k"], powers: list[np.ndarray]) -> Float[Array, "n *k"]:
    """The product of `I + E` for all of these matrices, which commute, with a vector, or several.

    In a loop: XLA would evaluate all that is before a power once more for each of its entries.
    """
    if not powers:
        return x
    most = max(map(_most_in_a_row, powers))
    places, factors = zip(*(_entries(power, most) for power in powers), strict=True)

    def substitute(x, power):
        own_places, own_factors = power
        return x + _sum_of_entries(own_places, own_factors, x), None

    return jax.lax.scan(substitute, x, (np.stack(places), np.stack(factors).astype(x.dtype)))[0]


def _most_in_a_row(matrix: np.ndarray) -> int:
    return int((matrix != 0).sum(axis=1).max())


def _entries(matrix: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns and the values of so many entries of every row, the last axis."""
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :most]
    return _indices(places.T), np.take_along_axis(matrix, places, axis=1).T


def _sum_of_entries(places, factors, right: Float[Array, "n *k"]) -> Float[Array, "m *k"]:
    total = jnp.zeros_like(right)
    for k in range(places.shape[0]):
        wide = jnp.asarray(factors[k], right.dtype).reshape(-1, *(1,) * (right.ndim - 1))
        total = total + wide * right[places[k]]
    return total


def plan_elimination(structure: Structure, kept: Collection[int] = ()) -> Elimination | None:
    """Choose what is eliminated: as much as constant factors allow.

    An `Elimination`, or None if there is nothing to eliminate.
    """
    constant, nonlinear = structure.coefficient, structure.nonlinear
    size = constant.shape[1]
    possible = [
        c for c in range(size) if c not in kept and np.any((constant[:, c] != 0) & ~nonlinear[:, c])
    ]
    # First all that stand with constant factors wherever they stand, then others one by one: each
    # takes the rows away that are nonlinear in it, and is left where those are needed.
    linear = [c for c in possible if not nonlinear[:, c].any()]
    columns = [linear[i] for i in _independent(constant[:, linear])]
    alive = np.ones(len(constant), bool)
    for column in sorted(
        (c for c in possible if nonlinear[:, c].any()), key=lambda c: nonlinear[:, c].sum()
    ):
        rows, more = alive & ~nonlinear[:, column], [*columns, column]
        if not np.any(constant[rows, column]) or rows.sum() < len(more):
            continue
        if len(_independent(constant[rows][:, more])) == len(more):
            columns, alive = more, rows
    if not columns:
        return None
    columns = sorted(columns)
    candidates = np.flatnonzero(alive)
    rows = sorted(candidates[_independent(constant[candidates][:, columns].T)])
    matrix = constant[np.ix_(rows, columns)]
    entries = tuple((int(i), int(j), float(matrix[i, j])) for i, j in np.argwhere(matrix))
    others = np.setdiff1d(np.arange(size), columns)
    depends = structure.depends[np.ix_(rows, others)]
    coupled = tuple(tuple(map(int, np.flatnonzero(own))) for own in depends.T)
    is_linear = not nonlinear[:, columns].any()
    across = constant[:, columns]
    across = tuple((int(i), int(j), float(across[i, j])) for i, j in np.argwhere(across))
    return Elimination(
        *(size, tuple(map(int, columns)), tuple(map(int, rows)), entries, coupled),
        across=across if is_linear else None,
    )


def _independent(matrix: np.ndarray) -> list[int]:
    """Columns of a matrix that do not follow from each other, as many as there are."""
    if 0 in matrix.shape:
        return []
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = matrix / np.where(length > 0, length, 1.0)
    # Of equal columns the first is taken.
    biased = unit * (1 - 1e-9 * np.arange(matrix.shape[1]))[None, :]
    sizes, pivots = pivoted_columns(biased)
    count = int(np.sum(sizes > _SMALLEST_PIVOT))
    return sorted(int(column) for column in pivots[:count])


def pivoted_columns(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a matrix by what they add to those before them, the most first.

    That is a QR factorization with pivoting. Few columns are not worth the loading of
    `scipy.linalg`, which takes a third as long as that of JAX.

    How much of each is orthogonal to those before it, as many as there are rows or columns, and the
    numbers of all columns in that order.
    """
    if matrix.shape[1] > _FEW_COLUMNS:
        import scipy.linalg

        r, order = scipy.linalg.qr(matrix, mode="r", pivoting=True)  # pyright: ignore
        return np.abs(np.diag(r)), order
    left, order = np.array(matrix, float), np.arange(matrix.shape[1])
    sizes = np.zeros(min(matrix.shape))
    for k in range(len(sizes)):
        lengths = np.sqrt(np.sum(left[:, k:] ** 2, axis=0))
        best = k + int(np.argmax(lengths))
        sizes[k] = lengths[best - k]
        if sizes[k] == 0:
            break
        left[:, [k, best]], order[[k, best]] = left[:, [best, k]], order[[best, k]]
        along = left[:, k] / sizes[k]
        # Twice, so that what is left is orthogonal to round-off.
        for _ in range(2):
            left[:, k + 1 :] -= np.outer(along, along @ left[:, k + 1 :])
    return sizes, order
