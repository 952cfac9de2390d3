"""How noisy a column is, from the column alone.

A smooth motion is nearly a polynomial over a few samples, so high differences of it vanish and
those of noise do not. Of several orders the least is taken: what is left of the motion shrinks with
the order, noise does not. The median is taken, so that a few sudden changes do not count as noise.
"""

import numpy as np

_ORDERS = (2, 4, 6, 8, 10)
# Fewer rows than this for each difference cannot tell.
_LEAST = 12
# Of the median of a normal variable's absolute value.
MEDIAN = 0.6745
# Windows that are looked at; more say the same.
_ENOUGH = 20_000
# Times of a window that are nearer than this part of it.
_COINCIDE = 1e-6


def noise_level(t: np.ndarray, values: np.ndarray) -> float:
    """The standard deviation of the noise in one column of one run.

    **Arguments:**

    - `t`: times, increasing, even or not.
    - `values`: at those times.

    **Returns:**

    The level; not a number for fewer than a dozen rows. What is coarsely sampled has no noise that
    could be told from the motion, and the level is then an upper bound.
    """
    if len(t) < _LEAST:
        return float("nan")
    usable = [order for order in _ORDERS if len(t) >= order + _LEAST - 2]
    levels = [differences(t, values, order) for order in usable]
    sizes = [float(np.median(np.abs(x))) / MEDIAN for x in levels]
    # A stepwise reading (quantised, or standing still) has a median of zero, and is not exact.
    spread = [float(np.sqrt(np.mean(x**2))) for x in levels]
    chosen = [size if size > 0 else typical for size, typical in zip(sizes, spread, strict=True)]
    return min(chosen) if np.isfinite(min(chosen)) else float("nan")


def differences(t: np.ndarray, values: np.ndarray, order: int) -> np.ndarray:
    """Divided differences whose weights have length one, so that noise keeps its size.

    **Arguments:**

    - `t`: `(n,)`.
    - `values`: `(n,)`, or `(n, columns)`.
    - `order`: of the polynomials that vanish, plus one.

    **Returns:**

    One difference of every column for each window of `order + 1` rows, or for evenly many of them.
    """
    first = np.arange(len(t) - order)
    if len(first) > _ENOUGH:
        first = first[np.linspace(0, len(first) - 1, _ENOUGH).astype(int)]
    rows = first[:, None] + np.arange(order + 1)[None, :]
    times = (t[rows] - t[rows[:, :1]]) / (t[rows[:, -1:]] - t[rows[:, :1]])
    gaps = times[:, :, None] - times[:, None, :] + np.eye(order + 1)
    # In units of the mean gap; a window with times that nearly coincide says nothing.
    gaps = np.where(np.abs(gaps) < _COINCIDE, np.nan, gaps * order)
    weights = 1 / np.prod(gaps, axis=2)
    weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    good = np.all(np.isfinite(weights), axis=1)
    if not good.any():
        return np.full((1, *values.shape[1:]), np.inf)
    weights, rows = weights[good], rows[good]
    return np.einsum("nk,nk...->n...", weights, values[rows] - values[rows[:, :1]])
