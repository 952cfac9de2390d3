"""The valid prediction time: how far ahead a model can be believed.

A single prediction is valid until its error first exceeds the limit, one tenth of the standard
deviation: `lasting_errors` of `mbdnode.nrmse`, the same by which a held-out run "exceeds 10 %".
From many initial states in the held-out runs, the first row of each among them, the model predicts
each run to its end. The valid prediction time of the model is the median over these predictions,
by Kaplan and Meier where some are valid to the end of their runs. The times of all of them, and so
those of whole runs, lie within the range that is printed beside it. Where fewer than half leave the
limit, it is as long as was measured, and that is said.

The same predictions, each up to the same time ahead, say how much the NRMSE depends on where one
begins: its median and range stand beside the NRMSE of whole runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.evaluation.predictions import begin_at, initial_states, predict, rows_before, table_of
from mbdnode.formatting import percent
from mbdnode.models import FittedMechanism
from mbdnode.multibody import AbstractSystem
from mbdnode.nrmse import LIMIT, lasting_errors, nrmse_of, row_errors
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

# Predictions in all, the times ahead at which they are compared, and how many must reach a time.
_PREDICTIONS, _POINTS, _FEWEST = 24, 120, 3
# Rows of a prediction that can tell, and what is no difference of times or weights.
_SHORTEST, _ROUND_OFF = 4, 1e-9


@dataclass(frozen=True)
class PieceErrors:
    """The NRMSE of predictions from many initial states, all of one length.

    Infinite where predictions ended early. The pieces overlap, and one model predicts them all.
    """

    seconds: float
    low: float
    median: float
    high: float
    pieces: int

    def as_dict(self) -> dict[str, float | int | None]:
        """As it stands in metrics.json: None for a prediction that ended early."""
        return {k: x if np.isfinite(x) else None for k, x in asdict(self).items()}

    def __str__(self) -> str:
        low, median, high = (
            percent(x) if np.isfinite(x) else "diverged" for x in (self.low, self.median, self.high)
        )
        return (
            f"median {median}, from {low} to {high}, over {self.pieces} pieces of "
            f"{self.seconds:.3g} s of the held-out data"
        )


@dataclass(frozen=True)
class Horizon:
    """How the error grows with the time predicted ahead, over many initial states.

    **Arguments:**

    - `ahead_s`: the times ahead.
    - `low`, `middle`, `high`: quartiles over the predictions of the largest error up to then; one
        is as bad as predicting the mean.
    - `persistence`: the median error of predicting no motion.
    - `valid_s`: the median time for which a prediction is valid; None if that is none.
    - `limit`: the largest error of a valid prediction.
    - `predictions`: how many there were.
    - `shortest_s`, `longest_s`: the times for which the first and the last of them are valid.
    - `pieces`: the spread of the NRMSE over them.
    """

    ahead_s: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    persistence: np.ndarray
    valid_s: float | None
    limit: float
    predictions: int
    shortest_s: float = 0.0
    longest_s: float = 0.0
    pieces: PieceErrors | None = None

    @property
    def is_capped(self) -> bool:
        """Whether the limit was kept to the end of the test data."""
        return self.valid_s is not None and self.valid_s >= float(self.ahead_s[-1])

    @property
    def told_range(self) -> str:
        """Of how many predictions it is the median, and for how long each of these is valid."""
        return (
            f"median of {self.predictions} predictions, which stay within {percent(self.limit)} "
            f"for {self.shortest_s:.3g} to {self.longest_s:.3g} s"
        )

    def __str__(self) -> str:
        if self.valid_s is None:
            return "none"
        time = f"{self.valid_s:.3g} s"
        return f">= {time} (end of test data)" if self.is_capped else time


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
    states = initial_states(model, begins, recorded, integrator, biased)
    longest = max(len(run) - row for run, row, _, _ in begins)
    names, units = list(scales), np.array(list(scales.values()))
    times, errors, still = [], [], []
    for (run, row, _, parameters), state in zip(begins, states, strict=True):
        truth = run.rows(row, len(run) - 1)
        padded = _filled_up(begin_at(truth, state) if state is not None else truth, longest)
        found = table_of(predict(model, padded, integrator, parameters), names)[: len(truth)]
        measured = table_of(truth, names)
        times.append(np.asarray(truth.t) - float(truth.t[0]))
        errors.append(row_errors(measured, found, units))
        still.append(row_errors(measured, np.broadcast_to(measured[:1], measured.shape), units))
    return _summed_up(times, errors, still, noise)


def _initial_rows(run: Trajectory, before: int, total: int) -> list[int]:
    """Rows to predict from, in the first half of a run, as many as its length deserves."""
    last = len(run) - 1 - max(_SHORTEST, (len(run) - 1 - before) // 2)
    if last < before:
        return []
    count = max(1, round(_PREDICTIONS * len(run) / total))
    return np.unique(np.linspace(before, last, count).astype(int)).tolist()


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


def _summed_up(times: list, errors: list, still: list, noise: float) -> Horizon | None:
    """Quartiles at common times ahead, as far as enough predictions reach."""
    first = max(float(t[1]) for t in times)
    # What has left the limit once is not valid again.
    worst = [np.maximum.accumulate(lasting_errors(one, noise)) for one in errors]
    valid = [_valid_for(t, one) for t, one in zip(times, worst, strict=True)]
    left = np.array([np.inf if one is None else one for one in valid])
    ends = np.array([float(t[-1]) for t in times])
    median = _median_time(left, ends)
    # To where enough are predicted; where no median was met, those that are valid to their ends.
    usable = np.sort(ends if np.isfinite(median) else ends[np.isinf(left)])[::-1]
    longest = float(usable[min(_FEWEST, len(usable)) - 1])
    if not longest > first:
        return None
    ahead = np.geomspace(first, longest, _POINTS)
    quartiles, resting = [], []
    for time in ahead:
        at = np.array([_between(time, t, one) for t, one in zip(times, worst, strict=True)])
        quartiles.append(_quartiles(at, _weights(left, ends, time)))
        able = np.flatnonzero(ends >= time * (1 - _ROUND_OFF))
        resting.append(np.median([_between(time, times[i], still[i]) for i in able]))
    low, middle, high = np.array(quartiles).T
    known = np.minimum(left, ends)
    return Horizon(
        ahead_s=ahead,
        low=low,
        middle=middle,
        high=high,
        persistence=np.array(resting),
        valid_s=(median or None) if np.isfinite(median) else longest,
        limit=LIMIT,
        predictions=len(times),
        shortest_s=float(np.min(known)),
        longest_s=float(np.max(known)),
        pieces=_pieces(times, errors),
    )


def _weights(left: np.ndarray, ends: np.ndarray, time: float) -> np.ndarray:
    """How much each prediction counts at a time ahead (Kaplan and Meier).

    One that was valid to the end of its run says nothing of later times: what it counted is shared
    by those that are valid still. One that has left the limit counts on.
    """
    weights, alive = np.zeros(len(left)), 1.0
    for event in np.unique(left[left <= time]):
        at_risk = (left >= event) & (ends >= event * (1 - _ROUND_OFF))
        gone = left == event
        weights[gone] = alive / np.sum(at_risk)
        alive *= 1 - np.sum(gone) / np.sum(at_risk)
    rest = (left > time) & (ends >= time * (1 - _ROUND_OFF))
    weights[rest] = alive / max(np.sum(rest), 1)
    return weights


def _quartiles(values: np.ndarray, weights: np.ndarray) -> list[float]:
    """Of values with weights; of an even number of equal ones, the higher is the median."""
    order = np.argsort(values)
    beyond = 1 - np.cumsum(weights[order]) / np.sum(weights)
    return [
        float(values[order[min(np.sum(beyond > 1 - part - _ROUND_OFF), len(values) - 1)]])
        for part in (0.25, 0.5, 0.75)
    ]


def _median_time(left: np.ndarray, ends: np.ndarray) -> float:
    """When half of the weight has left the limit; infinity if it never does."""
    for event in np.unique(left[np.isfinite(left)]):
        weights = _weights(left, ends, float(event))
        if np.sum(weights[left <= event]) >= 0.5 - _ROUND_OFF:
            return float(event)
    return np.inf


def _valid_for(times: np.ndarray, worst: np.ndarray) -> float | None:
    """How long a prediction is valid, to a part of a row; None to its end."""
    above = np.flatnonzero(worst > LIMIT)
    if not above.size:
        return None
    k = int(above[0])
    if k <= 1:
        return 0.0  # Not for a single row.
    a, b = worst[k - 1], worst[k]
    part = (LIMIT - a) / (b - a) if np.isfinite(b) else 0.0
    return float(times[k - 1] + part * (times[k] - times[k - 1]))


def _pieces(times: list, errors: list) -> PieceErrors | None:
    """The NRMSE of every prediction up to the end of the shortest; None of fewer than three."""
    rows = min(len(t) for t in times)
    if len(times) < _FEWEST or np.any(np.isnan(errors[0])):
        return None
    each = [nrmse_of([one[:rows]]) for one in errors]
    seconds = float(np.median([t[rows - 1] for t in times]))
    median = float(np.quantile(each, 0.5, method="higher"))
    return PieceErrors(seconds, min(each), median, max(each), len(each))


def _between(time: float, times: np.ndarray, values: np.ndarray) -> float:
    after = int(np.clip(np.searchsorted(times, time), 1, len(times) - 1))
    a, b = values[after - 1], values[after]
    if not (np.isfinite(a) and np.isfinite(b)):
        return float(max(a, b))
    part = min((time - times[after - 1]) / (times[after] - times[after - 1]), 1.0)
    return float(a + part * (b - a))
