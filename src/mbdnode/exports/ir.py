"""The representation between JAX and a language: typed scalars, static arrays, loops.

An `Expr` is a pure scalar: a constant, a loop index, an element of an array, or an operation on
such. Equal expressions are one object, so what is computed twice is computed once. A `Region` is a
list of statements: a function's body, a loop's, a branch's. Arrays have a fixed size and are
written where they are made; only what a loop hands on is written again.

    region   := statement*
    statement:= store | loop | break if | branch | hold
    expr     := const | index | load array[expr] | op(expr, ...)

Where an expression is computed is decided last, when all of its uses are known (`placement`):
outside of loops that do not change it, and inside a branch if only that branch needs it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.errors import UserError

# What a scalar may be. "index" is the type of subscripts and counters.
FLOATS = ("f64", "f32")
INTEGERS = ("i64", "i32", "index")
_NUMPY = {
    **{"f64": "float64", "f32": "float32", "bool": "bool"},
    **{"i64": "int64", "i32": "int32", "index": "int64"},
}
_NAMES = {name: short for short, name in _NUMPY.items() if short != "index"}


def dtype_of(numpy_dtype: Any) -> str:
    """The short name of a NumPy type; `UserError` for one that no language here has."""
    name = np.dtype(numpy_dtype).name
    if name not in _NAMES:
        raise UserError(
            f"The model computes in {name}, which the export does not know. Use real numbers, "
            "integers of 32 or 64 bits, or truth values."
        )
    return _NAMES[name]


def numpy_type(dtype: str) -> np.dtype:
    """The NumPy type of a short name."""
    return np.dtype(_NUMPY[dtype])


class Region:
    """A list of statements: of a "function", of a "loop" or of a "branch" in another region."""

    def __init__(self, kind: str, parent: "Region | None" = None):
        self.kind, self.parent = kind, parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.loops = (0 if parent is None else parent.loops) + (kind == "loop")
        self.statements: list[Any] = []

    def holds(self, other: "Region") -> bool:
        """Whether `other` is this region or lies within it."""
        inner: Region | None = other
        while inner is not None and inner.depth > self.depth:
            inner = inner.parent
        return inner is self


def deepest(a: Region, b: Region) -> Region:
    """The inner of two regions, one of which is within the other."""
    return a if a.depth >= b.depth else b


def common(a: Region, b: Region) -> Region:
    """The innermost region that both are within."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a


@dataclass(eq=False)
class Buffer:
    """An array, or a variable that is assigned more than once."""

    name: str  # made unique where it is printed
    dtype: str
    size: int
    kind: str = "local"  # a local array, a "scalar" variable, an "argument" or a "table"
    region: Region | None = None  # where it is declared; None for arguments and tables
    data: np.ndarray | None = None  # the values of a table
    written: bool = False  # whether it is an argument that the function writes


@dataclass(eq=False)
class Ref:
    """A buffer as it is from some statement of a region on.

    What a loop hands on has one `Ref` within the loop and another one after it, so that loads of
    the two are never taken for the same.
    """

    buffer: Buffer
    region: Region


class Expr:
    """A scalar: a "const" whose value is `data`, an "index", a "load" from the `Ref` that is
    `data`, or an operation. Make one with `Builder`.

    It can be computed from `region` on; operands have smaller numbers.
    """

    __slots__ = ("args", "data", "dtype", "is_const", "number", "op", "region")

    def __init__(self, op: str, args: tuple, dtype: str, data: Any, region: Region, number: int):
        self.op, self.args, self.dtype, self.data = op, args, dtype, data
        self.region, self.number = region, number
        self.is_const = op == "const"

    @property
    def value(self) -> Any:
        """Of a constant."""
        return self.data


@dataclass(eq=False)
class Store:
    """`buffer[index] = value`."""

    buffer: Buffer
    index: Expr
    value: Expr


@dataclass(eq=False)
class Loop:
    """`count` times, or until a `BreakIf` in it if `count` is None."""

    index: Expr | None
    count: int | None
    region: Region


@dataclass(eq=False)
class BreakIf:
    """Leave the innermost loop."""

    condition: Expr


@dataclass(eq=False)
class Branch:
    """One of several regions; the first if `index` is 0, the last if it is too large."""

    index: Expr
    regions: list[Region]


@dataclass(eq=False)
class Hold:
    """Expressions that are computed here, before what follows changes what they are made of."""

    values: list[Expr]


@dataclass(eq=False)
class Function:
    """A function of the program."""

    name: str  # without the program's prefix
    arguments: list[Buffer]  # of kind "scalar" for what is given by value
    region: Region
    comment: str = ""
    result: Expr | None = None  # the scalar that it returns


def roots_of(statement: Any) -> list[Expr]:
    """The expressions that a statement itself evaluates, without those of inner regions."""
    if isinstance(statement, Store):
        return [statement.index, statement.value]
    if isinstance(statement, BreakIf):
        return [statement.condition]
    if isinstance(statement, Branch):
        return [statement.index]
    if isinstance(statement, Hold):
        return list(statement.values)
    return []


def reached(root: Expr, seen: set[Expr]) -> Iterator[Expr]:
    """What an expression is made of, itself first, without what was seen before."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(reversed(node.args))


def regions_of(statement: Any) -> list[Region]:
    """The regions within a statement."""
    if isinstance(statement, Loop):
        return [statement.region]
    return statement.regions if isinstance(statement, Branch) else []


def statements_of(region: Region) -> Iterator[Any]:
    """All statements of a region and of those within it, in order."""
    for statement in region.statements:
        yield statement
        for inner in regions_of(statement):
            yield from statements_of(inner)
