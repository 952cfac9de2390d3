"""NPZ files: an archive of NumPy arrays by name."""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mbdnode.data.logs.formats.arrays import Gathering, open_arrays
from mbdnode.data.logs.log import LogFormat, check_expansion


def _gather_npz(path: Path, found: Gathering) -> None:
    """Shapes and types alone, which stand at the beginning of each array."""
    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        if not members:
            raise ValueError("it is a ZIP archive without arrays")
        check_expansion(path, sum(info.file_size for info in members))
        for info in members:
            with archive.open(info) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(file)
            name = info.filename.removesuffix(".npy")
            count = math.prod(shape)
            if not kind.hasobject and count * kind.itemsize > info.file_size:
                raise ValueError(f"{name!r} states {count:,} values and is shorter")
            found.add("", name, shape, kind, _loader(path, name))


def _loader(path: Path, name: str) -> Callable:
    """An array of an archive, read when it is needed and then kept."""
    held: list[np.ndarray] = []

    def load(index):
        if not held:
            with np.load(path, allow_pickle=False) as file:
                held.append(file[name])
        return held[0][index]

    return load


NPZ = LogFormat(
    name="NPZ",
    suffixes=(".npz",),
    starts_so=lambda start: start.startswith(b"PK\x03\x04"),
    open=lambda path: open_arrays(path, "NPZ", _gather_npz),
)
