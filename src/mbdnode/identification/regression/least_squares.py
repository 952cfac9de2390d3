"""Least squares for what is linear in its unknowns.

Over each step the data gives the mean acceleration, which is that in the middle of the step to
second order. Columns have unit length; random features carry a ridge, given functions none. The
accelerations are then corrected by what the steps show: where a step of the model ends beside the
data, its acceleration was off by that much over the step,

    a <- a + (v_data - v_model)/dt,

and the fit is repeated. Each round shrinks what is left by about the square of the step over the
time in which the accelerations change.

Data may come in chunks, which need not fit in memory together, nor be on this machine: of each only
the triangular factor is kept, and a round is one pass over them. A chunk of a hundred thousand rows
is a few megabytes, but its values of two thousand functions are two gigabytes, so large chunks are
taken in parts. Factors are merged in their order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.data.rows import (
    Noise,
    Rows,
    counted,
    input_after,
    rows_of,
    runs_of,
    spread_of_accelerations,
    step_errors,
)
from mbdnode.factors import Factor, merge_all, triangle
from mbdnode.identification.regression.weak_form import (
    WeakFormWindows,
    make_windows,
    middle_state,
    samples_per_period,
)
from mbdnode.models.function_library import Library
from mbdnode.models.objective import mean_and_spread
from mbdnode.trajectory import Dataset

# Numbers of a matrix that is made at once; a few copies of it are alive at a time.
MOST_NUMBERS = 4_000_000


def parts_of(rows: Rows, columns: int) -> Iterator[Rows]:
    """The rows in order, as they are if a matrix with this many columns is small enough.

    Where they are cut, they are cut between runs, if a run ends in the later half of a part.
    """
    most = max(1, MOST_NUMBERS // max(columns, 1))
    own = counted(rows)
    if len(own) <= most:
        yield rows
        return
    ends = np.array([last for _, last in runs_of(own)])
    plain = jax.tree.map(np.asarray, own)
    first = 0
    while first < len(own):
        last = min(first + most, len(own))
        before = ends[(ends > first + most // 2) & (ends <= last)]
        last = int(before[-1]) if len(before) else last
        yield jax.tree.map(lambda x, a=first, b=last: jnp.asarray(x[a:b]), plain)
        first = last


def factor_of_rows(make: Callable[[Rows], Factor], rows: Rows, columns: int) -> Factor:
    """The factor of rows in memory, part by part."""
    return merge_all(make(part) for part in parts_of(rows, columns))


@dataclass(frozen=True)
class Chunks:
    """Data that is not held together: of each chunk a factor is made where it is.

    **Arguments:**

    - `stream`: gives the chunks.
    - `system`, `minimal`, `interpolation`: by which they become rows.
    - `report`: called with how many parts are done, of how many.
    """

    stream: AbstractStream
    system: Any
    minimal: tuple[int, ...]
    interpolation: str
    report: Callable[[int, int], None] | None = None

    def factor(self, make: Callable[[Rows], Factor], columns: int) -> Factor:
        """Of all chunks."""
        given = make, columns, self.system, self.minimal, self.interpolation
        most = max(1, MOST_NUMBERS // max(columns, 1))
        return self.stream.factors(
            partial(_factor_of_chunk, *given), most_rows=most, report=self.report
        )


def _factor_of_chunk(
    make: Callable[[Rows], Factor],
    columns: int,
    system: Any,
    minimal: tuple[int, ...],
    interpolation: str,
    data: Dataset,
    count: int | None,
) -> Factor:
    """Of the first so many windows; the others fill up, so that compiled programs serve all."""
    rows = rows_of(system, minimal, data, accelerations=False, interpolation=interpolation)
    windows = data.trajectories[0].t.shape[0]
    if count is not None and count < windows:
        weight = np.asarray(rows.weight).copy()
        weight[count * (len(rows) // windows) :] = 0.0
        rows = eqx.tree_at(lambda r: r.weight, rows, jax.device_put(weight))
    found = factor_of_rows(make, rows, columns)
    return tuple(triangle(x) if np.ndim(x) == 2 else x for x in found)


_ROUNDS = 20
_NEGLIGIBLE = 1e-13


def regress(
    model: Library,
    rows: Rows,
    chunks: Chunks | None = None,
    *,
    ridge: float,
    integrator: Any,
    noise: Noise,
    by_steps: bool = False,
) -> Library:
    """The library with the coefficients of least squares.

    **Arguments:**

    - `rows`: the training data; where there are chunks, a sample of it, for scales alone.
    - `noise`: of the data; where it matters, the equations are taken in integral form.
    - `by_steps`: whether the inputs change, so that what they do is smooth over single steps alone.
    """
    unit, period = spread_of_accelerations(rows), samples_per_period(rows)
    model = _scaled(model, rows, noise)
    weights = np.zeros(model.network.weights.shape[1])
    weights[weights.size - model.settings.features :] = np.sqrt(ridge)
    given = integrator, unit, noise, period, by_steps
    solver = _Solver(weights)
    alone = chunks is None and len(counted(rows)) <= max(1, MOST_NUMBERS // weights.size)

    def solved(fitted: Library | None) -> tuple[Library, float]:
        """With the coefficients corrected, and the size of what was missed before."""
        if alone:
            targets, missed = _targets(model, fitted, rows, *given)
            squares, count = np.sum(missed**2), missed.size
            change = solver.again(lambda: _matrix(model, rows, noise, period, by_steps), targets)
        else:
            make = partial(_equations, model, fitted, *given)
            found = (
                factor_of_rows(make, rows, weights.size)
                if chunks is None
                else chunks.factor(make, weights.size)
            )
            change, squares, count = solver.of_triangle(found[0]), found[1], found[2]
        before = 0.0 if fitted is None else np.asarray(fitted.network.weights)
        changed = jax.device_put(before + change.T)
        better = eqx.tree_at(lambda m: m.network.weights, model, changed)
        return better, float(np.sqrt(squares / max(count, 1)))

    fitted, _ = solved(None)
    if noise.matters:
        return fitted
    best, smallest = fitted, np.inf
    for _ in range(_ROUNDS):
        # A model that blows up within a step misses by infinity, and is not corrected further.
        with np.errstate(over="ignore", invalid="ignore"):
            corrected, size = solved(fitted)
        if not size < 0.5 * smallest:
            return fitted if size < smallest else best
        best, smallest, fitted = fitted, size, corrected
    return best


def _equations(
    model: Library, fitted: Library | None, integrator, unit, noise, period, by_steps, rows: Rows
) -> Factor:
    """Columns and targets side by side; and the squares of what was missed, and their number."""
    with np.errstate(over="ignore", invalid="ignore"):
        given = integrator, unit, noise, period, by_steps
        targets, missed = _targets(model, fitted, rows, *given)
    block = np.hstack([_matrix(model, rows, noise, period, by_steps), targets])
    return block, np.asarray(np.sum(missed**2)), np.asarray(float(missed.size))


def _scaled(model: Library, rows: Rows, noise: Noise) -> Library:
    if not model.settings.features:  # Nothing reads the scaled states.
        return model
    there = _middle(counted(rows), noise)
    center, spread = mean_and_spread(_states(model, there.z, there.s, there.u))
    return eqx.tree_at(lambda m: (m.center, m.spread), model, (center, spread))


def _middle(rows: Rows, noise: Noise) -> Rows:
    """In the middle of each step; at its start where an integral is taken."""
    if noise.matters:
        return rows
    return eqx.tree_at(lambda r: (r.z, r.s, r.u), rows, _moved(rows))


@eqx.filter_jit
def _moved(rows: Rows):
    z = (rows.z + rows.z_next) / 2 - rows.dt[:, None] * (rows.s_next - rows.s) / 8
    return z, (rows.s + rows.s_next) / 2, _inputs_at(rows.u, rows.u_slopes, rows.dt / 2)


@eqx.filter_jit
def _inputs_at(u, slopes, later):
    """The inputs some time after each step began, inside it."""
    return jax.vmap(input_after)(u, slopes, later)


def nodes(rows: Rows, *, noisy: bool) -> tuple[Rows, Rows, Rows]:
    """The same rows at the start, in the middle and at the end of their steps.

    Three times `Rows`, of which times, states and inputs are of use.
    """
    t, dt = np.asarray(rows.t), np.asarray(rows.dt)
    later, ends, at_middle, at_end = jax.device_put((dt / 2, dt, t + dt / 2, t + dt))
    z, s = (jnp.asarray(x, float) for x in middle_state(rows, noisy=noisy))
    middle = at_middle, z, s, _inputs_at(rows.u, rows.u_slopes, later)
    end = at_end, rows.z_next, rows.s_next, _inputs_at(rows.u, rows.u_slopes, ends)
    moved = lambda where: eqx.tree_at(lambda r: (r.t, r.z, r.s, r.u), rows, where)  # noqa: E731
    return rows, moved(middle), moved(end)


def integrals(
    windows: WeakFormWindows, values: Callable[[Rows], Any], rows: Rows, by_steps: bool
) -> np.ndarray:
    """The integral of what depends on states and inputs, over every window.

    Sums over the samples; of what inputs add, over the steps.
    """
    if not by_steps:
        return windows.integral(np.asarray(values(rows)))
    without = lambda r: eqx.tree_at(lambda x: x.u, r, jnp.zeros_like(r.u))  # noqa: E731
    added = [
        np.asarray(values(one)) - np.asarray(values(without(one)))
        for one in nodes(rows, noisy=True)
    ]
    plain = windows.integral(np.asarray(values(without(rows))))
    return plain + windows.integral_of_steps(added)


def _matrix(model: Library, rows: Rows, noise: Noise, period: int, by_steps: bool) -> np.ndarray:
    if noise.matters:
        return integrals(make_windows(rows, period), lambda r: _columns(model, r), rows, by_steps)
    return np.asarray(_columns(model, _middle(rows, noise)))[: len(counted(rows))]


def _targets(
    model: Library,
    fitted: Library | None,
    rows: Rows,
    integrator,
    unit,
    noise: Noise,
    period: int,
    by_steps: bool,
):
    """What the columns must add up to, and what the model so far has missed."""
    count = len(counted(rows))
    if noise.matters:
        windows = make_windows(rows, period)
        rest = integrals(windows, lambda r: _momentum_and_rest(model, r)[1], rows, by_steps)
        momentum = np.asarray(_momentum_and_rest(model, rows)[0])
        return windows.integral_of_rate(momentum) + rest, np.zeros(0)
    there = _middle(rows, noise)
    if fitted is None:
        s, s_next, dt = (np.asarray(x) for x in (rows.s, rows.s_next, rows.dt))
        mean = jax.device_put((s_next - s) / dt[:, None])
        return np.asarray(_wanted(model, there, mean))[:count], np.zeros(0)
    missed = np.asarray(step_errors(fitted, rows, integrator, unit))[:, : rows.s.shape[1]]
    moved = -missed * np.asarray(unit)[None]
    still, off = (
        np.asarray(_wanted(model, there, jax.device_put(x))) for x in (np.zeros_like(moved), moved)
    )
    return (off - still)[:count], missed[:count]


class _Solver:
    """Least squares with the same columns again and again."""

    def __init__(self, weights: np.ndarray):
        self._ridge = np.diag(weights)[weights > 0]
        self._columns = weights.size
        self._factored: Any = None

    def again(self, matrix: Callable[[], np.ndarray], targets: np.ndarray) -> np.ndarray:
        """One column for each column of the targets; the matrix is made and factored once."""
        if self._factored is None:
            self._factored = self._factor(matrix())
        return self._solve(self._factored, targets)

    def of_triangle(self, triangle: np.ndarray) -> np.ndarray:
        """The same from the triangle of columns and targets side by side."""
        factored = self._factor(triangle[:, : self._columns])
        return self._solve(factored, triangle[:, self._columns :])

    def _factor(self, matrix: np.ndarray):
        norms = np.linalg.norm(matrix, axis=0)
        norms = np.where(norms > 0, norms, 1.0)
        tall = np.vstack([matrix / norms, self._ridge])
        # The singular values of a tall matrix are those of its triangle.
        basis, triangle = np.linalg.qr(tall)
        turned, values, right = np.linalg.svd(triangle)
        left = basis @ turned[:, : values.size]
        right = right[: values.size]
        inverse = np.where(values > _NEGLIGIBLE * values[0], 1 / np.maximum(values, 1e-300), 0.0)
        return left, inverse, right, norms

    def _solve(self, factored, targets: np.ndarray) -> np.ndarray:
        left, inverse, right, norms = factored
        # The ridge asks for zeros.
        inner = left[: targets.shape[0]].T @ targets
        return (right.T @ (inverse[:, None] * inner)) / norms[:, None]


@eqx.filter_jit
def _columns(model, rows):
    return jax.vmap(model.columns)(rows.z, rows.s, rows.u, rows.mu)


@eqx.filter_jit
def _states(model, z, s, u):
    return jax.vmap(model.states)(z, s, u)


@eqx.filter_jit
def _wanted(model, rows, a):
    return jax.vmap(model.wanted)(rows.t, rows.z, rows.s, rows.u, rows.mu, a)


@eqx.filter_jit
def _momentum_and_rest(model, rows):
    return jax.vmap(model.momentum_and_rest)(rows.t, rows.z, rows.s, rows.u, rows.mu)
