"""What NumPy has no type for in columns of Arrow: words, and stamps of time."""

import numpy as np
import pyarrow as pa


def to_words(column: pa.Array) -> np.ndarray:
    """The words of a text column as objects, each made once; None where one is missing."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = coded.dictionary.cast(pa.string()).to_pylist()
    # What is missing is the last of them.
    known = np.array([*words, None], dtype=object)
    return known[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]


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
