"""Logs larger than memory: read once in parts, cleaned, and kept on disk as equal windows.

Training asks for chunks of one shape in any order and many times over, and a text file can be read
in one order only. So the windows go to a temporary file, where each has its place; memory holds one
part of a log, or one chunk.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.atomic import Paths
from mbdnode.data.logs.finishing import Piece
from mbdnode.data.logs.request import Reader, make_request, make_trajectory
from mbdnode.data.logs.summary import Note, Summary, counted
from mbdnode.data.stream import AbstractStream
from mbdnode.errors import UserError
from mbdnode.trajectory import Dataset

# Rows of a log that are cleaned at a time.
_PART = 400_000


class LogStream(AbstractStream):
    """The windows of logs of any size, in chunks of one shape.

    Each chunk takes its windows from all over the data, so that the first, from which scales and
    structures are chosen, is like the others. After the last chunk comes the first again.

    **Arguments:**

    - `paths`: as for `read`.
    - `window`: steps in each window; pieces that are shorter are cut, and counted.
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
        try:
            self._mu = self._fill(reader)
        except BaseException:
            self._remove()
            raise
        assert reader.names is not None
        self._names, total = reader.names, len(self._mu)
        self.count = max(1, -(-total * (window + 1) // chunk_rows))
        self._size = -(-total // self.count)
        notes = [*reader.notes, self._described(total)]
        self.summary = Summary(tuple(reader.runs), tuple(notes))

    def _described(self, total: int) -> Note:
        filled = self.count * self._size - total if self.count else 0
        again = f", of which {filled:,} come twice to fill them up" if filled else ""
        parts = counted(self.count or 0, "chunk")
        return Note(
            "read",
            f"{total:,} windows of {self._window} steps in {parts} of {self._size:,}"
            f"{again}; runs of more than {_PART:,} rows were read in parts",
        )

    def _fill(self, reader: Reader) -> list[dict[str, float]]:
        """Write every window; what is left over at the end of a piece is covered by one more."""
        parameters: list[dict[str, float]] = []
        with open(self._file, "wb") as file:
            for piece, values in reader.pieces():
                table = np.column_stack([piece.t, piece.q, piece.v, piece.u])
                last = len(table) - 1
                starts = np.minimum(np.arange(0, last, self._window), last - self._window)
                for start in starts:
                    file.write(table[start : start + self._window + 1].tobytes())
                parameters += [values] * len(starts)
        return parameters

    def chunk(self, number: int) -> Dataset:
        """A batch of windows.

        **Arguments:**

        - `number`: from 0; counted on after the last.

        **Returns:**

        A `Dataset` with one batch of trajectories.
        """
        assert self.count is not None
        wanted = np.arange(number % self.count, len(self._mu), self.count)
        wanted = np.resize(wanted, self._size)
        nq, nu = len(self._names.coordinates), len(self._names.inputs)
        shape = (self._window + 1, 1 + 2 * nq + nu)
        bytes_each = 8 * shape[0] * shape[1]
        table = np.empty((self._size, *shape))
        with open(self._file, "rb") as file:
            for place, window in enumerate(wanted):
                file.seek(int(window) * bytes_each)
                table[place] = np.frombuffer(file.read(bytes_each)).reshape(shape)
        piece = Piece(
            table[..., 0],
            table[..., 1 : 1 + nq],
            table[..., 1 + nq : 1 + 2 * nq],
            table[..., 1 + 2 * nq :],
        )
        names = self._mu[0]
        values = {name: np.array([self._mu[i][name] for i in wanted]) for name in names}
        run = make_trajectory(piece.t, piece.q, piece.v, piece.u, self._names)
        return Dataset(run, values)
