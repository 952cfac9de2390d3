"""`read`: logs as a dataset, with a summary of what was done to them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mbdnode.data.logs.formats import Paths
from mbdnode.data.logs.request import Columns, Reader, make_request, make_trajectory
from mbdnode.data.logs.summary import Summary

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

    A `Dataset` with a trajectory for each piece of each run, and a `Summary`.
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
    )
