"""Logs that are too large to hold: windows of them, some of which are held out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.data.logs import LogStream, Summary, find_files
from mbdnode.surrogate.configuration import FitConfig
from mbdnode.trajectory import Dataset

# A million rows of a few columns, more or less: beyond it, training would hold several of them.
_LARGE_BYTES = 100_000_000
_WINDOW, _CHUNK_ROWS = 500, 50_000
_SHOWN = 6


@dataclass(frozen=True)
class Large:
    """A stream to train on, and what is to be looked at of it.

    **Arguments:**

    - `training`: all chunks but the last.
    - `sample`: the runs of its first chunk.
    - `held_out`, `names`: some windows of the last chunk.
    - `rows`: how many are trained on.
    - `summary`: what was read.
    - `inputs`: the recorded ones.
    """

    training: AbstractStream
    sample: Dataset
    held_out: Dataset
    names: tuple[str, ...]
    rows: int
    summary: Summary
    inputs: tuple[str, ...]


def are_large(logs: Sequence[str]) -> bool:
    """Whether logs are to be read in parts."""
    return sum(Path(path).stat().st_size for path in find_files(list(logs))) > _LARGE_BYTES


def open_stream(config: FitConfig, report: Callable[[int, int | None], None] | None) -> Large:
    """Read logs in parts.

    **Arguments:**

    - `config`: of the fit.
    - `report`: called with the rows read, and those in all files.

    **Returns:**

    A `Large`.
    """
    stream = LogStream(
        list(config.logs),
        window=_WINDOW,
        chunk_rows=_CHUNK_ROWS,
        report=report,
        **config.columns,
    )
    assert stream.count is not None
    count = max(1, min(stream.count - 1, round((1 - config.holdout) * stream.count)))
    last = _singles(stream.chunk(stream.count - 1), _SHOWN)
    sample = _singles(stream.chunk(0), None)
    per_chunk = len(sample.trajectories) * (_WINDOW + 1)
    return Large(
        _Part(stream, count),
        sample,
        last,
        tuple(f"window {number + 1} of those held out" for number in range(len(last.trajectories))),
        count * per_chunk,
        stream.summary,
        sample.trajectories[0].inputs,
    )


class _Part(AbstractStream):
    """The first chunks of a stream."""

    def __init__(self, stream: LogStream, count: int):
        self._stream, self.count = stream, count

    def chunk(self, number: int) -> Dataset:
        """A chunk, counted on after the last."""
        assert self.count is not None
        return self._stream.chunk(number % self.count)


def _singles(chunk: Dataset, most: int | None) -> Dataset:
    """The windows of a chunk as runs of their own."""
    (batch,) = chunk.trajectories
    whole: Any = jax.tree.map(np.asarray, batch)
    rows = range(len(whole.t))
    if most is not None:
        rows = np.unique(np.linspace(0, len(whole.t) - 1, most).astype(int)).tolist()
    runs = [jax.tree.map(lambda x: jnp.asarray(x[i]), whole) for i in rows]  # noqa: B023
    names = chunk.parameters[0]
    values = [{name: float(np.asarray(names[name])[i]) for name in names} for i in rows]
    return Dataset(runs, values)
