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
    return _values(column.fill_null(float("nan")) if column.null_count else column)


def to_words(column: pa.Array) -> np.ndarray:
    """The words of a text column; None where one is missing.

    **Arguments:**

    - `column`: one chunk, of few words in many rows, so that each is made once.

    **Returns:**

    An array of objects.
    """
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = coded.dictionary.cast(pa.string()).to_pylist()
    # What is missing is the last of them.
    known = np.array([*words, None], dtype=object)
    return known[_values(coded.indices.fill_null(-1))]


def _values(column: pa.Array) -> np.ndarray:
    """The numbers of a column without missing ones."""
    kind = np.dtype(column.type.to_pandas_dtype())
    if not len(column):
        return np.zeros(0, kind)
    return np.frombuffer(column.buffers()[1], kind, len(column), kind.itemsize * column.offset)


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
