"""`read`: logs as a dataset, with a summary of what was done to them.

Files and their `Columns` become a `ReadRequest` before any row is read; a `Reader` answers it with
one segment after another, from files of any size. `read_inputs` is the same for inputs alone.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.files import Paths, find_files
from mbdnode.data.logs.columns import Columns, Given, as_columns
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import AbstractLog, Piece
from mbdnode.data.logs.reading_summary import Note, RunSummary, Summary
from mbdnode.data.logs.resolved_columns import ResolvedColumn, find_column, resolve_columns
from mbdnode.data.logs.role_guess import guess_roles
from mbdnode.data.logs.runs import (
    Names,
    Run,
    make_trajectory,
    names_of,
    runs_in_log,
)
from mbdnode.data.logs.segments import (
    InputSignal,
    Segment,
    at_times,
    finish,
    input_signal,
    is_angle,
    together,
)
from mbdnode.data.logs.trajectory_files import read_written
from mbdnode.errors import UserError, check_memory

if TYPE_CHECKING:
    from mbdnode.trajectory import Dataset

# Of more files, and of a log with more runs, measured rates are compared with derivatives in these,
# and then in every one whose number is a power of two; of further parts of a log, in their first.
_FIRST_RUNS = 16


def read(paths: Paths, columns: Given = None, **given: Any) -> "Dataset":
    """Read logs: CSV and its relatives, Parquet, MAT, HDF5 or NPZ, told by their content.

    Units in headings are converted to SI. Nothing is dropped silently: `dataset.summary` says what
    was read, cut, converted, unwrapped and estimated. Without roles a guess is shown, not used;
    but what `write` wrote is known by its headings, and comes back as it was.

    **Arguments:**

    - `paths`: a file, a pattern such as `runs/*.csv`, or several of them.
    - `columns`: what the columns are: a `Columns`, a mapping, or a TOML file of them, such as
        `mbdnode inspect LOG --write FILE` makes.
    - `given`: the arguments of `Columns`, such as `time="t"`; they go before those of `columns`.

    **Returns:**

    A `Dataset` with a trajectory for each segment of each run, and a `Summary`; its `recorded` says
    which rates were measured.
    """
    from mbdnode.trajectory import Dataset

    asked = as_columns(columns, given)
    if asked == Columns():
        written = read_written(find_files(paths))
        if written is not None:
            return written
    request = make_request(paths, asked)
    reader = Reader(request)
    segments = list(reader.segments())
    check_any(reader.runs, request.fewest_rows)
    assert reader.names is not None
    names = reader.names
    return Dataset(
        [
            make_trajectory(segment.t, segment.q, segment.v, segment.u, names)
            for segment, _ in segments
        ],
        [values for _, values in segments],
        reader.summary(),
        names.recorded,
    )


@dataclass(frozen=True)
class ReadRequest:
    """Files that were found, and what their columns are.

    **Arguments:**

    - `files`: in order.
    - `columns`: of each.
    - `input_files`: of inputs with their own times; empty if there are none.
    - `fewest_rows`: of a segment that is kept.
    """

    files: tuple[Path, ...]
    columns: Columns
    input_files: tuple[Path, ...] = ()
    fewest_rows: int = 2

    def pieces(self) -> list[Piece]:
        """Every file, with that of its inputs: by name, else by order."""
        others: dict[Path, Path] = {}
        if len(self.input_files) == 1:
            others = dict.fromkeys(self.files, self.input_files[0])
        elif self.input_files:
            stems = {path.stem: path for path in self.input_files}
            own = [path.stem for path in self.files]
            by_name = len(stems) == len(self.input_files) and set(own) == set(stems)
            found = [stems[stem] for stem in own] if by_name else self.input_files
            others = dict(zip(self.files, found, strict=True))
        return [Piece(i, path, others.get(path)) for i, path in enumerate(self.files)]


def make_request(paths: Paths, columns: Columns, fewest_rows: int = 2) -> ReadRequest:
    """Find the files of states and inputs.

    Raises `UserError` that shows a guess if time or coordinates are not named.
    """
    files = find_files(paths)
    if columns.time is None or not columns.coordinates:
        raise UserError(_unnamed(files, paths, "coordinates" if columns.time else "time"))
    others = find_files(columns.input_files) if columns.input_files else []
    if len(others) > 1 and len(others) != len(files):
        raise UserError(
            f"There are {len(others)} files of inputs for {len(files)} of states. Give one for "
            "each, or one for all."
        )
    return ReadRequest(tuple(files), columns, tuple(others), fewest_rows)


def _unnamed(files: list[Path], paths: Paths, what: str) -> str:
    guess = guess_roles(open_logs(files[0])[0])
    shown = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else str(files[0])
    return (
        f"No {what} named for '{shown}', and roles are never guessed silently. If this guess is "
        f"right, {guess.advice(shown)}"
    )


class Reader:
    """Reads the runs of a request and keeps what is to be said of them.

    **Arguments:**

    - `request`: what to read.
    - `most_rows`: of a run to hold at a time; None for all.
    - `pieces`: the parts of the files to read; all of them if not given.
    """

    def __init__(
        self,
        request: ReadRequest,
        most_rows: int | None = None,
        pieces: Sequence[Piece] | None = None,
    ):
        self.request, self._most = request, most_rows
        self.pieces = request.pieces() if pieces is None else pieces
        self.runs: list[RunSummary] = []
        self.notes: list[Note] = []
        self.names: Names | None = None
        self._angles: tuple[str, ...] | None = None
        self._units: tuple[tuple[str, str], ...] = ()

    def summary(self) -> Summary:
        """What has been read so far."""
        return Summary(tuple(self.runs), tuple(self.notes), self._angles, self._units)

    def segments(self) -> Iterator[tuple[Segment, dict[str, float]]]:
        """Every segment, with the parameters of its run."""
        for piece in self.pieces:
            for number, log in enumerate(open_logs(piece.path)):
                if piece.log in (None, number):
                    yield from self._segments_of(piece, log)

    def _segments_of(
        self, piece: Piece, log: AbstractLog
    ) -> Iterator[tuple[Segment, dict[str, float]]]:
        apart = self.request.columns.inputs_apart
        layout = resolve_columns(log, self.request.columns, with_inputs=not apart)
        signals = self._signals(piece, log) if apart else None
        if self.names is None:
            inputs = layout.inputs if signals is None else next(iter(signals.values())).columns
            self.names = names_of(layout, inputs)
            named = enumerate(self.names.coordinates)
            self._angles = tuple(x for i, x in named if is_angle(i, layout))
            own = [p for p in layout.parameters.values() if isinstance(p, ResolvedColumn)]
            used = (*layout.coordinates, *inputs, *own)
            self._units = tuple((c.name, c.si_unit) for c in used if c.si_unit)

        def completed(place: int, run: Run) -> Run:
            run.signal = None if signals is None else _signal_for(run.label, signals, run.place)
            # What is wrong with a column of a log is so in all of its runs.
            looked = all(_is_looked_at(n) for n in (piece.number, piece.part, place))
            run.with_rates = looked and (piece.part == 0 or place == 0)
            return run

        runs = enumerate(runs_in_log(layout, self._most, piece.span))
        for several in together(completed(place, run) for place, run in runs):
            found = finish(several, layout, self.request.fewest_rows)
            for run, (segments, summary) in zip(several, found, strict=True):
                self.runs.append(summary)
                for segment in segments:
                    yield segment, dict(run.parameters)
                self.notes += run.notes
        if piece.part:  # What is to be said of the file was said of its beginning.
            log.notes = [note for note in log.notes if note.kind == "warning"]
        self.notes += log.notes

    def _signals(self, piece: Piece, log: AbstractLog) -> dict[str | None, InputSignal]:
        """Of the inputs that go with one log of states."""
        columns = self.request.columns
        time = columns.input_time or columns.time or ""
        if piece.input_path is None:
            return input_signal(log, columns, time)
        source = open_logs(piece.input_path)[0]
        signals = input_signal(source, columns, time)
        log.note("inputs", f"from '{piece.input_path}'")
        self.notes += source.notes
        return signals


def check_any(runs: Sequence[RunSummary], fewest_rows: int) -> None:
    """Raise `UserError` if nothing is left of what was read."""
    if any(run.segments for run in runs):
        return
    fates = "; ".join(line for run in runs[:1] for line in run.account.lines())
    raise UserError(
        f"No run of {runs[0].place} is long enough: {fates}. A run needs at least {fewest_rows} "
        "rows, and five where a rate is to be estimated."
    )


def _is_looked_at(number: int) -> bool:
    return number < _FIRST_RUNS or number & (number - 1) == 0


def _signal_for(
    label: str | None, signals: dict[str | None, InputSignal], place: str
) -> InputSignal:
    if label in signals:
        return signals[label]
    if None in signals:
        return signals[None]
    raise UserError(f"There are no inputs for {place}. Add them, or leave the run out.")


@dataclass(frozen=True)
class InputLog:
    """Times and inputs without states.

    **Arguments:**

    - `t`: in seconds.
    - `u`: the inputs by name, in SI.
    - `parameters`: those that the roles give, or the log has.
    """

    t: np.ndarray
    u: Mapping[str, np.ndarray]
    parameters: Mapping[str, float]


def read_inputs(
    path: str | os.PathLike[str],
    columns: Columns,
    *,
    dt_s: float | None = None,
    steps: int | None = None,
) -> InputLog:
    """Read the inputs of one run, with every setting that `read` would apply to them.

    **Arguments:**

    - `path`: a log that has the inputs, and need not have the states.
    - `columns`: what its columns are.
    - `dt_s`: the step of the times to bring them to, where inputs have their own times and the log
        has no others.
    - `steps`: how many such steps; as many as the inputs last if not given.

    **Returns:**

    An `InputLog`. Raises `UserError` for a log of several runs or segments.
    """
    own_file = bool(columns.input_files)
    columns = replace(columns, coordinates=(), rates=(), angles=None)
    if not columns.inputs:
        raise UserError("No inputs are named, so there are none to be read.")
    files = [log for file in find_files(path) for log in open_logs(file)]
    if len(files) != 1:
        raise UserError(f"'{path}' holds {len(files)} logs; give one of one run.")
    has_time = find_column(files[0], columns.time or "", columns) is not None
    if columns.inputs_apart and (own_file or not has_time):
        return _resampled(files[0], columns, dt_s, steps)
    if dt_s is not None or steps is not None:
        raise UserError(f"'{path}' gives the times, so leave dt_s (--dt) and steps (--steps) out.")
    request = ReadRequest(tuple(find_files(path)), columns)
    reader = Reader(request)
    segments = list(reader.segments())
    check_any(reader.runs, request.fewest_rows)
    if len(segments) != 1:
        raise UserError(f"'{path}' holds {len(segments)} runs or segments of them; give one.")
    segment, parameters = segments[0]
    assert reader.names is not None
    return InputLog(segment.t, dict(zip(reader.names.inputs, segment.u.T, strict=True)), parameters)


def _resampled(
    log: AbstractLog, columns: Columns, dt_s: float | None, steps: int | None
) -> InputLog:
    """Inputs with times of their own, at even steps."""
    if dt_s is None:
        raise UserError(
            f"The inputs in '{log.name}' have their own times, so those of the motion are not "
            "known. Give its time step with dt_s (--dt)."
        )
    if not 0 < dt_s < float("inf") or (steps is not None and steps < 1):
        raise UserError(
            f"dt_s (--dt) is {dt_s} and steps (--steps) is {steps}; both must be above zero."
        )
    signals = input_signal(log, columns, columns.input_time or columns.time or "")
    if len(signals) != 1:
        raise UserError(f"'{log.name}' holds {len(signals)} runs; give one.")
    (signal,) = signals.values()
    # The last sample may fall on the last step, but for round-off.
    lasting = int((signal.t[-1] - signal.t[0]) / dt_s * (1 + 1e-12))
    if lasting < 1 or (steps or 0) > lasting:
        raise UserError(
            f"The inputs in '{log.name}' last {signal.t[-1] - signal.t[0]:g} s, which is "
            f"{lasting} steps of {dt_s:g} s. Give fewer steps (--steps), or a shorter dt_s (--dt)."
        )
    count = steps or lasting
    needed = 8 * (count + 1) * (1 + len(signal.columns))
    check_memory(needed, f"{count:,} steps", "Give a longer dt_s (--dt), or fewer steps.")
    t = signal.t[0] + dt_s * np.arange(count + 1)
    values, _ = at_times(signal, t, columns.interpolation)
    numbers = {
        name: float(log.constants[value] if isinstance(value, str) else value)
        for name, value in columns.named("parameters").items()
        if not isinstance(value, str) or value in log.constants
    }
    names = [column.name for column in signal.columns]
    return InputLog(t, dict(zip(names, values.T, strict=True)), numbers)
