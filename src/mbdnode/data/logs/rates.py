"""Rates from noisy positions: the slope of a local polynomial, as wide as the noise asks for.

A least-squares polynomial of degree `d` over `2 m + 1` samples gives the slope at its middle as a
weighted sum of them, `w . x` (Savitzky and Golay, here also for uneven times). Its expected squared
error has two parts,

    sigma^2 |w|^2 + bias^2,

noise that a wider window averages out, and bias that it brings in. The bias is seen in the
difference to the slope `w' . x` of a polynomial two degrees higher on the same samples,

    mean((w . x - w' . x)^2) = bias^2 + sigma^2 |w - w'|^2,

up to the bias that the higher one still has. The pair of degree and width with the least sum is
taken, for all of a run. Nothing is smoothed but the rate: positions stay as they were measured.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from mbdnode.data.logs.noise import noise_level

_DEGREES = (2, 4, 6)
_GROWTH = 1.3
_WIDEST = 400
# Windows on which a width is judged.
_JUDGED = 600
# A width whose squared error is this many times the least ends the search.
_TOO_WIDE = 5.0
_RIDGE = 1e-15
# Rows of a run that is long enough for a slope.
FEWEST_ROWS = 5


@dataclass(frozen=True)
class Rate:
    """An estimated rate.

    **Arguments:**

    - `values`: at every time.
    - `error`: its expected standard deviation from the true rate, away from the ends.
    - `noise`: the level of the noise in the positions.
    - `degree`, `half_width`: of the polynomial and its window.
    """

    values: np.ndarray
    error: float
    noise: float
    degree: int
    half_width: int


def estimate_rate(t: np.ndarray, values: np.ndarray, noise: float | None = None) -> Rate:
    """The time derivative of a measured column.

    **Arguments:**

    - `t`: times, increasing, even or not; at least five.
    - `values`: at those times.
    - `noise`: its level, if it is known better than the column tells.

    **Returns:**

    A `Rate`.
    """
    count = len(t)
    if count < FEWEST_ROWS:
        raise ValueError(
            f"A rate needs at least {FEWEST_ROWS} rows to be estimated from, but there are {count}."
        )
    sigma = noise_level(t, values) if noise is None else noise
    floor = np.finfo(float).eps * float(np.max(np.abs(values), initial=0.0))
    sigma = max(sigma if np.isfinite(sigma) else 0.0, floor)
    best = None
    for degree in _DEGREES:
        least = np.inf
        for half in _half_widths(degree, count):
            risk = _risk(t, values, sigma, degree, half)
            if best is None or risk < best[0]:
                best = risk, degree, half
            least = min(least, risk)
            # Over windows wider than the motion's own periods neither polynomial sees any slope,
            # and their agreement says nothing.
            if risk > _TOO_WIDE * least:
                break
    if best is None:
        half = (count - 1) // 2
        degree = min(2, 2 * half)
        risk = float(np.var(np.diff(values)))
        best = risk, degree, half
    risk, degree, half = best
    slopes = _slopes(t, values, degree, half)
    return Rate(slopes, float(np.sqrt(risk)), sigma, degree, half)


def _half_widths(degree: int, count: int) -> list[int]:
    """From the narrowest window on which two more degrees can be fitted, growing by a third."""
    half, found = (degree + 2) // 2 + 1, []
    while 2 * half + 1 <= min(count, 2 * _WIDEST + 1):
        found.append(half)
        half = max(half + 1, int(half * _GROWTH))
    return found


def _risk(t: np.ndarray, values: np.ndarray, sigma: float, degree: int, half: int) -> float:
    """The expected squared error of the slope."""
    last = len(t) - 1 - half
    middles = np.unique(np.linspace(half, last, min(_JUDGED, last - half + 1)).astype(int))
    rows = middles[:, None] + np.arange(-half, half + 1)[None, :]
    own = _weights(t, rows, middles, degree)
    higher = _weights(t, rows, middles, degree + 2)
    gap = own - higher
    away = values[rows] - values[middles][:, None]
    noise = sigma**2 * float(np.mean(np.sum(own**2, axis=1)))
    seen = np.einsum("nk,nk->n", gap, away) ** 2
    expected = sigma**2 * np.sum(gap**2, axis=1)
    return noise + max(0.0, float(np.mean(seen - expected)))


def _weights(t: np.ndarray, rows: np.ndarray, middles: np.ndarray, degree: int) -> np.ndarray:
    """Of every window's samples in the slope at its middle row.

    Legendre polynomials of times scaled to the window keep the normal equations of order one.
    """
    if len(rows) > 1 and _is_even(t):
        one = _weights(t, rows[:1], middles[:1], degree)
        inside = np.all(rows - middles[:, None] == rows[0] - middles[0], axis=1)
        if inside.all():
            return np.repeat(one, len(rows), axis=0)
    begin, end = t[rows[:, :1]], t[rows[:, -1:]]
    centre, scale = (begin + end) / 2, (end - begin) / 2
    basis = legendre.legvander((t[rows] - centre) / scale, degree)
    at = ((t[middles][:, None] - centre) / scale)[:, 0]
    slopes = np.stack([legendre.legval(at, legendre.legder(p)) for p in np.eye(degree + 1)], axis=1)
    gram = np.einsum("nwi,nwj->nij", basis, basis, optimize=True)
    # Times that nearly coincide leave fewer samples than the polynomial has degrees; the bias that
    # follows rules such a window out.
    gram = gram + _RIDGE * rows.shape[1] * np.eye(degree + 1)
    inner = np.linalg.solve(gram, slopes[..., None])
    return (basis @ inner)[..., 0] / scale


def _is_even(t: np.ndarray) -> bool:
    steps = np.diff(t)
    return bool(np.ptp(steps) <= 1e-6 * np.mean(steps))


def _slopes(t: np.ndarray, values: np.ndarray, degree: int, half: int) -> np.ndarray:
    """At every row; near an end the window stays inside the run, and is one-sided."""
    width, count = 2 * half + 1, len(t)
    middles = np.arange(count)
    first = np.clip(middles - half, 0, count - width)
    slopes = np.empty(count)
    block = max(1, 2_000_000 // width)
    even = _is_even(t)
    inner = np.flatnonzero(first == middles - half)
    if even and len(inner):
        rows = first[inner[:1], None] + np.arange(width)[None, :]
        weights = _weights(t, rows, inner[:1], degree)[0]
        centred = values - np.mean(values)
        slopes[half : count - half] = np.correlate(centred, weights, mode="valid")
        todo = np.flatnonzero(first != middles - half)
    else:
        todo = middles
    for start in range(0, len(todo), block):
        part = todo[start : start + block]
        rows = first[part][:, None] + np.arange(width)[None, :]
        weights = _weights(t, rows, part, degree)
        away = values[rows] - values[part][:, None]
        slopes[part] = np.einsum("nk,nk->n", weights, away)
    return slopes
