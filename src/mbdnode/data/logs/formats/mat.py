"""MAT files of version 5 to 7, checked to be whole before SciPy reads them.

SciPy trusts the sizes and types that the file states, and a damaged one can bring down the process.
So every element is walked through first: its type must exist, its size must lie within its parent,
and an array must have as many values as its dimensions say.
"""

import contextlib
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.formats.arrays import (
    Gathering,
    add_array,
    check_declared,
    is_numeric,
    open_arrays,
)
from mbdnode.data.logs.log import LogFormat
from mbdnode.errors import UserError

_HEADER = 128
_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15
# Bytes of a value, by the type of an element.
_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_CELL, _STRUCT, _OBJECT, _CHAR = 1, 2, 3, 4
_NUMERIC = range(6, 16)
# Sparse matrices, functions and objects such as tables: they are no columns.
_LEFT_OUT = (5, 16, 17)
_DEEPEST = 20


@dataclass(frozen=True)
class _Element:
    kind: int
    data: memoryview


def _gather_mat(path: Path, found: Gathering) -> None:
    import scipy.io

    stored = path.read_bytes()
    check_declared(path, expanded_bytes(stored))
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
    elif isinstance(value, np.ndarray) and is_numeric(value.dtype):
        add_array(found, section, name, value.shape, value.dtype, value.__getitem__)
    else:
        found.leave_out(section, name, "a cell array, text or a sparse matrix")


def expanded_bytes(content: bytes) -> int:
    """How many bytes the variables of a MAT file state, from their first few alone.

    **Arguments:**

    - `content`: of a MAT file of version 5 to 7.

    **Returns:**

    The sum. What is damaged counts as nothing here; `check_mat` refuses it.
    """
    order, total = _ORDERS.get(content[126:128], "<"), 0
    with contextlib.suppress(ValueError, zlib.error, struct.error):
        for element in _elements(memoryview(content)[_HEADER:], order):
            total += len(element.data)
            if element.kind == _COMPRESSED:
                start = zlib.decompressobj().decompress(element.data, 8)
                total += struct.unpack(f"{order}II", start)[1]
    return total


def check_mat(content: bytes) -> None:
    """Raise `UserError` unless the file is whole.

    **Arguments:**

    - `content`: of a MAT file of version 5 to 7.
    """
    if len(content) < _HEADER:
        raise UserError("its header is cut short")
    order = _ORDERS.get(content[126:128])
    if order is None:
        raise UserError("its header does not say the order of bytes")
    for element in _elements(memoryview(content)[_HEADER:], order):
        if element.kind == _COMPRESSED:
            try:
                inner = _decompressed(element.data, order)
            except zlib.error as error:
                raise UserError(f"a compressed variable is damaged ({error})") from error
            for one in _elements(memoryview(inner), order):
                _check_matrix(one, order, 0)
        else:
            _check_matrix(element, order, 0)


def _decompressed(data: memoryview, order: str) -> bytes:
    """A compressed variable, no longer than it states itself."""
    stream = zlib.decompressobj()
    start = stream.decompress(data, 8)
    if len(start) < 8:
        raise UserError("a compressed variable is cut short")
    size = struct.unpack(f"{order}II", start)[1]
    inner = start + stream.decompress(stream.unconsumed_tail, size + 8)
    if not stream.eof and stream.unconsumed_tail:
        raise UserError(f"a compressed variable is longer than its {size:,} bytes")
    if not stream.eof:
        raise UserError("a compressed variable is cut short")
    return inner


def _elements(data: memoryview, order: str) -> Iterator[_Element]:
    """The elements that follow each other, short ones of four bytes included."""
    place = 0
    while place < len(data):
        if len(data) - place < 8:
            raise UserError("it ends in the middle of an element")
        kind, size = struct.unpack_from(f"{order}II", data, place)
        if kind >> 16:
            kind, size, begin, step = kind & 0xFFFF, kind >> 16, place + 4, 8
            if size > 4:
                raise UserError(f"a short element states {size} bytes")
        else:
            begin = place + 8
            # Only compressed elements are not filled up to eight bytes.
            step = 8 + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if begin + size > len(data):
            raise UserError(f"an element of {size:,} bytes goes beyond its end")
        if kind not in (_MATRIX, _COMPRESSED) and size % _SIZES.get(kind, size + 1):
            raise UserError(f"an element of type {kind} has {size} bytes")
        yield _Element(kind, data[begin : begin + size])
        place += step


def _check_matrix(element: _Element, order: str, depth: int) -> None:
    if element.kind != _MATRIX or depth > _DEEPEST:
        raise UserError(f"an element of type {element.kind} stands where an array should")
    if not len(element.data):
        return
    parts = list(_elements(element.data, order))
    if len(parts) < 3 or parts[0].kind != 6 or len(parts[0].data) != 8 or parts[1].kind != 5:
        raise UserError("an array has no flags or dimensions")
    (flags,) = struct.unpack_from(f"{order}I", parts[0].data)
    dims = struct.unpack(f"{order}{len(parts[1].data) // 4}i", parts[1].data)
    if len(dims) < 2 or min(dims) < 0 or parts[2].kind not in (1, 2, 16):
        raise UserError(f"an array has the dimensions {dims} or no name")
    _check_content(flags, math.prod(dims), parts[3:], order, depth)


def _check_content(flags: int, count: int, parts: list[_Element], order: str, depth: int) -> None:
    """Values for a number array; further arrays for a cell or a structure."""
    kind, is_complex = flags & 0xFF, bool(flags & 0x800)
    if kind in _NUMERIC:
        wanted = 2 if is_complex else 1
        lengths = [len(p.data) // _SIZES.get(p.kind, 1) for p in parts]
        if lengths != [count] * wanted or any(p.kind not in _SIZES for p in parts):
            raise UserError(f"an array of {count:,} values holds {lengths}")
    elif kind == _CHAR:
        if len(parts) != 1 or parts[0].kind not in _SIZES:
            raise UserError("a text has no characters")
    elif kind in (_CELL, _STRUCT, _OBJECT):
        if kind == _OBJECT:
            parts = parts[1:]
        if kind != _CELL:
            count, parts = _fields(count, parts, order)
        if len(parts) != count:
            raise UserError(f"a structure of {count:,} values holds {len(parts):,}")
        for part in parts:
            _check_matrix(part, order, depth + 1)
    elif kind not in _LEFT_OUT:
        raise UserError(f"a variable is of class {kind}, which does not exist")


def _fields(count: int, parts: list[_Element], order: str) -> tuple[int, list[_Element]]:
    """How many arrays a structure has, and they."""
    if len(parts) < 2 or parts[0].kind != 5 or len(parts[0].data) != 4:
        raise UserError("a structure does not name its fields")
    (width,) = struct.unpack(f"{order}i", parts[0].data)
    if width < 1 or parts[1].kind not in (1, 2) or len(parts[1].data) % width:
        raise UserError("a structure does not name its fields")
    return count * (len(parts[1].data) // width), parts[2:]


MAT = LogFormat(
    name="MAT",
    suffixes=(".mat",),
    starts_so=lambda start: start.startswith(b"MATLAB 5.0") or start[126:128] in _ORDERS,
    open=lambda path: open_arrays(path, "MAT 5", _gather_mat),
)
