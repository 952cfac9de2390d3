"""Medians and quantiles, without masked arrays.

`numpy.median` and `numpy.quantile` load `numpy.ma`, which takes a good part of the time in which a
small log is looked at, and spend most of a call on checks of their arguments.
"""

import numpy as np


def median(values: np.ndarray) -> float:
    """The middle of all values, or the mean of the two that are nearest to it.

    **Arguments:**

    - `values`: `(n,)`, in any order.

    **Returns:**

    The median; not a number if there are no values, or one of them is none.
    """
    return float(row_medians(values[None])[0]) if len(values) else float("nan")


def row_medians(values: np.ndarray) -> np.ndarray:
    """The median of every row.

    **Arguments:**

    - `values`: `(rows, columns)`, of at least one column.

    **Returns:**

    One number for each row; not a number for a row with a value that is none.
    """
    last = values.shape[1] - 1
    lower, upper = last // 2, (last + 1) // 2
    # What is not a number is sorted behind everything else.
    ordered = np.partition(values, (lower, upper, last), axis=1)
    middle = (ordered[:, lower] + ordered[:, upper]) / 2
    return np.where(np.isnan(ordered[:, last]), np.nan, middle)


def quantile(values: np.ndarray, part: float) -> float:
    """The value below which a part of all values lies, interpolated between neighbors.

    **Arguments:**

    - `values`: `(n,)`, in any order, at least one.
    - `part`: from 0 to 1.

    **Returns:**

    The quantile; not a number if one of the values is none.
    """
    last = len(values) - 1
    place = part * last
    below = int(place)
    above = min(below + 1, last)
    ordered = np.partition(values, (below, above, last))
    if np.isnan(ordered[last]):
        return float("nan")
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))
