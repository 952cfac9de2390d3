"""`read`: logs as a dataset, with a summary of what was done to them.

Files are found before any row is read; a `Reader` gives one segment of their runs after another,
from files of any size. `read_inputs` is the same for inputs alone.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.files import Paths, find_files
from mbdnode.data.logs.columns import Columns, Given, as_columns
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import AbstractLog, Piece
from mbdnode.data.logs.reading_summary import Note, RunSummary, Summary
from mbdnode.data.logs.resolved_columns import (
    ResolvedColumn,
    ResolvedColumns,
    find_column,
    resolve_columns,
)
from mbdnode.data.logs.role_guess import guess_roles
from mbdnode.data.logs.runs import Names, make_trajectory, names_of, runs_in_log
from mbdnode.data.logs.segments import InputSignal, at_times, finish, input_signal, is_angle
from mbdnode.data.logs.trajectory_files import read_written
from mbdnode.errors import UserError, check_memory

if TYPE_CHECKING:
    from mbdnode.trajectory import Dataset

# A table of times, coordinates, rates and inputs, and the parameters of its run.
_Segment = tuple[np.ndarray, dict[str, float]]
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
    reader = Reader(find_pieces(paths, asked), asked)
    segments = list(reader.segments())
    check_any(reader.runs)
    names = reader.names
    assert names is not None
    return Dataset(
        [make_trajectory(table, names) for table, _ in segments],
        [values for _, values in segments],
        reader.summary(),
        names.recorded,
    )


def find_pieces(paths: Paths, columns: Columns) -> list[Piece]:
    """Every file of states, with that of its inputs: by name, else by order.

    Raises `UserError` that shows a guess if time or coordinates are not named.
    """
    files = find_files(paths)
    if columns.time is None or not columns.coordinates:
        guess = guess_roles(open_logs(files[0])[0])
        shown = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else str(files[0])
        raise UserError(
            f"No {'coordinates' if columns.time else 'time'} named for '{shown}', and roles are "
            f"never guessed silently. If this guess is right, {guess.advice(shown)}"
        )
    inputs = find_files(columns.input_files) if columns.input_files else []
    stems, own = {path.stem: path for path in inputs}, [path.stem for path in files]
    if len(inputs) == 1:
        inputs *= len(files)
    elif len(inputs) not in (0, len(files)):
        raise UserError(
            f"There are {len(inputs)} files of inputs for {len(files)} of states. Give one for "
            "each, or one for all."
        )
    elif len(stems) == len(inputs) and set(own) == set(stems):
        inputs = [stems[stem] for stem in own]
    pairs = itertools.zip_longest(files, inputs)
    return [Piece(number, path, other) for number, (path, other) in enumerate(pairs)]


class Reader:
    """Reads runs and keeps what is to be said of them.

    **Arguments:**

    - `pieces`: of the files, as `find_pieces` gives them, or parts of those.
    - `columns`: what their columns are.
    - `fewest_rows`: of a segment that is kept.
    - `most_rows`: of a run to hold at a time; None for all.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        columns: Columns,
        *,
        fewest_rows: int = 2,
        most_rows: int | None = None,
    ):
        self.pieces, self.columns, self.fewest_rows = pieces, columns, fewest_rows
        self._most = most_rows
        self.runs: list[RunSummary] = []
        self.notes: list[Note] = []
        self.names: Names | None = None
        self._angles: tuple[str, ...] | None = None
        self._units: tuple[tuple[str, str], ...] = ()

    def summary(self) -> Summary:
        """What has been read so far."""
        return Summary(tuple(self.runs), tuple(self.notes), self._angles, self._units)

    def segments(self) -> Iterator[_Segment]:
        """Every segment as a table of times, coordinates, rates and inputs; and its parameters."""
        for piece in self.pieces:
            for number, log in enumerate(open_logs(piece.path)):
                if piece.log in (None, number):
                    yield from self._segments_of(piece, log)

    def _segments_of(self, piece: Piece, log: AbstractLog) -> Iterator[_Segment]:
        apart = self.columns.inputs_apart
        layout = resolve_columns(log, self.columns, with_inputs=not apart)
        signals = self._signals(piece, log) if apart else {}
        inputs = next(iter(signals.values())).columns if signals else layout.inputs
        if self.names is None:
            self._describe(layout, inputs)
        for place, run in enumerate(runs_in_log(layout, self._most, piece.span)):
            signal = signals.get(run.label, signals.get(None))
            if apart and signal is None:
                raise UserError(
                    f"There are no inputs for {run.place}. Add them, or leave the run out."
                )
            # What is wrong with a column of a log is so in all of its runs.
            looked = all(_is_looked_at(n) for n in (piece.number, piece.part, place))
            looked = looked and (piece.part == 0 or place == 0)
            segments, summary = finish(run, signal, self.fewest_rows, looked)
            self.runs.append(summary)
            self.notes += run.notes
            for table in segments:
                yield table, dict(run.parameters)
        if piece.part:  # What is to be said of the file was said of its beginning.
            log.notes = [note for note in log.notes if note.kind == "warning"]
        self.notes += log.notes

    def _describe(self, layout: ResolvedColumns, inputs: Sequence[ResolvedColumn]) -> None:
        """What the first log says of names, angles and units, which hold for all."""
        self.names = names_of(layout, inputs)
        named = enumerate(self.names.coordinates)
        self._angles = tuple(x for i, x in named if is_angle(i, layout))
        own = [p for p in layout.parameters.values() if isinstance(p, ResolvedColumn)]
        used = (*layout.coordinates, *inputs, *own)
        self._units = tuple((c.name, c.si_unit) for c in used if c.si_unit)

    def _signals(self, piece: Piece, log: AbstractLog) -> dict[str | None, InputSignal]:
        """Of the inputs that go with one log of states."""
        if piece.input_path is None:
            return input_signal(log, self.columns)
        source = open_logs(piece.input_path)[0]
        signals = input_signal(source, self.columns)
        log.note("inputs", f"from '{piece.input_path}'")
        self.notes += source.notes
        return signals


def check_any(runs: Sequence[RunSummary], fewest_rows: int = 2) -> None:
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
    reader = Reader([Piece(0, files[0].path)], columns)
    segments = list(reader.segments())
    check_any(reader.runs)
    if len(segments) != 1:
        raise UserError(f"'{path}' holds {len(segments)} runs or segments of them; give one.")
    table, parameters = segments[0]
    assert reader.names is not None
    return InputLog(
        table[:, 0], dict(zip(reader.names.inputs, table[:, 1:].T, strict=True)), parameters
    )


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
    signals = input_signal(log, columns)
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
