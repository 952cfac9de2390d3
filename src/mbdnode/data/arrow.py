"""Columns between NumPy and Arrow.

By DLPack and buffers: `to_numpy` and `pa.array` load pandas where it is installed, which takes as
long as reading a small log a hundred times.
"""

from typing import Any

import numpy as np
import pyarrow as pa


def to_floats(column: pa.Array) -> np.ndarray:
    """The numbers of a float64 column, to be read only; not a number where one is missing."""
    return np.from_dlpack(column.fill_null(float("nan")) if column.null_count else column)


def to_column(values: np.ndarray) -> pa.Array:
    """A column of numbers, which must not be changed afterwards."""
    values = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def to_words(column: pa.Array) -> np.ndarray:
    """The words of a text column as objects, each made once; None where one is missing."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = coded.dictionary.cast(pa.string()).to_pylist()
    # What is missing is the last of them.
    numbers: Any = np.from_dlpack(coded.indices.fill_null(-1))
    return np.array([*words, None], dtype=object)[numbers]


def seconds_since(stamps: pa.Array, origin: int | None) -> tuple[np.ndarray, int | None]:
    """Time stamps as seconds since the first one, and that one in nanoseconds.

    Exactly: as float64 the stamps would lose digits. Missing ones are not numbers.
    """
    import pyarrow.compute as pc  # Slow to load, and few logs have such stamps.

    whole = pc.cast(pc.cast(stamps, pa.timestamp("ns", stamps.type.tz), safe=False), pa.int64())
    known = whole.is_valid().to_numpy(zero_copy_only=False)
    values = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False)
    if origin is None and known.any():
        origin = int(values[np.argmax(known)])
    seconds = (values - (origin or 0)) / 1e9
    return np.where(known, seconds, np.nan), origin
