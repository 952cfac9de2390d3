"""Writing a trajectory to CSV or Parquet: all of it or nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from mbdnode.data.atomic import replace_file
from mbdnode.trajectory import Trajectory


def write(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write one trajectory; the suffix decides between CSV and Parquet.

    The columns are `t`, coordinates, velocities and inputs, by name. Every number is written so
    that it is read back as the same float64. The rows after a failed step, which are not numbers,
    are left out. An existing file is replaced as a whole.

    **Arguments:**

    - `trajectory`: a single one, not a batch.
    - `path`: ends in `.csv` or `.parquet`; its directory must exist.
    """
    destination = check_destination(path)
    if trajectory.t.ndim != 1:
        raise ValueError(
            f"This trajectory is a batch of shape {trajectory.t.shape[:-1]}, but a file holds one. "
            "Pick one with jax.tree.map(lambda x: x[i], trajectory) and write each to its own file."
        )
    table = np.asarray(trajectory.kept.table)
    columns = pa.table(list(table.T.copy()), names=list(trajectory.columns))
    replace_file(destination, lambda file: _WRITERS[destination.suffix.lower()](columns, file))


def check_destination(path: str | os.PathLike[str]) -> Path:
    """Raise unless `write` could write to `path`, so that nothing is computed in vain.

    **Arguments:**

    - `path`: where a trajectory is to go.

    **Returns:**

    The path, with links followed. Raises `ValueError` for a suffix that is not known and
    `OSError` for a place that cannot be written to.
    """
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(
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
