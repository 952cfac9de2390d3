"""Opening MAT, HDF5 and NPZ files.

What these libraries raise for damaged bytes is not documented and wide (zlib, struct, index and key
errors among others), so all of it is caught and said in one way.
"""

import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.arrays import Gathering
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.mat_check import check_mat
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


def _opened(
    path: Path, described: str, gather: Callable[[Path, Gathering], None]
) -> list[AbstractLog]:
    found = Gathering(path, described)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gather(path, found)
    except Exception as error:
        raise UserError(
            f"'{path}' is not a whole {described} file: {error or type(error).__name__}. Write it "
            "again."
        ) from error
    return found.logs()


def _is_numeric(kind: np.dtype) -> bool:
    return kind.kind in "fiub"


def _gather_npz(path: Path, found: Gathering) -> None:
    if not any(name.endswith(".npy") for name in zipfile.ZipFile(path).namelist()):
        raise UserError("it is a ZIP archive without arrays")
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            # Arrays of Python objects cannot be read without running what is in them.
            try:
                values = file[name]
            except ValueError:
                found.left_out.append(name)
                continue
            _add_array(found, "", name, values)


def _add_array(found: Gathering, section: str, name: str, values: np.ndarray) -> None:
    if values.dtype.names:
        for part in values.dtype.names:
            _add_array(found, section, part, values[part])
    elif _is_numeric(values.dtype) and values.size:
        found.add(section, name, values.shape, values.__getitem__)
    else:
        found.left_out.append(f"{section}/{name}" if section else name)


def _gather_mat(path: Path, found: Gathering) -> None:
    import scipy.io

    check_mat(path.read_bytes())
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
    elif isinstance(value, np.ndarray) and not _has_objects(value):
        _add_array(found, section, name, value)
    else:
        found.left_out.append(f"{section}/{name}" if section else name)


def _has_objects(value: np.ndarray) -> bool:
    return value.dtype.kind not in "fiub"


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
        if name.startswith("#") or not isinstance(item, h5py.Dataset):
            return
        if item.dtype.names:
            for part in item.dtype.names:
                load = lambda index, part=part: loader(name)(index)[part]  # noqa: E731
                if _is_numeric(item.dtype[part]):
                    found.add(section, part, item.shape, load)
                else:
                    found.left_out.append(f"{name}/{part}")
        elif _is_numeric(item.dtype) and item.size and "MATLAB_empty" not in item.attrs:
            if item.attrs.get("MATLAB_class") in (b"char", b"cell"):
                found.left_out.append(name)
            else:
                found.add(section, own, item.shape, loader(name), _unit(item))
        else:
            found.left_out.append(name)

    with h5py.File(path, "r") as file:
        file.visititems(visit)


def _unit(item: Any) -> str:
    """Of a dataset that says so in an attribute."""
    for name in ("units", "unit", "Units", "Unit"):
        value = item.attrs.get(name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            return value
    return ""
