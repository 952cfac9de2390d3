"""HDF5 files, which MAT files of version 7.3 also are: groups of datasets, read in parts."""

import math
from pathlib import Path
from typing import Any

from mbdnode.data.logs.formats.arrays import NUMERIC, Gathering, open_arrays
from mbdnode.data.logs.formats.packed_values import read_packing, stated_unit
from mbdnode.data.logs.log import AbstractLog, LogFormat, check_expansion
from mbdnode.errors import UserError

# Groups within groups.
_DEEPEST = 50
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _gather_hdf5(path: Path, found: Gathering) -> None:
    import h5py

    stated: list[int] = []

    def visit(name: str, item: Any) -> None:
        section, _, own = name.rpartition("/")
        if name.count("/") > _DEEPEST:
            raise UserError(
                f"'{path}' has groups within groups, more than {_DEEPEST} deep. Write it again, "
                "flat."
            )
        if name.startswith("#") or not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual:
            raise UserError(
                f"{name!r} of '{path}' keeps its values in other files, which are not followed. "
                "Copy it into one file, with h5repack."
            )
        shape = item.shape if item.size and "MATLAB_empty" not in item.attrs else (0,)
        stated.append(math.prod(shape) * item.dtype.itemsize)
        if item.attrs.get("MATLAB_class") in (b"char", b"cell"):
            found.leave_out(section, own, "text or a cell array")
            return
        # What is stated of other than numbers says nothing of them.
        stated_of = item.attrs if item.dtype.kind in NUMERIC else {}
        packing = read_packing(f"{name!r} of '{path}'", stated_of)

        def load(index: Any) -> Any:
            with h5py.File(path, "r") as file:
                item = file[name]
                assert isinstance(item, h5py.Dataset)
                return packing.unpack(item[index])

        found.add(section, own, shape, item.dtype, load, stated_unit(stated_of), str(packing))

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    check_expansion(path, sum(stated))


def _starts_so(start: bytes) -> bool:
    """By the signature, which MATLAB writes behind a header of its own."""
    return start.startswith(_SIGNATURE) or start[512:520] == _SIGNATURE


def _open(path: Path) -> list[AbstractLog]:
    with open(path, "rb") as file:
        is_mat = file.read(10) == b"MATLAB 7.3"
    return open_arrays(path, "MAT 7.3" if is_mat else "HDF5", _gather_hdf5)


HDF5 = LogFormat(name="HDF5", suffixes=(".h5", ".hdf5", ".mat"), starts_so=_starts_so, open=_open)
