"""Logs that are too large to hold: windows of them, and what of them is held out.

Windows next to each other share a row, so it is never windows that are held out but whole runs, or
the end of a single run, a window after the last row that is trained on. No estimated rate reaches
across it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.logs import Columns, LogStream, Summary, read
from mbdnode.errors import UserError
from mbdnode.evaluation.held_out_runs import NamedRun, Span, run_names, split_runs
from mbdnode.trajectory import Dataset, rows_identity

# A million rows of a few columns, more or less: beyond it, training would hold several of them.
_LARGE_BYTES = 100_000_000
_CHUNK_ROWS = 50_000
# Held-out stretches that are predicted, and how many windows long they are at most.
_SHOWN, _LONGEST = 6, 20


@dataclass(frozen=True)
class Large:
    """A stream to train on, and what is to be looked at of it.

    **Arguments:**

    - `training`: windows of the runs that are not held out.
    - `sample`: the runs of its first chunk.
    - `held_out`: stretches of what is held out, by name, with their parameters.
    - `rows`: how many are trained on.
    - `summary`: what was read.
    - `inputs`: the recorded ones.
    """

    training: LogStream
    sample: Dataset
    held_out: tuple[NamedRun, ...]
    rows: int
    summary: Summary
    inputs: tuple[str, ...]


def are_large(files: Sequence[Path]) -> bool:
    """Whether files are to be read in parts."""
    return sum(path.stat().st_size for path in files) > _LARGE_BYTES


def open_stream(
    files: Sequence[Path],
    held_out: Sequence[Path],
    fraction: float,
    seed: int,
    columns: Sequence[Columns],
    report: Callable[[int, int | None], None] | None,
    cluster: str | None = None,
) -> Large:
    """Read logs in parts.

    **Arguments:**

    - `files`: to learn from.
    - `held_out`: to judge by, if any.
    - `fraction`, `seed`: of what is held out of `files` otherwise.
    - `columns`: those of `files` and of `held_out`.
    - `report`: called with the rows read, and those in all files.
    - `cluster`: the address of a Dask scheduler whose workers read `files`; None to read them here.

    **Returns:**

    A `Large`.
    """
    stream = _stream(files, columns[0], report, cluster)
    runs = _of_files(held_out, columns[1]) if held_out else ()
    spans = split_runs(
        list(stream.runs.values()),
        0.0 if held_out else fraction,
        seed,
        gap=stream.window,
        identities=[tuple(segments) for segments in stream.identities.values()],
    )
    # A copy of a held-out run under another name is held out too.
    known = {rows_identity(run.t, run.q, run.u) for _, run, _ in runs}
    segments = list(stream.identities.values())
    spans = [span for span in spans if segments[span.run][span.segment] not in known]
    learned, judged = (_windows_in(stream, spans, held) for held in (False, True))
    if not learned or (fraction > 0 and not held_out and not judged):
        raise UserError(
            f"Logs of this size are read in windows of {stream.window} steps, and one part of them "
            "has not one such window. Log longer runs, hold out another part, or name files with "
            "--holdout."
        )
    training = stream.only(learned)
    sample = _singles(training.chunk(0))
    return Large(
        training,
        sample,
        runs if held_out else _stretches(stream, judged),
        len(learned) * (stream.window + 1),
        training.summary,
        sample.trajectories[0].inputs,
    )


def _stream(
    files: Sequence[Path],
    columns: Columns,
    report: Any = None,
    cluster: str | None = None,
) -> LogStream:
    given = {"report": report, "cluster": cluster, **columns.given()}
    return LogStream(list(files), chunk_rows=_CHUNK_ROWS, **given)


def _windows_in(stream: LogStream, spans: Sequence[Span], held_out: bool) -> list[int]:
    """The windows of which all rows are on one side."""
    sides = {(span.run, span.segment): span for span in spans if span.held_out == held_out}
    found = []
    for number, place in enumerate(stream.places):
        span = sides.get((place.run, place.segment))
        if span and span.first <= place.first and place.first + stream.window <= span.last:
            found.append(number)
    return found


def _of_files(files: Sequence[Path], columns: Columns) -> tuple[NamedRun, ...]:
    """What files hold; of large ones, stretches."""
    if are_large(files):
        stream = _stream(files, columns)
        return _stretches(stream, list(range(len(stream.places))))
    data = read(list(files), columns)
    runs = zip(run_names(data), data.trajectories, data.parameters, strict=True)
    return tuple((name, run, dict(values)) for name, run, values in runs)


def _stretches(stream: LogStream, windows: Sequence[int]) -> tuple[NamedRun, ...]:
    """Windows next to each other as one run; evenly many of them."""
    groups: list[list[int]] = []
    for i in windows:
        place, last = stream.places[i], stream.places[groups[-1][-1]] if groups else None
        follows = (
            last is not None
            and (last.run, last.segment) == (place.run, place.segment)
            and place.first <= last.first + stream.window
        )
        if follows and len(groups[-1]) < _LONGEST:
            groups[-1].append(i)
        else:
            groups.append([i])
    if not groups:
        return ()
    names = list(stream.runs)
    found = []
    for k in np.unique(np.linspace(0, len(groups) - 1, _SHOWN).astype(int)):
        data, place = stream.stretch(groups[k]), stream.places[groups[k][0]]
        run = data.trajectories[0]
        name = f"{names[place.run]}, from {float(run.t[0]):.6g} s"
        found.append((name, run, dict(data.parameters[0])))
    return tuple(found)


def _singles(chunk: Dataset) -> Dataset:
    """The windows of a chunk as runs of their own."""
    (batch,) = chunk.trajectories
    whole: Any = jax.tree.map(np.asarray, batch)
    rows = range(len(whole.t))
    runs = [jax.tree.map(lambda x: jnp.asarray(x[i]), whole) for i in rows]  # noqa: B023
    names = chunk.parameters[0]
    values = [{name: float(np.asarray(names[name])[i]) for name in names} for i in rows]
    return Dataset(runs, values, recorded=chunk.recorded)
