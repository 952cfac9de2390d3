"""Logs larger than memory: read once in shards, cleaned, and kept on disk as equal windows.

A shard is what is read by itself: row groups of a Parquet file, from the first row of a run on; a
whole file of another format; several small files together. That depends on the files alone. Its
windows go to a file of one shape, `(windows, steps + 1, columns)`, in a temporary folder, from
which every process maps what it needs. Memory holds one part of a log, or one chunk.

Shards are read, and factors are made of their windows, by the workers of `mbdnode.parallel`. Those
of a cluster need the logs and the folder of the windows under the same paths as this process.
"""

import copy
import hashlib
import itertools
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.files import Paths
from mbdnode.data.logs.columns import Columns, as_columns
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import Piece
from mbdnode.data.logs.reading import Reader, check_any, find_pieces
from mbdnode.data.logs.reading_summary import Note, Summary
from mbdnode.data.logs.resolved_columns import find_column
from mbdnode.data.logs.runs import Names, make_trajectory
from mbdnode.data.sampling import AbstractStream, MakeFactor
from mbdnode.errors import UserError
from mbdnode.factors import Factor, merge_all
from mbdnode.formatting import plural
from mbdnode.parallel import Workers, check_files, workers
from mbdnode.trajectory import Dataset, rows_identity

# Gives a batch of as many windows.
_Change = Callable[[Dataset], Dataset]
# Rows of a log that are cleaned at a time; rows of a shard, at least; and bytes of small files.
PART, ROWS, BYTES = 400_000, 200_000, 8_000_000
# Steps of a window, at most and at least, where the runs decide; and how many of a hundred runs may
# be too short for it.
_WINDOW, _SHORTEST, _TOO_SHORT = 500, 10, 10
# How many are looked at for that.
_FIRST_FILES, _FIRST_RUNS = 64, 200


@dataclass(frozen=True)
class WindowPlace:
    """Where a window was: a run and a segment of it, by number, and the first row in that."""

    run: int
    segment: int
    first: int


@dataclass(frozen=True)
class _Segment:
    """A stretch without gaps of a run: how many rows, a digest of them, and its windows' starts."""

    run: str
    rows: int
    identity: str
    starts: np.ndarray
    parameters: dict[str, float]


@dataclass(frozen=True)
class _ShardIndex:
    """What is known of a shard without its rows; `names` is None if it has none."""

    names: Names | None
    segments: tuple[_Segment, ...]
    summary: Summary


@dataclass(frozen=True)
class _Windows:
    """Some windows of a file, by number, with the parameters of each."""

    file: Path
    numbers: np.ndarray
    parameters: dict[str, np.ndarray]


class LogStream(AbstractStream):
    """The windows of logs of any size, in chunks of one shape.

    Each chunk takes its windows at random from all over the data, so that the first, from which
    scales and structures are chosen, is like the others. After the last chunk comes the first
    again. `window` is the number of steps of each.

    **Arguments:**

    - `paths`: as for `read`.
    - `window`: steps in each window; segments that are shorter are cut, and counted. If not given,
        500, or as many as nine of ten runs at the beginning of the logs have.
    - `chunk_rows`: about how many rows make a chunk.
    - `cache`: the directory for the temporary files, which are as large as the numbers in the logs;
        the system's own if not given. Workers of a cluster must find it under the same path.
    - `report`: called with the rows read so far, and those in all files where they say so.
    - `cluster`: the address of a Dask scheduler whose workers read the logs, in place of this
        process. They must find them under the same paths.
    - `roles`: what its columns are, as the arguments of `Columns`.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        window: int | None = None,
        chunk_rows: int = 50_000,
        cache: str | os.PathLike[str] | None = None,
        report: Callable[[int, int | None], None] | None = None,
        cluster: str | None = None,
        **roles: Any,
    ):
        columns = as_columns(roles)
        pieces = find_pieces(paths, columns)
        if window is None:
            window = _usual_length(pieces, columns, min(_WINDOW, chunk_rows - 1))
        if window < 1 or chunk_rows <= window:
            raise UserError(
                f"window is {window} steps and chunk_rows is {chunk_rows}; a window has at least "
                "one step, and a chunk at least one window."
            )
        self.window, self._chunk_rows = window, chunk_rows
        self._cluster, self._keeper = cluster, None
        self._change: _Change | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="mbdnode-", dir=cache)).absolute()
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, True)
        # Of each run by name, the rows of its segments, and what tells them from others.
        self.runs: dict[str, list[int]] = {}
        self.identities: dict[str, list[str]] = {}
        try:
            with workers(cluster) as crew:
                indices = self._read(pieces, columns, crew, report)
            check_any([run for index in indices for run in index.summary.runs], window + 1)
            self._index(indices)
        except BaseException:
            self.close()
            raise
        self._take(range(len(self.places)))

    def _read(
        self,
        pieces: list[Piece],
        columns: Columns,
        crew: Workers,
        report: Callable[[int, int | None], None] | None,
    ) -> list[_ShardIndex]:
        """Plan the shards, and read them all."""
        if crew.client is not None:
            pieces = [_absolute(piece) for piece in pieces]
            files = [path for one in pieces for path in (one.path, one.input_path) if path]
            way_out = (
                "Files are read where the workers are: put them in a folder that all machines "
                "share, under the same path, or copy them to that path on each."
            )
            check_files(crew.client, list(dict.fromkeys(files)), way_out)
            self._check_folder(crew)
        found = crew.map(partial(_parts_of, columns), pieces)
        parts = [part for parts in found for part in parts]
        sizes = [part.rows for part in parts]
        total = None if None in sizes else sum(size for size in sizes if size is not None)
        shards = _make_shards(parts)
        self._files = [self._folder / f"{i}.windows" for i in range(len(shards))]
        write = partial(_write_windows, columns, self.window)
        indices, rows = [], 0
        for index in crew.map(write, zip(shards, self._files, strict=True)):
            indices.append(index)
            rows += index.summary.account.read
            if report is not None:
                report(rows, total)
        return indices

    def _check_folder(self, crew: Workers) -> None:
        """Raise `UserError` unless all workers of a cluster find the windows."""
        assert crew.client is not None
        marker = self._folder / "marker"
        marker.write_bytes(b"mbdnode")
        way_out = (
            "Windows of logs go to a folder that all machines share: name one in cache=..., or in "
            "the environment variable TMPDIR."
        )
        check_files(crew.client, [marker], way_out)

    def _index(self, indices: Sequence[_ShardIndex]) -> None:
        """Where every window is, and what became of every row."""
        runs = tuple(run for index in indices for run in index.summary.runs)
        seen: set[str] = set()
        for place, _ in itertools.groupby(run.place for run in runs):
            if place in seen:
                raise UserError(
                    f"The rows of {place} go on after those of another run. Sort the rows by "
                    "run, or read the file whole, with read."
                )
            seen.add(place)
        self.places: list[WindowPlace] = []
        self._mu: list[dict[str, float]] = []
        numbers: dict[str, int] = {}
        for segment in (one for index in indices for one in index.segments):
            own = self.runs.setdefault(segment.run, [])
            run = numbers.setdefault(segment.run, len(numbers))
            self.places += [WindowPlace(run, len(own), int(first)) for first in segment.starts]
            self._mu += [segment.parameters] * len(segment.starts)
            own.append(segment.rows)
            self.identities.setdefault(segment.run, []).append(segment.identity)
        counts = (sum(len(one.starts) for one in index.segments) for index in indices)
        self._first = np.cumsum([0, *counts])
        named = next(index for index in indices if index.segments)
        assert named.names is not None
        self._names = named.names
        notes = tuple(note for index in indices for note in index.summary.notes)
        self.summary = replace(named.summary, runs=runs, notes=notes)

    def close(self) -> None:
        """Remove the windows. The stream is of no use then."""
        self._remove()

    def on(self, cluster: str | None) -> "LogStream":
        """The same stream, whose windows are looked at by the workers of a cluster.

        **Arguments:**

        - `cluster`: the address of a Dask scheduler; None for the stream as it is.
        """
        if cluster is None or cluster == self._cluster:
            return self
        with workers(cluster) as crew:
            self._check_folder(crew)
        part = self._copy()
        part._cluster = cluster
        return part

    @property
    def cluster(self) -> str | None:
        """The address of the Dask scheduler whose workers look at the windows; None for none."""
        return self._cluster

    @property
    def identity(self) -> str:
        """What tells this data from other data."""
        told = json.dumps([self.identities, self.runs, self._taken.tolist()])
        return hashlib.sha256(told.encode()).hexdigest()

    def _take(self, windows: Sequence[int]) -> None:
        self._taken, total = np.array(windows, int), len(windows)
        self.count = max(1, -(-total * (self.window + 1) // self._chunk_rows))
        self._size = -(-total // self.count)
        # At random, since what every n-th window shows may be always the same part of a run.
        self._order = np.random.default_rng(0).permutation(total)
        filled = self.count * self._size - total
        again = f", of which {filled:,} come twice to fill them up" if filled else ""
        note = Note(
            "windows",
            f"{total:,} of {self.window} steps in {plural(self.count, 'chunk')} of {self._size:,}"
            f"{again}; runs of more than {PART:,} rows were read in parts",
        )
        others = [note for note in self.summary.notes if note.kind != "windows"]
        self.summary = replace(self.summary, notes=(*others, note))

    def _copy(self) -> "LogStream":
        """Another stream of the same files, which are removed with the one that wrote them."""
        part = copy.copy(self)
        part._keeper = self
        return part

    def only(self, windows: Sequence[int]) -> "LogStream":
        """A stream of some of the windows, at least one, by their indices into `places`."""
        if not len(windows):
            raise UserError("A stream needs at least one window.")
        part = self._copy()
        part._take(windows)
        return part

    def changed(self, change: _Change) -> "LogStream":
        """A stream whose windows go through a function.

        **Arguments:**

        - `change`: gives a batch of as many windows; it may be sent to another machine.
        """
        part = self._copy()
        part._change = change
        return part

    def chunk(self, number: int) -> Dataset:
        """A `Dataset` with one batch of windows, by number from 0, counted on after the last."""
        assert self.count is not None
        own = np.sort(self._order[number % self.count :: self.count])
        wanted = np.resize(self._taken[own], self._size)
        parameters = self._parameters(wanted)
        return _batch_of(self._tables(wanted), parameters, self._names, self._change)

    def stretch(self, windows: Sequence[int]) -> Dataset:
        """Consecutive windows of one segment, by their indices, as the one run that they were."""
        tables, parts = self._tables(np.array(windows, int)), []
        end = -1
        for window, table in zip(windows, tables, strict=True):
            first = self.places[window].first
            # Neighbors share a row, and the last window of a segment may share many.
            parts.append(table[max(0, end + 1 - first) if parts else 0 :])
            end = first + self.window
        return _batch_of(np.concatenate(parts), self._mu[windows[0]], self._names)

    def factors(
        self,
        make: MakeFactor,
        *,
        most_rows: int | None = None,
        report: Callable[[int, int], None] | None = None,
    ) -> Factor:
        """One factor of all windows, merged in the order of the shards, as for `AbstractStream`.

        It is the same to the bit in this process and on any number of workers.
        """
        every = self._by_file(self._taken)
        most = max(len(some.numbers) for some in every)
        block = min(most_rows or self._chunk_rows, self._chunk_rows) // (self.window + 1)
        block = int(np.clip(block, 1, most))
        block = -(-most // -(-most // block))  # Evenly, so that little is filled up.
        function = partial(_factor_of, self.window, self._names, self._change, make, block)

        def told(found: Iterator[Factor]) -> Iterator[Factor]:
            for number, factor in enumerate(found, start=1):
                yield factor
                if report is not None:
                    report(number, len(every))

        with workers(self._cluster) as crew:
            return merge_all(told(crew.map(function, every)))

    def _by_file(self, windows: np.ndarray) -> list[_Windows]:
        """Windows in order, by the file that has them."""
        where = np.searchsorted(self._first, windows, side="right") - 1
        found = []
        for number in np.unique(where):
            own = windows[where == number]
            numbers, values = own - self._first[number], self._parameters(own)
            found.append(_Windows(self._files[number], numbers, values))
        return found

    def _parameters(self, windows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.array([self._mu[i][name] for i in windows]) for name in self._mu[0]}

    def _tables(self, windows: np.ndarray) -> np.ndarray:
        distinct, back = np.unique(windows, return_inverse=True)
        found = [
            _map_windows(some.file, self.window, self._names)[some.numbers]
            for some in self._by_file(distinct)
        ]
        return np.concatenate(found)[back]


def _usual_length(pieces: Sequence[Piece], columns: Columns, most: int) -> int:
    """Steps that most of the first runs have; no more than `most`."""
    parts = [part for piece in pieces[:_FIRST_FILES] for part in _parts_of(columns, piece)]
    reader = Reader(_make_shards(parts)[0], columns, most_rows=PART)
    steps = [len(table) - 1 for table, _ in itertools.islice(reader.segments(), _FIRST_RUNS)]
    usual = int(np.percentile(steps, _TOO_SHORT, method="higher")) if steps else most
    return min(most, max(usual, _SHORTEST))


def _absolute(piece: Piece) -> Piece:
    """Workers have another current directory."""
    other = piece.input_path
    return replace(
        piece, path=piece.path.absolute(), input_path=None if other is None else other.absolute()
    )


def _parts_of(columns: Columns, piece: Piece) -> list[Piece]:
    """A file in parts that can be read by themselves."""
    found = []
    for number, log in enumerate(open_logs(piece.path)):
        column = find_column(log, columns.run, columns) if columns.run else None
        # Of inputs that have their own times, the whole signal is needed for every part.
        spans = (
            [None]
            if columns.inputs_apart
            else log.spans(ROWS, PART, None if column is None else column.index)
        )
        for part, span in enumerate(spans):
            rows = log.size if span is None else span[1] - span[0]
            found.append(replace(piece, log=number, span=span, part=part, rows=rows))
    return found


def _make_shards(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces that are read together: each by itself, but small files as one."""
    shards: list[list[Piece]] = []
    size = 0.0
    for piece in pieces:
        span = piece.span
        own = piece.path.stat().st_size if span is None else BYTES * (span[1] - span[0]) / ROWS
        if not shards or size + own > BYTES:
            shards.append([])
            size = 0.0
        shards[-1].append(piece)
        size += own
    return shards


def _write_windows(columns: Columns, window: int, shard: tuple[list[Piece], Path]) -> _ShardIndex:
    """Read a shard and write its windows; what a segment leaves over is in one more."""
    pieces, destination = shard
    reader = Reader(pieces, columns, fewest_rows=window + 1, most_rows=PART)
    segments: list[_Segment] = []
    # Renamed when it is whole: what a worker that died has written is not taken for it.
    with tempfile.NamedTemporaryFile(dir=destination.parent, delete=False) as file:
        for table, values in reader.segments():
            last = len(table) - 1
            starts = np.minimum(np.arange(0, last, window), last - window)
            for start in starts:
                file.write(table[start : start + window + 1].data)
            assert reader.names is not None
            count = len(reader.names.coordinates)
            t, q, u = table[:, 0], table[:, 1 : 1 + count], table[:, 1 + 2 * count :]
            identity = rows_identity(t, q, u)
            segments.append(_Segment(reader.runs[-1].place, len(table), identity, starts, values))
    Path(file.name).replace(destination)
    return _ShardIndex(reader.names, tuple(segments), reader.summary())


def _map_windows(file: Path, window: int, names: Names) -> np.ndarray:
    """All windows of a file, not yet in memory."""
    columns = 1 + 2 * len(names.coordinates) + len(names.inputs)
    return np.memmap(file, mode="r").view(float).reshape(-1, window + 1, columns)


def _batch_of(
    table: np.ndarray, parameters: dict[str, Any], names: Names, change: _Change | None = None
) -> Dataset:
    """Windows side by side, as one batch of trajectories."""
    data = Dataset(make_trajectory(table, names), parameters, recorded=names.recorded)
    return data if change is None else change(data)


def _factor_of(
    window: int,
    names: Names,
    change: _Change | None,
    make: MakeFactor,
    block: int,
    some: _Windows,
) -> Factor:
    """The factor of windows, so many at a time; the last ones are filled up to one shape."""
    tables = _map_windows(some.file, window, names)

    def factors() -> Iterator[Factor]:
        for first in range(0, len(some.numbers), block):
            places = np.arange(first, min(first + block, len(some.numbers)))
            filled = np.concatenate([places, np.full(block - len(places), places[-1])])
            values = {name: own[filled] for name, own in some.parameters.items()}
            data = _batch_of(tables[some.numbers[filled]], values, names, change)
            yield make(data, len(places))

    return merge_all(factors())
