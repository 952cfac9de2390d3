"""HDF5 files, which MAT files of version 7.3 also are: groups of datasets, read in parts."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.formats.arrays import (
    Gathering,
    Refused,
    check_declared,
    described_kind,
    is_numeric,
    open_arrays,
)
from mbdnode.data.logs.formats.packed_values import Packing, read_packing, stated_unit
from mbdnode.data.logs.log import AbstractLog, LogFormat

# Groups within groups.
_DEEPEST = 50
_PLAIN = Packing()
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _gather_hdf5(path: Path, found: Gathering) -> None:
    import h5py

    def loader(name: str, packing: Packing = _PLAIN):
        def load(index):
            with h5py.File(path, "r") as file:
                item = file[name]
                assert isinstance(item, h5py.Dataset)
                return item[index] if packing == _PLAIN else packing.unpack(item[index])

        return load

    def visit(name: str, item: Any) -> None:
        section, _, own = name.rpartition("/")
        if name.count("/") > _DEEPEST:
            raise Refused(
                f"'{path}' has groups within groups, more than {_DEEPEST} deep. Write it again, "
                "flat."
            )
        if name.startswith("#") or not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual:
            raise Refused(
                f"{name!r} of '{path}' keeps its values in other files, which are not followed. "
                "Copy it into one file, with h5repack."
            )
        declared.append(math.prod(item.shape or ()) * item.dtype.itemsize)
        if item.dtype.names:
            for part in item.dtype.names:
                load = lambda index, part=part: loader(name)(index)[part]  # noqa: E731
                if is_numeric(item.dtype[part]):
                    found.add(section, part, item.shape, load)
                else:
                    found.leave_out(name, part, _described_hdf5(item.dtype[part]))
        elif is_numeric(item.dtype) and item.size and "MATLAB_empty" not in item.attrs:
            if item.attrs.get("MATLAB_class") in (b"char", b"cell"):
                found.leave_out(section, own, "text or a cell array")
            else:
                packing = read_packing(f"{name!r} of '{path}'", item.attrs)
                load, unit = loader(name, packing), stated_unit(item.attrs)
                found.add(section, own, item.shape, load, unit, str(packing))
        else:
            found.leave_out(section, own, _described_hdf5(item.dtype) if item.size else "empty")

    declared: list[int] = []
    with h5py.File(path, "r") as file:
        file.visititems(visit)
    check_declared(path, sum(declared))


def _described_hdf5(kind: np.dtype) -> str:
    return "text, references or lists of any length" if kind.hasobject else described_kind(kind)


def _starts_so(start: bytes) -> bool:
    """By the signature, which MATLAB writes behind a header of its own."""
    return start.startswith(_SIGNATURE) or start[512:520] == _SIGNATURE


def _open(path: Path) -> list[AbstractLog]:
    with open(path, "rb") as file:
        is_mat = file.read(10) == b"MATLAB 7.3"
    return open_arrays(path, "MAT 7.3" if is_mat else "HDF5", _gather_hdf5)


HDF5 = LogFormat(name="HDF5", suffixes=(".h5", ".hdf5", ".mat"), starts_so=_starts_so, open=_open)
