"""MAT files of version 5 to 7.

SciPy's reader trusts the sizes that a file states, and a damaged one can bring down the process.
So the elements of a file are taken apart here: each must lie within its parent, and NumPy refuses
an array that does not have as many values as its dimensions say.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.formats.arrays import Gathering, open_arrays
from mbdnode.data.logs.log import LogFormat, check_expansion

_HEADER = 128
_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15
# NumPy's types of the elements that hold numbers.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_TYPES |= {12: "i8", 13: "u8"}
# Classes of arrays; the others are no columns.
_STRUCTURE, _NUMBERS = 2, range(6, 16)
_OTHERS = {1: "a cell array", 3: "an object", 4: "text", 5: "a sparse matrix"}
_OTHERS |= {16: "a function", 17: "an object"}
_COMPLEX = 0x800


def _gather_mat(path: Path, found: Gathering) -> None:
    content = memoryview(path.read_bytes())
    order = _ORDERS.get(bytes(content[126:_HEADER]))
    if order is None:
        raise ValueError("its header does not say the order of bytes")
    stated = 0
    for kind, data in _elements(content[_HEADER:], order):
        if kind == _COMPRESSED:
            stream = zlib.decompressobj()
            kind, size = struct.unpack(f"{order}II", stream.decompress(data, 8))
            stated += size
            check_expansion(path, stated)
            data = memoryview(stream.decompress(stream.unconsumed_tail, size + 1))
            if len(data) != size or not stream.eof:
                raise ValueError("a compressed variable is damaged")
        name, value = _array(kind, data, order)
        if name:  # What has none is MATLAB's own.
            _add(found, "", name, value)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """The types and contents of elements that follow each other."""
    place = 0
    while place < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, place)
        if kind >> 16:  # Up to four bytes, in place of the size.
            kind, size, begin, end = kind & 0xFFFF, kind >> 16, place + 4, place + 8
        else:  # Only compressed elements are not filled up to eight bytes.
            begin = place + 8
            end = begin + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if begin + size > min(end, len(data)):
            raise ValueError(f"an element of {size:,} bytes goes beyond its end")
        yield kind, data[begin : begin + size]
        place = end


def _array(kind: int, data: memoryview, order: str) -> tuple[str, Any]:
    """The name of an array, and its numbers, the fields of its structures, or what it is."""
    if kind != _MATRIX:
        raise ValueError(f"an element of type {kind} stands where an array should")
    if not len(data):
        return "", "empty"
    (_, flag), (_, dimensions), (_, name), *parts = _elements(data, order)
    (flags,) = struct.unpack_from(f"{order}I", flag)
    shape = np.frombuffer(dimensions, f"{order}u4").tolist()
    return _text(name), _content(flags, shape, parts, order)


def _content(flags: int, shape: list[int], parts: list[tuple[int, memoryview]], order: str) -> Any:
    kind = flags & 0xFF
    if kind in _NUMBERS and flags & _COMPLEX:
        return "made of complex numbers"
    if kind in _NUMBERS:
        ((stored, numbers),) = parts
        return np.frombuffer(numbers, order + _TYPES[stored]).reshape(shape, order="F")
    if kind != _STRUCTURE:
        return _OTHERS[kind]
    (_, width), (_, names), *fields = parts
    (length,) = struct.unpack_from(f"{order}i", width)
    keys = [_text(names[i : i + length]) for i in range(0, len(names), length)]
    count = math.prod(shape) if keys else 0
    if len(fields) != count * len(keys):
        raise ValueError(f"{count:,} structures of {len(keys)} fields hold {len(fields):,} values")
    values = (_array(*field, order)[1] for field in fields)
    return [{key: next(values) for key in keys} for _ in range(count)]


def _text(letters: memoryview) -> str:
    return bytes(letters).partition(b"\0")[0].decode(errors="replace")


def _add(found: Gathering, section: str, name: str, value: Any) -> None:
    """A number array, a structure, or an array of structures, each of which is a run."""
    if isinstance(value, np.ndarray):
        found.add(section, name, value.shape, value.dtype, value.__getitem__)
    elif isinstance(value, list):
        inner = f"{section}/{name}" if section else name
        for number, fields in enumerate(value, 1):
            place = inner if len(value) == 1 else f"{inner}({number})"
            for part, one in fields.items():
                _add(found, place, part, one)
    else:
        found.leave_out(section, name, value)


MAT = LogFormat(
    name="MAT",
    suffixes=(".mat",),
    starts_so=lambda start: start.startswith(b"MATLAB 5.0") or start[126:128] in _ORDERS,
    open=lambda path: open_arrays(path, "MAT 5", _gather_mat),
)
