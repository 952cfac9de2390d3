"""Columns between NumPy and Arrow, by their buffers.

PyArrow's own conversions look for Pandas first, and load it where it is installed, which takes as
long as reading a small log a hundred times.
"""

import numpy as np
import pyarrow as pa


def to_floats(column: pa.Array) -> np.ndarray:
    """The numbers of a float64 column; not a number where one is missing.

    **Arguments:**

    - `column`: one chunk.

    **Returns:**

    An array, which may only be read.
    """
    if column.null_count:
        column = column.fill_null(float("nan"))
    if not len(column):
        return np.zeros(0)
    return np.frombuffer(column.buffers()[1], np.float64, len(column), 8 * column.offset)


def to_words(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The words of a text column; None where one is missing."""
    words = np.empty(len(column), dtype=object)
    words[:] = column.to_pylist()
    return words


def to_column(values: np.ndarray) -> pa.Array:
    """A column of numbers, all of which are there.

    **Arguments:**

    - `values`: in one dimension; what it holds must not be changed afterwards.

    **Returns:**

    An Arrow array of the same numbers.
    """
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
