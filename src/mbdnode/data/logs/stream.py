"""Logs larger than memory: read once in parts, cleaned, and kept on disk as equal windows.

Training asks for chunks of one shape in any order and many times over, and a text file can be read
in one order only. So the windows go to a temporary file, where each has its place; memory holds one
part of a log, or one chunk. Each window knows its run and its rows, so that some can be held out.
"""

import copy
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.files import Paths
from mbdnode.data.logs.reading import Reader, make_request
from mbdnode.data.logs.reading_summary import Note
from mbdnode.data.logs.runs import make_trajectory
from mbdnode.data.sampling import AbstractStream
from mbdnode.errors import UserError
from mbdnode.formatting import plural
from mbdnode.trajectory import Dataset, Trajectory, rows_identity

# Rows of a log that are cleaned at a time.
_PART = 400_000


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

    Each chunk takes its windows from all over the data, so that the first, from which scales and
    structures are chosen, is like the others. After the last chunk comes the first again.

    **Arguments:**

    - `paths`: as for `read`.
    - `window`: steps in each window; segments that are shorter are cut, and counted.
    - `chunk_rows`: about how many rows make a chunk.
    - `cache`: the directory for the temporary file, which is as large as the numbers in the logs;
        the system's own if not given.
    - `report`: called with the rows read so far, and those in all files where the files say so.
    - `roles`: the other arguments of `read`, by name.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        window: int = 200,
        chunk_rows: int = 100_000,
        cache: str | os.PathLike[str] | None = None,
        report: Callable[[int, int | None], None] | None = None,
        **roles: Any,
    ):
        if window < 1 or chunk_rows <= window:
            raise UserError(
                f"window is {window} steps and chunk_rows is {chunk_rows}; a window has at least "
                "one step, and a chunk at least one window."
            )
        request = make_request(paths, fewest_rows=window + 1, **roles)
        home = Path(tempfile.mkdtemp(prefix="mbdnode-", dir=cache))
        self._remove = weakref.finalize(self, shutil.rmtree, home, True)
        self._file, self._window = home / "windows", window
        reader = Reader(request, _PART, report)
        self._keeper: LogStream | None = None
        # Of each window, where it was and the parameters of its run.
        self.places: tuple[WindowPlace, ...] = ()
        self._mu: list[dict[str, float]] = []
        # Of each run by name, the rows of its segments, and what tells them from others.
        self.runs: dict[str, list[int]] = {}
        self.identities: dict[str, list[str]] = {}
        try:
            self._fill(reader)
        except BaseException:
            self._remove()
            raise
        assert reader.names is not None
        self._names, self._chunk_rows = reader.names, chunk_rows
        self.summary = reader.summary()
        self._take(range(len(self._mu)))

    @property
    def identity(self) -> str:
        """What tells this data from other data."""
        told = json.dumps([self.identities, self.runs, self._taken.tolist()])
        return hashlib.sha256(told.encode()).hexdigest()

    def _take(self, windows: Sequence[int]) -> None:
        self._taken, total = np.array(windows, int), len(windows)
        self.count = max(1, -(-total * (self._window + 1) // self._chunk_rows))
        self._size = -(-total // self.count)
        others = [note for note in self.summary.notes if note.kind != "windows"]
        self.summary = replace(self.summary, notes=(*others, self._described(total)))

    def only(self, windows: Sequence[int]) -> "LogStream":
        """A stream of some of the windows, from the same file.

        **Arguments:**

        - `windows`: indices into `places`, at least one.

        **Returns:**

        A `LogStream`.
        """
        if not len(windows):
            raise UserError("A stream needs at least one window.")
        part = copy.copy(self)
        part._keeper = self  # The file is removed with the stream that wrote it.
        part._take(windows)
        return part

    def _described(self, total: int) -> Note:
        filled = self.count * self._size - total if self.count else 0
        again = f", of which {filled:,} come twice to fill them up" if filled else ""
        parts = plural(self.count or 0, "chunk")
        return Note(
            "windows",
            f"{total:,} of {self._window} steps in {parts} of {self._size:,}"
            f"{again}; runs of more than {_PART:,} rows were read in parts",
        )

    def _fill(self, reader: Reader) -> None:
        """Write every window; what is left over at the end of a segment is covered by one more."""
        places: list[WindowPlace] = []
        numbers: dict[str, int] = {}
        with open(self._file, "wb") as file:
            for segment, values in reader.segments():
                table = np.column_stack([segment.t, segment.q, segment.v, segment.u])
                last = len(table) - 1
                starts = np.minimum(np.arange(0, last, self._window), last - self._window)
                name = reader.runs[-1].place
                number = numbers.setdefault(name, len(numbers))
                segments = self.runs.setdefault(name, [])
                for start in starts:
                    file.write(table[start : start + self._window + 1].tobytes())
                    places.append(WindowPlace(number, len(segments), int(start)))
                segments.append(len(table))
                same = rows_identity(segment.t, segment.q, segment.u)
                self.identities.setdefault(name, []).append(same)
                self._mu += [values] * len(starts)
        self.places = tuple(places)

    def chunk(self, number: int) -> Dataset:
        """A batch of windows.

        **Arguments:**

        - `number`: from 0; counted on after the last.

        **Returns:**

        A `Dataset` with one batch of trajectories.
        """
        assert self.count is not None
        taken = self._taken[np.arange(number % self.count, len(self._taken), self.count)]
        wanted = np.resize(taken, self._size)
        names = self._mu[0]
        values = {name: np.array([self._mu[i][name] for i in wanted]) for name in names}
        run = self._trajectory(self._tables(wanted))
        return Dataset(run, values, recorded=self._names.recorded)

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
            end = first + self._window
        run = self._trajectory(np.concatenate(parts))
        return Dataset(run, self._mu[windows[0]], recorded=self._names.recorded)

    def _tables(self, windows: np.ndarray) -> np.ndarray:
        columns = 1 + 2 * len(self._names.coordinates) + len(self._names.inputs)
        shape = (self._window + 1, columns)
        bytes_each = 8 * shape[0] * shape[1]
        table = np.empty((len(windows), *shape))
        with open(self._file, "rb") as file:
            for place, window in enumerate(windows):
                file.seek(int(window) * bytes_each)
                table[place] = np.frombuffer(file.read(bytes_each)).reshape(shape)
        return table

    def _trajectory(self, table: np.ndarray) -> Trajectory:
        nq = len(self._names.coordinates)
        t, q, v, u = np.split(table, [1, 1 + nq, 1 + 2 * nq], axis=-1)
        return make_trajectory(t[..., 0], q, v, u, self._names)
