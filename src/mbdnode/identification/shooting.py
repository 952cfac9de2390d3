"""Shooting refinement: coefficients that meet the data through the integrator.

A regression takes the accelerations from differences of the data: those of the curve, not those of
the equation that the integrator was stepping. Where the data has no noise, `refine_steps` fits the
steps themselves (single shooting over one step), which removes that error to the last digits.

One step of noisy data says next to nothing of the law. A rollout over about a period does, if it
need not pass through a measured state: `refine_segments` is multiple shooting over segments of
that length, and of several periods once the law follows them, each from an initial state that is
fitted too. The initial states belong to their own segments alone and are eliminated there. Rates
that were estimated from positions say nothing that these do not, and are not looked at.

Both are Levenberg-Marquardt (`mbdnode.levenberg_marquardt`).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import (
    Noise,
    Rows,
    runs_of,
    spread_of_accelerations,
    step_errors,
)
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.weak_form import samples_per_swing
from mbdnode.identification.rollouts import SegmentRollouts, values_of, with_values
from mbdnode.levenberg_marquardt import damped_step, minimize

# Coefficients and initial states together are a harder problem than coefficients alone.
_SEGMENT_DAMPING = 1e-2
# Steps of computed data are fitted to round-off.
_STEP_ITERATIONS, _STEP_TOLERANCE = 40, 1e-6
_SHORTEST, _LONGEST, _MOST = 10, 200, 64
_MIN_NOISE = 1e-3
# Of the motion, in the segments of the first and of the further refinement.
PERIODS = (1, 4)
# Free coefficients are counted in so many.
_AT_ONCE = 8
# Iterations of shooting over a period, for all; and over growing segments, for the best.
_SCREENING, _ITERATIONS = 8, 20


class ShootingSegments(eqx.Module):
    """Segments of the data, one after another.

    **Arguments:**

    - `rows`: of each segment, with a leading axis.
    - `initial`: the initial state of each, fitted or measured.
    """

    rows: Rows
    initial: Any


def make_segments(
    rows: Rows,
    *,
    periods: int = 1,
    shape: tuple[int, int] | None = None,
    from_the_end: bool = False,
) -> ShootingSegments | None:
    """Segments of about a period or several, each inside one run.

    **Arguments:**

    - `shape`: how many segments of how many steps, if given; that of other data, so that one
        compiled program serves both. Fewer are filled up with segments of no weight.

    **Returns:**

    The `ShootingSegments`, no more than a fixed number, spread over the data; None if no run is
    long enough.
    """
    runs = runs_of(rows)
    longest = max(last - first for first, last in runs)
    length = min(periods * min(max(samples_per_swing(rows), _SHORTEST), _LONGEST), longest)
    length = length if shape is None else shape[1]
    if from_the_end:
        runs = [(runs[-1][1] - length, runs[-1][1])]
    begins = [i for first, last in runs for i in range(first, last - length + 1, length)]
    if length < 2 or runs[0][0] < 0 or not begins:
        return None
    most = max(1, _MOST // periods) if shape is None else shape[0]
    if len(begins) > most:
        begins = [begins[i] for i in np.linspace(0, len(begins) - 1, most).astype(int)]
    count = len(begins) if shape is None else most
    index = np.array([*begins, *begins[-1:] * (count - len(begins))])[:, None] + np.arange(length)
    cut = jax.tree.map(lambda x: np.asarray(x)[index], rows)
    cut.weight[len(begins) :] = 0.0
    initial = np.concatenate([cut.z[:, 0], cut.s[:, 0]], axis=1)
    return ShootingSegments(jax.tree.map(jax.device_put, cut), jax.device_put(initial))


def segment_shapes(early: Rows, rows: Rows) -> tuple[tuple[int, int], ...]:
    """How many segments of how many steps, one pair for each of `PERIODS`.

    The shapes; none where no run is long enough.
    """
    found = []
    for periods in PERIODS:
        first = make_segments(early, periods=periods)
        if first is None:
            return ()
        length = first.rows.t.shape[1]
        most = max(1, _MOST // periods)
        whole = sum((last - begin) // length for begin, last in runs_of(rows))
        found.append((min(most, whole), length))
    return tuple(found)


def refine_segments(
    model: Any,
    segments: ShootingSegments,
    integrator: Any,
    noise: Noise,
    free: np.ndarray,
    *,
    measured: np.ndarray | None = None,
    iterations: int = 30,
) -> Any:
    """The model whose rollouts come nearest to the measurements.

    **Arguments:**

    - `measured`: which velocities were; the others are not looked at. All of them if not given.

    **Returns:**

    The model and the fitted initial states; as they were, if nothing is better.
    """
    rollouts = SegmentRollouts(segments.rows)
    unit, whole = _unit(segments, noise, measured), _whole_values(model, free)
    law = lambda x: with_values(model, whole(x[0]))  # noqa: E731
    found = minimize(
        lambda x: path_residuals(rollouts, law(x), x[1], segments.rows, integrator, unit),
        lambda x: path_jacobians(rollouts, law(x), x[1], segments.rows, integrator, unit, free),
        (values_of(model)[free], segments.initial),
        step=_eliminated_step,
        damping=_SEGMENT_DAMPING,
        iterations=iterations,
    )
    values, initial = found.x
    return with_values(model, whole(values)), jax.device_put(initial)


def linearized_residuals(
    model: Any,
    initial: Any,
    segments: ShootingSegments,
    integrator: Any,
    noise: Noise,
    wanted: np.ndarray,
    measured: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How the residuals change with coefficients, where the initial states follow.

    The Jacobian, `(rows, coefficients)`, and the residuals, both without what another initial state
    of a segment could explain.
    """
    rollouts, unit = SegmentRollouts(segments.rows), _unit(segments, noise, measured)
    given = rollouts, model, np.asarray(initial), segments.rows, integrator, unit
    residual = path_residuals(*given)
    by_values, by_initial = path_jacobians(*given, wanted)
    basis = np.linalg.qr(by_initial)[0]
    inside = lambda x: x - basis @ (np.swapaxes(basis, -1, -2) @ x)  # noqa: E731
    jacobian = inside(by_values).reshape(residual.size, -1)
    return jacobian, inside(residual[..., None]).reshape(-1)


def _whole_values(model: Any, free: np.ndarray) -> Callable[[Any], Any]:
    """All coefficients from those that are free; compiled programs take all of them."""

    def whole(x):
        values = values_of(model).copy()
        values[free] = x
        return values

    return whole


def _unit(segments: ShootingSegments, noise: Noise, measured: np.ndarray | None) -> np.ndarray:
    """Of positions and velocities; infinite for velocities that were not measured."""
    unit = unit_of(segments.rows, noise)
    if measured is None:
        return unit
    return np.where(np.concatenate([np.ones(len(measured), bool), measured]), unit, np.inf)


def _directions(model: Any, free: np.ndarray, least: int = 1) -> Any:
    """One for each free coefficient, filled up so that one compiled program serves many counts."""
    count = -(-max(free.size, least) // _AT_ONCE) * _AT_ONCE
    ways = np.zeros((count, values_of(model).size))
    ways[np.arange(free.size), free] = 1.0
    return jax.device_put(ways)


def unit_of(segments: Rows, noise: Noise) -> np.ndarray:
    """The unit of each component: its noise, but no less than a part of its motion.

    What was smoothed before it came here has less noise than error.
    """
    parts = []
    for values, size in ((segments.z, noise.z), (segments.s, noise.s)):
        own = np.asarray(values)[np.asarray(segments.weight) > 0]
        spread = np.std(own, axis=0)
        parts.append(np.maximum(size, _MIN_NOISE * np.where(spread > 0, spread, 1.0)))
    return np.concatenate(parts)


def path_residuals(
    rollouts: SegmentRollouts, model: Any, initial: Any, rows: Rows, integrator: Any, unit: Any
) -> np.ndarray:
    """Residuals of paths and their initial states, one row for each segment.

    They are zero where rows only fill a segment up.
    """
    path, initial = rollouts.paths(model, initial, integrator), np.asarray(initial)
    unit, counts = np.asarray(unit), np.asarray(rows.weight)[..., None] > 0
    ends = np.concatenate([np.asarray(rows.z_next), np.asarray(rows.s_next)], axis=2)
    away = np.where(counts, path - ends, 0.0) / (unit if unit.ndim == 1 else unit[:, None])
    measured = np.concatenate([np.asarray(rows.z)[:, 0], np.asarray(rows.s)[:, 0]], axis=1)
    first = ((initial - measured) / unit)[:, None]
    return np.concatenate([first, away], axis=1).reshape(len(initial), -1)


def path_jacobians(
    rollouts: SegmentRollouts,
    model: Any,
    initial: Any,
    rows: Rows,
    integrator: Any,
    unit: Any,
    wanted: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Their derivatives by the wanted coefficients, and by the initial state of each segment."""
    unit = np.asarray(unit)[..., None]
    wide = unit if unit.ndim == 2 else unit[:, None]
    counts = np.asarray(rows.weight)[..., None, None] > 0
    found = []
    for changes, at_first in zip(
        rollouts.changes(model, initial, integrator, wanted),
        (np.zeros((rollouts.size, wanted.size)), np.eye(rollouts.size)),
        strict=True,
    ):
        first = np.broadcast_to(at_first / unit, (len(changes), *at_first.shape))[:, None]
        away = np.where(counts, changes, 0.0) / wide
        joined = np.concatenate([first, away], axis=1)
        count, steps, size, directions = joined.shape
        found.append(joined.reshape(count, steps * size, directions))
    return found[0], found[1]


def _eliminated_step(jacobians, residual, damping: float):
    """Of the coefficients, with the initial states eliminated; then of the initial states."""
    by_values, by_initial = jacobians
    basis = np.linalg.qr(by_initial)[0]
    inside = lambda x: x - basis @ (np.swapaxes(basis, -1, -2) @ x)  # noqa: E731
    tall = inside(by_values).reshape(residual.size, by_values.shape[-1])
    right = inside(residual[..., None]).reshape(-1)
    change = damped_step(tall, right, damping)
    left = residual + by_values @ change
    moves = -np.stack(
        [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(by_initial, left, strict=True)]
    )
    return change, moves


def refine_steps(model: Any, rows: Rows, integrator: Any, unit: Any, free: np.ndarray) -> Any:
    """The model with the coefficients that minimize the errors of single steps.

    The model; as it was, if nothing lowers the error.
    """
    if not free.size:
        return model
    given, whole = (model, rows, integrator, unit), _whole_values(model, free)
    ways = _directions(model, free)
    found = minimize(
        lambda x: np.asarray(step_errors(with_values(model, whole(x)), *given[1:])).reshape(-1),
        lambda x: np.asarray(_step_jacobian(whole(x), ways, *given))[:, : free.size],
        values_of(model)[free],
        iterations=_STEP_ITERATIONS,
        tolerance=_STEP_TOLERANCE,
    )
    return with_values(model, whole(found.x))


# Compiled once for all candidates of one form: which coefficients are free is decided outside.
@eqx.filter_jit
def _step_jacobian(values, ways, model, rows, integrator, unit):
    def errors(along):
        own = with_values(model, values + along @ ways)
        return step_errors(own, rows, integrator, unit).reshape(-1)

    return jax.jacfwd(errors)(jnp.zeros(ways.shape[0]))


def improved(problem: Problem, model: Any, rows: Rows, free: np.ndarray) -> Any:
    """The model after a fit to the integrator's steps, or to rollouts where there is noise.

    The model; as it was, if nothing is better.
    """
    if not problem.noise.matters:
        return refine_steps(model, rows, problem.integrator, spread_of_accelerations(rows), free)
    return _shot(problem, model, rows, free, problem.segments[:1], _SCREENING)


def refine_further(problem: Problem, model: Any, rows: Rows, free: np.ndarray) -> Any:
    """The model after a fit to rollouts over segments that grow, to several periods.

    The model; of the recipe that does not refine, after a short fit over a period.
    """
    if not problem.refined:
        return _shot(problem, model, rows, free, problem.segments[:1], _SCREENING)
    return _shot(problem, model, rows, free, problem.segments, _ITERATIONS)


def _shot(
    problem: Problem, model: Any, rows: Rows, free: np.ndarray, shapes: Any, iterations: int
) -> Any:
    for shape in shapes:
        segments = make_segments(rows, shape=shape)
        if segments is None:
            return model
        model = refine_segments(
            model,
            segments,
            problem.integrator,
            problem.noise,
            free,
            measured=problem.measured,
            iterations=iterations,
        )[0]
    return model
