"""Logs larger than memory: read once in shards, cleaned, and kept on disk as equal windows.

Training asks for chunks of one shape in any order and many times over, and a text file can be read
in one order only. So the windows go to temporary files, where each has its place; memory holds one
part of a log, or one chunk. Each window knows its run and its rows, so that some can be held out.

On a cluster the shards are read by its workers, and the windows stay with them. What comes from
there is an index of a few numbers a window, the windows that are asked for by number, and the
factors that are made of all of them (`factors`).
"""

import contextlib
import copy
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.cluster import check_files, remote_workers, spread, spread_and_merge
from mbdnode.data.files import Paths
from mbdnode.data.logs import shards
from mbdnode.data.logs.columns import as_columns
from mbdnode.data.logs.log import Piece
from mbdnode.data.logs.reading import Reader, ReadRequest, check_any, make_request
from mbdnode.data.logs.reading_summary import Note, Summary
from mbdnode.data.logs.shards import MakeFactor, Selection, Shard, ShardIndex
from mbdnode.data.sampling import AbstractStream
from mbdnode.errors import UserError
from mbdnode.factors import Factor, merge, merge_all
from mbdnode.formatting import plural
from mbdnode.threads import threaded_map
from mbdnode.trajectory import Dataset

# Steps of a window, at most and at least, where the runs decide; and how many of a hundred runs may
# be too short for it.
_WINDOW, _SHORTEST, _TOO_SHORT = 500, 10, 10
# How many are looked at for that.
_FIRST_FILES, _FIRST_RUNS = 64, 200


@dataclass(frozen=True)
class WindowPlace:
    """Where a window was.

    **Arguments:**

    - `run`, `segment`: of the log, by number; a run that was read in parts is one run.
    - `first`: its first row, in the segment.
    """

    run: int
    segment: int
    first: int


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
        the system's own if not given. Workers have their own.
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
        if window is None:
            window = _usual_length(make_request(paths, columns), min(_WINDOW, chunk_rows - 1))
        if window < 1 or chunk_rows <= window:
            raise UserError(
                f"window is {window} steps and chunk_rows is {chunk_rows}; a window has at least "
                "one step, and a chunk at least one window."
            )
        request = make_request(paths, columns, fewest_rows=window + 1)
        bare = replace(request, files=(), input_files=())
        self.window, self._chunk_rows = window, chunk_rows
        self._remote = shards.RemoteStore(secrets.token_hex(8), bare, window)
        self._cluster, self._keeper = cluster, None
        self._change: Callable[[Dataset], Dataset] | None = None
        home = Path(tempfile.mkdtemp(prefix="mbdnode-", dir=cache))
        self._remove = weakref.finalize(self, shutil.rmtree, home, True)
        self._local = shards.WindowStore(home, bare, window)
        # Of each run by name, the rows of its segments, and what tells them from others.
        self.runs: dict[str, list[int]] = {}
        self.identities: dict[str, list[str]] = {}
        try:
            indices = self._read(request, report)
        except BaseException:
            self.close()
            raise
        self._index(indices, request.fewest_rows)
        self._take(range(len(self.places)))

    def _read(
        self, request: ReadRequest, report: Callable[[int, int | None], None] | None
    ) -> list[ShardIndex]:
        """Plan the shards, and read them all."""
        pieces, plan = request.pieces(), partial(shards.pieces_of, request=self._remote.request)
        if self._cluster is None:
            found = [plan(piece) for piece in pieces]
        else:
            with remote_workers(self._cluster) as client:
                pieces = [_absolute(piece) for piece in pieces]
                files = [path for one in pieces for path in (one.path, one.input_path) if path]
                check_files(client, list(dict.fromkeys(files)))
                found = spread(client, plan, pieces)
        parts = [part for parts in found for part in parts]
        self._shards = shards.make_shards(parts)
        sizes = [part.rows for part in parts]
        total = None if None in sizes else sum(size for size in sizes if size is not None)
        if self._cluster is not None:
            done = lambda number, of: report and report((total or of) * number // of, total)  # noqa: E731
            with remote_workers(self._cluster) as client:
                read = partial(shards.read_there, self._remote)
                return spread(client, read, self._shards, report=done)
        indices, rows = [], 0
        for index in threaded_map(self._local.read, self._shards):
            indices.append(index)
            rows += sum(run.account.read for run in index.runs)
            if report is not None:
                report(rows, total)
        return indices

    def _index(self, indices: Sequence[ShardIndex], fewest_rows: int) -> None:
        """Where every window is, and what became of every row."""
        places: list[WindowPlace] = []
        self._mu: list[dict[str, float]] = []
        numbers: dict[str, int] = {}
        seen: set[str] = set()
        last = ""
        for index in indices:
            for place in dict.fromkeys(run.place for run in index.runs):
                if place in seen and place != last:
                    raise UserError(
                        f"The rows of {place} go on after those of another run. Sort the rows by "
                        "run, or read the file whole, with read."
                    )
                seen.add(place)
                last = place
            for segment in index.segments:
                own = self.runs.setdefault(segment.run, [])
                run = numbers.setdefault(segment.run, len(numbers))
                places += [WindowPlace(run, len(own), int(start)) for start in segment.starts]
                own.append(segment.rows)
                self.identities.setdefault(segment.run, []).append(segment.identity)
                self._mu += [segment.parameters] * len(segment.starts)
        runs = tuple(run for index in indices for run in index.runs)
        check_any(runs, fewest_rows)
        self.places = tuple(places)
        self._first = np.cumsum([0, *(index.windows for index in indices)])
        self._workers = [index.worker for index in indices]
        notes = tuple(note for index in indices for note in index.notes)
        named = next(index for index in indices if index.segments)
        assert named.names is not None
        self._names = named.names
        self.summary = Summary(runs, notes, named.angles, named.units)

    def close(self) -> None:
        """Remove the windows, here and on the workers. The stream is of no use then."""
        self._remove()
        if self._cluster is None:
            return
        with contextlib.suppress(UserError, OSError), remote_workers(self._cluster) as client:
            client.run(shards.forget, self._remote.key)

    def on(self, cluster: str | None) -> "LogStream":
        """The same stream for the workers of a cluster, which read the files again.

        **Arguments:**

        - `cluster`: the address of a Dask scheduler; None for the stream as it is.

        **Returns:**

        A `LogStream`.
        """
        if cluster is None or cluster == self._cluster:
            return self
        part = copy.copy(self)
        part._keeper, part._cluster = self, cluster
        part._workers = [None] * len(self._shards)
        part._shards = [
            replace(shard, pieces=tuple(map(_absolute, shard.pieces))) for shard in self._shards
        ]
        with remote_workers(cluster) as client:
            pieces = [piece for shard in part._shards for piece in shard.pieces]
            files = [path for one in pieces for path in (one.path, one.input_path) if path]
            check_files(client, list(dict.fromkeys(files)))
        return part

    @property
    def cluster(self) -> str | None:
        """The address of the Dask scheduler whose workers have the windows; None for this one."""
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
        others = [note for note in self.summary.notes if note.kind != "windows"]
        self.summary = replace(self.summary, notes=(*others, self._described(total)))

    def only(self, windows: Sequence[int]) -> "LogStream":
        """A stream of some of the windows, from the same files.

        **Arguments:**

        - `windows`: indices into `places`, at least one.

        **Returns:**

        A `LogStream`.
        """
        if not len(windows):
            raise UserError("A stream needs at least one window.")
        part = copy.copy(self)
        part._keeper = self  # The files are removed with the stream that wrote them.
        part._take(windows)
        return part

    def changed(self, change: Callable[[Dataset], Dataset]) -> "LogStream":
        """A stream whose windows go through a function, where they are.

        **Arguments:**

        - `change`: gives a batch of as many windows; it may be sent to another machine.

        **Returns:**

        A `LogStream`.
        """
        part = copy.copy(self)
        part._keeper, part._change = self, change
        return part

    def _described(self, total: int) -> Note:
        filled = self.count * self._size - total if self.count else 0
        again = f", of which {filled:,} come twice to fill them up" if filled else ""
        parts = plural(self.count or 0, "chunk")
        return Note(
            "windows",
            f"{total:,} of {self.window} steps in {parts} of {self._size:,}"
            f"{again}; runs of more than {shards.PART:,} rows were read in parts",
        )

    def chunk(self, number: int) -> Dataset:
        """A batch of windows.

        **Arguments:**

        - `number`: from 0; counted on after the last.

        **Returns:**

        A `Dataset` with one batch of trajectories.
        """
        assert self.count is not None
        own = np.sort(self._order[number % self.count :: self.count])
        wanted = np.resize(self._taken[own], self._size)
        found = shards.batch_of(self._tables(wanted), self._parameters(wanted), self._names)
        return found if self._change is None else self._change(found)

    def stretch(self, windows: Sequence[int]) -> Dataset:
        """Consecutive windows of one segment as the run that they were.

        **Arguments:**

        - `windows`: indices into `places`, in order.

        **Returns:**

        A `Dataset` of one trajectory.
        """
        tables, parts = self._tables(np.array(windows, int)), []
        end = -1
        for window, table in zip(windows, tables, strict=True):
            first = self.places[window].first
            # Neighbors share a row, and the last window of a segment may share many.
            parts.append(table[max(0, end + 1 - first) if parts else 0 :])
            end = first + self.window
        return shards.batch_of(np.concatenate(parts), self._mu[windows[0]], self._names)

    def factors(
        self,
        make: MakeFactor,
        *,
        most_rows: int | None = None,
        report: Callable[[int, int], None] | None = None,
    ) -> Factor:
        """One factor of all windows, made where they are and merged in the order of the shards.

        **Arguments:**

        - `make`, `most_rows`, `report`: as for `AbstractStream`.

        **Returns:**

        The factor: the same to the bit in this process and on any number of workers.
        """
        if self._change is not None:
            make = partial(_made_of_changed, self._change, make)
        steps = self.window + 1
        chosen = [(shard, own) for shard, own in self._by_shard(self._taken) if len(own)]
        most = max(len(own) for _, own in chosen)
        block = int(np.clip(min(most_rows or np.inf, self._chunk_rows) // steps, 1, most))
        block = -(-most // -(-most // block))  # Evenly, so that little is filled up.
        some = [
            Selection(shard, own - self._first[shard.number], self._parameters(own))
            for shard, own in chosen
        ]
        if self._cluster is not None:
            given = self._remote, self._names, make, block
            where = [self._workers[one.shard.number] for one in some]
            with remote_workers(self._cluster) as client:
                function = partial(shards.factor_there, *given)
                return spread_and_merge(client, function, some, merge, where=where, report=report)

        def each() -> Iterator[Factor]:
            function = partial(shards.factor_of, self._local, self._names, make, block)
            for number, factor in enumerate(threaded_map(function, some)):
                yield factor
                if report is not None:
                    report(number + 1, len(some))

        return merge_all(each())

    def _by_shard(self, windows: np.ndarray) -> list[tuple[Shard, np.ndarray]]:
        """Windows in order, by the shard that has them."""
        where = np.searchsorted(self._first, windows, side="right") - 1
        return [(shard, windows[where == shard.number]) for shard in self._shards]

    def _parameters(self, windows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: np.array([self._mu[i][name] for i in windows]) for name in self._mu[0]}

    def _tables(self, windows: np.ndarray) -> np.ndarray:
        distinct, back = np.unique(windows, return_inverse=True)
        asked = [(s, own - self._first[s.number]) for s, own in self._by_shard(distinct)]
        asked = [(shard, own) for shard, own in asked if len(own)]
        if self._cluster is None:
            found = [self._local.tables(shard)[own] for shard, own in asked]
        else:
            where = [self._workers[shard.number] for shard, _ in asked]
            with remote_workers(self._cluster) as client:
                function = partial(shards.tables_there, self._remote)
                found = spread(client, function, asked, where=where)
        return np.concatenate(found)[back]


def _made_of_changed(
    change: Callable[[Dataset], Dataset], make: MakeFactor, data: Dataset, count: int | None
) -> Factor:
    return make(change(data), count)


def _usual_length(request: ReadRequest, most: int) -> int:
    """Steps that most of the first runs have; no more than `most`."""
    bare = replace(request, files=(), input_files=())
    pieces = [p for piece in request.pieces()[:_FIRST_FILES] for p in shards.pieces_of(piece, bare)]
    first = shards.make_shards(pieces)[0]
    segments = islice(Reader(bare, shards.PART, first.pieces).segments(), _FIRST_RUNS)
    steps = [len(segment.t) - 1 for segment, _ in segments]
    usual = int(np.percentile(steps, _TOO_SHORT, method="higher")) if steps else most
    return min(most, max(usual, _SHORTEST))


def _absolute(piece: Piece) -> Piece:
    """Workers have another current directory."""
    other = piece.input_path
    return replace(
        piece, path=piece.path.absolute(), input_path=None if other is None else other.absolute()
    )
