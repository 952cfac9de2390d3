"""Nonlinear least squares by Levenberg-Marquardt: the one implementation for every fit.

The step `d` from `x` with residual `r` and Jacobian `J` solves the damped linear problem

    min |J d + r|^2 + damping |D d|^2,        D = the lengths of J's columns.

A step that lowers `|r|^2` is taken and the damping falls to a tenth; otherwise the damping grows
tenfold and the same Jacobian is tried again, a few times at most. A fit has settled when an
iteration lowers the cost by less than a given part.

`minimize` is for few unknowns: the loop and the linear algebra are NumPy's, around a residual and
a Jacobian that the caller has compiled, or a step of its own where the problem has structure.
`minimize_each` solves many small problems through the same two functions, each with a damping of
its own. `iterate` is one iteration that can be traced, for weights of networks: with fewer
residuals than unknowns it solves a system of the residuals' size and changes the unknowns least.

Optimistix's `LevenbergMarquardt` reaches the same minima in the same time, but compiles up to three
times as long, and shooting over segments takes it more than ten times as long, since it cannot be
told that each initial state belongs to one segment alone (`python -m benchmarks.least_squares`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

_ACCEPTED, _REJECTED, _TRIALS = 0.1, 10.0, 8


class Minimum(NamedTuple):
    """Where a fit settled; every field has the leading axis of `minimize_each`.

    **Arguments:**

    - `x`: the unknowns.
    - `cost`: the sum of squared residuals there.
    - `iterations`: Jacobians that it took.
    """

    x: Any
    cost: Any
    iterations: Any


def damped_step(jacobian: np.ndarray, residual: np.ndarray, damping: float) -> np.ndarray:
    """The step of the damped linear problem, with columns of unit length.

    **Arguments:**

    - `jacobian`: a row for each residual, a column for each unknown.
    - `residual`: at the present point.
    - `damping`: relative to the columns' lengths; zero gives the Gauss-Newton step.

    **Returns:**

    The change of the unknowns; zero for a column of zeros.
    """
    lengths = np.linalg.norm(jacobian, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    size = jacobian.shape[1]
    tall = np.vstack([jacobian / lengths, np.sqrt(damping) * np.eye(size)])
    right = np.concatenate([-residual, np.zeros(size)])
    return np.linalg.lstsq(tall, right, rcond=None)[0] / lengths


def minimize(
    residual: Callable[[Any], Any],
    jacobian: Callable[[Any], Any],
    start: Any,
    *,
    step: Callable[[Any, np.ndarray, float], Any] = damped_step,
    damping: float = 1e-3,
    iterations: int = 30,
    tolerance: float = 1e-4,
) -> Minimum:
    """The unknowns with the smallest sum of squared residuals, near a start.

    **Arguments:**

    - `residual`: of the unknowns; an array.
    - `jacobian`: of the unknowns; what `step` takes.
    - `start`: the unknowns, an array or a tree of arrays.
    - `step`: the change of the unknowns from `(jacobian, residual, damping)`.
    - `damping`: of the first step.
    - `iterations`: at most.
    - `tolerance`: the part of the cost below which a fall counts as none.

    **Returns:**

    The `Minimum`; the start itself where nothing lowers the cost, or its residual is not finite.
    """
    first = lambda tree: jax.tree.map(lambda a: a[0], tree)  # noqa: E731
    lifted = lambda tree: jax.tree.map(lambda a: np.asarray(a)[None], tree)  # noqa: E731
    found = minimize_each(
        lambda x: lifted(residual(first(x))),
        lambda x: lifted(jacobian(first(x))),
        lifted(start),
        step=step,
        damping=damping,
        iterations=iterations,
        tolerance=tolerance,
    )
    return first(found)


# A model that does not follow the data misses it by more than can be squared.
@np.errstate(over="ignore", invalid="ignore")
def minimize_each(
    residual: Callable[[Any], Any],
    jacobian: Callable[[Any], Any],
    start: Any,
    *,
    step: Callable[[Any, np.ndarray, float], Any] = damped_step,
    damping: float = 1e-3,
    iterations: int = 30,
    tolerance: float = 1e-4,
) -> Minimum:
    """Many problems of one shape at once, each with a cost, a damping and an end of its own.

    **Arguments:** those of `minimize`, all with one leading axis, over the problems.

    **Returns:**

    The `Minimum` of each.
    """
    x = jax.tree.map(np.array, start)
    now = np.asarray(residual(x))
    cost = _cost(now)
    count = len(cost)
    dampings, used, moving = np.full(count, damping), np.zeros(count, int), np.isfinite(cost)
    for _ in range(iterations):
        slopes = jax.tree.map(np.asarray, jacobian(x))
        for part in jax.tree.leaves(slopes):
            moving = moving & np.all(np.isfinite(part.reshape(count, -1)), axis=1)
        if not moving.any():
            break
        used += moving
        before, trying = cost.copy(), moving
        for _ in range(_TRIALS):
            changes = jax.tree.map(np.zeros_like, x)
            for i in np.flatnonzero(trying):
                own = jax.tree.map(lambda a, i=i: a[i], slopes)
                change = step(own, now[i], float(dampings[i]))
                jax.tree.map(lambda a, d, i=i: a.__setitem__(i, d), changes, change)
            trial = jax.tree.map(np.add, x, changes)
            found = np.asarray(residual(trial))
            reached = _cost(found)
            lower = trying & np.isfinite(reached) & (reached < cost)
            x, now = (_where(lower, a, b) for a, b in ((trial, x), (found, now)))
            cost = np.where(lower, reached, cost)
            dampings = np.where(trying, dampings * np.where(lower, _ACCEPTED, _REJECTED), dampings)
            trying = trying & ~lower
            if not trying.any():
                break
        moving = moving & (before - cost >= tolerance * before) & (cost > 0)
    return Minimum(x, cost, used)


def _cost(residual: np.ndarray) -> np.ndarray:
    return np.sum(residual.reshape(len(residual), -1) ** 2, axis=1)


def _where(which: np.ndarray, yes: Any, no: Any) -> Any:
    wide = lambda a: which.reshape(-1, *[1] * (np.ndim(a) - 1))  # noqa: E731
    return jax.tree.map(lambda a, b: np.where(wide(a), a, b), yes, no)


class Iterate(NamedTuple):
    """What an iteration gives: the unknowns, the next one's damping, the cost.

    The unknowns are the best so far, so the cost never grows.
    """

    x: Any
    damping: Any
    cost: Any


def iterate(
    residual: Callable[[Any], Any],
    x: Any,
    damping: Any,
    *,
    jacobian: Callable[[Any], Any] | None = None,
    cost: Callable[[Any], Any] | None = None,
) -> Iterate:
    """One iteration inside a compiled program: one Jacobian, and trials until one is better.

    **Arguments:**

    - `residual`: of the unknowns; an array.
    - `x`: the unknowns, a tree of arrays.
    - `damping`: of the first trial, relative to the mean diagonal of the matrix that is factored
        if there are fewer residuals than unknowns, else to the columns' lengths.
    - `jacobian`: of the flattened unknowns, a row for each residual; by reverse mode if not given.
    - `cost`: of the unknowns, by which a trial is judged; the sum of squared residuals if not
        given. Where the residuals are a sample of the data, it may look at all of them.

    **Returns:**

    The `Iterate`.
    """
    start, restored = ravel_pytree(x)
    flat = lambda w: jnp.ravel(residual(restored(w)))  # noqa: E731
    now = flat(start)
    slopes = jax.jacrev(flat)(start) if jacobian is None else jacobian(start)
    judged = (lambda w: jnp.sum(flat(w) ** 2)) if cost is None else (lambda w: cost(restored(w)))
    step = _step_of_weights(slopes, now)
    first = judged(start)

    def attempt(state):
        trial, damping, _, _ = state
        moved = start + step(damping)
        reached = judged(moved)
        lower = jnp.isfinite(reached) & (reached < first)
        changed = damping * jnp.where(lower, _ACCEPTED, _REJECTED)
        best = jnp.where(lower, moved, start), jnp.where(lower, reached, first)
        return trial + 1, changed.astype(damping.dtype), *best

    def unfinished(state):
        return (state[0] < _TRIALS) & (state[3] >= first) & (first > 0)

    begun = (jnp.zeros((), int), jnp.asarray(damping), start, first)
    _, damping, found, last = jax.lax.while_loop(unfinished, attempt, begun)
    return Iterate(restored(found), jnp.maximum(damping, jnp.finfo(start.dtype).eps), last)


def _step_of_weights(jacobian: Any, residual: Any) -> Callable[[Any], Any]:
    """The step for a damping: what does not depend on the damping is computed once."""
    rows, columns = jacobian.shape
    if rows < columns:
        gram = jacobian @ jacobian.T
        size = jnp.trace(gram) / rows

        def smallest(damping):
            damped = gram + damping * size * jnp.eye(rows, dtype=gram.dtype)
            factor = jax.scipy.linalg.cho_factor(damped, lower=True)
            return -jax.scipy.linalg.cho_solve(factor, residual) @ jacobian

        return smallest
    lengths = jnp.linalg.norm(jacobian, axis=0)
    lengths = jnp.where(lengths > 0, lengths, 1.0)
    # Of the tall matrix only its triangular factor is needed again.
    basis, triangle = jnp.linalg.qr(jacobian / lengths[None])
    right = jnp.concatenate([-basis.T @ residual, jnp.zeros(columns, residual.dtype)])

    def shortest(damping):
        damped = jnp.concatenate(
            [triangle, jnp.sqrt(damping) * jnp.eye(columns, dtype=right.dtype)]
        )
        q, r = jnp.linalg.qr(damped)
        return jax.scipy.linalg.solve_triangular(r, q.T @ right) / lengths

    return shortest
