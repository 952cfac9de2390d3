"""A consistent start, by operations that can be traced.

`consistent_state` and `choose_partition` decide on plain numbers with SciPy; a model that was
exported must do the same by itself. Known values are held. The unknown positions solve `Phi = 0`
by Levenberg-Marquardt steps of least norm in scaled coordinates,

    dq = S J^T (J J^T + lambda)^-1 (-Phi),    J = Phi_q S restricted to the unknown,

and the unknown velocities move by the least that `C v = c` asks for. The independent coordinates
are those that the system names, or are found by the same column pivoting.
"""

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.multibody import (
    AbstractSystem,
    Params,
    Partition,
    Split,
    position_jacobian,
    position_residual,
    velocity_constraints,
)
from mbdnode.multibody.partition import TIE, scaled_rows, sizes
from mbdnode.multibody.tangent import factorize, solve_factored

_MOST_ITERATIONS = 100
# As `consistent_state` accepts a completed state.
_ROUND_OFF = 1e-10


def _least_norm(matrix, right, damping):
    """`x` with `matrix x = right` and the smallest norm, damped."""
    square = matrix @ matrix.T
    size = jnp.max(jnp.diag(square), initial=0.0)
    tiny = jnp.finfo(square.dtype).eps
    square = square + (damping + 4 * tiny) * jnp.where(size > 0, size, 1.0) * jnp.eye(
        square.shape[0], dtype=square.dtype
    )
    return matrix.T @ solve_factored(square, factorize(square), right)


def assembled(system: AbstractSystem, t, q, known, mu: Params):
    """The positions with the unknown ones moved onto the constraints; whether these are met."""
    residual = lambda x: position_residual(system, t, x, mu)  # noqa: E731
    if jax.eval_shape(residual, q).shape[0] == 0:
        return q, jnp.array(True)
    scale, _ = sizes(system, t, q, mu)
    moves = jnp.where(known, 0.0, scale).astype(q.dtype)
    eps = float(jnp.finfo(q.dtype).eps)

    def improve(carry):
        x, damping, _, count = carry
        error = residual(x)
        step = moves * _least_norm(
            position_jacobian(system, t, x, mu) * moves[None, :], -error, damping
        )
        trial = x + step
        better = jnp.max(jnp.abs(residual(trial))) < jnp.max(jnp.abs(error))
        better = better & jnp.all(jnp.isfinite(trial))
        reach = jnp.max(jnp.abs(x) / scale)
        small = jnp.max(jnp.abs(step) / scale) <= 4 * eps * jnp.maximum(1.0, reach)
        # A step at round-off that does not improve is the last.
        done = small | (~better & (damping > 1e12))
        fresh = jnp.where(better, jnp.maximum(damping / 10, 1e-16), damping * 10 + 1e-12)
        return jnp.where(better, trial, x), fresh, done, count + 1

    def unfinished(carry):
        return ~carry[2] & (carry[3] < _MOST_ITERATIONS)

    first = (q, jnp.asarray(1e-3, q.dtype), jnp.array(False), 0)
    q, _, _, _ = jax.lax.while_loop(unfinished, improve, first)
    _, size = sizes(system, t, q, mu)
    error, jacobian = residual(q), position_jacobian(system, t, q, mu)
    is_angle = np.array([c.is_angle for c in system.coordinates])
    largest = lambda mask: jnp.max(jnp.where(mask, jnp.abs(q), 0.0), initial=0.0)  # noqa: E731
    reach = jnp.where(is_angle, largest(is_angle), largest(~is_angle))
    allowed = max(_ROUND_OFF, 1e3 * eps) * (jnp.abs(jacobian) @ reach)
    allowed = allowed + 1e3 * eps * size[: error.shape[0]]
    return q, jnp.all(jnp.abs(error) <= allowed)


def moving(system: AbstractSystem, t, q, v, known, mu: Params):
    """The velocities, the unknown ones moved as little as possible; whether constraints are met."""
    jacobian, right = velocity_constraints(system, t, q, mu)
    if right.shape[0] == 0:
        return v, jnp.array(True)
    free = jnp.where(known, 0.0, 1.0).astype(q.dtype)

    def improve(_, v):
        return v + free * _least_norm(jacobian * free[None, :], right - jacobian @ v, 0.0)

    v = jax.lax.fori_loop(0, 3, improve, v)
    scale, size = sizes(system, t, q, mu)
    fastest = jnp.maximum(1.0, jnp.max(jnp.abs(v) / scale))
    eps = float(jnp.finfo(q.dtype).eps)
    allowed = max(_ROUND_OFF, 1e3 * eps) * (jnp.abs(jacobian) @ jnp.abs(v))
    allowed = allowed + 1e3 * eps * size * fastest
    return v, jnp.all(jnp.abs(jacobian @ v - right) <= allowed)


def _pivots(matrix, rank: int):
    """The columns that Gram-Schmidt with pivoting takes first."""
    count = matrix.shape[1]
    biased = matrix * jnp.asarray(1 - TIE * np.arange(count), matrix.dtype)[None, :]

    def take(k, carry):
        rest, taken, order = carry
        size = jnp.where(taken, -1.0, jnp.sum(rest**2, axis=0))
        best = jnp.argmax(size)
        column = rest[:, best]
        unit = column / jnp.sqrt(jnp.maximum(size[best], jnp.finfo(matrix.dtype).tiny))
        rest = rest - unit[:, None] * (unit @ rest)[None, :]
        return rest, taken.at[best].set(True), order.at[k].set(best)

    first = (biased, jnp.zeros(count, bool), jnp.zeros(rank, int))
    return jax.lax.fori_loop(0, rank, take, first)[2]


def _others(chosen, count: int):
    """The indices that are not chosen, in order."""
    taken = jnp.zeros(count, bool).at[chosen].set(True)
    order = jnp.argsort(taken, stable=True)
    return order[: count - chosen.shape[0]]


def _split(system: AbstractSystem, scaled, rank: int, named, like: Split) -> Split:
    rows, count = scaled.shape
    if rank == 0:
        return Split(jnp.arange(0), jnp.arange(0), jnp.arange(count))
    # What is eliminated has the first pivots, and stands first, in its own order.
    explicit = like.elimination
    first = ((), ()) if explicit is None else (explicit.rows, explicit.columns)
    leading = [jnp.array(part, int) for part in first]
    if named is None:
        dependent = jnp.concatenate([leading[1], _pivots(scaled, rank)[len(first[1]) :]])
        independent = _others(dependent, count)
    else:
        free = sorted(system.coordinate_names.index(n) for n in named)
        bound = [c for c in range(count) if c not in free and c not in first[1]]
        dependent = jnp.array([*first[1], *bound], int)
        independent = jnp.array(free, int)
    if rank == rows:
        used = jnp.array([*first[0], *(r for r in range(rows) if r not in first[0])], int)
    else:
        used = jnp.sort(_pivots(scaled[:, dependent].T, rank)[len(first[0]) :])
        used = jnp.concatenate([leading[0], used])
    return like.replaced(used, dependent, independent)


def chosen_partition(system: AbstractSystem, like: Partition, t, q, mu: Params) -> Partition:
    """The partition that `choose_partition` would choose, with the ranks of a known one."""
    scale, _ = sizes(system, t, q, mu)
    jacobian, _ = velocity_constraints(system, t, q, mu)
    scaled = scaled_rows(jacobian, scale, like.velocity.elimination)
    rank = like.velocity.rows.shape[0]
    velocity = _split(system, scaled, rank, system.independent, like.velocity)
    if like.position.rows.shape == like.velocity.rows.shape:
        return Partition(velocity, velocity, scale, like.redundant)
    holonomic = like.position.rows.shape[0]
    count = jax.eval_shape(lambda x: position_residual(system, t, x, mu), q).shape[0]
    position = _split(system, scaled[:count], holonomic, None, like.position)
    return Partition(position, velocity, scale, like.redundant)
