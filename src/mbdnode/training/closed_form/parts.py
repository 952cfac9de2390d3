"""Data in parts, so that matrices with a column for every function stay small.

A chunk of a hundred thousand rows is a few megabytes; its values of two thousand functions are two
gigabytes. Least squares needs only the triangular factor of all parts, one after another.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.training.closed_form.rows import Rows, counted, runs_of

# Numbers of a matrix that is made at once; a few copies of it are alive at a time.
MOST_NUMBERS = 4_000_000


def parts_of(rows: Rows, columns: int) -> Iterator[Rows]:
    """The rows in order, as they are if a matrix with this many columns is small enough.

    Where they are cut, they are cut between runs, if a run ends in the later half of a part.

    **Arguments:**

    - `rows`: in order of run and time.
    - `columns`: of the matrix that will be made of them.

    **Returns:**

    An iterator over `Rows`.
    """
    most = max(1, MOST_NUMBERS // max(columns, 1))
    own = counted(rows)
    if len(own) <= most:
        yield rows
        return
    ends = np.array([last for _, last in runs_of(own)])
    plain = jax.tree.map(np.asarray, own)
    first = 0
    while first < len(own):
        last = min(first + most, len(own))
        before = ends[(ends > first + most // 2) & (ends <= last)]
        last = int(before[-1]) if len(before) else last
        yield jax.tree.map(lambda x, a=first, b=last: jnp.asarray(x[a:b]), plain)
        first = last


def triangle(block: np.ndarray) -> np.ndarray:
    """A matrix with the same lengths and angles between its columns, in few rows."""
    return np.asarray(np.linalg.qr(block, mode="r")) if block.shape[0] > block.shape[1] else block
