"""Parquet files, a batch of rows at a time."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mbdnode.data.arrow import seconds_since, to_floats, to_words
from mbdnode.data.logs.formats.packed_values import Packing, read_packing, stated_unit
from mbdnode.data.logs.log import BLOCK_ROWS, AbstractLog, Block, LogFormat, check_expansion
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
        self.note("read", "Parquet")
        self._packings: list[Packing] = []
        for name, field in zip(names, self._fields, strict=True):
            stated, heading = _attributes(field), read_heading(name)
            unit = stated_unit(stated) or heading.unit
            self.headings += (replace(heading, unit=unit),)
            packing = read_packing(f"{name!r} of '{path}'", stated)
            self._packings.append(packing)
            if str(packing):
                self.note("converted", f"{name!r} {packing}")

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

    def spans(self, rows: int, most: int, label: int | None) -> list[tuple[int, int] | None]:
        """Whole row groups, from the first row of a run on unless the run is very long."""
        with self._open() as file:
            counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            ends = np.cumsum(counts, dtype=int)
            edges = [0]
            for group, end in enumerate(ends[:-1].tolist()):
                if end - edges[-1] >= rows and self._rows - end >= rows // 2:
                    begin = (
                        end if label is None else self._run_start(file, group, ends, most, label)
                    )
                    if begin > edges[-1]:
                        edges.append(begin)
        return list(itertools.pairwise([*edges, self._rows]))

    def _run_start(self, file: Any, group: int, ends: np.ndarray, most: int, label: int) -> int:
        """Of the run that goes on after a row group; the group's end if that is far away."""
        end, name = int(ends[group]), self._fields[label].name
        after = file.iter_batches(1, row_groups=[group + 1], columns=[name], use_threads=False)
        own = to_words(next(after).column(name))[0]
        while group >= 0 and end - int(ends[group]) < most:
            words = to_words(file.read_row_group(group, columns=[name]).column(0).combine_chunks())
            others = np.flatnonzero(words != own)
            begin = int(ends[group]) - len(words)
            if len(others):
                start = begin + int(others[-1]) + 1
                return start if end - start <= most else end
            group -= 1
        return end

    def blocks(
        self, numbers: Sequence[int], labels: Sequence[int] = (), rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """The columns, batch by batch; a row group is never in memory as a whole."""
        return self.blocks_in(None, numbers, labels, rows)

    def blocks_in(
        self,
        span: tuple[int, int] | None,
        numbers: Sequence[int],
        labels: Sequence[int] = (),
        rows: int = BLOCK_ROWS,
    ) -> Iterator[Block]:
        """Those of some rows, from the row groups that hold them."""
        wanted = list(dict.fromkeys(self._fields[i].name for i in (*numbers, *labels)))
        begin, end = span or (0, self._rows)
        with self._open() as file:
            counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            ends = np.cumsum([0, *counts])
            groups = [i for i in range(len(counts)) if ends[i] < end and ends[i + 1] > begin]
            first = int(ends[groups[0]]) if groups else 0
            try:
                origins = {i: self._origin(file, i) if begin else None for i in numbers}
                for batch in file.iter_batches(
                    rows, row_groups=groups, columns=wanted, use_threads=False
                ):
                    skipped = min(max(begin - first, 0), batch.num_rows)
                    first += skipped
                    batch = batch.slice(skipped, max(end - first, 0))
                    if not batch.num_rows:
                        continue
                    columns = []
                    for i in numbers:
                        column = batch.column(self._fields[i].name)
                        values, origins[i] = self._numbers(column, i, first, origins[i])
                        columns.append(values)
                    names = [self._fields[i].name for i in labels]
                    words = tuple(to_words(batch.column(name)) for name in names)
                    yield Block(first, tuple(columns), words)
                    first += batch.num_rows
            except (OSError, pa.ArrowException) as error:
                raise UserError(
                    f"'{self.path}' is damaged after {first:,} rows: {_reason(error)}. "
                    "Write it again, or leave it out where there are others."
                ) from error

    def _origin(self, file: Any, number: int) -> int | None:
        """The first time stamp of a column of them, from which those of all parts count."""
        field = self._fields[number]
        if not pa.types.is_timestamp(field.type):
            return None
        for batch in file.iter_batches(BLOCK_ROWS, columns=[field.name], use_threads=False):
            found = seconds_since(batch.column(0), None)[1]
            if found is not None:
                return found
        return None

    def _open(self) -> Any:
        import pyarrow.parquet  # Slow to load, and most logs are text.

        try:
            return pyarrow.parquet.ParquetFile(self.path, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            raise UserError(
                f"'{self.path}' is not a whole Parquet file: {_reason(error)}. "
                "Write it again, or leave it out where there are others."
            ) from error

    def _numbers(
        self, column: pa.Array, number: int, first: int, origin: int | None
    ) -> tuple[np.ndarray, int | None]:
        name, kind = self._fields[number].name, column.type
        if pa.types.is_timestamp(kind):
            if origin is None:
                self.note("converted", f"{name!r} from time stamps to seconds since the first")
            return seconds_since(column, origin)
        is_duration = pa.types.is_duration(kind)
        if is_duration:
            column = column.cast(pa.duration("ns")).cast(pa.int64())
        elif pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        try:
            # Beyond 2^53 an integer loses its last digits as a float64, and it may.
            values = to_floats(column.cast(pa.float64(), safe=False))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UserError(self._refusal(column, name, first)) from None
        return values / 1e9 if is_duration else self._packings[number].unpack(values), origin

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


def _attributes(field: pa.Field) -> dict[str, str]:
    """What is stated of a column."""
    pairs = (field.metadata or {}).items()
    return {k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, v in pairs}


def _reason(error: Exception) -> str:
    """Of pyarrow, whose sentences may end with a period of their own."""
    return str(error).strip().rstrip(".")


PARQUET = LogFormat(
    name="Parquet",
    suffixes=(".parquet",),
    starts_so=lambda start: start.startswith(b"PAR1"),
    open=lambda path: [ParquetLog(path)],
)
