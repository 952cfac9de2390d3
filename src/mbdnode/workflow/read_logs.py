"""Logs as a fit takes them: what is learned from, and what is held out.

Logs that are too large to hold are read as windows. Windows next to each other share a row, so it
is never windows that are held out but whole runs, or the end of a single run, a window after the
last row that is trained on. No estimated velocity reaches across it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.logs import Columns, LogStream, Summary, read
from mbdnode.errors import UserError
from mbdnode.evaluation.held_out_runs import (
    Holdout,
    NamedRun,
    Span,
    hold_out_runs,
    run_names,
    split,
    split_runs,
)
from mbdnode.trajectory import Dataset, rows_identity
from mbdnode.workflow.config import FitConfig, columns_of

# A million rows of a few columns, more or less: beyond it, training would hold several of them.
_LARGE_BYTES = 100_000_000
_CHUNK_ROWS = 50_000
# Held-out stretches that are predicted, and how many windows long they are at most.
_SHOWN, _LONGEST = 6, 20

Report = Callable[[int, int | None], None]


@dataclass(frozen=True)
class LogData:
    """What was read; so many `rows` are trained on.

    Of logs that are too large to hold, `parts` are the windows of the first chunk as runs, and
    stretches of what is held out; the `stream` has all windows to learn from.
    """

    parts: Holdout
    rows: int
    summary: Summary
    stream: LogStream | None = None


def read_logs(
    config: FitConfig,
    files: Sequence[Path],
    held_out: Sequence[Path],
    *,
    in_parts: bool = False,
    report: Report | None = None,
    cluster: str | None = None,
) -> LogData:
    """Read logs, and hold out what a fit is judged by: a part of `files` without other ones.

    Large files are read in parts, and small ones if asked, here or on the workers of a cluster.
    `report` is then called with the rows read, and those in all files.
    """
    columns = columns_of(config, files)
    if in_parts or _are_large(files):
        return _read_in_parts(config, files, held_out, columns, report, cluster)
    data = read(files, columns)
    if held_out:
        judged_by = read(held_out, columns_of(config, held_out))
        parts = hold_out_runs(data, judged_by)
        told = "held out:", *str(judged_by.summary).splitlines()
        parts = replace(parts, notes=(*told, *parts.notes))
    else:
        parts = split(data, config.holdout, config.seed)
    assert data.summary is not None
    return LogData(parts, sum(len(run) for run in parts.training.trajectories), data.summary)


def _are_large(files: Sequence[Path]) -> bool:
    return sum(path.stat().st_size for path in files) > _LARGE_BYTES


def _read_in_parts(
    config: FitConfig,
    files: Sequence[Path],
    held_out: Sequence[Path],
    columns: Columns,
    report: Report | None,
    cluster: str | None,
) -> LogData:
    stream = _stream(files, columns, report, cluster)
    runs = _of_files(held_out, columns_of(config, held_out)) if held_out else ()
    fraction = 0.0 if held_out else config.holdout
    spans = split_runs(
        list(stream.runs.values()),
        fraction,
        config.seed,
        gap=stream.window,
        identities=[tuple(segments) for segments in stream.identities.values()],
    )
    # A copy of a held-out run under another name is held out too.
    known = {rows_identity(run.t, run.q, run.u) for _, run, _ in runs}
    segments = list(stream.identities.values())
    spans = [span for span in spans if segments[span.run][span.segment] not in known]
    learned, judged = (_windows_in(stream, spans, side) for side in (False, True))
    if not learned or (fraction > 0 and not judged):
        raise UserError(
            f"Logs of this size are read in windows of {stream.window} steps, and one part of them "
            "has not one such window. Log longer runs, hold out another part, or name files with "
            "--holdout."
        )
    training = stream.only(learned)
    parts = Holdout(_singles(training.chunk(0)), runs or _stretches(stream, judged))
    return LogData(parts, len(learned) * (stream.window + 1), training.summary, training)


def _stream(
    files: Sequence[Path],
    columns: Columns,
    report: Report | None = None,
    cluster: str | None = None,
) -> LogStream:
    given: dict[str, Any] = {"report": report, "cluster": cluster, **columns.given()}
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
    if _are_large(files):
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
