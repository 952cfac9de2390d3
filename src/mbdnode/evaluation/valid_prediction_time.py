"""The valid prediction time: how far ahead a model can be believed.

From many initial states in the held-out runs, estimated as for the score, the model predicts each
run to its end. A prediction's error at a time ahead is that of `mbdnode.nrmse` at that row, the
same whose root mean square over a run is its NRMSE. Its median over all predictions that are long
enough grows with the time ahead, and the valid prediction time is that at which it exceeds the
limit: one tenth of the standard deviation, of an angle no more than 0.1 rad. Where it never does,
the valid prediction time is as long as was measured, and that is said. Noise of what was recorded
is no error of a prediction, and where it is not small beside the limit it is averaged out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.evaluation.scores import begin_at, predict, rows_before, table_of, without_names
from mbdnode.models import FittedMechanism
from mbdnode.multibody import AbstractSystem
from mbdnode.nrmse import LIMIT, errors_without_noise, row_errors
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

# Predictions in all, the times ahead at which they are compared, and how many must reach a time.
_PREDICTIONS, _POINTS, _FEWEST = 24, 120, 3
# Rows of a prediction that can tell.
_SHORTEST = 4


@dataclass(frozen=True)
class Horizon:
    """How the error grows with the time predicted ahead, over many initial states.

    **Arguments:**

    - `ahead_s`: the times ahead.
    - `low`, `middle`, `high`: quartiles of the error over the predictions that are so long; one is
        as bad as predicting the mean.
    - `persistence`: the median error of predicting no motion.
    - `valid_s`: until when the middle stays within `limit`; None if it never does.
    - `limit`: the largest error of a valid prediction.
    - `predictions`: how many there were.
    """

    ahead_s: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    persistence: np.ndarray
    valid_s: float | None
    limit: float
    predictions: int

    @property
    def is_capped(self) -> bool:
        """Whether the limit was kept as far as was measured."""
        return self.valid_s is not None and self.valid_s >= float(self.ahead_s[-1])

    def __str__(self) -> str:
        if self.valid_s is None:
            return "none"
        return f"{self.valid_s:.3g} s" + (", as far as was measured" if self.is_capped else "")


def measure_horizon(
    model: Any,
    runs: Sequence[tuple[str, Trajectory, Mapping[str, float]]],
    recorded: Sequence[str] | None,
    scales: Mapping[str, float],
    integrator: str,
    *,
    noise: float = 0.0,
    biased: Sequence[str] = (),
) -> Horizon | None:
    """The error against the time ahead, and the valid prediction time.

    **Arguments:**

    - `model`: trained; one that goes on from any state.
    - `runs`: held out, with their names and parameters.
    - `recorded`: which columns were measured; None for all.
    - `scales`: of the scored columns, as `score` has them.
    - `integrator`: of the rollouts.
    - `noise`: the NRMSE that the noise of the recorded columns alone would make.
    - `biased`: recorded rates that do not tell a state, as for `predict_runs`.

    **Returns:**

    A `Horizon`; None where the runs are too short, nothing is scored, or the model cannot begin
    anywhere.
    """
    if not isinstance(model, AbstractSystem) or not scales:
        return None
    # Of the many predictions only the middle is looked at.
    model = model.certain() if isinstance(model, FittedMechanism) else model
    begins = [
        (run, row, before, parameters)
        for (_, run, parameters), before in zip(
            runs, [rows_before(model, run, recorded) for _, run, _ in runs], strict=True
        )
        for row in _initial_rows(run, before, sum(len(one) for _, one, _ in runs))
    ]
    if not begins:
        return None
    told = without_names(begins[0][0], recorded, biased)
    states = _initial_states(model, begins, told, integrator)
    longest = max(len(run) - row for run, row, _, _ in begins)
    names, units = list(scales), np.array(list(scales.values()))
    times, errors, still = [], [], []
    for (run, row, _, parameters), state in zip(begins, states, strict=True):
        truth = run.rows(row, len(run) - 1)
        padded = _filled_up(begin_at(truth, state) if state is not None else truth, longest)
        found = table_of(predict(model, padded, integrator, parameters), names)[: len(truth)]
        measured = table_of(truth, names)
        times.append(np.asarray(truth.t) - float(truth.t[0]))
        errors.append(errors_without_noise(row_errors(measured, found, units), noise))
        still.append(row_errors(measured, np.broadcast_to(measured[:1], measured.shape), units))
    return _summed_up(times, errors, still)


def _initial_rows(run: Trajectory, before: int, total: int) -> list[int]:
    """Rows to predict from, in the first half of a run, as many as its length deserves."""
    last = len(run) - 1 - max(_SHORTEST, (len(run) - 1 - before) // 2)
    if last < before:
        return []
    count = max(1, round(_PREDICTIONS * len(run) / total))
    return np.unique(np.linspace(before, last, count).astype(int)).tolist()


def _initial_states(model: Any, begins: Sequence, recorded: Any, integrator: str) -> list:
    """As estimated from the rows before; None where what was measured will do."""
    from mbdnode.identification import estimate_states  # Slow to load for who only evaluates.

    late = [i for i, (_, _, before, _) in enumerate(begins) if before]
    found: list[Any] = [None] * len(begins)
    if late:
        stretches = [begins[i][0].rows(begins[i][1] - begins[i][2], begins[i][1]) for i in late]
        states = estimate_states(
            model,
            stretches,
            integrator=integrator,
            parameters=[begins[i][3] for i in late],
            recorded=recorded,
        )
        for i, state in zip(late, states, strict=True):
            found[i] = state
    return found


def _filled_up(run: Trajectory, count: int) -> Trajectory:
    """The run with its last row repeated, so that one compiled program predicts all of them."""
    rows = np.minimum(np.arange(count), len(run) - 1)
    t = np.asarray(run.t)
    beyond = np.maximum(np.arange(count) - (len(run) - 1), 0)
    times = t[rows] + beyond * (t[-1] - t[-2])
    q, v, u = (jnp.asarray(np.asarray(x)[rows]) for x in (run.q, run.v, run.u))
    none, names = jnp.zeros(count), run.coordinates
    status = completed(jnp.asarray(times[-1]), jnp.asarray(count - 1), names)
    arrays = (jnp.asarray(times), q, v, u, none, none)
    return Trajectory(*arrays, status, names, run.rates, run.inputs)


def _summed_up(times: list, errors: list, still: list) -> Horizon | None:
    """Quartiles at common times ahead, as far as enough predictions reach."""
    ends = sorted((float(t[-1]) for t in times), reverse=True)
    longest = ends[min(_FEWEST, len(ends)) - 1]
    first = max(float(t[1]) for t in times)
    if not longest > first:
        return None
    ahead = np.geomspace(first, longest, _POINTS)
    quartiles, held = [], []
    for time in ahead:
        # Between rows the error is between theirs; round-off must not end a run before its end.
        able = [i for i, t in enumerate(times) if t[-1] >= time * (1 - 1e-9)]
        at = [_between(time, times[i], errors[i]) for i in able]
        quartiles.append(np.quantile(at, [0.25, 0.5, 0.75], method="nearest"))
        held.append(np.median([_between(time, times[i], still[i]) for i in able]))
    low, middle, high = np.array(quartiles).T
    return Horizon(
        ahead_s=ahead,
        low=low,
        middle=middle,
        high=high,
        persistence=np.array(held),
        valid_s=_crossing(ahead, middle),
        limit=LIMIT,
        predictions=len(times),
    )


def _between(time: float, times: np.ndarray, values: np.ndarray) -> float:
    after = int(np.clip(np.searchsorted(times, time), 1, len(times) - 1))
    a, b = values[after - 1], values[after]
    if not (np.isfinite(a) and np.isfinite(b)):
        return float(max(a, b))
    part = min((time - times[after - 1]) / (times[after] - times[after - 1]), 1.0)
    return float(a + part * (b - a))


def _crossing(ahead: np.ndarray, middle: np.ndarray) -> float | None:
    """When the median exceeds the limit; the last time if it does not, None if it does at once."""
    above = np.flatnonzero(middle > LIMIT)
    if not above.size:
        return float(ahead[-1])
    k = int(above[0])
    if k == 0:
        return None
    a, b = middle[k - 1], middle[k]
    part = (LIMIT - a) / (b - a) if np.isfinite(b) else 0.0
    return float(ahead[k - 1] + part * (ahead[k] - ahead[k - 1]))
