"""Writing a trajectory to CSV or Parquet, all of it or nothing."""

import os
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mbdnode.data.atomic import SUFFIXES, check_destination, replace_file
from mbdnode.data.logs.written import OUTSIDE
from mbdnode.errors import UserError
from mbdnode.trajectory import Trajectory


def write(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write one trajectory; the suffix decides between CSV and Parquet.

    The columns are `t`, coordinates, velocities and inputs, by name, and `outside` (0 or 1) for one
    that knows whether it left the training data. Every number is written so that it is read as the
    same float64: `read(path)` gives the trajectory again, if each velocity is called like its
    coordinate with `_dot` after it. The rows after a failed step, which are not numbers, are left
    out. An existing file is replaced as a whole.

    **Arguments:**

    - `trajectory`: a single one, not a batch.
    - `path`: ends in `.csv` or `.parquet`; its directory must exist.
    """
    destination = check_destination(path)
    if trajectory.t.ndim != 1:
        raise UserError(
            f"This trajectory is a batch of shape {trajectory.t.shape[:-1]}, but a file holds one. "
            "Pick one with jax.tree.map(lambda x: x[i], trajectory) and write each to its own file."
        )
    table = np.asarray(trajectory.kept.table)
    columns = pa.table(list(table.T.copy()), names=list(trajectory.columns))
    if trajectory.outside is not None:
        marks = np.asarray(trajectory.kept.outside).astype(np.int8)
        columns = columns.append_column(OUTSIDE, pa.array(marks))
    replace_file(destination, lambda file: _WRITERS[destination.suffix.lower()](columns, file))


def _write_csv(columns: pa.Table, file) -> None:
    options = pyarrow.csv.WriteOptions(quoting_header="none", quoting_style="none")
    pyarrow.csv.write_csv(columns, file, options)


def _write_parquet(columns: pa.Table, file) -> None:
    pyarrow.parquet.write_table(columns, file)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = dict(
    zip(SUFFIXES, (_write_csv, _write_parquet), strict=True)
)
