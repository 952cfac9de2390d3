"""Least-squares polynomials over windows of samples, and their derivatives.

A polynomial of degree `d` over a window gives the value or the slope at one of its rows as a
weighted sum of the samples, `w . x` (Savitzky and Golay, here also for uneven times).
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from mbdnode.errors import UserError

_RIDGE = 1e-15
# Samples whose differences to the middle one are taken one by one; wider windows are for noise.
_NARROW = 15


@dataclass(frozen=True)
class Window:
    """Over which a polynomial is fitted; `risk` is the expected squared error in the middle."""

    degree: int
    half_width: int
    risk: float


def local_values(t: np.ndarray, values: np.ndarray, window: Window | None) -> np.ndarray:
    """The polynomials' values at every row; near an end the window is one-sided.

    It is narrower in a run with fewer rows. Values stay as they are where there is no window, and
    where the polynomial would pass through all of them.
    """
    half = 0 if window is None else min(window.half_width, (len(t) - 1) // 2)
    if window is None or 2 * half <= window.degree:
        return values
    return fit_locally(t, values, window.degree, 2 * half + 1, 0)[0]


def differentiate(t: np.ndarray, values: np.ndarray, stencil: int = 7) -> np.ndarray:
    """The derivative of every column at every time, for data without noise.

    It is that of the polynomial through the nearest samples: sixth order for seven of them, one-
    sided at the ends of a run. Nothing outside of the given rows is looked at.

    **Arguments:**

    - `t`: `(n,)`, increasing, even or not.
    - `values`: `(n, columns)`.
    - `stencil`: how many samples each derivative uses; fewer if there are fewer.

    **Returns:**

    `(n, columns)`.
    """
    count = min(stencil, len(t))
    if count < 2:
        raise UserError(f"A derivative needs at least two samples, but there are {len(t)}.")
    slopes = [fit_locally(t, column, count - 1, count, 1)[0] for column in values.T]
    return np.stack(slopes, axis=1) if slopes else np.zeros(values.shape)


def fit_locally(
    t: np.ndarray, values: np.ndarray, degree: int, width: int, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """The polynomials' values or slopes at every row, and the sums of their squared weights."""
    count, half = len(t), width // 2
    middles = np.arange(count)
    first = np.clip(middles - half, 0, count - width)
    found, gain = np.empty(count), np.empty(count)
    todo = middles
    # Differences to a value near by, so that a large constant part costs no digits.
    if is_even(t) and width % 2:
        weights = even_weights(degree, width, order) / mean_step(t) ** order
        inner = slice(half, count - half)
        if width <= _NARROW:
            around = np.lib.stride_tricks.sliding_window_view(values, width)
            found[inner] = (around - values[inner, None]) @ weights
            found[inner] += values[inner] if order == 0 else 0.0
        else:
            mean = np.mean(values)
            found[inner] = np.correlate(values - mean, weights, mode="valid")
            found[inner] += mean if order == 0 else 0.0
        gain[inner] = weights @ weights
        for ends, part in ((slice(0, half), 0), (slice(count - half, count), 1)):
            weights = end_weights(degree, width, order)[part] / mean_step(t) ** order
            own = values[ends]
            around = values[:width] if part == 0 else values[count - width :]
            found[ends] = np.einsum("nk,nk->n", weights, around[None] - own[:, None])
            found[ends] += own if order == 0 else 0.0
            gain[ends] = np.sum(weights**2, axis=1)
        return found, gain
    block = max(1, 2_000_000 // width)
    for start in range(0, len(todo), block):
        at = todo[start : start + block]
        rows = first[at][:, None] + np.arange(width)[None, :]
        weights, own = uneven_weights(t, rows, at, degree, order), values[at]
        found[at] = np.einsum("nk,nk->n", weights, values[rows] - own[:, None])
        found[at] += own if order == 0 else 0.0
        gain[at] = np.sum(weights**2, axis=1)
    return found, gain


def uneven_weights(
    t: np.ndarray, rows: np.ndarray, at: np.ndarray, degree: int, order: int
) -> np.ndarray:
    """Of every window's samples in the value or the slope at one row.

    Legendre polynomials of times scaled to the window keep the normal equations of order one.
    """
    begin, end = t[rows[:, :1]], t[rows[:, -1:]]
    center, scale = (begin + end) / 2, (end - begin) / 2
    basis = legendre.legvander((t[rows] - center) / scale, degree)
    where = ((t[at][:, None] - center) / scale)[:, 0]
    wanted = [legendre.legval(where, legendre.legder(p, order)) for p in np.eye(degree + 1)]
    wanted = np.stack(wanted, axis=1)[..., None]
    across = np.swapaxes(basis, 1, 2)
    # Times that nearly coincide leave fewer samples than the polynomial has degrees; the bias that
    # follows rules such a window out.
    ridge = _RIDGE * rows.shape[1] * np.eye(degree + 1)
    # One that passes through all samples needs no normal equations, which square the condition.
    back = basis if rows.shape[1] > degree + 1 else np.eye(degree + 1)
    matrix = across @ back + ridge
    inner = np.linalg.solve(matrix, wanted)
    # Refined, so that polynomials are met to the last digits.
    inner = inner + np.linalg.solve(matrix, wanted - across @ (back @ inner))
    return (back @ inner)[..., 0] / scale**order


@functools.lru_cache(maxsize=1024)
def even_weights(degree: int, width: int, order: int) -> np.ndarray:
    """With one time unit a sample; a log of many runs asks for the same ones again and again."""
    rows = np.arange(width)
    return uneven_weights(rows.astype(float), rows[None], np.array([width // 2]), degree, order)[0]


@functools.lru_cache(maxsize=256)
def end_weights(degree: int, width: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for the rows near both ends, whose windows are the first and the last rows."""
    t, half = np.arange(width, dtype=float), width // 2
    rows = np.tile(np.arange(width), (half, 1))
    places = np.arange(half), np.arange(width - half, width)
    first, last = (uneven_weights(t, rows, at, degree, order) for at in places)
    return first, last


def mean_step(t: np.ndarray) -> float:
    """From time to time."""
    return float(t[-1] - t[0]) / (len(t) - 1)


def is_even(t: np.ndarray) -> bool:
    """Whether all steps are alike, but for the round-off of the times."""
    steps = np.diff(t)
    if not len(steps):
        return False
    round_off = 8 * np.finfo(float).eps * float(np.max(np.abs(t)))
    return bool(np.ptp(steps) <= max(1e-9 * float(np.mean(steps)), round_off))
