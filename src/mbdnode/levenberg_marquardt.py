"""Nonlinear least squares by Levenberg-Marquardt: the one implementation for every fit.

The step `d` from `x` with residual `r` and Jacobian `J` solves the damped linear problem

    min |J d + r|^2 + damping |D d|^2,        D = the lengths of J's columns.

A step that lowers `|r|^2` is taken and the damping falls to a tenth; otherwise the damping grows
tenfold and the same Jacobian is tried again, a few times at most. A fit has settled when an
iteration lowers the cost by less than a given part.

`minimize` is for few unknowns: the loop and the linear algebra are NumPy's, around a residual and
a Jacobian that the caller has compiled, or a step of its own where the problem has structure.
`minimize_each` solves many small problems through the same two functions, each with a damping of
its own. `descend` is the one loop of both: it asks for the residual at one point after another.

`iterate` is one iteration that can be traced, for the many weights of networks. There `D` is a
multiple of the unit matrix, and the step has two forms,

    d = -(J' J + c I)^-1 J' r = -J' (J J' + c I)^-1 r,

of which the smaller system is solved. `J' J` is a sum over the data, added up block by block, so
that memory does not grow with it. A ridge, `sum(ridge x^2)` beside `|r|^2`, chooses among unknowns
that the data cannot tell apart; the first form then has it on the diagonal.

Along the step the residuals bend, by `J'' d d` to second order; half of the step that this bend
asks for is added while it is the smaller part (geodesic acceleration: Transtrum and Sethna, arXiv
1201.5885). For a network of 1,358 weights on the cart-pole the loss was 9e-12 after 30 iterations
with it, and 7e-9 without.

Optimistix's `LevenbergMarquardt` reaches the same minima in the same time, but compiles up to three
times as long, and shooting over segments takes it more than ten times as long, since it cannot be
told that each initial state belongs to one segment alone (`python -m benchmarks.least_squares`).
"""

import functools
from collections.abc import Callable, Generator, Sequence
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

    The damping is relative to the columns' lengths; zero gives the Gauss-Newton step. A column of
    zeros does not move.
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
    - `tolerance`: the part of the cost below which a fall counts as none.

    **Returns:**

    The `Minimum`; the start itself where nothing lowers the cost, or its residual is not finite.
    """
    search = descend(start, step=step, damping=damping, iterations=iterations, tolerance=tolerance)
    x = next(search)
    # A model that does not follow the data misses it by more than can be squared.
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            try:
                x = search.send((np.asarray(residual(x)), lambda x=x: jacobian(x)))
            except StopIteration as end:
                return end.value


def descend(
    start: Any,
    *,
    step: Callable[[Any, np.ndarray, float], Any] = damped_step,
    damping: float = 1e-3,
    iterations: int = 30,
    tolerance: float = 1e-4,
) -> Generator[Any, tuple[np.ndarray, Any], Minimum]:
    """The same, one point after another, for whoever evaluates several fits together.

    The generator gives the unknowns at which it wants to know the residual, and is sent that and
    the Jacobian there, or a function of nothing that makes it; it returns the `Minimum`.
    """
    x = jax.tree.map(np.array, start)
    now, jacobian = yield x
    cost, used = float(np.sum(now**2)), 0
    while np.isfinite(cost) and used < iterations:
        slopes = jax.tree.map(np.asarray, jacobian() if callable(jacobian) else jacobian)
        if not all(np.all(np.isfinite(part)) for part in jax.tree.leaves(slopes)):
            break
        used, before = used + 1, cost
        for _ in range(_TRIALS):
            trial = jax.tree.map(np.add, x, step(slopes, now, damping))
            found, there = yield trial
            reached = float(np.sum(found**2))
            lower = np.isfinite(reached) and reached < cost
            damping *= _ACCEPTED if lower else _REJECTED
            if lower:
                x, now, jacobian, cost = trial, found, there, reached
                break
        if before - cost < tolerance * before or cost == 0:
            break
    return Minimum(x, cost, used)


def minimize_each(
    residual: Callable[[Any], Any], jacobian: Callable[[Any], Any], start: Any, **settings: Any
) -> Minimum:
    """Many problems of one shape at once, each with a cost, a damping and an end of its own.

    All arguments are those of `minimize`, with one leading axis over the problems.
    """
    count = len(jax.tree.leaves(start)[0])
    searches = [descend(_member(start, i), **settings) for i in range(count)]
    points, found = [next(search) for search in searches], {}
    with np.errstate(over="ignore", invalid="ignore"):
        while len(found) < count:
            x = _stacked(points)
            now = np.asarray(residual(x))
            slopes = functools.cache(lambda x=x: jax.tree.map(np.asarray, jacobian(x)))
            for i in [i for i in range(count) if i not in found]:
                try:
                    points[i] = searches[i].send((now[i], lambda i=i, s=slopes: _member(s(), i)))
                except StopIteration as end:
                    found[i] = end.value
    return _stacked([found[i] for i in range(count)])


def _member(tree: Any, place: int) -> Any:
    return jax.tree.map(lambda x: x[place], tree)


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *trees)


# Of `iterate`, whose trials are cheap beside its Jacobian.
_LESS, _MORE, _SEARCH = 0.2, 4.0, 10
# Of the length of a step: the part at which its bend is measured, and the most that the bend adds.
_BESIDE, _MOST_BENT = 0.1, 0.375


class Iterate(NamedTuple):
    """What an iteration gives: the unknowns, the next one's damping, the cost.

    The unknowns are the best so far, so the cost never grows; with a ridge, its sum with that. The
    cost itself is that of the residuals alone.
    """

    x: Any
    damping: Any
    cost: Any


def iterate(
    residual: Callable[..., Any],
    x: Any,
    damping: Any,
    *,
    blocks: Any | None = None,
    ridge: Any | None = None,
) -> Iterate:
    """One iteration inside a compiled program: one Jacobian, and a search over dampings.

    The damping rises until a step lowers the cost, and then falls while that lowers it further.

    **Arguments:**

    - `residual`: of the unknowns; an array. With blocks, of the unknowns and one of the blocks: a
        row for each of its entries.
    - `x`: the unknowns, a tree of arrays.
    - `damping`: of the first trial, relative to the mean square of the Jacobian's columns.
    - `blocks`: which data to differentiate together, a row of numbers for each block. The Jacobian
        of all data is held at once only if there are fewer residuals than unknowns, and no ridge.
    - `ridge`: a tree like `x`: this many times the square of each unknown is added to the cost.

    **Returns:**

    The `Iterate`.
    """
    start, restored = ravel_pytree(x)
    weight = None if ridge is None else ravel_pytree(ridge)[0]
    if blocks is None:
        blocks, whole = np.zeros((1, 1), int), residual
        residual = lambda x, _: jnp.ravel(whole(x))[None]  # noqa: E731
    blocks = jnp.asarray(blocks)
    of = lambda w, rows: residual(restored(w), rows)  # noqa: E731
    everywhere = lambda w: jax.lax.map(lambda rows: of(w, rows), blocks)  # noqa: E731

    def slopes(rows):
        both = lambda w, row: (of(w, row[None])[0],) * 2  # noqa: E731
        each = jax.vmap(jax.jacrev(both, has_aux=True), (None, 0))
        jacobian, residuals = each(start, rows)
        return jacobian.reshape(-1, start.size), residuals

    def pull(given):
        add = lambda total, pair: (  # noqa: E731
            total + jax.vjp(lambda w: of(w, pair[0]), start)[1](pair[1])[0],
            None,
        )
        return jax.lax.scan(add, jnp.zeros_like(start), (blocks, given))[0]

    # Of one row, to know which of the two systems is the smaller.
    count = blocks.size * jax.eval_shape(of, start, blocks[0, :1]).size
    if weight is not None:
        now, solver = solve_by_unknowns(slopes, blocks, pull, (weight, weight * start))
    elif start.size <= count:
        now, solver = solve_by_unknowns(slopes, blocks, pull)
    else:
        now, solver = solve_by_residuals(slopes, blocks)
    added = lambda w: 0.0 if weight is None else jnp.sum(weight * w**2)  # noqa: E731
    cost, floor = jnp.sum(now**2), jnp.finfo(start.dtype).eps
    first = cost + added(start)

    def attempt(state):
        trial, damping, best, least, cost, _ = state
        asked, solve = solver(damping)
        step = -asked
        # By differences, which compile in a fraction of the time of two derivatives.
        beside = jax.lax.map(everywhere, start[None] + _BESIDE * jnp.stack([step, -step]))
        bent = -solve((beside[0] - 2 * now + beside[1]) / (2 * _BESIDE**2))
        mild = jnp.linalg.norm(bent) <= _MOST_BENT * jnp.linalg.norm(step)
        moved = start + step + jnp.where(mild, bent, 0.0)
        square = jnp.sum(everywhere(moved) ** 2)
        reached = square + added(moved)
        lower = jnp.isfinite(reached) & (reached < least)
        # Once a step has been found, the search ends with the first that is no better.
        over = (~lower & (least < first)) | (lower & (damping <= floor))
        best, least = jnp.where(lower, moved, best), jnp.where(lower, reached, least)
        damping = jnp.maximum(damping * jnp.where(lower, _LESS, _MORE), floor)
        return trial + 1, damping, best, least, jnp.where(lower, square, cost), over

    def unfinished(state):
        return (state[0] < _SEARCH) & ~state[5] & (first > 0)

    given = jnp.asarray(damping, start.dtype)
    begun = (jnp.zeros((), int), given, start, first, cost, jnp.array(False))
    _, damping, found, _, cost, _ = jax.lax.while_loop(unfinished, attempt, begun)
    return Iterate(restored(found), damping, cost)


# From a damping to the step that the residuals ask for, and a function from any others to theirs.
Solver = Callable[[Any], tuple[Any, Callable[[Any], Any]]]


def solve_by_unknowns(
    slopes: Callable, blocks: Any, pull: Callable, ridge: tuple[Any, Any] | None = None
) -> tuple[Any, Solver]:
    """The damped step from `J' J`, added up over the blocks: the residuals and a `Solver`.

    `slopes` gives the Jacobian of a block and its residuals, `pull` is `J'` times residuals, and
    `ridge` is what is added to the diagonal of `J' J`, and to `J' r`.
    """

    def add(total, rows):
        jacobian, residuals = slopes(rows)
        pulled = jnp.ravel(residuals) @ jacobian
        return (total[0] + jacobian.T @ jacobian, total[1] + pulled), residuals

    shape = jax.eval_shape(slopes, blocks[0])[0]
    size = shape.shape[1]
    empty = jnp.zeros((size, size), shape.dtype), jnp.zeros(size, shape.dtype)
    (normal, gradient), now = jax.lax.scan(add, empty, blocks)
    unit = jnp.trace(normal) / size
    if ridge is not None:
        normal, gradient = normal + jnp.diag(ridge[0]), gradient + ridge[1]
    factored = _factored(normal, unit)

    def solver(damping):
        solve = factored(damping)
        return solve(gradient), lambda residuals: solve(pull(residuals))

    return now, solver


def solve_by_residuals(slopes: Callable, blocks: Any) -> tuple[Any, Solver]:
    """The same step from `J J'`; arguments as for `solve_by_unknowns`."""
    jacobian, now = jax.lax.map(slopes, blocks)
    jacobian = jacobian.reshape(-1, jacobian.shape[-1])
    matrix = jacobian @ jacobian.T
    factored = _factored(matrix, jnp.trace(matrix) / jacobian.shape[1])

    def solver(damping):
        solve = factored(damping)
        step = lambda residuals: solve(jnp.ravel(residuals)) @ jacobian  # noqa: E731
        return step(now), step

    return now, solver


def _factored(matrix: Any, size: Any) -> Callable:
    """Solve with the matrix plus a part of the columns' mean square on its diagonal."""
    unit = jnp.eye(matrix.shape[0], dtype=matrix.dtype)

    def factored(damping):
        factor = jax.scipy.linalg.cho_factor(matrix + damping * size * unit, lower=True)
        return lambda right: jax.scipy.linalg.cho_solve(factor, right)

    return factored
