"""Writing a trajectory to CSV or Parquet, all of it or nothing; and reading it back."""

import os
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mbdnode.data.atomic import SUFFIXES, check_destination, replace_file
from mbdnode.errors import UserError
from mbdnode.multibody import AbstractNamed
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory


def write(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write one trajectory; the suffix decides between CSV and Parquet.

    The columns are `t`, coordinates, velocities and inputs, by name, and `outside` (0 or 1) for one
    that knows whether it left the training data. Every number is written so
    that it is read back as the same float64. The rows after a failed step, which are not numbers,
    are left out. An existing file is replaced as a whole.

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
        columns = columns.append_column("outside", pa.array(marks))
    replace_file(destination, lambda file: _WRITERS[destination.suffix.lower()](columns, file))


def read_back(path: str | os.PathLike[str], system: AbstractNamed) -> Trajectory:
    """Read a CSV file that `write` wrote.

    **Arguments:**

    - `path`: the file.
    - `system`: whose trajectory it is.

    **Returns:**

    The trajectory, bit for bit; residuals are not in the file and come back as zero.
    """
    try:
        table = pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise UserError(f"'{path}' cannot be read: {error}") from error
    names = ("t", *system.coordinate_names, *system.rate_names, *system.input_names)
    if tuple(table.column_names) != names:
        raise UserError(
            f"'{path}' has the columns {', '.join(table.column_names)}; "
            f"{type(system).__name__} has {', '.join(names)}."
        )
    values = jnp.asarray(np.stack([np.asarray(c, float) for c in table.columns], axis=1))
    count = len(system.coordinates)
    t, none = values[:, 0], jnp.zeros(len(values))
    return Trajectory(
        t=t,
        q=values[:, 1 : 1 + count],
        v=values[:, 1 + count : 1 + 2 * count],
        u=values[:, 1 + 2 * count :],
        position_residual=none,
        velocity_residual=none,
        status=completed(t[-1], jnp.asarray(len(values) - 1), system.coordinate_names),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def _write_csv(columns: pa.Table, file) -> None:
    options = pyarrow.csv.WriteOptions(quoting_header="none", quoting_style="none")
    pyarrow.csv.write_csv(columns, file, options)


def _write_parquet(columns: pa.Table, file) -> None:
    pyarrow.parquet.write_table(columns, file)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = dict(
    zip(SUFFIXES, (_write_csv, _write_parquet), strict=True)
)
