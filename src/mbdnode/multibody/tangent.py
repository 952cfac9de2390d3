"""The tangent of the constraint manifold: all velocities from the independent ones.

Every velocity constraint, holonomic or not, reads `C(t, q) v = c(t, q)`. Splitting the columns
into dependent and independent ones leaves one factorization,

    C_d v_d = c - C_i v_i      =>      v_d = S v_i + r,
    C_d a_d = gamma - C_i a_i  =>      a_d = S a_i + s,

with `S = -C_d^-1 C_i`. The same `S` reduces the mass matrix, and tells by its size how good the
choice of independent coordinates is (see `partition`).

Dependent coordinates that the constraints give explicitly come first (see `elimination`), and only
the rest is factored: with `C_d = [A, C_xd; C_rx, C_rd]` and `L = -A^-1 C_x`, that is the block

    C_rd + C_rx L_d.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from mbdnode.multibody.small_systems import Factor, lu_factor, lu_solve
from mbdnode.multibody.sparsity.elimination import Elimination
from mbdnode.multibody.sparsity.sparse_constraints import Entries, SparseConstraints, SparseSlope


class Split(eqx.Module):
    """Which coordinates follow from which, by index.

    **Arguments:**

    - `rows`: constraints that are used; redundant ones are left out. Those of `elimination` come
        first, the others are ascending.
    - `dependent`: as many coordinates as there are rows.
    - `independent`: all the others, ascending unless some were exchanged.
    - `elimination`: of the dependent coordinates and the rows that come first, if any.
    - `sparse`: the constraints joint by joint, of a mechanism so large that full matrices would
        take longer.
    """

    rows: Int[Array, " nd"]
    dependent: Int[Array, " nd"]
    independent: Int[Array, " ni"]
    # Where each coordinate stands in `dependent` followed by `independent`: merging is then one
    # gather, which costs a fraction of two scatters.
    place: Int[Array, " nq"]
    elimination: Elimination | None = eqx.field(static=True, default=None)
    sparse: SparseConstraints | None = eqx.field(static=True, default=None)

    def __init__(self, rows, dependent, independent, elimination=None, sparse=None):
        self.rows, self.dependent, self.independent = rows, dependent, independent
        self.elimination, self.sparse = elimination, sparse
        # Of plain numbers by NumPy: JAX would compile each of these.
        xp = jnp if any(isinstance(x, Tracer) for x in (dependent, independent)) else np
        order = xp.concatenate([xp.asarray(dependent), xp.asarray(independent)])
        place = xp.argmax(order[:, None] == xp.arange(order.shape[0])[None, :], axis=0)
        self.place = jnp.asarray(place, int)

    def replaced(self, rows, dependent, independent) -> "Split":
        """Another choice of what is not eliminated."""
        return Split(rows, dependent, independent, self.elimination, self.sparse)

    def used_rows(self, count: int) -> Int[Array, " nd"] | np.ndarray:
        """`rows`, as constants where all of so many constraints are used."""
        if self.rows.shape[0] != count:
            return self.rows
        first = () if self.elimination is None else self.elimination.rows
        return np.array([*first, *(r for r in range(count) if r not in set(first))], np.int32)

    @property
    def eliminated(self) -> int:
        """How many of the dependent coordinates are explicit functions of the others."""
        return 0 if self.elimination is None else self.elimination.count

    @property
    def unknowns(self) -> int:
        """How many dependent coordinates have to be solved for."""
        return self.dependent.shape[0] - self.eliminated

    def merge(
        self, dependent: Float[Array, " nd"], independent: Float[Array, " ni"]
    ) -> Float[Array, " nq"]:
        """The full vector from its two parts."""
        if self.dependent.shape[0] == 0:
            return independent
        return jnp.concatenate([dependent, independent])[self.place]

    def take_independent(self, full: Float[Array, " nq"]) -> Float[Array, " ni"]:
        """The independent part of a full vector."""
        return full if self.dependent.shape[0] == 0 else full[self.independent]


class Tangent(eqx.Module):
    """The factored velocity constraints at one configuration.

    **Arguments:**

    - `split`: the choice of coordinates.
    - `slope`: `S`, the rates of the dependent coordinates per rate of the independent ones.
    - `drift`: `r`, what the dependent velocities have when the independent ones stand still.
    - `block`, `factor`: what has to be factored of `C_d`, and its LU factors; None where it is
        singular.
    - `lift`, `across`: `L_d` and `C_rx`; None where nothing is eliminated.
    - `size`: the largest entry of the rows from which `block` is made.
    - `offset`: `s`, where it is known without `C_d` (see `singular`), at the velocities for which
        the tangent was made; None where it follows from `C_d`.
    """

    split: Split
    slope: Float[Array, "nd ni"] | SparseSlope
    drift: Float[Array, " nd"]
    block: Float[Array, "nr nr"] | None = None
    factor: Factor | None = None
    offset: Float[Array, " nd"] | None = None
    lift: Float[Array, "nx nr"] | None = None
    across: Float[Array, "nr nx"] | None = None
    size: Float[Array, ""] | None = None

    @property
    def full_slope(self) -> Float[Array, "nd ni"]:
        """`S` as a matrix."""
        return self.slope.full() if isinstance(self.slope, SparseSlope) else self.slope

    @property
    def steepness(self) -> Float[Array, "nr ni"]:
        """The rows of `S` that belong to coordinates which are not eliminated."""
        if isinstance(self.slope, SparseSlope):
            return self.slope.rest
        return self.slope[self.split.eliminated :]

    def velocity(self, independent: Float[Array, " ni"]) -> Float[Array, " nq"]:
        """All velocities."""
        if self.split.dependent.shape[0] == 0:
            return independent
        return self.split.merge(self.slope @ independent + self.drift, independent)

    def acceleration(
        self, independent: Float[Array, " ni"], gamma: Float[Array, " nc"]
    ) -> Float[Array, " nq"]:
        """All accelerations, given the right-hand side `gamma` of the acceleration constraints."""
        if self.split.dependent.shape[0] == 0:
            return independent
        return self.split.merge(self.slope @ independent + self.curve(gamma), independent)

    def curve(self, gamma: Float[Array, " nc"]) -> Float[Array, " nd"]:
        """`s`, what the dependent accelerations have when the independent ones are zero."""
        if self.offset is not None:
            return self.offset
        return self.solve(gamma[self.split.used_rows(gamma.shape[0])])

    def solve(self, right: Float[Array, " nd"]) -> Float[Array, " nd"]:
        """`C_d^-1 right`."""
        assert self.block is not None
        assert self.factor is not None
        explicit = self.split.elimination
        if explicit is None:
            return solve_factored(self.block, self.factor, right)
        first = explicit.solve(right[: explicit.count])
        if not self.split.unknowns:
            return first
        assert self.lift is not None
        assert self.across is not None
        left = right[explicit.count :] - self.across @ first
        rest = solve_factored(self.block, self.factor, left)
        return jnp.concatenate([first + self.lift @ rest, rest])

    def solve_transposed(self, right: Float[Array, " nd"]) -> Float[Array, " nd"]:
        """`C_d^-T right`, which gives multipliers from forces."""
        assert self.block is not None
        assert self.factor is not None
        explicit = self.split.elimination
        if explicit is None:
            return solve_factored(self.block.T, self.factor, right, transposed=True)
        first = right[: explicit.count]
        if not self.split.unknowns:
            return explicit.solve_transposed(first)
        assert self.lift is not None
        assert self.across is not None
        moved = right[explicit.count :] + self.lift.T @ first
        rest = solve_factored(self.block.T, self.factor, moved, transposed=True)
        return jnp.concatenate([explicit.solve_transposed(first - self.across.T @ rest), rest])

    @property
    def determinant(self) -> Float[Array, ""]:
        """`det C_d` up to a constant; its sign changes only where the split becomes singular."""
        assert self.factor is not None
        lu, pivots = self.factor
        swaps = jnp.sum(pivots != jnp.arange(pivots.shape[0], dtype=pivots.dtype))
        return jnp.prod(jnp.diag(lu)) * jnp.where(swaps % 2 == 0, 1.0, -1.0)

    @property
    def orientation(self) -> Float[Array, ""]:
        """The sign of `det C_d`."""
        return jnp.sign(self.determinant)

    @property
    def pivot_ratio(self) -> Float[Array, ""]:
        """The smallest pivot of `C_d` over the largest: a rough reciprocal of its condition.

        What is left after an elimination may be small altogether, and is compared with the rows
        that it was made of.
        """
        assert self.factor is not None
        pivots = jnp.abs(jnp.diag(self.factor[0]))
        least, most = jnp.min(pivots, initial=jnp.inf), jnp.max(pivots, initial=0.0)
        most = most if self.size is None else jnp.maximum(most, self.size)
        tiny = _least(pivots)
        return jnp.where(least > tiny, least / jnp.maximum(most, tiny), 0.0)

    @property
    def singular(self) -> Bool[Array, ""]:
        """Whether `C_d` cannot be solved: the split is bad here, or constraints are redundant."""
        return ~(self.pivot_ratio > 10 * jnp.finfo(self.drift.dtype).eps)

    def reduce(self, full: Float[Array, "nq *k"]) -> Float[Array, "ni *k"]:
        """`T^T full`, where `T` maps independent velocities to all of them."""
        if self.split.dependent.shape[0] == 0:
            return full
        return full[self.split.independent] + self.slope.T @ full[self.split.dependent]


def tangent_from(
    jacobian: Float[Array, "nc nq"], right: Float[Array, " nc"], split: Split
) -> Tangent:
    """Factor `C`, the `jacobian`, and `c`, the `right` side, for a given `split`."""
    if split.elimination is not None:
        return _eliminated_tangent(jacobian, right, split, split.elimination)
    used = split.used_rows(jacobian.shape[0])
    rows = jacobian[used]
    block = rows[:, split.dependent]
    factor = factorize(block)
    both = jnp.concatenate([-rows[:, split.independent], right[used][:, None]], axis=1)
    solved = solve_factored(block, factor, both)
    return Tangent(split, solved[:, :-1], solved[:, -1], block, factor)


def sparse_tangent(
    entries: Entries,
    right: Float[Array, " nc"],
    split: Split,
    sparse: SparseConstraints,
    explicit: Elimination,
) -> Tangent:
    """The same of a large mechanism, of which only what closes its loops is a full matrix."""
    count, unknowns = explicit.count, split.unknowns
    none = jnp.zeros((unknowns, split.independent.shape[0]), entries.dtype)
    # In a tree the choice of coordinates never changes, and constants are faster.
    order = np.array([*explicit.columns, *explicit.others], np.int32)
    place = np.argsort(order).astype(np.int32)
    if unknowns:
        order, place = jnp.concatenate([split.dependent, split.independent]), split.place
    open_slope = SparseSlope(entries, none, order, place, sparse, explicit)
    first = explicit.solve_own(right)
    if not unknowns:
        empty = jnp.zeros((0, 0), entries.dtype)
        return Tangent(split, open_slope, first, empty, factorize(empty))
    rest = np.setdiff1d(np.arange(sparse.row_count), explicit.rows)
    rows = sparse.full_rows(entries, rest)
    across = rows[:, np.array(explicit.columns, np.int32)]
    left = rows + jax.vmap(open_slope.load)(across)
    still = jnp.zeros(split.independent.shape[0], entries.dtype)
    alone = jnp.eye(unknowns, dtype=entries.dtype)
    lift = jax.vmap(lambda one: open_slope.eliminated(one, still), out_axes=1)(alone)
    block, factor, solved = _solve_rest(
        left[:, split.dependent[count:]], left[:, split.independent], right[rest] - across @ first
    )
    slope = SparseSlope(entries, solved[:, :-1], order, place, sparse, explicit)
    drift = jnp.concatenate([first + lift @ solved[:, -1], solved[:, -1]])
    return Tangent(split, slope, drift, block, factor, None, lift, across, _largest(rows))


def _solve_rest(block, independent, right):
    """The dependent coordinates that are not eliminated: the block, its factors, slopes, drift."""
    factor = factorize(block)
    both = jnp.concatenate([-independent, right[:, None]], axis=1)
    return block, factor, solve_factored(block, factor, both)


def _largest(rows: Float[Array, "n nq"]) -> Float[Array, ""]:
    return jax.lax.stop_gradient(jnp.max(jnp.abs(rows)))


def _eliminated_tangent(jacobian, right, split: Split, explicit: Elimination) -> Tangent:
    """The same after an elimination."""
    count, columns = explicit.count, np.array(explicit.columns, np.int32)
    slopes = explicit.slopes(jacobian)
    first = explicit.solve_own(right)
    if not split.unknowns:
        none = jnp.zeros((0, 0), jacobian.dtype)
        # All that is not eliminated is independent, and in order.
        return Tangent(split, slopes, first, none, factorize(none))
    rest = split.used_rows(jacobian.shape[0])[count:]
    rows = jacobian[rest]
    across = rows[:, columns]
    left = rows[:, explicit.others] + across @ slopes
    dependent = jnp.asarray(explicit.place)[split.dependent[count:]]
    independent = jnp.asarray(explicit.place)[split.independent]
    lift, given = slopes[:, dependent], right[rest] - across @ first
    block, factor, solved = _solve_rest(left[:, dependent], left[:, independent], given)
    slope = jnp.concatenate([slopes[:, independent] + lift @ solved[:, :-1], solved[:, :-1]])
    drift = jnp.concatenate([first + lift @ solved[:, -1], solved[:, -1]])
    return Tangent(split, slope, drift, block, factor, None, lift, across, _largest(rows))


def factorize(matrix: Float[Array, "n n"]) -> Factor:
    """LU factors with pivots that one can divide by, however singular the matrix.

    A pivot of zero becomes one of round-off, so that no infinity arises that would turn
    derivatives into NaN where the result is not used; `Tangent.singular` tells.
    """
    matrix = jax.lax.stop_gradient(matrix)
    lu, pivots = lu_factor(matrix)
    diagonal = jnp.diag(lu)
    size = jnp.max(jnp.abs(diagonal), initial=0.0)
    least = jnp.maximum(jnp.finfo(lu.dtype).eps * size, _least(lu))
    raised = jnp.where(jnp.abs(diagonal) < least, jnp.copysign(least, diagonal), diagonal)
    return lu + jnp.diag(raised - diagonal), pivots


def _least(values: Array) -> float:
    """A pivot this small is none; its reciprocal can still be squared."""
    return float(jnp.finfo(values.dtype).tiny) ** 0.5


def solve_factored(
    matrix: Float[Array, "n n"],
    factor: Factor,
    right: Float[Array, "n *k"],
    *,
    transposed: bool = False,
) -> Float[Array, "n *k"]:
    """`matrix^-1 right`, given the factors of the matrix or, if `transposed`, of its transpose.

    Derivatives are those of the solution, not of the factors: they cost two more solves.
    """
    trans = int(transposed)
    return jax.lax.custom_linear_solve(
        lambda x: matrix @ x,
        right,
        lambda _, b: lu_solve(factor, b, trans=trans),
        lambda _, b: lu_solve(factor, b, trans=1 - trans),
    )
