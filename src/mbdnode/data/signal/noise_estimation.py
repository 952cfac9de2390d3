"""How noisy a column is, from the column alone.

A smooth motion is nearly a polynomial over a few samples, so high differences of it vanish and
those of noise do not. A column that is rounded to steps of `q` has noise of at least
`q / sqrt(12)`, whatever its differences say: while it stands on one step they are zero.
"""

import math
from collections.abc import Sequence

import numpy as np

from mbdnode.data.signal.polynomials import is_even

# Rows and differences from which noise can be told.
_FEWEST_ROWS, _FEWEST_DIFFERENCES = 12, 10
_ORDERS = (2, 4, 6, 8, 10, 14, 20)
# Of a normal variable: the median of its absolute value, and what is left of its standard
# deviation without what is beyond three of them.
_MEDIAN, _TRIMMED = 0.6745, 0.98658
# Rows in a row and stretches of them that are looked at in a long segment, and windows of uneven
# times; more say the same.
_STRETCH, _STRETCHES, _ENOUGH = 2_000, 10, 5_000
# Times of a window that are nearer than this part of it.
_COINCIDE = 1e-6


def noise_level(t: np.ndarray, values: np.ndarray) -> float:
    """The standard deviation of the noise in one column of one run.

    **Arguments:**

    - `t`: times, increasing, even or not.
    - `values`: at those times.

    **Returns:**

    The level; not a number for fewer than a dozen rows. What is sampled fewer than five times in a
    period cannot be told from noise, and the level is then an upper bound.
    """
    return float(noise_levels([(t, values[:, None])])[0])


def noise_levels(segments: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The noise of every column, told from times `(n,)` and values `(n, columns)` of stretches.

    It is not a number where all stretches are shorter than a dozen rows, or have times that nearly
    coincide.
    """
    columns = segments[0][1].shape[1]
    segments = [(t[a], x[a]) for t, x in segments if len(t) >= _FEWEST_ROWS for a in _some(len(t))]
    if not segments:
        return np.full(columns, np.nan)
    every = [_differences(t, x) for t, x in segments]
    tables = {}
    for order in _ORDERS:
        found = [own[order] for own in every if order in own]
        if sum(map(len, found)) >= _FEWEST_DIFFERENCES:
            tables[order] = np.concatenate(found)
    if not tables:
        return np.full(columns, np.nan)
    levels = np.empty(columns)
    for i in range(columns):
        own = {order: table[:, i] for order, table in tables.items()}
        level = _level(own)
        step = quantum([x[:, i] for _, x in segments])
        # Whole steps are no rounding where the motion is a polynomial: a ramp has no noise.
        rough = min(float(np.sqrt(np.mean(x**2))) for x in own.values())
        levels[i] = max(level, step / np.sqrt(12)) if rough > 1e-3 * step else level
    return np.where(np.isfinite(levels), levels, np.nan)


def _some(count: int) -> list[slice]:
    """Of so many consecutive rows, those that are looked at."""
    if count <= _STRETCH * _STRETCHES:
        return [slice(None)]
    starts = np.linspace(0, count - _STRETCH, _STRETCHES).astype(int)
    return [slice(int(start), int(start) + _STRETCH) for start in starts]


def _level(differences: dict[int, np.ndarray]) -> float:
    """Of the lowest order at which no motion is left: neighbors share less there.

    The residual of the motion shrinks with the order, noise does not.
    """
    sizes = {order: _typical_size(x) for order, x in differences.items()}
    smallest = min(sizes.values())
    for order, x in differences.items():
        # Differences of neighboring rows share samples, so they count for fewer than they are.
        shared = math.comb(4 * order, 2 * order) / math.comb(2 * order, order) ** 2
        if sizes[order] <= smallest * (1 + np.sqrt(shared / (2 * len(x)))):
            return sizes[order]
    return smallest


def _typical_size(values: np.ndarray) -> float:
    """The standard deviation, without sudden changes and without what stands still exactly."""
    sizes = np.abs(values[values != 0])
    if not len(sizes):
        return 0.0
    kept = sizes[sizes <= 3 * np.median(sizes) / _MEDIAN]
    return float(np.sqrt(np.mean(kept**2))) / _TRIMMED


def quantum(segments: Sequence[np.ndarray]) -> float:
    """The step to which a column is rounded, as that of an encoder, from its consecutive values.

    The changes from row to row are multiples of it, some of them different ones; zero if there is
    none. Rounding in a file (a ten-thousandth of the step) does not hide it.
    """
    some = [x[part] for x in segments for part in _some(len(x))]
    changes = np.abs(np.concatenate([np.diff(x) for x in some]))
    usual = float(np.quantile(changes, 0.95)) or float(np.max(changes))
    if not (usual > 0 and np.isfinite(usual)):
        return 0.0
    tiny = 1e-4 * usual
    gaps = np.diff(np.sort(changes[changes > tiny]), prepend=0.0)
    step = float(np.min(gaps[gaps > tiny], initial=np.inf))
    near = changes[changes < 1_000 * step]
    for _ in range(3):
        count = np.round(near / step)
        if not (np.isfinite(step) and count.any()):
            return 0.0
        step = float(count @ near / (count @ count))
    count = np.round(near / step)
    whole = bool(np.quantile(np.abs(near / step - count), 0.99) < 0.05)
    ordered = np.sort(count)
    thrice = ordered[2:][ordered[2:] == ordered[:-2]]
    several = len(thrice) > 0 and thrice[0] != thrice[-1]
    return step if whole and several else 0.0


def _differences(t: np.ndarray, values: np.ndarray) -> dict[int, np.ndarray]:
    """Divided differences of every order, with weights of length one: noise keeps its size.

    One of every column for each window of `order + 1` rows, or for evenly many of them.
    """
    orders = [order for order in _ORDERS if order < len(t)]
    if not is_even(t):
        return {order: _uneven_differences(t, values, order) for order in orders}
    found, last, differences = {}, 0, values - values[:1]
    for order in orders:
        # Each from the one before.
        differences, last = np.diff(differences, order - last, axis=0), order
        found[order] = differences / np.sqrt(math.comb(2 * order, order))
    return found


def _uneven_differences(t: np.ndarray, values: np.ndarray, order: int) -> np.ndarray:
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
