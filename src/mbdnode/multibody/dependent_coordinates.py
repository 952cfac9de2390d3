"""From the independent coordinates to the whole state, to round-off.

Positions solve `Phi(t, q_d; q_i) = 0` by Newton's method from a guess near by; velocities follow
from the tangent by one linear solve. The position solve is differentiated implicitly: at a root,

    Phi_qd dq_d = -(Phi_qi dq_i + Phi_t dt + Phi_mu dmu),

so gradients flow through it at the price of one linear solve, however many iterations it took.

What the constraints give explicitly (see `elimination`) is substituted, and Newton's method has the
rest as its unknowns: none for a tree, two for a loop of pins.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbdnode.multibody.kinematics import (
    position_residual,
    position_time_derivative,
    sparse_jacobian,
    velocity_constraints,
)
from mbdnode.multibody.partition import Partition
from mbdnode.multibody.system import AbstractSystem, Coords, Params, Time
from mbdnode.multibody.tangent import (
    Split,
    Tangent,
    factorize,
    solve_factored,
    sparse_tangent,
    tangent_from,
)

_MOST_ITERATIONS = 25


def complete_position(
    system: AbstractSystem,
    split: Split,
    t: Time,
    independent: Float[Array, " ni"],
    guess: Coords,
    scale: Coords,
    mu: Params,
) -> tuple[Coords, Bool[Array, ""]]:
    """Solve the holonomic constraints for the dependent coordinates.

    **Arguments:**

    - `system`, `split`, `t`, `mu`: what is solved, for which coordinates.
    - `independent`: the values that are given.
    - `guess`: a configuration near by; only its dependent coordinates are used. It decides the
        branch when there are several.
    - `scale`: the coordinates' sizes, which bound what counts as round-off.

    **Returns:**

    All coordinates, and whether the solve converged; where it did not they are finite and no more.
    """
    if split.dependent.shape[0] == 0:
        return independent, jnp.array(True)
    count = split.eliminated

    near = jax.lax.stop_gradient(guess[split.dependent])

    def place(unknown):
        """All coordinates, of which the eliminated ones follow from the others."""
        if split.elimination is None:
            return split.merge(unknown, independent)
        # Linear, so that one solve does; from near by, to the round-off of the residual.
        change = split.elimination.solve_own(at_guess(unknown))
        return split.merge(jnp.concatenate([near[:count] - change, unknown]), independent)

    def at_guess(unknown):
        q = split.merge(jnp.concatenate([near[:count], unknown]), independent)
        return position_residual(system, t, q, mu)

    def residual(unknown):
        if split.elimination is None or split.elimination.across is None:
            found = position_residual(system, t, place(unknown), mu)
            return found[split.used_rows(found.shape[0])[count:]]
        # Without another evaluation.
        found = at_guess(unknown)
        return split.elimination.substitute(found, split.used_rows(found.shape[0])[count:])

    if not split.unknowns:
        return place(near[count:]), jnp.array(True)
    eps = jnp.finfo(independent.dtype).eps
    size = scale[split.dependent[count:]]

    def newton(function, start):
        def improve(carry):
            x, last, _, count = carry
            value, slopes = _value_and_jacobian(function, x)
            update = _solve(slopes, -value)
            x = x + update
            now = jnp.max(jnp.abs(update) / size)
            # Newton squares the error, by a factor that two updates in a row measure and that is
            # not taken below one, since a large first update says nothing. Enough is what the next
            # update would not change; or an update at round-off that no longer shrinks, which the
            # first one cannot tell.
            reach = jnp.max(jnp.abs(x) / size)
            curvature = jnp.maximum(1.0, now / last**2)
            enough = curvature * now**2 <= 8 * eps * reach
            stalled = (now >= 0.5 * last) & (now <= 1e4 * eps * jnp.maximum(1.0, reach))
            stalled = jnp.where(last > 0, stalled, now <= 8 * eps * reach)
            return x, now, enough | stalled | (now == 0), count + 1

        def unfinished(carry):
            _, now, done, count = carry
            return ~done & (count < _MOST_ITERATIONS) & ~jnp.isnan(now)

        # No update before the first, so nothing is predicted from it.
        first = (start, jnp.zeros((), start.dtype), jnp.array(False), 0)
        x, _, done, _ = jax.lax.while_loop(unfinished, improve, first)
        # Finite in any case: derivatives of what is not used must not become NaN.
        return jnp.where(jnp.all(jnp.isfinite(x)), x, start), done.astype(x.dtype)

    def tangent_solve(linear, right):
        return _solve(jax.jacfwd(linear)(jnp.zeros_like(right)), right)

    start = near[count:]
    unknown, done = jax.lax.custom_root(residual, start, newton, tangent_solve, has_aux=True)
    return place(unknown), jax.lax.stop_gradient(done) > 0


def _value_and_jacobian(
    function: Callable, x: Float[Array, " n"]
) -> tuple[Float[Array, " m"], Float[Array, "m n"]]:
    """Both from one evaluation, where `jacfwd` would trace the function once more."""
    along = lambda direction: jax.jvp(function, (x,), (direction,))  # noqa: E731
    return jax.vmap(along, out_axes=(None, 1))(jnp.eye(x.shape[0], dtype=x.dtype))


def _solve(matrix: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    return solve_factored(matrix, factorize(matrix), right)


def tangent_at(system: AbstractSystem, split: Split, t: Time, q: Coords, mu: Params) -> Tangent:
    """The velocity constraints of `system` at a configuration, factored as `split` says."""
    if split.sparse is not None and split.elimination is not None:
        entries = sparse_jacobian(system, split.sparse, t, q, mu)
        drift = -position_time_derivative(system, t, q, mu)
        return sparse_tangent(entries, drift, split, split.sparse, split.elimination)
    jacobian, right = velocity_constraints(system, t, q, mu)
    return tangent_from(jacobian, right, split)


def complete(
    system: AbstractSystem,
    partition: Partition,
    t: Time,
    positions: Float[Array, " nz"],
    velocities: Float[Array, " ns"],
    guess: Coords,
    mu: Params,
) -> tuple[Coords, Coords, Tangent, Bool[Array, ""]]:
    """The whole state from the independent positions and velocities.

    **Arguments:**

    - `system`, `partition`, `t`, `mu`: what is solved, for which coordinates.
    - `positions`, `velocities`: of the independent coordinates.
    - `guess`: a configuration near by.

    **Returns:**

    `q`, `v`, the tangent at `q`, and whether the position solve converged. Where it did not, `q`
    is not a number, so that no step can go on from it unnoticed.
    """
    q, solved = complete_position(
        system, partition.position, t, positions, guess, partition.scale, mu
    )
    return *complete_velocity(system, partition, t, q, solved, velocities, mu), solved


def complete_velocity(
    system: AbstractSystem,
    partition: Partition,
    t: Time,
    q: Coords,
    solved: Bool[Array, ""],
    velocities: Float[Array, " ns"],
    mu: Params,
) -> tuple[Coords, Coords, Tangent]:
    """The second half of `complete`, where the configuration is known.

    **Arguments:**

    - `system`, `partition`, `t`, `mu`, `velocities`: as in `complete`.
    - `q`, `solved`: as `complete_position` returns them.

    **Returns:**

    `q`, `v` and the tangent at `q`.
    """
    q = jnp.where(solved, q, jnp.nan)
    tangent = tangent_at(system, partition.velocity, t, q, mu)
    return q, tangent.velocity(velocities), tangent
