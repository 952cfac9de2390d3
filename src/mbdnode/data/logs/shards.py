"""Large logs in shards, each of which can be read by itself, here or on another machine.

What a shard is depends on the files alone: row groups of a Parquet file, from the first row of a
run on; a whole file of another format; several small files together. Whoever reads one makes the
same windows of it, to the bit, and keeps them in a file of one shape, `(windows, steps + 1,
columns)`. A worker that takes over from one that died reads the shard again.
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import Piece
from mbdnode.data.logs.reading import Reader, ReadRequest
from mbdnode.data.logs.reading_summary import Note, RunSummary
from mbdnode.data.logs.resolved_columns import find_column
from mbdnode.data.logs.runs import Names, make_trajectory
from mbdnode.factors import Factor, merge_all
from mbdnode.trajectory import Dataset, rows_identity

# Rows of a log that are cleaned at a time; rows of a shard, at least; and bytes of small files.
PART, ROWS, BYTES = 400_000, 200_000, 8_000_000
# Streams whose windows a worker keeps: of one that is used and of one before it.
_KEPT = 2

# What becomes of a batch of windows, of which the first so many count.
MakeFactor = Callable[[Dataset, int | None], Factor]


@dataclass(frozen=True)
class Shard:
    """What is read together.

    **Arguments:**

    - `number`: among all shards.
    - `pieces`: of the files, in order.
    """

    number: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class SegmentIndex:
    """A stretch without gaps, and its windows.

    **Arguments:**

    - `run`: the file and the run.
    - `rows`: how many it has.
    - `identity`: the same for segments with the same rows.
    - `starts`: the first row of each of its windows.
    - `parameters`: of its run.
    """

    run: str
    rows: int
    identity: str
    starts: np.ndarray
    parameters: dict[str, float]


@dataclass(frozen=True)
class ShardIndex:
    """What is known of a shard without its rows.

    **Arguments:**

    - `names`: of the columns; None if there are no rows.
    - `angles`, `units`: the coordinates that are angles, and units by name, as of `Summary`.
    - `segments`: in the order of their windows.
    - `runs`, `notes`: what became of every row.
    - `worker`: that read it, and has its windows; None for this process.
    """

    names: Names | None
    angles: tuple[str, ...] | None
    units: tuple[tuple[str, str], ...]
    segments: tuple[SegmentIndex, ...]
    runs: tuple[RunSummary, ...]
    notes: tuple[Note, ...]
    worker: str | None = None

    @property
    def windows(self) -> int:
        """How many there are."""
        return sum(len(segment.starts) for segment in self.segments)


def pieces_of(piece: Piece, request: ReadRequest) -> list[Piece]:
    """A file in parts that can be read by themselves."""
    found, columns = [], request.columns
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


def make_shards(pieces: Sequence[Piece]) -> list[Shard]:
    """Pieces as shards: each its own, but small files together."""
    groups: list[list[Piece]] = []
    size = 0.0
    for piece in pieces:
        span = piece.span
        own = piece.path.stat().st_size if span is None else BYTES * (span[1] - span[0]) / ROWS
        if not groups or size + own > BYTES:
            groups.append([])
            size = 0.0
        groups[-1].append(piece)
        size += own
    return [Shard(number, tuple(group)) for number, group in enumerate(groups)]


class WindowStore:
    """The windows of shards, in a folder; what is not there is read again.

    **Arguments:**

    - `folder`: for the files, one for each shard.
    - `request`: what to read, and how.
    - `window`: steps in each window.
    """

    def __init__(self, folder: Path, request: ReadRequest, window: int):
        self.folder, self.request, self.window = folder, request, window

    def read(self, shard: Shard) -> ShardIndex:
        """Read a shard and write its windows; what a segment leaves over is in one more."""
        reader, window = Reader(self.request, PART, shard.pieces), self.window
        segments: list[SegmentIndex] = []
        # Whole or not at all: it may be looked for by another thread.
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            for segment, values in reader.segments():
                table = np.column_stack([segment.t, segment.q, segment.v, segment.u])
                last = len(table) - 1
                starts = np.minimum(np.arange(0, last, window), last - window)
                for start in starts:
                    file.write(table[start : start + window + 1].data)
                identity = rows_identity(segment.t, segment.q, segment.u)
                place = reader.runs[-1].place
                segments.append(SegmentIndex(place, len(table), identity, starts, values))
        Path(file.name).replace(self._path(shard))
        found = reader.summary()
        told = reader.names, found.angles, found.units
        return ShardIndex(*told, tuple(segments), found.runs, found.notes)

    def tables(self, shard: Shard) -> np.ndarray:
        """All windows of a shard, not yet in memory."""
        path, columns = self._path(shard), self.request.columns
        if not path.is_file():
            self.read(shard)
        shape = (-1, self.window + 1, 1 + 2 * len(columns.coordinates) + len(columns.inputs))
        return np.memmap(path, mode="r").view(float).reshape(shape)

    def _path(self, shard: Shard) -> Path:
        return self.folder / f"shard-{shard.number}"


@dataclass(frozen=True)
class Selection:
    """Some windows of a shard.

    **Arguments:**

    - `shard`: of which.
    - `windows`: by number, in it.
    - `parameters`: of each, by name.
    """

    shard: Shard
    windows: np.ndarray
    parameters: dict[str, np.ndarray]


def batch_of(table: np.ndarray, parameters: dict[str, Any], names: Names) -> Dataset:
    """Windows side by side, as one batch of trajectories."""
    nq = len(names.coordinates)
    t, q, v, u = np.split(table, [1, 1 + nq, 1 + 2 * nq], axis=-1)
    run = make_trajectory(t[..., 0], q, v, u, names)
    return Dataset(run, parameters, recorded=names.recorded)


def factor_of(
    store: WindowStore, names: Names, make: MakeFactor, block: int, some: Selection
) -> Factor:
    """The factor of a shard's windows, batch by batch.

    **Arguments:**

    - `store`: where the windows are.
    - `names`: of their columns.
    - `make`: gives the factor of a batch.
    - `block`: windows in each batch, so that all have one shape; the last is filled up.
    - `some`: the windows, at least one.

    **Returns:**

    The factor of all of them.
    """
    tables = store.tables(some.shard)

    def factors() -> Iterator[Factor]:
        for first in range(0, len(some.windows), block):
            places = np.arange(first, min(first + block, len(some.windows)))
            filled = np.concatenate([places, np.full(block - len(places), places[-1])])
            values = {name: own[filled] for name, own in some.parameters.items()}
            yield make(batch_of(tables[some.windows[filled]], values, names), len(places))

    return merge_all(factors())


@dataclass(frozen=True)
class RemoteStore:
    """A `WindowStore` on every worker, by name.

    **Arguments:**

    - `key`: of the stream.
    - `request`, `window`: as for `WindowStore`.
    """

    key: str
    request: ReadRequest
    window: int


_STORES: dict[str, WindowStore] = {}
_STORES_LOCK = threading.Lock()


def _store_here(remote: RemoteStore) -> WindowStore:
    """On a worker: the store of a stream, new if need be; those of the oldest streams go."""
    from distributed import get_worker

    with _STORES_LOCK:
        if remote.key not in _STORES:
            for old in list(_STORES)[: len(_STORES) - _KEPT + 1]:
                shutil.rmtree(_STORES.pop(old).folder, ignore_errors=True)
            folder = tempfile.mkdtemp(prefix="mbdnode-", dir=get_worker().local_directory)
            _STORES[remote.key] = WindowStore(Path(folder), remote.request, remote.window)
        return _STORES[remote.key]


def forget(key: str) -> None:
    """On a worker: remove the windows of a stream."""
    with _STORES_LOCK:
        if key in _STORES:
            shutil.rmtree(_STORES.pop(key).folder, ignore_errors=True)


def read_there(remote: RemoteStore, shard: Shard) -> ShardIndex:
    """On a worker: read a shard."""
    from distributed import get_worker

    return replace(_store_here(remote).read(shard), worker=get_worker().address)


def tables_there(remote: RemoteStore, some: tuple[Shard, np.ndarray]) -> np.ndarray:
    """On a worker: a few windows of a shard."""
    return np.asarray(_store_here(remote).tables(some[0])[some[1]])


def factor_there(
    remote: RemoteStore, names: Names, make: MakeFactor, block: int, some: Selection
) -> Factor:
    """On a worker: as `factor_of`."""
    return factor_of(_store_here(remote), names, make, block, some)
