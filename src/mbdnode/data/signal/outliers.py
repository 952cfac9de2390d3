"""Spikes in a column: one to three samples that leave the motion and come back to it.

A cubic is fitted to the four samples before a suspect and the four behind it, the suspect left
out. It is an outlier if it lies much farther from that cubic than

- the noise of the column, and the step to which it is rounded, explain;
- the eight samples themselves lie from it: behind a jump, a stop or an impact no cubic fits both
  sides, so that what stays where it went is no outlier;
- other samples around lie from what their neighbors say: in a motion of a few samples a period all
  of them are far from it;
- a small part of what the motion does in a hundred samples: less is a flaw of the sensor, such as
  an encoder whose counts were smoothed, and does no harm.

Most columns have none. With even times the cubics are weighted sums with the same weights at every
row, so the last two limits, which need no estimate of the noise, are looked at first.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mbdnode.data.signal.noise_estimation import noise_level, quantum
from mbdnode.data.signal.polynomials import is_even

# Samples before and behind a suspect, the degree of what is fitted to them, and the rows from which
# a column is tested.
_SIDE, _DEGREE, _FEWEST_ROWS = 4, 3, 24
# Samples on either side without which a motion that begins or ends fast looks like a spike.
_FEWEST_BESIDE = 3
# A suspect and those that are out together with it: the rows from first to last, and how many.
_SPAN, _MOST_TOGETHER = 5, 3
# Limits: in noise levels, in steps of rounding, and in deviations of the samples around.
_NOISE, _STEPS, _AROUND = 10.0, 4.0, 8.0
# Noise levels from which a sample is looked at, and rows that are taken together for what is usual.
_SUSPECT, _BLOCK = 4.0, 32
# The part of the motion in up to so many rows that an outlier exceeds.
_OF_MOTION, _LAGS = 0.03, (25, 50, 100)
# A signal with more of them is made of pulses.
_MOST_PART = 0.01
# Of a limit, what the sums with fixed weights are compared with: their times are rounded.
_MARGIN = 0.9


@dataclass(frozen=True)
class Outliers:
    """Samples that are no motion.

    **Arguments:**

    - `rows`: where they are.
    - `expected`: what their neighbors say.
    - `are_rare`: whether they are few enough to be errors: at most one in a hundred samples.
    """

    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    expected: np.ndarray = field(default_factory=lambda: np.zeros(0))
    are_rare: bool = True


def find_outliers(t: np.ndarray, values: np.ndarray) -> Outliers:
    """The outliers of one column of one run, whose times increase, even or not.

    None for fewer than 24 rows, nor for a column whose noise cannot be told.
    """
    return outliers_of_columns(t, values[None])[0]


def outliers_of_columns(t: np.ndarray, table: np.ndarray) -> list[Outliers]:
    """The outliers of several columns, `(columns, rows)`, of one run."""
    if len(t) < _FEWEST_ROWS or not len(table):
        return [Outliers()] * len(table)
    away = np.abs(_from_neighbors(t, table))
    usual = _usual(away)
    least = np.maximum(_AROUND * usual, _OF_MOTION * _motion(table)[:, None])
    clear = _have_none(table, least) if is_even(t) else np.ptp(table, axis=1) == 0
    columns = zip(clear, table, away, usual, least, strict=True)
    return [Outliers() if is_clear else _found(t, *own) for is_clear, *own in columns]


def _found(
    t: np.ndarray, values: np.ndarray, away: np.ndarray, usual: np.ndarray, least: np.ndarray
) -> Outliers:
    noise, step = noise_level(t, values), _step(values)
    if not np.isfinite(noise):
        return Outliers()
    floor = max(noise, step / _NOISE * _STEPS, float(_tiny(values)))
    suspects = np.flatnonzero(away > np.maximum(_SUSPECT * floor, usual))
    taken = _at_ends(t, values, floor)
    for rows, expected in _groups(t, values, suspects, floor, least):
        if not any(row in taken for row in rows):
            taken |= dict(zip(rows, expected, strict=True))
    rows = np.array(sorted(taken), int)
    are_rare = len(rows) <= max(_MOST_TOGETHER, _MOST_PART * len(t))
    return Outliers(rows, np.array([taken[row] for row in rows.tolist()]), are_rare)


def _have_none(table: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Which columns have no sample, at even times, beyond the limits that need no noise."""
    inside = np.ptp(table[:, 1:-1], axis=1)
    least = _MARGIN * np.maximum(least, _NOISE * _tiny(table)[:, None])
    clear = np.all([_farthest(x - x[0]) for x in table] <= least, axis=1)
    return clear & (_beyond(table, 0) <= inside) & (_beyond(table, -1) <= inside)


def _farthest(x: np.ndarray) -> np.ndarray:
    """How far each sample is from its cubics, as the first of groups of every span."""
    found = np.zeros(len(x))
    for span, (inside, first, last) in enumerate(_kernels(), start=1):
        width = len(inside)
        away = np.abs(np.correlate(x, inside, "valid"))
        rows = slice(_SIDE, _SIDE + len(away))
        found[rows] = np.maximum(found[rows], away)
        ends = (_FEWEST_BESIDE, x[:width] @ first), (-_FEWEST_BESIDE - span, x[-width:] @ last)
        for row, own in ends:
            found[row] = max(found[row], abs(own))
    return found


@functools.cache
def _kernels() -> list[list[np.ndarray]]:
    """For each span, weights of a sample's distance from its cubic: inside, first, and last."""

    def kernel(t: np.ndarray, row: int, span: int) -> np.ndarray:
        own, weights = np.arange(row, row + span), np.zeros(len(t))
        others = np.delete(np.arange(len(t)), own)
        weights[others] = -_weights(t, own[None], others[None])[1][0, 0]
        weights[row] = 1.0
        return weights

    spans = range(1, _SPAN + 1)
    widths = [2 * _SIDE + span for span in spans]
    return [
        [kernel(np.arange(float(width)), row, span) for row in rows]
        for span, width in zip(spans, widths, strict=True)
        for rows in [(_SIDE, _FEWEST_BESIDE, width - _FEWEST_BESIDE - span)]
    ]


def _tiny(values: np.ndarray) -> Any:
    """A hundred times the rounding of the numbers themselves."""
    return 100 * np.finfo(float).eps * np.max(np.abs(values), axis=-1)


def _step(values: np.ndarray) -> float:
    """To which a column is rounded; of one that mostly stands still, the median of its changes."""
    changes = np.abs(np.diff(values))
    moves = changes > 0
    usual = float(np.median(changes[moves])) if np.mean(moves) < 0.5 else 0.0
    return max(quantum([values]), usual)


def _beyond(values: np.ndarray, row: int) -> Any:
    """How far the first or the last sample is outside of all others."""
    rest, own = values[..., 1:-1], values[..., row]
    return np.maximum(np.min(rest, axis=-1) - own, own - np.max(rest, axis=-1))


def _at_ends(t: np.ndarray, values: np.ndarray, floor: float) -> dict[int, float]:
    """The first and the last sample, where they are out; what is expected there.

    They have nothing to come back to, so they must be farther from all others than those are from
    each other.
    """
    found, last = {}, len(t) - 1
    for row, others in ((0, np.arange(1, 9)), (last, np.arange(last - 8, last))):
        if _beyond(values, row) > max(np.ptp(values[1:-1]), _NOISE * floor):
            found[row] = _fit(t, values, np.array([[row]]), others[None])[0].item()
    return found


def _from_neighbors(t: np.ndarray, table: np.ndarray) -> np.ndarray:
    """How far each sample is from the cubic through two before and two behind it.

    Those at the ends are as far as the next that has such neighbors.
    """
    around = [slice(k, len(t) - 4 + k) for k in (0, 1, 3, 4)]
    weights: list[Any] = [-1 / 6, 2 / 3, 2 / 3, -1 / 6]
    if not is_even(t):
        near = [t[one] - t[2:-2] for one in around]
        for i, own in enumerate(near):
            others = near[:i] + near[i + 1 :]
            weights[i] = np.prod([other / (other - own) for other in others], axis=0)
    away = table[:, 2:-2] - sum(w * table[:, one] for w, one in zip(weights, around, strict=True))
    return np.concatenate([away[:, [0, 0]], away, away[:, [-1, -1]]], axis=1)


def _usual(away: np.ndarray) -> np.ndarray:
    """The median size around a row: the largest of its block's and of the two beside it."""
    count = away.shape[1]
    rest = -count % _BLOCK
    padded = np.concatenate([away, away[:, -1 - rest : -1][:, ::-1]], axis=1)
    size = np.median(padded.reshape(len(away), -1, _BLOCK), axis=2)
    beside = size.copy()
    np.maximum(beside[:, 1:], size[:, :-1], out=beside[:, 1:])
    np.maximum(beside[:, :-1], size[:, 1:], out=beside[:, :-1])
    return np.repeat(beside, _BLOCK, axis=1)[:, :count]


def _motion(table: np.ndarray) -> np.ndarray:
    """The median change over a number of rows, for the number for which it is largest."""
    count = table.shape[1]
    lags = [lag for lag in _LAGS if 2 * lag < count] or [count // 2]
    changes = [np.median(np.abs(table[:, lag:] - table[:, :-lag]), axis=1) for lag in lags]
    return np.max(changes, axis=0)


def _groups(
    t: np.ndarray, values: np.ndarray, suspects: np.ndarray, floor: float, least: np.ndarray
) -> list[tuple[list[int], list[float]]]:
    """Rows that are out together and what is expected there, the narrowest groups first."""
    found = []
    if not len(suspects):
        return found
    for span in range(1, _SPAN + 1):
        width = 2 * _SIDE + span
        beside = (suspects >= _FEWEST_BESIDE) & (suspects + span <= len(t) - _FEWEST_BESIDE)
        first = suspects[beside]
        start = np.clip(first - _SIDE, 0, len(t) - width)
        window = start[:, None] + np.arange(width)
        inside = (window >= first[:, None]) & (window < first[:, None] + span)
        own = first[:, None] + np.arange(span)
        others = window[~inside].reshape(len(first), 2 * _SIDE)
        expected, spread, fitted = _fit(t, values, own, others)
        limit = _NOISE * floor * spread
        limit = np.maximum(limit, _AROUND * fitted[:, None] * spread)
        limit = np.maximum(limit, least[first][:, None])
        out = np.abs(values[own] - expected) > limit
        good = out[:, 0] & out[:, -1] & (out.sum(axis=1) <= _MOST_TOGETHER)
        for i in np.flatnonzero(good):
            found.append((own[i][out[i]].tolist(), expected[i][out[i]].tolist()))
    return found


def _fit(
    t: np.ndarray, values: np.ndarray, own: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cubics through `others`, one for each row of it.

    **Returns:**

    Their values at `own`; the standard deviation of a sample's distance from them there, in those
    of the noise; and that of the others' distances.
    """
    fit, weights = _weights(t, own, others)
    # From a value nearby, so that a large mean costs no digits.
    offset = values[others[:, :1]]
    samples = (values[others] - offset)[..., None]
    rest = samples - fit @ samples
    fitted = np.sqrt(np.sum(rest[..., 0] ** 2, axis=1) / (2 * _SIDE - _DEGREE - 1))
    spread = np.sqrt(1 + np.sum(weights**2, axis=2))
    return (weights @ samples)[..., 0] + offset, spread, fitted


def _weights(t: np.ndarray, own: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the samples at `others`, in the cubics' values at `others` and at `own`."""
    middle = t[own].mean(axis=1, keepdims=True)
    length = np.ptp(t[others], axis=1)[:, None] / 2
    base = ((t[others] - middle) / length)[..., None] ** np.arange(_DEGREE + 1)
    there = ((t[own] - middle) / length)[..., None] ** np.arange(_DEGREE + 1)
    inverse = np.linalg.pinv(base)
    return base @ inverse, there @ inverse
