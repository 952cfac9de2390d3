"""Which format a file has, by its first bytes: a suffix may lie, or not be there."""

import os

from mbdnode.data.atomic import must_be_file
from mbdnode.data.logs.formats.arrays import open_hdf5, open_mat, open_npz
from mbdnode.data.logs.formats.parquet import ParquetLog
from mbdnode.data.logs.formats.text import DelimitedLog
from mbdnode.data.logs.log import AbstractLog
from mbdnode.errors import UserError

_OTHERS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
}
_HDF5 = b"\x89HDF\r\n\x1a\n"


def open_logs(path: str | os.PathLike[str]) -> list[AbstractLog]:
    """Open a file.

    **Arguments:**

    - `path`: of a CSV or similar text file, a Parquet, MAT, HDF5 or NPZ file.

    **Returns:**

    Its log; several if it has several sections, such as HDF5 groups. Raises `UserError` for a
    file that cannot be read.
    """
    path = must_be_file(path)
    with open(path, "rb") as file:
        start = file.read(1024)
    for magic, name in _OTHERS.items():
        if start.startswith(magic):
            raise UserError(f"'{path}' is compressed with {name}. Decompress it first.")
    if start.startswith(b"PAR1"):
        return [ParquetLog(path)]
    if start.startswith(_HDF5) or start[512:520] == _HDF5:
        return open_hdf5(path)
    if start.startswith(b"MATLAB 5.0") or start[126:128] in (b"IM", b"MI"):
        return open_mat(path)
    if start.startswith(b"PK\x03\x04"):
        if path.suffix.lower() in (".xlsx", ".xlsm", ".ods"):
            raise UserError(f"'{path}' is a spreadsheet. Save its sheet as CSV.")
        return open_npz(path)
    if start.startswith(b"\x93NUMPY"):
        raise UserError(
            f"'{path}' is a single NumPy array, whose columns have no names. Save them by name "
            "with numpy.savez."
        )
    return [DelimitedLog(path)]
