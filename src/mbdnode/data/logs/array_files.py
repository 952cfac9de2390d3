"""Opening MAT, HDF5 and NPZ files.

What these libraries raise for damaged bytes is not documented and wide (zlib, struct, index and key
errors among others), so all of it is caught and said in one way.
"""

import math
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.arrays import Gathering
from mbdnode.data.logs.log import AbstractLog, check_expansion
from mbdnode.data.logs.mat_check import check_mat, expanded_bytes
from mbdnode.errors import UserError


def open_npz(path: Path) -> list[AbstractLog]:
    """The arrays of an NPZ file."""
    return _opened(path, "NPZ", _gather_npz)


def open_mat(path: Path) -> list[AbstractLog]:
    """The variables of a MAT file of version 5 to 7."""
    return _opened(path, "MAT 5", _gather_mat)


def open_hdf5(path: Path) -> list[AbstractLog]:
    """The datasets of an HDF5 file, which a MAT file of version 7.3 also is."""
    with open(path, "rb") as file:
        is_mat = file.read(10) == b"MATLAB 7.3"
    return _opened(path, "MAT 7.3" if is_mat else "HDF5", _gather_hdf5)


# Groups within groups.
_DEEPEST = 50


class _Refused(UserError):
    """What is not read although the file may be whole."""


def _opened(
    path: Path, described: str, gather: Callable[[Path, Gathering], None]
) -> list[AbstractLog]:
    found = Gathering(path, described)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gather(path, found)
    except _Refused:
        raise
    except Exception as error:
        raise UserError(
            f"'{path}' is not a whole {described} file: {error or type(error).__name__}. Write it "
            "again."
        ) from error
    return found.logs()


def _check_size(path: Path, declared_bytes: int) -> None:
    try:
        check_expansion(path, declared_bytes)
    except UserError as error:
        raise _Refused(str(error)) from None


def _is_numeric(kind: np.dtype) -> bool:
    return kind.kind in "fiub"


def _described(kind: np.dtype) -> str:
    """What an array that is no column holds, and what to do about it."""
    if kind.hasobject:
        return (
            "an array of Python objects, which cannot be read without running what is in them; "
            "save it as numbers, with .astype(float)"
        )
    dates = "made of dates; save it as seconds since the first"
    return {"U": "text", "S": "text", "c": "made of complex numbers", "M": dates, "m": dates}.get(
        kind.kind, f"of type {kind}"
    )


def _gather_npz(path: Path, found: Gathering) -> None:
    """Shapes and types alone, which stand at the beginning of each array."""
    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        if not members:
            raise UserError("it is a ZIP archive without arrays")
        _check_size(path, sum(info.file_size for info in members))
        for info in members:
            with archive.open(info) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, kind = read(file)
            name = info.filename.removesuffix(".npy")
            count = math.prod(shape)
            if not kind.hasobject and count * kind.itemsize > info.file_size:
                raise UserError(f"{name!r} states {count:,} values and is shorter")
            _add_array(found, "", name, shape, kind, _npz_loader(path, name))


def _npz_loader(path: Path, name: str) -> Callable:
    """An array of an archive, read when it is needed and then kept."""
    held: list[np.ndarray] = []

    def load(index):
        if not held:
            with np.load(path, allow_pickle=False) as file:
                held.append(file[name])
        return held[0][index]

    return load


def _add_array(
    found: Gathering, section: str, name: str, shape: tuple[int, ...], kind: np.dtype, load
) -> None:
    if kind.names:
        for part in kind.names:
            own = lambda index, part=part: load(index)[part]  # noqa: E731
            _add_array(found, section, part, shape, kind[part], own)
    elif _is_numeric(kind) and math.prod(shape):
        found.add(section, name, shape, load)
    else:
        what = _described(kind) if math.prod(shape) else "empty"
        found.leave_out(section, name, what)


def _gather_mat(path: Path, found: Gathering) -> None:
    import scipy.io

    stored = path.read_bytes()
    _check_size(path, expanded_bytes(stored))
    check_mat(stored)
    content = scipy.io.loadmat(path, squeeze_me=False, struct_as_record=True)
    for name, value in content.items():
        if not name.startswith("__"):
            _add_variable(found, "", name, value)


def _add_variable(found: Gathering, section: str, name: str, value: Any) -> None:
    """A number array, a structure, or an array of structures, each of which is a run."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        inner = f"{section}/{name}" if section else name
        for number, one in enumerate(value.reshape(-1)):
            place = inner if value.size == 1 else f"{inner}({number + 1})"
            for part in value.dtype.names:
                _add_variable(found, place, part, one[part])
    elif isinstance(value, np.ndarray) and _is_numeric(value.dtype):
        _add_array(found, section, name, value.shape, value.dtype, value.__getitem__)
    else:
        found.leave_out(section, name, "a cell array, text or a sparse matrix")


def _gather_hdf5(path: Path, found: Gathering) -> None:
    import h5py

    def loader(name: str):
        def load(index):
            with h5py.File(path, "r") as file:
                item = file[name]
                assert isinstance(item, h5py.Dataset)
                return item[index]

        return load

    def visit(name: str, item: Any) -> None:
        section, _, own = name.rpartition("/")
        if name.count("/") > _DEEPEST:
            raise _Refused(
                f"'{path}' has groups within groups, more than {_DEEPEST} deep. Write it again, "
                "flat."
            )
        if name.startswith("#") or not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual:
            raise _Refused(
                f"{name!r} of '{path}' keeps its values in other files, which are not followed. "
                "Copy it into one file, with h5repack."
            )
        declared.append(math.prod(item.shape or ()) * item.dtype.itemsize)
        if item.dtype.names:
            for part in item.dtype.names:
                load = lambda index, part=part: loader(name)(index)[part]  # noqa: E731
                if _is_numeric(item.dtype[part]):
                    found.add(section, part, item.shape, load)
                else:
                    found.leave_out(name, part, _described_hdf5(item.dtype[part]))
        elif _is_numeric(item.dtype) and item.size and "MATLAB_empty" not in item.attrs:
            if item.attrs.get("MATLAB_class") in (b"char", b"cell"):
                found.leave_out(section, own, "text or a cell array")
            else:
                found.add(section, own, item.shape, loader(name), _unit(item))
        else:
            found.leave_out(section, own, _described_hdf5(item.dtype) if item.size else "empty")

    declared: list[int] = []
    with h5py.File(path, "r") as file:
        file.visititems(visit)
    _check_size(path, sum(declared))


def _described_hdf5(kind: np.dtype) -> str:
    return "text, references or lists of any length" if kind.hasobject else _described(kind)


def _unit(item: Any) -> str:
    """Of a dataset that says so in an attribute."""
    for name in ("units", "unit", "Units", "Unit"):
        value = item.attrs.get(name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            return value
    return ""
