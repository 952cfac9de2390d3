"""Writing a trajectory to CSV or Parquet, all of it or nothing; and reading it back."""

import os
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mbdnode.data.atomic import replace_file
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


def check_destination(path: str | os.PathLike[str]) -> Path:
    """Raise unless `write` could write to `path`, so that nothing is computed in vain.

    **Arguments:**

    - `path`: where a trajectory is to go.

    **Returns:**

    The path, with links followed. Raises `UserError` for a suffix that is not known and
    `OSError` for a place that cannot be written to.
    """
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        raise UserError(
            f"Cannot tell the format of '{path}' from its suffix '{path.suffix}'. "
            f"End the name in {' or '.join(_WRITERS)}."
        )
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory. Name a file inside it.")
    if path.exists() and not path.is_file():
        raise OSError(f"'{path}' is not a regular file. Choose another name.")
    directory = path.parent
    if not directory.exists():
        raise FileNotFoundError(
            f"The directory '{directory}' of '{path}' does not exist. Create it, or choose another."
        )
    if not directory.is_dir():
        raise NotADirectoryError(f"'{directory}' in '{path}' is a file. Choose another directory.")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The directory '{directory}' of '{path}' cannot be written to. Choose another, or "
            "change its permissions."
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(
            f"'{path}' exists and is write-protected. Choose another name, or change its "
            "permissions."
        )
    return path.resolve()


def _write_csv(columns: pa.Table, file) -> None:
    options = pyarrow.csv.WriteOptions(quoting_header="none", quoting_style="none")
    pyarrow.csv.write_csv(columns, file, options)


def _write_parquet(columns: pa.Table, file) -> None:
    pyarrow.parquet.write_table(columns, file)


_WRITERS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
