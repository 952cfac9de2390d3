"""Files of named arrays, whatever holds them: columns, constants and runs.

A vector is a column, a matrix several of them (`x_1`, `x_2`, ...) along its longer side, a single
number a constant of the run. Structures or groups that hold columns of the same names are runs, and
share what stands beside them; all others are one table.

What the libraries that open such files raise for damaged bytes is not documented and wide (zlib,
struct, index and key errors among others), so all of it is caught and said in one way.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mbdnode.data.logs.log import BLOCK_ROWS, AbstractLog, Block, check_expansion
from mbdnode.data.logs.units import Heading, find_unit, read_heading
from mbdnode.errors import UserError

# Of one matrix; what is larger is a picture.
_MOST_COLUMNS = 1_000

Load = Callable[[int, int], np.ndarray]


@dataclass(frozen=True)
class Column:
    """One column of a file of arrays.

    **Arguments:**

    - `name`: of the array, and its number for one column of a matrix.
    - `length`: in rows.
    - `load`: the values from one row to another.
    - `unit`: an attribute of the array; empty if there is none.
    - `packing`: what its stored values stand for, in words; empty for themselves.
    """

    name: str
    length: int
    load: Load
    unit: str = ""
    packing: str = ""


class ArrayLog(AbstractLog):
    """The columns of one section.

    **Arguments:**

    - `path`, `section`, `constants`: as for every log.
    - `columns`: which may differ in length; those that are read together must not.
    - `described`: the format, in words.
    - `left_out`: arrays that are no columns, by name, and what they are.
    """

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
        headings = [read_heading(column.name) for column in columns]
        self.headings = tuple(
            Heading(h.raw, h.name, c.unit) if c.unit else h
            for h, c in zip(headings, columns, strict=True)
        )
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
            words = [
                np.array([f"{x:.15g}" for x in column], object) for column in read[len(numbers) :]
            ]
            yield Block(first, tuple(read[: len(numbers)]), tuple(words))

    def _values(self, column: Column, first: int, last: int) -> np.ndarray:
        try:
            return np.ascontiguousarray(column.load(first, last), dtype=float)
        except UserError:
            raise
        # What the libraries raise for damaged bytes is not documented, and wide.
        except Exception as error:
            raise UserError(
                f"{column.name!r} of '{self.name}' cannot be read: {error}. Write the file again."
            ) from error


@dataclass
class Gathering:
    """The arrays of a file by section, as they are found."""

    path: Path
    described: str

    def __post_init__(self):
        self.columns: dict[str, list[Column]] = {}
        self.constants: dict[str, dict[str, float]] = {}
        self.left_out: dict[str, str] = {}

    def add(
        self, section: str, name: str, shape: tuple[int, ...], load, unit: str = "", packing=""
    ) -> None:
        """Take an array apart into columns.

        **Arguments:**

        - `section`, `name`: where it is.
        - `shape`: of the array.
        - `load`: gives any part of it, by an index.
        - `unit`, `packing`: of its values, if the file says so.
        """
        long = [axis for axis, size in enumerate(shape) if size != 1]
        here = self.columns.setdefault(section, [])
        if not long:
            known = find_unit(unit)
            value = np.asarray(load(()), float).reshape(-1)[0] * (known.factor if known else 1.0)
            self.constants.setdefault(section, {})[name] = float(value)
        elif len(long) == 1:
            axis = long[0]
            here.append(Column(name, shape[axis], _vector(load, shape, axis), unit, packing))
        elif len(shape) == 2 and min(shape) <= _MOST_COLUMNS:
            axis = 0 if shape[0] >= shape[1] else 1
            for i in range(shape[1 - axis]):
                part = _line(load, axis, i)
                here.append(Column(f"{name}_{i + 1}", shape[axis], part, unit, packing))
        else:
            self.leave_out(section, name, f"an array of shape {shape}")

    def leave_out(self, section: str, name: str, what: str) -> None:
        """Note an array that is no column, and what it is."""
        self.left_out[_joined(section, name)] = what

    def logs(self) -> list[AbstractLog]:
        """One for each run."""
        found = {name: columns for name, columns in self.columns.items() if columns}
        inner = [tuple(c.name for c in columns) for name, columns in found.items() if name]
        if len(inner) != 1 and len(set(inner)) < len(inner):
            shared = found.pop("", [])
            found = {name: _with_shared(columns, shared) for name, columns in found.items()}
        elif len(found) > 1:
            found = {"": _merged(found)}
            every = [pair for values in self.constants.values() for pair in values.items()]
            self.constants = {"": dict(every)}
        shared = self.constants.get("", {})
        if not found:
            held = [f"{name} ({what})" for name, what in self.left_out.items()] + list(shared)
            raise UserError(
                f"'{self.path}' ({self.described}) has no columns of numbers; it holds "
                f"{', '.join(held[:8]) or 'nothing'}. Save each quantity as a vector of numbers."
            )
        return [
            ArrayLog(
                self.path,
                section,
                columns,
                {**shared, **self.constants.get(section, {})},
                self.described,
                self.left_out,
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


def _vector(load, shape: tuple[int, ...], axis: int) -> Load:
    def part(first: int, last: int) -> np.ndarray:
        index = tuple(slice(first, last) if i == axis else 0 for i in range(len(shape)))
        return np.asarray(load(index)).reshape(-1)

    return part


def _line(load, axis: int, i: int) -> Load:
    def part(first: int, last: int) -> np.ndarray:
        index = (slice(first, last), i) if axis == 0 else (i, slice(first, last))
        return np.asarray(load(index)).reshape(-1)

    return part


class Refused(UserError):
    """What is not read although the file may be whole."""


def open_arrays(
    path: Path, described: str, gather: Callable[[Path, Gathering], None]
) -> list[AbstractLog]:
    """The logs of a file of arrays.

    **Arguments:**

    - `path`: of the file.
    - `described`: the format, in words.
    - `gather`: finds the arrays; whatever it raises is said to be damage, but for `Refused`.

    **Returns:**

    One log for each run.
    """
    found = Gathering(path, described)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gather(path, found)
    except Refused:
        raise
    except Exception as error:
        raise UserError(
            f"'{path}' is not a whole {described} file: {error or type(error).__name__}. Write it "
            "again."
        ) from error
    return found.logs()


def check_declared(path: Path, declared_bytes: int) -> None:
    """As `check_expansion`, while arrays are gathered."""
    try:
        check_expansion(path, declared_bytes)
    except UserError as error:
        raise Refused(str(error)) from None


def is_numeric(kind: np.dtype) -> bool:
    """Whether an array of this type may be a column."""
    return kind.kind in "fiub"


def described_kind(kind: np.dtype) -> str:
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


def add_array(
    found: Gathering, section: str, name: str, shape: tuple[int, ...], kind: np.dtype, load
) -> None:
    """Take an array, or each field of one of structures; what is no column is left out, and noted.

    **Arguments:**

    - `found`: where it goes.
    - `kind`: of its values.
    - others: as for `Gathering.add`.
    """
    if kind.names:
        for part in kind.names:
            own = lambda index, part=part: load(index)[part]  # noqa: E731
            add_array(found, section, part, shape, kind[part], own)
    elif is_numeric(kind) and math.prod(shape):
        found.add(section, name, shape, load)
    else:
        what = described_kind(kind) if math.prod(shape) else "empty"
        found.leave_out(section, name, what)
