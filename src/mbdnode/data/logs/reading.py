"""`read`: logs as a dataset, with a summary of what was done to them.

What a user asks for becomes a `ReadRequest`, checked before any row is read; a `Reader` answers it
with one segment after another, from files of any size. `read_inputs` is the same for inputs alone.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.files import Paths, find_files
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import AbstractLog, Piece
from mbdnode.data.logs.reading_summary import Note, RunSummary, Summary
from mbdnode.data.logs.role_guess import guess_roles
from mbdnode.data.logs.roles import (
    GAPS,
    INTERPOLATIONS,
    OUTLIERS,
    Found,
    Roles,
    argument,
    find_column,
    make_roles,
    setting,
)
from mbdnode.data.logs.runs import (
    ColumnLayout,
    Names,
    Run,
    lay_out,
    make_trajectory,
    names_of,
    runs_in_log,
)
from mbdnode.data.logs.segments import (
    Handling,
    InputSignal,
    RawRun,
    Segment,
    at_times,
    finish,
    input_signal,
    is_angle,
    together,
)
from mbdnode.data.logs.trajectory_files import read_written
from mbdnode.errors import UserError, check_memory
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.trajectory import Dataset

Columns = Sequence[str] | Mapping[str, str]

# Of more files, and of a log with more runs, measured rates are compared with derivatives in these,
# and then in every one whose number is a power of two; of further parts of a log, in their first.
_FIRST_RUNS = 16


def read(
    paths: Paths,
    *,
    time: str | None = None,
    coordinates: Columns | None = None,
    rates: Sequence[str | None] | Mapping[str, str] | None = None,
    inputs: Columns | None = None,
    parameters: Sequence[str] | Mapping[str, Any] | None = None,
    run: str | None = None,
    input_time: str | None = None,
    input_files: Paths | None = None,
    interpolation: str = "held",
    units: Mapping[str, str] | None = None,
    angles: Sequence[str] | None = None,
    gaps: str = "refuse",
    longest_step_s: float | None = None,
    outliers: str = "replace",
) -> "Dataset":
    """Read logs: CSV and its relatives, Parquet, MAT, HDF5 or NPZ, told by their content.

    A column is named by its heading, with or without its unit, or as `column2` for the second one.
    Units in headings are converted to SI. Nothing is dropped silently: `dataset.summary` says what
    was read, cut, converted, unwrapped and estimated. Without roles a guess is shown, not used;
    but what `write` wrote is known by its headings, and comes back as it was.

    **Arguments:**

    - `paths`: a file, a pattern such as `runs/*.csv`, or several of them.
    - `time`: the column of times.
    - `coordinates`: columns of positions; a mapping from a system's names to columns where they
        differ.
    - `rates`: a column for each coordinate, in the same order, None for one to be estimated; or a
        mapping from coordinates to columns. All are estimated if not given.
    - `inputs`: columns of what drives the system; a mapping as for coordinates.
    - `parameters`: columns, or single numbers in a MAT, HDF5 or NPZ file, that are constant in a
        run; or a mapping from names to columns or numbers.
    - `run`: the column that tells runs apart, if a file holds several.
    - `input_time`, `input_files`: the column, and the files, of inputs that have their own times;
        one file for each of states (by name, else by order), or one for all.
    - `interpolation`: of those inputs, "held" or "linear".
    - `units`: by column, where a heading does not say it or is wrong; '1' converts nothing.
    - `angles`: coordinates that may be wrapped to one turn; by unit and name if not given.
    - `gaps`: "refuse" to raise at a gap, a missing value or a time that goes back, "split" to cut
        there.
    - `longest_step_s`: a longer step is a gap; five median steps of the run if not given.
    - `outliers`: "replace" for one to three coordinates or measured rates in a row that are far
        from what their neighbors say (`find_outliers`) to take that value, "keep" to leave them.

    **Returns:**

    A `Dataset` with a trajectory for each segment of each run, and a `Summary`; its `recorded` says
    which rates were measured.
    """
    from mbdnode.trajectory import Dataset

    said = (time, coordinates, rates, inputs, parameters, run, input_time, input_files, units)
    is_plain = gaps == GAPS[0] and outliers == OUTLIERS[0]
    if is_plain and all(each is None for each in (*said, angles, longest_step_s)):
        written = read_written(find_files(paths))
        if written is not None:
            return written
    request = make_request(
        paths,
        time=time,
        coordinates=coordinates,
        rates=rates,
        inputs=inputs,
        parameters=parameters,
        run=run,
        input_time=input_time,
        input_files=input_files,
        interpolation=interpolation,
        units=units,
        angles=angles,
        gaps=gaps,
        longest_step_s=longest_step_s,
        outliers=outliers,
    )
    reader = Reader(request)
    segments = list(reader.segments())
    check_any(reader.runs, request.handling.fewest_rows)
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
    """Files and roles, checked.

    **Arguments:**

    - `files`: in order.
    - `roles`: of their columns.
    - `handling`: of gaps and inputs.
    - `input_files`: of inputs with their own times; empty if there are none.
    - `apart`: whether the inputs have their own times.
    """

    files: tuple[Path, ...]
    roles: Roles
    handling: Handling
    input_files: tuple[Path, ...] = ()
    apart: bool = False

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


def make_request(
    paths: Any,
    *,
    time: Any = None,
    coordinates: Any = None,
    rates: Any = None,
    inputs: Any = None,
    parameters: Any = None,
    run: Any = None,
    input_time: Any = None,
    input_files: Any = None,
    interpolation: Any = "held",
    units: Any = None,
    angles: Any = None,
    gaps: Any = "refuse",
    longest_step_s: Any = None,
    outliers: Any = "replace",
    fewest_rows: int = 2,
    with_states: bool = True,
) -> ReadRequest:
    """Check what can be checked before rows are read.

    **Arguments:**

    - `with_states`: whether coordinates and rates are to be read. If not, the files are those of
        the inputs alone, and `input_files` is not looked for.
    - others: as for `read`.

    **Returns:**

    A `ReadRequest`. Raises `UserError` that shows a guess if time or coordinates are not named.
    """
    if gaps not in GAPS:
        raise unknown_name("way to treat gaps", gaps, GAPS)
    if outliers not in OUTLIERS:
        raise unknown_name("value of outliers", outliers, OUTLIERS)
    if interpolation not in INTERPOLATIONS:
        raise unknown_name("interpolation", interpolation, INTERPOLATIONS)
    given = longest_step_s
    if given is not None and (not isinstance(given, (int, float, np.number)) or not given > 0):
        raise UserError(f"longest_step_s is {given!r}; it must be more than 0 seconds.")
    if (input_time or input_files) and not inputs:
        raise UserError(
            f"Inputs have their own times, but none is named. Name them with {setting('inputs')}."
        )
    if interpolation != "held" and not (input_time or input_files):
        raise UserError(
            f"interpolation is {interpolation!r}, but the inputs have the states' times. Leave it "
            f"out, or say where their own are: {setting('input_time')} or {setting('input_files')}."
        )
    files = find_files(paths)
    if time is None or (coordinates is None and not rates):
        raise UserError(_unnamed(files, paths, "coordinates" if time else "time"))
    roles = make_roles(
        time, coordinates or (), rates, inputs, parameters, run, input_time, units, angles
    )
    apart = bool(input_time or input_files)
    handling = Handling(gaps, longest_step_s, interpolation, fewest_rows, outliers)
    if not with_states:
        roles = replace(roles, coordinates=(), rates=(), angles=())
        return ReadRequest(tuple(files), roles, handling, (), apart)
    others = find_files(input_files) if input_files is not None else []
    if len(others) > 1 and len(others) != len(files):
        raise UserError(
            f"There are {len(others)} files of inputs for {len(files)} of states. Give one for "
            "each, or one for all."
        )
    return ReadRequest(tuple(files), roles, handling, tuple(others), apart)


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
        roles, handling = self.request.roles, self.request.handling
        layout = lay_out(log, roles, with_inputs=not self.request.apart)
        signals = self._signals(piece, log) if self.request.apart else None
        if self.names is None:
            self.names = names_of(layout, roles, _input_names(signals))
            named = enumerate(self.names.coordinates)
            self._angles = tuple(x for i, x in named if is_angle(i, layout, roles))
            self._units = _units_of(layout, self.names, signals)

        def raw(place: int, run: Run) -> RawRun:
            signal = None if signals is None else _signal_for(run.label, signals, run.place)
            # What is wrong with a column of a log is so in all of its runs.
            looked = all(_is_looked_at(n) for n in (piece.number, piece.part, place))
            return RawRun(run, signal, looked and (piece.part == 0 or place == 0))

        runs = enumerate(runs_in_log(layout, self._most, piece.span))
        for several in together(raw(place, run) for place, run in runs):
            found = finish(several, layout, roles, handling)
            for one, (segments, summary) in zip(several, found, strict=True):
                self.runs.append(summary)
                for segment in segments:
                    yield segment, dict(one.run.parameters)
                self.notes += one.run.notes
        if piece.part:  # What is to be said of the file was said of its beginning.
            log.notes = [note for note in log.notes if note.kind == "warning"]
        self.notes += log.notes

    def _signals(self, piece: Piece, log: AbstractLog) -> dict[str | None, InputSignal]:
        """Of the inputs that go with one log of states."""
        roles = self.request.roles
        if piece.input_path is None:
            assert roles.input_time is not None
            return input_signal(log, roles, roles.input_time)
        source = open_logs(piece.input_path)[0]
        signals = input_signal(source, roles, roles.input_time or roles.time)
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


def _units_of(
    layout: ColumnLayout, names: Names, signals: Mapping[Any, InputSignal] | None
) -> tuple[tuple[str, str], ...]:
    """The units that are known, by name."""
    inputs = [found.si_unit for found in layout.inputs]
    if signals is not None:
        inputs = list(next(iter(signals.values())).units)
    units = [(n, f.si_unit) for n, f in zip(names.coordinates, layout.coordinates, strict=True)]
    units += zip(names.inputs, inputs, strict=True)
    units += [(n, p.si_unit) for n, p in layout.parameters.items() if isinstance(p, Found)]
    return tuple((name, unit) for name, unit in units if unit)


def _input_names(signals: Mapping[Any, InputSignal] | None) -> tuple[str, ...] | None:
    return None if signals is None else next(iter(signals.values())).names


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
    *,
    dt_s: float | None = None,
    steps: int | None = None,
    **roles: Any,
) -> InputLog:
    """Read the inputs of one run, with every setting that `read` would apply to them.

    **Arguments:**

    - `path`: a log that has the inputs, and need not have the states.
    - `dt_s`: the step of the times to bring them to, where the roles say that inputs have their own
        times and the log has no others.
    - `steps`: how many such steps; as many as the inputs last if not given.
    - `roles`: the arguments of `read`, by name.

    **Returns:**

    An `InputLog`. Raises `UserError` for a log of several runs or segments.
    """
    request = make_request(path, with_states=False, **roles)
    if not request.roles.inputs:
        raise UserError("No inputs are named, so there are none to be read.")
    files = [log for file in request.files for log in open_logs(file)]
    if len(files) != 1:
        raise UserError(f"'{path}' holds {len(files)} logs; give one of one run.")
    own_file = roles.get("input_files") is not None
    has_time = find_column(files[0], request.roles.time, request.roles) is not None
    if request.apart and (own_file or not has_time):
        return _resampled(files[0], request, dt_s, steps)
    if dt_s is not None or steps is not None:
        dt, count = _time_arguments()
        raise UserError(f"'{path}' gives the times, so leave {dt} and {count} out.")
    reader = Reader(request)
    segments = list(reader.segments())
    check_any(reader.runs, request.handling.fewest_rows)
    if len(segments) != 1:
        raise UserError(f"'{path}' holds {len(segments)} runs or segments of them; give one.")
    segment, parameters = segments[0]
    assert reader.names is not None
    return InputLog(segment.t, dict(zip(reader.names.inputs, segment.u.T, strict=True)), parameters)


def _time_arguments() -> tuple[str, str]:
    """What the user calls time step and number of steps."""
    return argument("dt_s", "--dt"), argument("steps", "--steps")


def _resampled(
    log: AbstractLog, request: ReadRequest, dt_s: float | None, steps: int | None
) -> InputLog:
    """Inputs with times of their own, at even steps."""
    dt, count = _time_arguments()
    if dt_s is None:
        raise UserError(
            f"The inputs in '{log.name}' have their own times, so those of the motion are not "
            f"known. Give its time step with {dt}."
        )
    if not 0 < dt_s < float("inf") or (steps is not None and steps < 1):
        raise UserError(f"{dt} is {dt_s} and {count} is {steps}; both must be above zero.")
    roles = request.roles
    signals = input_signal(log, roles, roles.input_time or roles.time)
    if len(signals) != 1:
        raise UserError(f"'{log.name}' holds {len(signals)} runs; give one.")
    (signal,) = signals.values()
    # The last sample may fall on the last step, but for round-off.
    lasting = int((signal.t[-1] - signal.t[0]) / dt_s * (1 + 1e-12))
    if lasting < 1 or (steps or 0) > lasting:
        raise UserError(
            f"The inputs in '{log.name}' last {signal.t[-1] - signal.t[0]:g} s, which is "
            f"{lasting} steps of {dt_s:g} s. Give fewer {count}, or a shorter {dt}."
        )
    needed = 8 * ((steps or lasting) + 1) * (1 + len(signal.names))
    check_memory(needed, f"{steps or lasting:,} steps", f"Give a longer {dt}, or fewer {count}.")
    t = signal.t[0] + dt_s * np.arange((steps or lasting) + 1)
    values, _ = at_times(signal, t, request.handling.interpolation)
    numbers = {
        name: float(log.constants[value] if isinstance(value, str) else value)
        for name, value in roles.parameters
        if not isinstance(value, str) or value in log.constants
    }
    return InputLog(t, dict(zip(signal.names, values.T, strict=True)), numbers)
