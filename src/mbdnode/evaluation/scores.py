"""How far predictions of held-out runs are from what was recorded.

Every number that is printed of it (in metrics.json, on the page, in the terminal) is computed here,
by `score`, with the measure of `mbdnode.nrmse`. Only columns that were recorded are looked at:
an estimated rate is our own smoothing, and to be near it says nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.data.signal import noise_level
from mbdnode.evaluation.predictions import HeldOut, predicted_rows, table_of
from mbdnode.formatting import percent
from mbdnode.multibody import Coordinate
from mbdnode.nrmse import LIMIT, column_scales, lasting_errors, nrmse_of, row_errors
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class ColumnScore:
    """The error of one recorded column over all held-out runs.

    **Arguments:**

    - `name`, `unit`: of the column.
    - `is_angle`: whether its errors are told in radians too, not in percent of its motion alone.
    - `rmse`: the root mean square error, in that unit; None if a prediction ended early.
    - `scale`: what it is divided by; None for a column that is not scored: one that never moves, or
        is biased.
    - `is_biased`: whether it contradicts its position.
    """

    name: str
    unit: str
    is_angle: bool
    rmse: float | None
    scale: float | None
    is_biased: bool = False

    @property
    def nrmse(self) -> float | None:
        """The error in units of the scale."""
        return None if self.rmse is None or self.scale is None else self.rmse / self.scale

    def __str__(self) -> str:
        if self.is_biased:
            return f"{self.name} not scored: it contradicts its position"
        if self.rmse is None:
            return f"{self.name} diverged"
        if self.nrmse is None:
            return f"{self.name} {self.rmse:.2g} {self.unit}".rstrip()
        share = percent(self.nrmse)
        if self.is_angle:
            return f"{self.name} {self.rmse:.2g} {self.unit} = {share}"
        return f"{self.name} {share}"


@dataclass(frozen=True)
class RunScore:
    """One held-out run in numbers.

    **Arguments:**

    - `name`: of the run.
    - `seconds`, `rows`: its length.
    - `errors`: of every row; infinity where there is no prediction.
    - `nrmse`: over all rows; None if the prediction ended early, or nothing is scored.
    - `outside`: the share of predicted rows that lie outside the training data.
    - `ended_s`: the time of the last predicted row, if the prediction ended early; None if it is
        whole.
    - `begins_s`: the time at which the prediction begins.
    - `left_s`: the time at which the error first exceeds the limit (`lasting_errors`); None if it
        never does. From the beginning until then the prediction is valid.
    - `left_column`: the column that is then farthest off, in its scale.
    - `left_outside`: whether the prediction was then outside the training data.
    """

    name: str
    seconds: float
    rows: int
    errors: np.ndarray
    nrmse: float | None
    outside: float
    ended_s: float | None
    begins_s: float
    left_s: float | None
    left_column: str
    left_outside: bool

    @property
    def where(self) -> str:
        """When and where the prediction leaves the limit, as a part of a sentence; or nothing."""
        if self.left_s is None:
            return ""
        beyond = ", outside the training data" if self.left_outside else ""
        # Only where the two differ, since the log's time is not that of the prediction.
        ahead = f" ({self.left_s - self.begins_s:.3g} s ahead)" if self.begins_s else ""
        return (
            f"exceeds {percent(LIMIT)} at t = {self.left_s:.4g} s{ahead}, first in "
            f"{self.left_column}{beyond}"
        )

    @property
    def divergence(self) -> str:
        """The same, and when the prediction ended."""
        ended = "" if self.ended_s is None else f"; the prediction ends at t = {self.ended_s:.4g} s"
        return self.where + ended


@dataclass(frozen=True)
class Scores:
    """All held-out runs in numbers.

    **Arguments:**

    - `runs`: one by one.
    - `columns`: over all runs together.
    - `scales`: of the recorded states, by name; those that never move are not in it.
    - `nrmse`: over all rows of all runs, so that each counts by its length; None if a prediction
        ended early, or nothing is scored.
    - `noise`: the NRMSE that the noise of the recorded columns alone would make.
    """

    runs: tuple[RunScore, ...]
    columns: tuple[ColumnScore, ...]
    scales: Mapping[str, float]
    nrmse: float | None
    noise: float

    def __str__(self) -> str:
        columns = ", ".join(map(str, self.columns))
        return columns if self.nrmse is None else f"NRMSE {percent(self.nrmse)} ({columns})"

    @property
    def ended(self) -> tuple[RunScore, ...]:
        """The runs whose prediction ended early."""
        return tuple(run for run in self.runs if run.ended_s is not None)

    def as_dict(self) -> dict[str, Any]:
        """As it stands in metrics.json."""
        return {
            "nrmse": self.nrmse,
            "nrmse_of_noise": self.noise,
            "nrmse_of_runs": {run.name: run.nrmse for run in self.runs},
            "columns": {
                one.name: {
                    "rmse": one.rmse,
                    "unit": one.unit,
                    "nrmse": one.nrmse,
                    "contradicts_its_position": one.is_biased,
                }
                for one in self.columns
            },
            "limit": LIMIT,
            "exceeds_limit_at_s": {run.name: run.left_s for run in self.runs},
            "prediction_ended_s": {run.name: run.ended_s for run in self.runs},
        }


def score(
    held_out: Sequence[HeldOut],
    coordinates: Sequence[Coordinate],
    training: Sequence[Trajectory] = (),
) -> Scores:
    """How far predictions are from what was recorded.

    **Arguments:**

    - `held_out`: runs that are judged together.
    - `coordinates`: of the system, which say what is an angle.
    - `training`: the training data, for the scale of columns that stand still in `held_out`.

    **Returns:**

    The `Scores`.
    """
    names = _recorded_states(held_out[0]) if held_out else []
    angles = [c.name for c in coordinates if c.is_angle]
    units = {c.name: c.unit for c in coordinates}
    units |= {c.rate: f"{c.unit}/s" for c in coordinates if c.unit}
    truths = [table_of(one.truth, names) for one in held_out]
    found = [table_of(one.prediction, names) for one in held_out]
    scales = np.empty(0)
    if names:
        seen = [table_of(run, names) for run in training]
        scales = column_scales(truths, [name in angles for name in names], seen)
        biased = [name in held_out[0].biased for name in names]
        scales = np.where(biased, np.nan, scales)
    noise = _noise(held_out, names, truths, scales)
    runs = tuple(
        _score_run(one, names, truth, prediction, scales, noise)
        for one, truth, prediction in zip(held_out, truths, found, strict=True)
    )
    columns = []
    for k, name in enumerate(names):
        with np.errstate(over="ignore", invalid="ignore"):
            away = np.concatenate([(a - b)[:, k] for a, b in zip(found, truths, strict=True)])
            rmse = float(np.sqrt(np.mean(away**2)))
        scale = float(scales[k]) if np.isfinite(scales[k]) else None
        whole = rmse if math.isfinite(rmse) else None
        kind = units.get(name, ""), name in angles
        columns.append(ColumnScore(name, *kind, whole, scale, name in held_out[0].biased))
    known = {one.name: one.scale for one in columns if one.scale is not None}
    return Scores(
        runs,
        tuple(columns),
        known,
        _number(nrmse_of([run.errors for run in runs])),
        noise,
    )


def _noise(
    held_out: Sequence[HeldOut], names: Sequence[str], truths: Sequence[np.ndarray], scales: Any
) -> float:
    """The root mean square over the scored columns and the rows of runs that are long enough."""
    squares, rows = 0.0, 0
    for one, truth in zip(held_out, truths, strict=True):
        t = np.asarray(one.truth.t)
        shares = [
            noise_level(t, truth[:, k]) / scales[k]
            for k in range(len(names))
            if np.isfinite(scales[k])
        ]
        if shares and np.all(np.isfinite(shares)):
            squares, rows = squares + len(t) * float(np.mean(np.square(shares))), rows + len(t)
    return math.sqrt(squares / rows) if rows else 0.0


def _score_run(
    run: HeldOut,
    names: Sequence[str],
    truth: np.ndarray,
    found: np.ndarray,
    scales: np.ndarray,
    noise: float,
) -> RunScore:
    t, count = np.asarray(run.truth.t), predicted_rows(run.prediction)
    errors = row_errors(truth, found, scales) if names else np.full(len(t), np.nan)
    errors = np.where((np.arange(len(t)) >= count) & ~np.isnan(errors), np.inf, errors)
    beyond = np.flatnonzero(lasting_errors(errors, noise) > LIMIT)
    left = int(beyond[0]) if beyond.size else None
    if count < len(t):
        left = count if left is None else min(left, count)
    column = ""
    if left is not None:
        # A prediction that ends is farthest off in its last row.
        row = max(min(left, count - 1), 0)
        with np.errstate(invalid="ignore"):
            away = np.abs(found[row] - truth[row]) / scales
        known = np.where(np.isfinite(away), away, 0.0)
        # Of equals the first.
        column = names[int(np.argmax(known >= (1 - 1e-9) * np.max(known)))]
    outside = np.asarray(run.outside, bool)
    return RunScore(
        name=run.name,
        seconds=float(t[-1] - t[0]),
        rows=len(t),
        errors=errors,
        nrmse=_number(nrmse_of([errors])),
        outside=float(np.mean(outside[:count])) if count else math.nan,
        ended_s=None if count == len(t) else float(t[max(count - 1, 0)]),
        begins_s=float(t[0]),
        left_s=None if left is None else float(t[left]),
        left_column=column,
        left_outside=left is not None and bool(outside[min(left, max(count - 1, 0))]),
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _recorded_states(run: HeldOut) -> list[str]:
    states = (*run.truth.coordinates, *run.truth.rates)
    return [name for name in states if name in run.recorded]
