"""Files of named arrays, whatever holds them: columns, constants and runs.

A vector is a column, a matrix several of them (`x_1`, `x_2`, ...) along its longer side, a single
number a constant of the run. Structures or groups that hold columns of the same names are runs, and
share what stands beside them; all others are one table.

What the libraries that open such files raise for damaged bytes is not documented and wide (zlib,
struct, index and key errors among others), so all of it is caught and said in one way.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data.logs.log import BLOCK_ROWS, AbstractLog, Block
from mbdnode.data.logs.units import find_unit, read_heading
from mbdnode.errors import UserError

# Of one matrix; what is larger is a picture.
_MOST_COLUMNS = 1_000
# Kinds of NumPy types of which an array may be a column.
NUMERIC = "fiub"


@dataclass(frozen=True)
class Column:
    """A column: its values from one row to another, their unit, and what stored ones stand for."""

    name: str
    length: int
    load: Callable[[int, int], np.ndarray]
    unit: str = ""
    packing: str = ""


class ArrayLog(AbstractLog):
    """The columns of one section, which may differ in length; those read together must not."""

    def __init__(
        self,
        path: Path,
        section: str,
        columns: Sequence[Column],
        constants: dict[str, float],
        described: str,
        left_out: Mapping[str, str],
        is_first: bool = True,
    ):
        super().__init__(path, section, constants=constants, left_out=dict(left_out))
        self._columns = tuple(columns)
        headings = [(read_heading(column.name), column.unit) for column in columns]
        self.headings = tuple(replace(h, unit=unit or h.unit) for h, unit in headings)
        self.note("read", described)
        for column in columns:
            if column.packing:
                self.note("converted", f"{column.name!r} {column.packing}")
        if left_out and is_first:
            self.warn(f"left out, for they are no columns of numbers: {', '.join(left_out)}")

    @property
    def size(self) -> int:
        """The length that most columns have."""
        lengths = [column.length for column in self._columns]
        return max(set(lengths), key=lengths.count)

    def length(self, column: int) -> int:
        """Of one column, which need not be that of the others."""
        return self._columns[column].length

    def blocks(
        self, numbers: Sequence[int], labels: Sequence[int] = (), rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """The columns, block by block."""
        columns = [self._columns[i] for i in (*numbers, *labels)]
        for column in columns[1:]:
            if column.length != columns[0].length:
                raise UserError(
                    f"{columns[0].name!r} has {columns[0].length:,} values and {column.name!r} has "
                    f"{column.length:,} in '{self.name}'. Columns of one table have equal lengths; "
                    "inputs of another sampling have their own time (input_time=...)."
                )
        for first in range(0, columns[0].length, rows):
            last = min(first + rows, columns[0].length)
            read = [self._values(column, first, last) for column in columns]
            words = [np.array([f"{x:.15g}" for x in own], object) for own in read[len(numbers) :]]
            yield Block(first, tuple(read[: len(numbers)]), tuple(words))

    def _values(self, column: Column, first: int, last: int) -> np.ndarray:
        try:
            return np.ascontiguousarray(column.load(first, last), dtype=float)
        except Exception as error:
            raise UserError(
                f"{column.name!r} of '{self.name}' cannot be read: {error}. Write the file again."
            ) from error


@dataclass
class Gathering:
    """The arrays of a file by section, as they are found."""

    columns: dict[str, list[Column]] = field(default_factory=dict)
    constants: dict[str, dict[str, float]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        section: str,
        name: str,
        shape: tuple[int, ...],
        kind: np.dtype,
        load: Callable[[Any], Any],
        unit: str = "",
        packing: str = "",
    ) -> None:
        """Take an array apart into columns; what is no column is left out, and noted.

        **Arguments:**

        - `section`, `name`: where it is.
        - `shape`, `kind`: of the array; of one of structures, each field is an array.
        - `load`: gives any part of it, by an index.
        - `unit`, `packing`: of its values, if the file says so.
        """
        if kind.names:
            for part in kind.names:
                one = lambda index, part=part: load(index)[part]  # noqa: E731
                self.add(section, part, shape, kind[part], one)
            return
        long = [axis for axis, size in enumerate(shape) if size != 1]
        here = self.columns.setdefault(section, [])
        if kind.kind not in NUMERIC or 0 in shape:
            self.leave_out(section, name, "empty" if 0 in shape else _described(kind))
        elif not long:
            known = find_unit(unit)
            value = np.asarray(load(()), float).reshape(-1)[0] * (known.factor if known else 1.0)
            self.constants.setdefault(section, {})[name] = float(value)
        elif len(long) == 1:
            line = _line(load, long[0], [0] * (len(shape) - 1))
            here.append(Column(name, shape[long[0]], line, unit, packing))
        elif len(shape) == 2 and min(shape) <= _MOST_COLUMNS:
            axis = 0 if shape[0] >= shape[1] else 1
            for i in range(shape[1 - axis]):
                line = _line(load, axis, [i])
                here.append(Column(f"{name}_{i + 1}", shape[axis], line, unit, packing))
        else:
            self.leave_out(section, name, f"an array of shape {shape}")

    def leave_out(self, section: str, name: str, what: str) -> None:
        """Note an array that is no column, and what it is."""
        self.left_out[_joined(section, name)] = what


def open_arrays(
    path: Path, described: str, gather: Callable[[Path, Gathering], None]
) -> list[AbstractLog]:
    """The logs of a file of arrays, one for each run.

    **Arguments:**

    - `path`: of the file.
    - `described`: the format, in words.
    - `gather`: finds the arrays; whatever it raises is said to be damage, but for a `UserError`.
    """
    arrays = Gathering()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gather(path, arrays)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"'{path}' is not a whole {described} file: {error or type(error).__name__}. Write it "
            "again."
        ) from error
    found = {name: columns for name, columns in arrays.columns.items() if columns}
    constants = arrays.constants
    shared = constants.get("", {})
    if not found:
        held = [*(f"{name} ({what})" for name, what in arrays.left_out.items()), *shared]
        raise UserError(
            f"'{path}' ({described}) has no columns of numbers; it holds "
            f"{', '.join(held[:8]) or 'nothing'}. Save each quantity as a vector of numbers."
        )
    inner = [tuple(c.name for c in columns) for name, columns in found.items() if name]
    if len(inner) != 1 and len(set(inner)) < len(inner):
        beside = found.pop("", [])
        found = {name: _with_shared(columns, beside) for name, columns in found.items()}
    elif len(found) > 1:
        found = {"": _merged(found)}
        shared = {name: x for values in constants.values() for name, x in values.items()}
    return [
        ArrayLog(
            path,
            section,
            columns,
            {**shared, **constants.get(section, {})},
            described,
            arrays.left_out,
            number == 0,
        )
        for number, (section, columns) in enumerate(found.items())
    ]


def _with_shared(columns: list[Column], shared: list[Column]) -> list[Column]:
    own = {column.name for column in columns}
    return [*(column for column in shared if column.name not in own), *columns]


def _merged(found: dict[str, list[Column]]) -> list[Column]:
    """The columns of all sections; with the section in its name where one name comes twice."""
    names = [column.name for columns in found.values() for column in columns]
    return [
        replace(c, name=c.name if names.count(c.name) == 1 else _joined(section, c.name))
        for section, columns in found.items()
        for c in columns
    ]


def _joined(section: str, name: str) -> str:
    return f"{section}/{name}" if section else name


def _line(
    load: Callable[[Any], Any], axis: int, others: list[int]
) -> Callable[[int, int], np.ndarray]:
    """An array along one axis, at one place of each of the others."""

    def part(first: int, last: int) -> np.ndarray:
        index = (*others[:axis], slice(first, last), *others[axis:])
        return np.asarray(load(index)).reshape(-1)

    return part


def _described(kind: np.dtype) -> str:
    """What an array that is no column holds, and what to do about it."""
    if kind.metadata:  # As HDF5 has them.
        return "text, references or lists of any length"
    if kind.hasobject:
        return (
            "an array of Python objects, which cannot be read without running what is in them; "
            "save it as numbers, with .astype(float)"
        )
    dates = "made of dates; save it as seconds since the first"
    return {"U": "text", "S": "text", "c": "made of complex numbers", "M": dates, "m": dates}.get(
        kind.kind, f"of type {kind}"
    )
