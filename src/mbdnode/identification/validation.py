"""The validation split of the training range, and how far a model is from it.

The ends of the runs are predicted as wholes, and where no candidate can do that, in parts of a
fourth, a sixteenth and a sixty-fourth of their length: of a chaotic motion every model loses sight,
and the right law does so last. Errors are those of `mbdnode.nrmse`.

The shorter ones of segments of one length are filled up with rows that nothing is compared with.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import (
    Noise,
    Rows,
    begun_later,
    counted,
    rows_of,
    side_by_side,
    single_trajectories,
    spread_of_accelerations,
    step_errors,
)
from mbdnode.identification.initial_states import end_covariances, end_states, last_windows
from mbdnode.identification.problem import Problem
from mbdnode.identification.rollouts import SegmentRollouts
from mbdnode.nrmse import column_scales, nrmse_of, row_errors
from mbdnode.trajectory import Dataset, Trajectory

# Segments of one length that are predicted; more would judge a candidate no better.
MOST_SEGMENTS = 32
# Into how many parts an end is cut, and the rows of a part that can tell.
_PARTS, _SHORTEST = (1, 4, 16, 64), 10
# The end of a run that is predicted, as a part of it.
_VALIDATION = 0.2


@dataclass(frozen=True)
class Segments:
    """Stretches of runs to be predicted, or single steps.

    **Arguments:**

    - `after`: the rows to predict, with a leading axis of segments; without one for single steps,
        which have no order.
    - `windows`: the last rows before each of them, which tell the initial state; None where they
        cannot.
    """

    after: Rows
    windows: Rows | None

    @cached_property
    def rollouts(self) -> SegmentRollouts:
        """Along the rows to predict."""
        return SegmentRollouts(self.after)

    def lengths(self) -> list[int]:
        """Of every segment, without what fills it up."""
        return [int(n) for n in np.sum(np.asarray(self.after.weight) > 0, axis=1)]

    @property
    def seconds(self) -> float:
        """How long the segments are, in the median."""
        t, dt = np.asarray(self.after.t), np.asarray(self.after.dt)
        last = [(n - 1, i) for i, n in enumerate(self.lengths())]
        return float(np.median([t[i, k] + dt[i, k] - t[i, 0] for k, i in last]))


@dataclass
class ValidationSplit:
    """What is kept from the fits of all candidates, to choose between them.

    **Arguments:**

    - `ends`: what comes before the end of each run, and the end; none for single steps.
    - `steps`: single steps, for data without an order; None for runs.
    - `scales`: of positions and velocities, not a number for what is not scored.
    """

    ends: list[tuple[Rows, Rows]]
    steps: Rows | None
    scales: np.ndarray
    _made: dict[int, Segments] = field(default_factory=dict, repr=False)

    @property
    def levels(self) -> int:
        """How many lengths of segments there are, the whole ends first."""
        if self.steps is not None:
            return 1
        longest = max(len(after) for _, after in self.ends)
        return sum(longest // parts >= _SHORTEST or parts == 1 for parts in _PARTS)

    def segments(self, level: int) -> Segments:
        """Those of one length."""
        if level not in self._made:
            if self.steps is not None:
                self._made[level] = Segments(self.steps, None)
            else:
                self._made[level] = self._cut(_PARTS[level])
        return self._made[level]

    def _cut(self, parts: int) -> Segments:
        spans = [
            (end, first, first + len(after) // parts)
            for end, (_, after) in enumerate(self.ends)
            if parts == 1 or len(after) // parts >= _SHORTEST
            for first in range(0, len(after) // parts * parts, len(after) // parts)
        ]
        chosen = [spans[i] for i in evenly(len(spans))]
        before = [_joined(self.ends[end][0], self.ends[end][1], first) for end, first, _ in chosen]
        after = [
            jax.tree.map(lambda x, a=first, b=last: x[a:b], self.ends[end][1])
            for end, first, last in chosen
        ]
        return Segments(side_by_side(after), last_windows(before))


def _joined(before: Rows, after: Rows, count: int) -> Rows:
    """What comes before a row of an end."""
    if count == 0:
        return before
    both = lambda x, y: np.concatenate([np.asarray(x), np.asarray(y)[:count]])  # noqa: E731
    return jax.tree.map(both, before, after)


def make_validation(
    ends: list[tuple[Rows, Rows]],
    steps: Rows | None,
    rows: Rows,
    angles: np.ndarray,
    measured: np.ndarray,
) -> ValidationSplit:
    """A validation split with its scales.

    A `ValidationSplit`. A motion that stands still has scales of one.
    """
    states = lambda r: np.concatenate([np.asarray(r.z), np.asarray(r.s)], axis=1)  # noqa: E731
    judged = [states(after) for _, after in ends] if steps is None else [states(steps)]
    kinds = np.concatenate([angles, np.zeros(len(angles), bool)])
    scales = column_scales(judged, kinds, [states(counted(rows))])
    scales = np.where(np.concatenate([np.ones(len(angles), bool), measured]), scales, np.nan)
    if not np.any(np.isfinite(scales)):
        scales[: len(angles)] = 1.0
    return ValidationSplit(ends, steps, scales)


def evenly(count: int) -> np.ndarray:
    """Which of this many segments are predicted: all, or evenly many of them."""
    return np.linspace(0, count - 1, min(count, MOST_SEGMENTS)).astype(int)


def validation_error(problem: Problem, model: Any, split: ValidationSplit, level: int = 0) -> float:
    """The NRMSE over the segments of one length.

    The error, each segment counting by its length; infinity if a rollout fails.
    """
    segments = split.segments(level)
    rows = segments.after
    if split.steps is not None:
        missed = step_errors(model, rows, problem.integrator, spread_of_accelerations(rows))
        error = float(np.sqrt(np.mean(np.asarray(missed)[:, : rows.z.shape[1]] ** 2)))
        return error if np.isfinite(error) else np.inf
    initial = _states(rows.z, rows.s)[:, 0]
    if segments.windows is not None and problem.noise.matters:
        # As measured, a prediction would begin beside the path by the noise.
        found = end_states(
            model, segments.windows, problem.integrator, problem.noise, problem.measured
        )
        initial = _states(*found)
    path = segments.rollouts.paths(model, initial, problem.integrator)
    return nrmse_of(_errors(segments, path, _states(rows.z_next, rows.s_next), split.scales))


def expected_errors(
    problem: Problem,
    model: Any,
    split: ValidationSplit,
    level: int = 0,
    uncertainty: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[float, float]:
    """The NRMSE that noise alone would make if the model were the law of the data.

    To the noise of what is compared, the model adds what becomes of that in the initial states: of
    an unstable motion, all that one sees after a while. Apart from that stands what becomes of the
    noise in its coefficients.

    **Arguments:** those of `validation_error`, and

    - `uncertainty`: which coefficients were fitted, by index, and their covariance; None for none.

    **Returns:**

    The error, and that by the coefficients; not numbers where they cannot be told.
    """
    segments = split.segments(level)
    if split.steps is not None or segments.windows is None:
        return float("nan"), float("nan")
    given = problem.integrator, problem.noise, problem.measured
    initial, covariances = end_covariances(model, segments.windows, *given)
    free, covariance = (np.zeros(0, int), np.zeros((0, 0))) if uncertainty is None else uncertainty
    changes = segments.rollouts.changes(model, initial, problem.integrator, free)
    grown = np.einsum("msij,mjk,msik->msi", changes[1], covariances, changes[1])
    squares = grown + np.concatenate([problem.noise.z, problem.noise.s]) ** 2
    scored = np.isfinite(split.scales)

    def relative(squares: np.ndarray) -> float:
        own = squares[..., scored] / split.scales[scored] ** 2
        each = [own[i, :n].reshape(-1) for i, n in enumerate(segments.lengths())]
        return float(np.sqrt(np.mean(np.concatenate(each))))

    by_coefficients = np.einsum("msij,jk,msik->msi", changes[0], covariance, changes[0])
    return relative(squares), relative(by_coefficients)


def _errors(segments: Segments, path: np.ndarray, truth: np.ndarray, scales: np.ndarray):
    return [row_errors(truth[i, :n], path[i, :n], scales) for i, n in enumerate(segments.lengths())]


def _states(z: Any, s: Any) -> np.ndarray:
    return np.concatenate([np.asarray(z), np.asarray(s)], axis=-1)


def unaccelerated_error(split: ValidationSplit, level: int) -> float:
    """The NRMSE of going on at the initial velocity: what a law has to explain over a segment.

    The error; infinity for single steps.
    """
    if split.steps is not None:
        return np.inf
    segments = split.segments(level)
    rows = segments.after
    z, s, t, dt = (np.asarray(x) for x in (rows.z, rows.s, rows.t, rows.dt))
    passed = (t + dt - t[:, :1])[..., None]
    straight = _states(z[:, :1] + passed * s[:, :1], np.broadcast_to(s[:, :1], s.shape))
    return nrmse_of(_errors(segments, straight, _states(rows.z_next, rows.s_next), split.scales))


def integrator_error(problem: Problem, model: Any, split: ValidationSplit) -> float:
    """By how much the integrator's own steps move the model's rollouts over the whole ends.

    The NRMSE between rollouts with whole and with halved steps; zero for single steps.
    """
    if split.steps is not None:
        return 0.0
    segments = split.segments(0)
    initial = _states(segments.after.z, segments.after.s)[:, 0]
    halved = SegmentRollouts(_halved(segments.after))
    coarse, fine = (
        rollouts.paths(model, initial, problem.integrator)
        for rollouts in (segments.rollouts, halved)
    )
    each = _errors(segments, fine[:, 1::2], coarse, split.scales)
    return max(nrmse_of([one]) for one in each)


def noise_in(split: ValidationSplit, noise: Noise) -> float:
    """The NRMSE that a perfect model would have, for the noise alone."""
    sizes = np.concatenate([noise.z, noise.s])
    scored = np.isfinite(split.scales)
    return float(np.sqrt(np.mean((sizes[scored] / split.scales[scored]) ** 2)))


def _halved(rows: Rows) -> Rows:
    """Every step as two; only where steps begin, how long they are and what acts is of use."""
    twice = jax.tree.map(lambda x: jnp.repeat(x, 2, axis=1), rows)
    dt = twice.dt / 2
    later = dt.at[:, ::2].set(0.0)
    u, slopes = jax.vmap(jax.vmap(begun_later))(twice.u, twice.u_slopes, later)
    changed = twice.t + later, dt, u, slopes
    return eqx.tree_at(lambda r: (r.t, r.dt, r.u, r.u_slopes), twice, changed)


def split_rows(
    system: Any,
    minimal: tuple[int, ...],
    data: Dataset,
    rows: Rows,
    measured: np.ndarray,
    interpolation: str,
) -> tuple[Rows, ValidationSplit]:
    """The rows to fit, and what to predict: the ends of all runs, or of evenly many.

    Them, and a `ValidationSplit`. Of samples without an order, the last part is kept apart.
    """
    angles = np.array([system.coordinates[i].is_angle for i in minimal])
    if all(len(run) <= _SHORTEST for run in data.trajectories):
        last = max(1, int(len(rows) * (1 - _VALIDATION)))
        first, second = (
            jax.tree.map(lambda x, a=a, b=b: jax.device_put(np.asarray(x)[a:b]), rows)
            for a, b in ((0, last), (last, None))
        )
        return first, make_validation([], second, rows, angles, measured)
    early, ends = [], []
    for run, values in single_trajectories(data):
        if len(run) <= _SHORTEST:
            early.append((run, values))
            continue
        last = int((len(run) - 1) * (1 - _VALIDATION))
        early.append((_cut(run, 0, last), values))
        ends.append((early[-1], (_cut(run, last, len(run) - 1), values)))
    made = lambda part, **how: rows_of(  # noqa: E731
        system, minimal, Dataset(*part), interpolation=interpolation, **how
    )
    plain = lambda part: made(part, accelerations=False)  # noqa: E731
    pairs = [(plain(ends[i][0]), plain(ends[i][1])) for i in evenly(len(ends))]
    parts, values = zip(*early, strict=True)
    first = made((list(parts), list(values)))
    return first, make_validation(pairs, None, rows, angles, measured)


def _cut(run: Trajectory, first: int, last: int) -> Trajectory:
    """From one row to another; by NumPy, as no program is to be compiled for every length."""
    return jax.tree.map(lambda x: np.asarray(x)[first : last + 1] if np.ndim(x) else x, run)
