"""Local polynomials of noisy columns, as wide as the noise asks for: rates, and smoothed values.

A least-squares polynomial of degree `d` over `2 m + 1` samples gives the slope at its middle as a
weighted sum of them, `w . x` (Savitzky and Golay, here also for uneven times), and so it gives the
value there. Its expected squared error has two parts,

    sigma^2 |w|^2 + bias^2,

noise that a wider window averages out, and bias that it brings in. The bias is seen in the
difference to that, `w' . x`, of a polynomial two degrees higher on the same samples,

    mean((w . x - w' . x)^2) = bias^2 + sigma^2 |w - w'|^2,

up to the bias that the higher one still has. The pair of degree and width with the least sum is
taken, for all of a run. `estimate_rate` smooths nothing but the rate: positions stay as they were
measured.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from mbdnode.data.logs.noise import noise_level
from mbdnode.errors import UserError

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
        raise UserError(
            f"A rate needs at least {FEWEST_ROWS} rows to be estimated from, but there are {count}."
        )
    sigma = noise_level(t, values) if noise is None else noise
    floor = np.finfo(float).eps * float(np.max(np.abs(values), initial=0.0))
    sigma = max(sigma if np.isfinite(sigma) else 0.0, floor)
    window = choose_window(t, values, sigma, order=1)
    if window is None:
        half = (count - 1) // 2
        window = Window(min(2, 2 * half), half, float(np.var(np.diff(values))))
    slopes = local_values(t, values, window, order=1)
    return Rate(slopes, float(np.sqrt(window.risk)), sigma, window.degree, window.half_width)


@dataclass(frozen=True)
class Window:
    """Over which a polynomial is fitted.

    **Arguments:**

    - `degree`, `half_width`: of the polynomial and its window.
    - `risk`: the expected squared error in the middle.
    """

    degree: int
    half_width: int
    risk: float


def choose_window(
    t: np.ndarray, values: np.ndarray, sigma: float, *, order: int, widest: int = _WIDEST
) -> Window | None:
    """The window with the least expected error.

    **Arguments:**

    - `t`: times, increasing, even or not.
    - `values`: at those times.
    - `sigma`: the level of the noise.
    - `order`: 0 for smoothed values, 1 for rates.
    - `widest`: half width to try.

    **Returns:**

    The `Window`; None for fewer rows than a polynomial needs.
    """
    best = None
    for degree in _DEGREES:
        least = np.inf
        for half in _half_widths(degree, len(t), widest):
            risk = _risk(t, values, sigma, degree, half, order)
            if best is None or risk < best.risk:
                best = Window(degree, half, risk)
            least = min(least, risk)
            # Over windows wider than the motion's own periods neither polynomial sees any slope,
            # and their agreement says nothing.
            if risk > _TOO_WIDE * least:
                break
    return best


def _half_widths(degree: int, count: int, widest: int) -> list[int]:
    """From the narrowest window on which two more degrees can be fitted, growing by a third."""
    half, found = (degree + 2) // 2 + 1, []
    while 2 * half + 1 <= min(count, 2 * widest + 1):
        found.append(half)
        half = max(half + 1, int(half * _GROWTH))
    return found


def _risk(
    t: np.ndarray, values: np.ndarray, sigma: float, degree: int, half: int, order: int
) -> float:
    """The expected squared error of the value or the slope."""
    last = len(t) - 1 - half
    middles = np.unique(np.linspace(half, last, min(_JUDGED, last - half + 1)).astype(int))
    rows = middles[:, None] + np.arange(-half, half + 1)[None, :]
    if _is_even(t):
        own, higher = (_even_weights(t, d, half, order)[None] for d in (degree, degree + 2))
    else:
        own, higher = (_weights(t, rows, middles, d, order) for d in (degree, degree + 2))
    gap = np.broadcast_to(own - higher, rows.shape)
    away = values[rows] - values[middles][:, None]
    noise = sigma**2 * float(np.mean(np.sum(own**2, axis=1)))
    seen = np.einsum("nk,nk->n", gap, away) ** 2
    expected = sigma**2 * np.sum(gap**2, axis=1)
    return noise + max(0.0, float(np.mean(seen - expected)))


def _weights(
    t: np.ndarray, rows: np.ndarray, middles: np.ndarray, degree: int, order: int
) -> np.ndarray:
    """Of every window's samples in the value or the slope at its middle row.

    Legendre polynomials of times scaled to the window keep the normal equations of order one.
    """
    begin, end = t[rows[:, :1]], t[rows[:, -1:]]
    centre, scale = (begin + end) / 2, (end - begin) / 2
    basis = legendre.legvander((t[rows] - centre) / scale, degree)
    at = ((t[middles][:, None] - centre) / scale)[:, 0]
    wanted = [legendre.legval(at, legendre.legder(p, order)) for p in np.eye(degree + 1)]
    gram = np.einsum("nwi,nwj->nij", basis, basis, optimize=True)
    # Times that nearly coincide leave fewer samples than the polynomial has degrees; the bias that
    # follows rules such a window out.
    gram = gram + _RIDGE * rows.shape[1] * np.eye(degree + 1)
    inner = np.linalg.solve(gram, np.stack(wanted, axis=1)[..., None])
    return (basis @ inner)[..., 0] / scale**order


def _even_weights(t: np.ndarray, degree: int, half: int, order: int) -> np.ndarray:
    """Of the samples of every window inside a run with even times."""
    return _unit_weights(degree, half, order) / float(np.mean(np.diff(t))) ** order


@functools.lru_cache(maxsize=1024)
def _unit_weights(degree: int, half: int, order: int) -> np.ndarray:
    """With one time unit a sample; a log of many runs asks for the same ones again and again."""
    rows = np.arange(2 * half + 1)
    return _weights(rows.astype(float), rows[None], np.array([half]), degree, order)[0]


def _is_even(t: np.ndarray) -> bool:
    steps = np.diff(t)
    return bool(np.ptp(steps) <= 1e-6 * np.mean(steps))


def local_values(t: np.ndarray, values: np.ndarray, window: Window, *, order: int) -> np.ndarray:
    """Of the polynomials at every row; near an end the window stays inside, and is one-sided.

    **Arguments:**

    - `t`: times, increasing, even or not.
    - `values`: at those times.
    - `window`: no wider than there are rows.
    - `order`: 0 for smoothed values, 1 for rates.

    **Returns:**

    One number for each row.
    """
    degree, half = window.degree, window.half_width
    width, count = 2 * half + 1, len(t)
    middles = np.arange(count)
    first = np.clip(middles - half, 0, count - width)
    found = np.empty(count)
    block = max(1, 2_000_000 // width)
    inner = np.flatnonzero(first == middles - half)
    todo = middles
    if _is_even(t) and len(inner):
        weights = _even_weights(t, degree, half, order)
        mean = np.mean(values)
        found[half : count - half] = np.correlate(values - mean, weights, mode="valid")
        found[half : count - half] += mean if order == 0 else 0.0
        todo = np.flatnonzero(first != middles - half)
    for start in range(0, len(todo), block):
        part = todo[start : start + block]
        rows = first[part][:, None] + np.arange(width)[None, :]
        weights = _weights(t, rows, part, degree, order)
        own = values[part]
        found[part] = np.einsum("nk,nk->n", weights, values[rows] - own[:, None])
        found[part] += own if order == 0 else 0.0
    return found
