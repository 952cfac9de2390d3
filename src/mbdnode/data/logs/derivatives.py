"""Which columns are the time derivatives of which, told from their values."""

import numpy as np

from mbdnode.data.logs.angles import is_wrapped, unwrap
from mbdnode.data.logs.sample import Sample
from mbdnode.data.signal import estimate_rate

_MOST_ROWS = 2_000
_FEWEST_ROWS = 20
_ALIKE = 0.9
# Rates in another unit, such as rpm for rad, are still rates.
_RATIOS = (1.0, np.pi / 180, 180 / np.pi, 60 / (2 * np.pi), 1e-3, 1e3)


def derivatives_among(sample: Sample, time: int, columns: list[int]) -> dict[int, int]:
    """Pairs of a column and its derivative.

    **Arguments:**

    - `sample`: the rows.
    - `time`: the number of the column of times.
    - `columns`: those to look among.

    **Returns:**

    The number of the derivative, by that of the column; each at most once on either side.
    """
    stretch = _longest_stretch(sample, time, columns)
    t = sample.columns[time][stretch]
    if len(t) < _FEWEST_ROWS:
        return {}
    values = {i: sample.columns[i][stretch] for i in columns}
    values = {i: x for i, x in values.items() if np.ptp(x) > 0}
    found = []
    for i, x in values.items():
        for turn in (2 * np.pi, 360.0):
            if is_wrapped(x, turn):
                x = unwrap(t, x, None, turn)[0]
                break
        rate = estimate_rate(t, x)
        size = float(np.std(rate.values))
        if size == 0 or rate.typical_error > size:
            continue
        for j, y in values.items():
            if i != j and (score := _score(rate.values, y)) > 0:
                found.append((score, i, j))
    pairs: dict[int, int] = {}
    for _, i, j in sorted(found, reverse=True):
        if i not in pairs and j not in pairs.values() and pairs.get(j) != i:
            pairs[i] = j
    return pairs


def _score(rate: np.ndarray, other: np.ndarray) -> float:
    """How alike they are, zero if they differ by more than a unit would explain."""
    alike = float(np.corrcoef(rate, other)[0, 1])
    ratio = float(np.std(other) / np.std(rate))
    near = min(abs(np.log(ratio / known)) for known in _RATIOS)
    return alike if alike > _ALIKE and near < np.log(1.3) else 0.0


def _longest_stretch(sample: Sample, time: int, columns: list[int]) -> slice:
    """Consecutive rows in which time increases and nothing is missing."""
    whole = np.column_stack([sample.columns[i] for i in (time, *columns)])
    good = np.all(np.isfinite(whole), axis=1)
    steps = np.diff(whole[:, 0])
    joined = good[1:] & good[:-1] & (steps > 0)
    usual = np.median(steps[joined]) if joined.any() else 0.0
    joined &= steps <= 5 * usual
    edges = np.flatnonzero(np.diff(np.concatenate([[0], joined, [0]]).astype(int))).reshape(-1, 2)
    if not len(edges):
        return slice(0, 0)
    a, b = max(edges, key=lambda edge: edge[1] - edge[0])
    return slice(int(a), int(min(b + 1, a + _MOST_ROWS)))
