"""The tangent of the constraint manifold: all velocities from the independent ones.

Every velocity constraint, holonomic or not, reads `C(t, q) v = c(t, q)`. Splitting the columns
into dependent and independent ones leaves one factorisation,

    C_d v_d = c - C_i v_i      =>      v_d = S v_i + r,
    C_d a_d = gamma - C_i a_i  =>      a_d = S a_i + s,

with `S = -C_d^-1 C_i`. The same `S` reduces the mass matrix, and tells by its size how good the
choice of independent coordinates is (see `partition`).
"""

import equinox as eqx
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int


class Split(eqx.Module):
    """Which coordinates follow from which, by index.

    **Arguments:**

    - `rows`: constraints that are used; redundant ones are left out.
    - `dependent`: as many coordinates as there are rows.
    - `independent`: all the others, ascending when there are no constraints.
    """

    rows: Int[Array, " nd"]
    dependent: Int[Array, " nd"]
    independent: Int[Array, " ni"]
    # Where each coordinate stands in `dependent` followed by `independent`: merging is then one
    # gather, which costs a fraction of two scatters.
    _place: Int[Array, " nq"]

    def __init__(self, rows, dependent, independent):
        self.rows, self.dependent, self.independent = rows, dependent, independent
        order = jnp.concatenate([dependent, independent])
        self._place = jnp.argmax(order[:, None] == jnp.arange(order.shape[0])[None, :], axis=0)

    def merge(
        self, dependent: Float[Array, " nd"], independent: Float[Array, " ni"]
    ) -> Float[Array, " nq"]:
        """The full vector from its two parts."""
        if self.dependent.shape[0] == 0:
            return independent
        return jnp.concatenate([dependent, independent])[self._place]

    def take_independent(self, full: Float[Array, " nq"]) -> Float[Array, " ni"]:
        """The independent part of a full vector."""
        return full if self.dependent.shape[0] == 0 else full[self.independent]


class Tangent(eqx.Module):
    """The factored velocity constraints at one configuration.

    **Arguments:**

    - `split`: the choice of coordinates.
    - `factor`: LU factors of `C_d`.
    - `slope`: `S`, the rates of the dependent coordinates per rate of the independent ones.
    - `drift`: `r`, what the dependent velocities have when the independent ones stand still.
    """

    split: Split
    factor: tuple[Float[Array, "nd nd"], Int[Array, " nd"]]
    slope: Float[Array, "nd ni"]
    drift: Float[Array, " nd"]

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
        offset = self.solve(gamma[self.split.rows])
        return self.split.merge(self.slope @ independent + offset, independent)

    def solve(self, right: Float[Array, " nd"]) -> Float[Array, " nd"]:
        """`C_d^-1 right`."""
        return jsl.lu_solve(self.factor, right)

    def solve_transposed(self, right: Float[Array, " nd"]) -> Float[Array, " nd"]:
        """`C_d^-T right`, which gives multipliers from forces."""
        return jsl.lu_solve(self.factor, right, trans=1)

    @property
    def orientation(self) -> Float[Array, ""]:
        """The sign of `det C_d`, which changes only where the split becomes singular."""
        lu, pivots = self.factor
        swaps = jnp.sum(pivots != jnp.arange(pivots.shape[0], dtype=pivots.dtype))
        return jnp.prod(jnp.sign(jnp.diag(lu))) * jnp.where(swaps % 2 == 0, 1.0, -1.0)

    @property
    def singular(self) -> Bool[Array, ""]:
        """Whether `C_d` cannot be solved: the split is bad here, or constraints are redundant."""
        pivots = jnp.abs(jnp.diag(self.factor[0]))
        least, most = jnp.min(pivots, initial=jnp.inf), jnp.max(pivots, initial=0.0)
        return ~(least > 10 * jnp.finfo(pivots.dtype).eps * most)

    def reduce(self, full: Float[Array, "nq *k"]) -> Float[Array, "ni *k"]:
        """`T^T full`, where `T` maps independent velocities to all of them."""
        if self.split.dependent.shape[0] == 0:
            return full
        return full[self.split.independent] + self.slope.T @ full[self.split.dependent]


def tangent_from(
    jacobian: Float[Array, "nc nq"], right: Float[Array, " nc"], split: Split
) -> Tangent:
    """Factor `C` and `c` for a given split."""
    rows = jacobian[split.rows]
    factor = jsl.lu_factor(rows[:, split.dependent])
    both = jnp.concatenate([-rows[:, split.independent], right[split.rows][:, None]], axis=1)
    solved = jsl.lu_solve(factor, both)
    return Tangent(split, factor, solved[:, :-1], solved[:, -1])
