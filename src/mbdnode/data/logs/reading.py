"""`read`: logs as a dataset, with a summary of what was done to them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.atomic import Paths
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.request import Columns, Reader, Request, make_request, make_trajectory
from mbdnode.data.logs.roles import find_column
from mbdnode.data.logs.segments import at_times, signal_of
from mbdnode.data.logs.summary import Summary
from mbdnode.errors import UserError, check_memory

if TYPE_CHECKING:
    from mbdnode.trajectory import Dataset


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
) -> "Dataset":
    """Read logs: CSV and its relatives, Parquet, MAT, HDF5 or NPZ, told by their content.

    A column is named by its heading, with or without its unit, or as `column2` for the second one.
    Units in headings are converted to SI. Nothing is dropped silently: `dataset.summary` says what
    was read, cut, converted, unwrapped and estimated. Without roles a guess is shown, not used.

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

    **Returns:**

    A `Dataset` with a trajectory for each piece of each run, and a `Summary`; its `recorded` says
    which rates were measured.
    """
    from mbdnode.trajectory import Dataset

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
    )
    reader = Reader(request)
    pieces = list(reader.pieces())
    assert reader.names is not None
    names = reader.names
    return Dataset(
        [make_trajectory(piece.t, piece.q, piece.v, piece.u, names) for piece, _ in pieces],
        [values for _, values in pieces],
        Summary(tuple(reader.runs), tuple(reader.notes)),
        names.recorded,
    )


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

    An `InputLog`. Raises `UserError` for a log of several runs or pieces.
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
        raise UserError(f"'{path}' gives the times, so leave --dt and --steps out.")
    reader = Reader(request)
    pieces = list(reader.pieces())
    if len(pieces) != 1:
        raise UserError(f"'{path}' holds {len(pieces)} runs or pieces of them; give one.")
    piece, parameters = pieces[0]
    assert reader.names is not None
    return InputLog(piece.t, dict(zip(reader.names.inputs, piece.u.T, strict=True)), parameters)


def _resampled(
    log: AbstractLog, request: Request, dt_s: float | None, steps: int | None
) -> InputLog:
    """Inputs with times of their own, at even steps."""
    if dt_s is None:
        raise UserError(
            f"The inputs in '{log.name}' have their own times, so those of the motion are not "
            "known. Give its step with --dt."
        )
    if not 0 < dt_s < float("inf") or (steps is not None and steps < 1):
        raise UserError(f"--dt is {dt_s} and --steps is {steps}; both must be above zero.")
    roles = request.roles
    signals = signal_of(log, roles, roles.input_time or roles.time)
    if len(signals) != 1:
        raise UserError(f"'{log.name}' holds {len(signals)} runs; give one.")
    (signal,) = signals.values()
    # The last sample may fall on the last step, but for round-off.
    lasting = int((signal.t[-1] - signal.t[0]) / dt_s * (1 + 1e-12))
    if lasting < 1 or (steps or 0) > lasting:
        raise UserError(
            f"The inputs in '{log.name}' last {signal.t[-1] - signal.t[0]:g} s, which is "
            f"{lasting} steps of {dt_s:g} s. Give fewer --steps, or a shorter --dt."
        )
    needed = 8 * ((steps or lasting) + 1) * (1 + len(signal.names))
    check_memory(needed, f"{steps or lasting:,} steps", "Give a longer --dt, or fewer --steps.")
    t = signal.t[0] + dt_s * np.arange((steps or lasting) + 1)
    values, _ = at_times(signal, t, request.handling.interpolation)
    numbers = {
        name: float(log.constants[value] if isinstance(value, str) else value)
        for name, value in roles.parameters
        if not isinstance(value, str) or value in log.constants
    }
    return InputLog(t, dict(zip(signal.names, values.T, strict=True)), numbers)
