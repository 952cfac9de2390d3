"""The formats of logs: told by a file's first bytes, since a suffix may lie, or not be there.

A new format is a module here that defines a `LogFormat`, and its name in `FORMATS`; one of your own
is registered with `register_format`.
"""

import os

from mbdnode.data.files import must_be_file
from mbdnode.data.logs.formats.hdf5 import HDF5
from mbdnode.data.logs.formats.mat import MAT
from mbdnode.data.logs.formats.npz import NPZ
from mbdnode.data.logs.formats.parquet import PARQUET
from mbdnode.data.logs.formats.text import TEXT
from mbdnode.data.logs.log import START_BYTES, AbstractLog, LogFormat
from mbdnode.errors import UserError

# The first that fits is taken; nearly anything without a signature may be text, so that is last.
FORMATS: list[LogFormat] = [PARQUET, HDF5, MAT, NPZ, TEXT]

# What is known and not read: its first bytes, its suffixes if those tell it, and the way out.
_REFUSED: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
    (b"\x1f\x8b", (), "is compressed with gzip. Decompress it first."),
    (b"BZh", (), "is compressed with bzip2. Decompress it first."),
    (b"\xfd7zXZ", (), "is compressed with xz. Decompress it first."),
    (b"\x28\xb5\x2f\xfd", (), "is compressed with Zstandard. Decompress it first."),
    (b"PK\x03\x04", (".xlsx", ".xlsm", ".ods"), "is a spreadsheet. Save its sheet as CSV."),
    (
        b"\x93NUMPY",
        (),
        "is a single NumPy array, whose columns have no names. Save them by name with numpy.savez.",
    ),
)


def register_format(log_format: LogFormat) -> None:
    """Make `read`, and all that opens logs, know one more format.

    **Arguments:**

    - `log_format`: asked before those that are known already.
    """
    FORMATS.insert(0, log_format)


def open_logs(path: str | os.PathLike[str]) -> list[AbstractLog]:
    """Open a file.

    **Arguments:**

    - `path`: of a file in one of the formats that are registered.

    **Returns:**

    Its log; several if it has several sections, such as HDF5 groups. Raises `UserError` for a
    file that cannot be read.
    """
    path = must_be_file(path)
    with open(path, "rb") as file:
        start = file.read(START_BYTES)
    suffix = path.suffix.lower()
    for magic, suffixes, way_out in _REFUSED:
        if start.startswith(magic) and (not suffixes or suffix in suffixes):
            raise UserError(f"'{path}' {way_out}")
    for known in FORMATS:
        if known.fits(start, suffix):
            return known.open(path)
    *others, last = [known.name for known in FORMATS if known is not TEXT]
    raise UserError(
        f"'{path}' is not a text file, and not {', '.join(others)} or {last} either: it begins "
        f"with the bytes {start[:8].hex(' ')}. Export it to one of these formats, or to CSV."
    )
