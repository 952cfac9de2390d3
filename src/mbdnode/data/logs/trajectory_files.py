"""Trajectories in CSV and Parquet files: `write`, and what `read` makes of such a file again.

Such a file is known by its headings: `t`, the coordinates, their rates with `_dot` after the same
names in the same order, and then the inputs; standard deviations follow, with `_std` after each
name, if it has a spread; a last column `outside` marks rows outside the training data. Its numbers
are no measurements, so nothing is cut, converted or unwrapped. A log from elsewhere may have the
same headings. If a value is missing in it or time does not increase, it is refused like any other
without roles, and what else measurements may need is a warning.
"""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv

from mbdnode.data.arrow import to_column
from mbdnode.data.files import check_destination, replace_file
from mbdnode.data.logs.cleaning import GAP, is_wrapped, sounds_like_angle
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.reading_summary import Account, RunSummary, Summary
from mbdnode.data.logs.runs import Names, make_trajectory

if TYPE_CHECKING:
    from mbdnode.trajectory import Dataset, Trajectory

OUTSIDE = "outside"
_DEVIATION = "_std"


def read_written(files: Sequence[Path]) -> "Dataset | None":
    """Read files that `mbdnode.write` wrote, bit for bit; None unless every file is such a one."""
    from mbdnode.trajectory import Dataset

    runs, summaries, notes = [], [], []
    for file in files:
        logs = open_logs(file)
        names = _names([heading.raw for heading in logs[0].headings])
        table = None if names is None or len(logs) > 1 else _table(logs[0])
        if names is None or table is None:
            return None
        log, t = logs[0], table[:, 0]
        _say(log, names, table)
        runs.append(_trajectory(table, names))
        step_s = float(np.median(np.diff(t))) if len(t) > 1 else float("nan")
        account = Account(read=len(t), kept=len(t))
        summaries.append(RunSummary(log.name, account, (len(t),), step_s))
        notes += log.notes
    recorded = (*runs[0].coordinates, *runs[0].rates)
    return Dataset(runs, None, Summary(tuple(summaries), tuple(notes)), recorded)


def _names(headings: Sequence[str]) -> Names | None:
    """What the columns are, if their headings are those of a trajectory."""
    if len(headings) < 3 or headings[0] != "t" or len(set(headings)) < len(headings):
        return None
    first_rate = f"{headings[1]}_dot"
    count = headings.index(first_rate) - 1 if first_rate in headings else 0
    coordinates, rates = headings[1 : 1 + count], headings[1 + count : 1 + 2 * count]
    if not count or rates != [f"{name}_dot" for name in coordinates]:
        return None
    deviations = {f"{name}{_DEVIATION}" for name in (*coordinates, *rates)}
    after = headings[1 + 2 * count :]
    if deviations & set(after) and not deviations <= set(after):
        return None
    inputs = [name for name in after if name != OUTSIDE and name not in deviations]
    if OUTSIDE in headings and headings[-1] != OUTSIDE:
        return None
    return Names(tuple(coordinates), tuple(rates), tuple(inputs))


def _table(log: AbstractLog) -> np.ndarray | None:
    """All columns side by side; None if they have holes, or words."""
    columns = range(len(log.headings))
    if log.constants or any(log.is_text(i) for i in columns):
        return None
    blocks = list(log.blocks(columns))
    if not blocks or any(block.truncated for block in blocks):
        return None
    table = np.concatenate([np.column_stack(block.numbers) for block in blocks])
    is_whole = bool(len(table)) and bool(np.isfinite(table).all())
    return table if is_whole and bool(np.all(np.diff(table[:, 0]) > 0)) else None


def _trajectory(table: np.ndarray, names: Names) -> "Trajectory":
    import jax.numpy as jnp

    from mbdnode.trajectory import State

    count = len(names.coordinates)
    own, rest = np.split(table, [1 + 2 * count + len(names.inputs)], axis=1)
    run = make_trajectory(own, names)
    # Two deviations for each coordinate, or none; what is over are the marks.
    if rest.shape[1] % 2:
        run = dataclasses.replace(run, outside=rest[:, -1] != 0)
    if rest.shape[1] > 1:
        both = np.split(rest[:, : 2 * count], 2, axis=1)
        run = dataclasses.replace(run, spread=State(*(jnp.asarray(x) for x in both)))
    return run


def _say(log: AbstractLog, names: Names, table: np.ndarray) -> None:
    """How the columns were taken, and what measurements would need that a trajectory does not."""
    inputs = f", inputs {', '.join(names.inputs)}" if names.inputs else ""
    log.note("read", f"by its headings: coordinates {', '.join(names.coordinates)}{inputs}")
    steps = np.diff(table[:, 0])
    if len(steps) and steps.max() > GAP * np.median(steps):
        log.warn(
            f"the longest step is {steps.max() / np.median(steps):.3g} times the median and was "
            "kept; name the roles if rows are missing there"
        )
    for number, name in enumerate(names.coordinates, 1):
        if sounds_like_angle(name) and is_wrapped(table[:, number]):
            log.warn(f"{name!r} seems to be wrapped to one turn; name the roles to have it joined")


def write(trajectory: "Trajectory", path: str | os.PathLike[str]) -> None:
    """Write one trajectory; the suffix decides between CSV and Parquet.

    The columns are `t`, coordinates, velocities and inputs, by name; standard deviations, with
    `_std` after the names of coordinates and velocities, for one with a spread; and `outside` (0 or
    1) for one that knows whether it left the training data. Every number is written so that it is
    read as the same float64: `read(path)` gives the trajectory again, if each velocity is called
    like its coordinate with `_dot` after it. The rows after a failed step, which are not numbers,
    are left out. An existing file is replaced as a whole.

    **Arguments:**

    - `trajectory`: a single one, not a batch.
    - `path`: ends in `.csv` or `.parquet`; its directory must exist.
    """
    from mbdnode.trajectory import require_trajectory

    require_trajectory(trajectory, "write")
    destination = check_destination(path)
    table = np.asarray(trajectory.kept.table)
    columns = dict(zip(trajectory.columns, table.T, strict=True))
    spread = trajectory.kept.spread
    if spread is not None:
        deviations = np.concatenate([np.asarray(spread.q), np.asarray(spread.v)], axis=1)
        names = [f"{name}{_DEVIATION}" for name in trajectory.columns[1:]]
        columns |= dict(zip(names, deviations.T, strict=False))
    if trajectory.outside is not None:
        columns[OUTSIDE] = np.asarray(trajectory.kept.outside).astype(np.int8)

    written = pa.table({name: to_column(values) for name, values in columns.items()})

    def fill(file: IO[bytes]) -> None:
        if Path(path).suffix.lower() == ".parquet":
            from pyarrow import parquet  # Slow to load, and most files are text.

            parquet.write_table(written, file)
        else:
            options = pyarrow.csv.WriteOptions(quoting_header="none", quoting_style="none")
            pyarrow.csv.write_csv(written, file, options)

    replace_file(destination, fill)
