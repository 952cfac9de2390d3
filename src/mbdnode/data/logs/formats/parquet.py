"""Parquet files, a batch of rows at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mbdnode.data.logs.log import (
    BLOCK_ROWS,
    AbstractLog,
    Block,
    LogFormat,
    check_expansion,
    seconds_since,
)
from mbdnode.data.logs.units import read_heading
from mbdnode.errors import UserError


class ParquetLog(AbstractLog):
    """A Parquet file; columns that are lists or structures are left out, and named."""

    def __init__(self, path: Path):
        super().__init__(path)
        with self._open() as file:
            schema, self._rows = file.schema_arrow, file.metadata.num_rows
        check_expansion(path, 8 * self._rows * len(schema))
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        if nested:
            self.left_out = dict.fromkeys(nested, "a column of lists or structures")
            self.warn(f"left out, for they are no plain columns: {', '.join(nested)}")
        self._fields = [field for field in schema if field.name not in nested]
        names = [field.name for field in self._fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UserError(
                f"'{path}' has several columns called {twice[0]!r}. Give each its own name."
            )
        self.headings = tuple(read_heading(name) for name in names)
        self.note("read", "Parquet")

    @property
    def size(self) -> int:
        """From the file's footer."""
        return self._rows

    def is_text(self, column: int) -> bool:
        """Whether the column's type is text."""
        kind = self._fields[column].type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        return pa.types.is_string(kind) or pa.types.is_large_string(kind)

    def blocks(
        self, numbers: Sequence[int], labels: Sequence[int] = (), rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """The columns, batch by batch; a row group is never in memory as a whole."""
        wanted = list(dict.fromkeys(self._fields[i].name for i in (*numbers, *labels)))
        first, origins = 0, {}
        with self._open() as file:
            try:
                for batch in file.iter_batches(rows, columns=wanted, use_threads=False):
                    columns = []
                    for i in numbers:
                        column = batch.column(self._fields[i].name)
                        values, origins[i] = self._numbers(column, i, first, origins.get(i))
                        columns.append(values)
                    names = [self._fields[i].name for i in labels]
                    words = tuple(_words(batch.column(name)) for name in names)
                    yield Block(first, tuple(columns), words)
                    first += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                raise UserError(
                    f"'{self.path}' is damaged after {first:,} rows: {error}. Write it again."
                ) from error

    def _open(self) -> Any:
        import pyarrow.parquet  # Slow to load, and most logs are text.

        try:
            return pyarrow.parquet.ParquetFile(self.path, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            raise UserError(
                f"'{self.path}' is not a whole Parquet file: {error}. Write it again."
            ) from error

    def _numbers(
        self, column: pa.Array, number: int, first: int, origin: int | None
    ) -> tuple[np.ndarray, int | None]:
        name, kind = self._fields[number].name, column.type
        if pa.types.is_timestamp(kind):
            if origin is None:
                self.note("converted", f"{name!r} from time stamps to seconds since the first")
            return seconds_since(column, origin)
        if pa.types.is_duration(kind):
            values = column.cast(pa.duration("ns")).cast(pa.int64()).to_numpy(zero_copy_only=False)
            return np.asarray(values, float) / 1e9, origin
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        try:
            # Beyond 2^53 an integer loses its last digits as a float64, and it may.
            return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), origin
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UserError(self._refusal(column, name, first)) from None

    def _refusal(self, column: pa.Array, name: str, first: int) -> str:
        for count, value in enumerate(column.to_pylist()):
            try:
                float(value) if value is not None else None
            except (TypeError, ValueError):
                return (
                    f"Column {name!r} has {value!r}, which is not a number, at "
                    f"{self.place(first + count)} of '{self.path}'. Fix it, or name another "
                    "column."
                )
        return f"Column {name!r} of '{self.path}' is of type {column.type}, which is no number."


def _words(column: pa.Array) -> np.ndarray:
    """A column as text; few words in many rows, so each is made once."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = coded.dictionary.cast(pa.string()).to_numpy(zero_copy_only=False)
    # What is missing is the last of them.
    known = np.array([*words, None], dtype=object)
    return known[coded.indices.fill_null(-1).to_numpy()]


PARQUET = LogFormat(
    name="Parquet",
    suffixes=(".parquet",),
    starts_so=lambda start: start.startswith(b"PAR1"),
    open=lambda path: [ParquetLog(path)],
)
