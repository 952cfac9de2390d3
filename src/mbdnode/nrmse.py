"""How far a prediction is from what was recorded: one measure for every error that is printed.

Every recorded column is compared in its own scale, and a row's error is the root mean square over
the columns,

    e^2 = mean over columns of ((prediction - truth) / scale)^2.

The scale is the column's standard deviation over the runs that are judged together, so that an
error of one is that of predicting the mean. Angles are no exception: one that swings by 0.1 rad
has a scale below that, and one that winds for hundreds of radians has that of its travel, as a
length would. But a run that begins some turns later does not move farther, so whole turns between
runs are taken out. A column that stands still in those runs has the scale that it has in the
training data; one that never moves is not scored.

The NRMSE of runs is the root mean square of `e` over all of their rows, so that each run counts by
its length. A prediction is valid until `e` first exceeds `LIMIT`, one tenth of the standard
deviation, for more than a moment (`lasting_errors`): there is no other definition, neither for the
time at which a run "exceeds 10 %" nor for the valid prediction time.
"""

from collections.abc import Sequence

import numpy as np

LIMIT = 0.1
_TURN_RAD = 2 * np.pi
# An outlier of the recording is one row, two at most, and no error of a prediction: the median of
# five rows does not see it.
_LASTING = 5
# Rows over which noise is averaged: five standard deviations of its mean square, over rows of one
# column, are then the square of the limit, which noise alone does not reach in a million rows.
_DEVIATIONS = 5
# A column that moves by less than this part of the largest column moves by round-off.
_STILL = 1e-12


def column_scales(
    judged: Sequence[np.ndarray],
    angles: Sequence[bool] | np.ndarray,
    training: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """The unit in which each column's error is counted; not a number for one that never moves.

    `judged` are the runs that are judged together, `(rows, columns)` each; `training` has the same
    columns of the training data, for those that stand still in `judged`.
    """
    scales = _deviations(judged, angles)
    if len(training):
        scales = np.where(np.isnan(scales), _deviations(training, angles), scales)
    return scales


def _deviations(runs: Sequence[np.ndarray], angles: Sequence[bool] | np.ndarray) -> np.ndarray:
    tables = [np.asarray(run, float) for run in runs]
    size = max((float(np.max(np.abs(table), initial=0.0)) for table in tables), default=0.0)
    first = np.mean(tables[0], axis=0)
    turns = [np.round((np.mean(table, axis=0) - first) / _TURN_RAD) for table in tables]
    whole = np.where(np.asarray(angles, bool), _TURN_RAD, 0.0)
    values = np.concatenate([x - whole * n for x, n in zip(tables, turns, strict=True)])
    deviations = np.std(values, axis=0)
    return np.where(deviations > _STILL * size, deviations, np.nan)


def row_errors(truth: np.ndarray, prediction: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The error of every row of `(rows, columns)`.

    Infinity where there is no prediction, not a number where no column is scored.
    """
    scored = np.isfinite(scales)
    if not scored.any():
        return np.full(len(truth), np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        away = (np.asarray(prediction) - np.asarray(truth))[:, scored] / scales[scored]
        errors = np.sqrt(np.mean(away**2, axis=1))
    return np.where(np.isfinite(errors), errors, np.inf)


def nrmse_of(errors: Sequence[np.ndarray]) -> float:
    """The root mean square over the rows of all runs together, from the errors of `row_errors`.

    Infinity if a row was not predicted, not a number if nothing is scored.
    """
    if not sum(len(run) for run in errors):
        return float("nan")
    rows = np.concatenate([np.asarray(run, float) for run in errors])
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(rows**2)))


def lasting_errors(errors: np.ndarray, noise: float) -> np.ndarray:
    """The errors by which a prediction's validity is told: without noise and without outliers.

    `noise` is the NRMSE that the noise alone would make. The prediction is valid before the first
    row that exceeds `LIMIT`.
    """
    if not len(errors):
        return errors
    padded = np.pad(errors_without_noise(errors, noise), _LASTING // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, _LASTING), axis=1)


def errors_without_noise(errors: np.ndarray, noise: float) -> np.ndarray:
    """The errors of a prediction's rows, less what noise of the recording makes of them.

    The mean of `e^2` over neighboring rows, less `noise^2`; over no more rows than it takes to tell
    the rest from the limit. Noise that was overestimated hides no error: never is more taken off
    than the error where it is small, in its lowest quarter.
    """
    wanted = 2 * _DEVIATIONS**2 * (noise / LIMIT) ** 4
    rows = int(min(np.ceil(wanted), max(1, len(errors) // 4)))
    if wanted < 1 or not len(errors):
        return errors
    finite = np.isfinite(errors)
    sums, counts = (
        np.concatenate([[0.0], np.cumsum(x)])
        for x in (np.where(finite, np.where(finite, errors, 0.0) ** 2, 0.0), finite)
    )
    first = np.clip(np.arange(len(errors)) - rows // 2, 0, len(errors) - rows)
    count = np.maximum(counts[first + rows] - counts[first], 1)
    means = (sums[first + rows] - sums[first]) / count
    # Noise cannot be more than is left where the prediction is best.
    square = min(noise**2, float(np.quantile(means[finite], 0.25))) if finite.any() else 0.0
    return np.where(finite, np.sqrt(np.maximum(means - square, 0.0)), errors)
