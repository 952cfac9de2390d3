"""From a jaxpr to loops: one rule for each primitive, in a registry.

A rule gets the values of its operands and returns that of its result. Small arrays stay scalars
(`Elements`), so that known zeros and equal terms vanish; large ones become loops, and element-wise
operations on them are put off until an element is asked for (`Lazy`), so that they share a loop.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from mbdnode.errors import UserError
from mbdnode.exports.builder import Builder, Index
from mbdnode.exports.ir import (
    Buffer,
    Expr,
    Hold,
    Loop,
    Ref,
    Region,
    Store,
    dtype_of,
    numpy_type,
)
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major

# Arrays up to this size are scalars if all that they are made of are.
MOST_ELEMENTS = 512
# An array in memory up to this size becomes scalars beside others that are.
MOST_UNROLLED = 16
# And by itself up to this size.
ALWAYS_UNROLLED = 4
# Put-off elements of more operations than this are stored.
_MOST_COST = 24

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these primitives."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


def refused(eqn: Any, how: str = "") -> UserError:
    """That a primitive cannot be exported, or not in the way in which the equation uses it."""
    name = f"{eqn.primitive.name!r}{' ' + how if how else ''}"
    return UserError(
        f"The model uses the JAX primitive {name}, which the export does not know; it knows "
        f"{len(RULES)} others. Write the model without it, or add a rule for it in "
        "mbdnode/exports/primitive_rules."
    )


class Tables:
    """The constants of a program, each array once."""

    def __init__(self):
        self._known: dict[Any, Buffer] = {}

    def add(self, array: np.ndarray, dtype: str) -> Buffer:
        """A buffer with these values."""
        flat = np.ascontiguousarray(array).ravel()
        key = (dtype, flat.tobytes())
        if key not in self._known:
            buffer = Buffer(f"table{len(self._known)}", dtype, flat.size, "table", None, flat)
            self._known[key] = buffer
        return self._known[key]


class Lowering:
    """The state of lowering one function, beside the program's constants."""

    def __init__(self, tables: Tables):
        self.tables = tables
        self.body = self.region = Region("function")
        self.make = Builder(self.body)

    # Statements

    def emit(self, statement: Any) -> None:
        """Append a statement to the present region."""
        self.region.statements.append(statement)

    @contextlib.contextmanager
    def inside(self, kind: str) -> Iterator[Region]:
        """Statements within a new region; the caller emits the statement that it belongs to."""
        outer = self.region
        self.region = Region(kind, outer)
        try:
            yield self.region
        finally:
            self.region = outer

    @contextlib.contextmanager
    def loops(self, shape: Sequence[Any]) -> Iterator[tuple[Index, ...]]:
        """Nested loops over all indices of a shape."""
        outer, regions, indices = self.region, [], []
        for n in shape:
            if n == 1:
                indices.append(0)
                continue
            self.region = Region("loop", self.region)
            regions.append((self.region, n))
            indices.append(self.make.counter(self.region))
        try:
            yield tuple(indices)
        finally:
            for region, n in reversed(regions):
                assert region.parent is not None
                region.parent.statements.append(Loop(self.make.counter(region), n, region))
            self.region = outer

    def new(self, dtype: str, size: int, name: str = "b", kind: str = "local") -> Ref:
        """An array of the present region."""
        return Ref(Buffer(name, dtype, max(size, 1), kind, self.region), self.region)

    def store(self, ref: Ref, index: Index, value: Expr) -> None:
        """`ref[index] = value`."""
        self.emit(Store(ref.buffer, self.make.index(index), value))

    # Values

    def constant(self, array: Any) -> Value:
        """A value that is known."""
        array = np.asarray(array)
        dtype = dtype_of(array.dtype)
        if array.size > ALWAYS_UNROLLED and np.all(array == array.flat[0]):
            splat = self.make.const(array.flat[0], dtype)
            if array.size > MOST_ELEMENTS:
                return Lazy(array.shape, dtype, lambda _: splat, 0)
        if array.size <= MOST_ELEMENTS:
            return self.filled(array.shape, dtype, lambda i: self.make.const(array[i], dtype))
        return self._table(array, dtype)

    def _table(self, array: np.ndarray, dtype: str) -> View:
        return View(Ref(self.tables.add(array, dtype), self.body), array.shape)

    def filled(self, shape: Sequence[Any], dtype: str, element: Callable[[tuple], Expr]):
        """`Elements` from a function of the indices."""
        return self.listed(shape, dtype, map(element, np.ndindex(*shape)))

    def listed(self, shape: Sequence[Any], dtype: str, expressions: Iterable[Expr]) -> Elements:
        """`Elements` from expressions in the order of the indices, the last running fastest."""
        found = list(expressions)
        array = np.empty(len(found), dtype=object)
        array[:] = found
        return Elements(array.reshape(tuple(shape)), dtype)

    def element(self, value: Value, index: tuple[Index, ...]) -> Expr:
        """One element."""
        if isinstance(value, Lazy):
            return value.element(index)
        if isinstance(value, Elements):
            plain = [_plain(i) for i in index]
            if None not in plain:
                found: Any = value.array[tuple(plain)]  # pyright: ignore[reportArgumentType]
                return found
            value = self.view(value)
        assert isinstance(value, View)
        at = self.make.place(index, value.strides, value.offset)
        return self.make.load(value.ref, at)

    def elements(self, value: Value) -> Elements:
        """An expression for each element."""
        if isinstance(value, Elements):
            return value
        return self.filled(value.shape, value.dtype, lambda i: self.element(value, i))

    def only(self, value: Value) -> Expr:
        """The single element of an array of size one."""
        return self.element(value, (0,) * value.ndim)

    def view(self, value: Value) -> View:
        """The array in memory, written there if it is not."""
        if isinstance(value, View):
            return value
        if isinstance(value, Elements):
            return self._stored(value)
        ref = self.new(value.dtype, value.size)
        self.write(ref, 0, value)
        return View(ref, value.shape)

    def dense(self, value: Value) -> View:
        """The array in memory without gaps."""
        view = self.view(value)
        if view.is_dense:
            return view
        ref = self.new(value.dtype, value.size)
        self.write(ref, 0, view)
        return View(ref, value.shape)

    def _stored(self, value: Elements) -> View:
        """Write elements to memory, once, as far out as they are known."""
        found = getattr(value, "stored", None)
        if found is not None and found.region.holds(self.region):
            return View(found, value.shape)
        if value.is_known:
            view = self._table(value.numbers().astype(numpy_type(value.dtype)), value.dtype)
            value.stored = view.ref  # pyright: ignore[reportAttributeAccessIssue]
            return view
        inner = max((e.region for e in value.array.flat), key=lambda r: r.depth)
        here = self.region
        while here is not inner and here.kind != "branch" and here.parent is not None:
            here = here.parent
        outer, self.region = self.region, here
        ref = self.new(value.dtype, value.size)
        self.write(ref, 0, value)
        self.region = outer
        value.stored = ref  # pyright: ignore[reportAttributeAccessIssue]
        return View(ref, value.shape)

    def write(self, ref: Ref, offset: Index, value: Value) -> None:
        """Store all elements from an offset on, row by row."""
        make, strides = self.make, row_major(value.shape)
        if isinstance(value, Elements) or value.size <= ALWAYS_UNROLLED:
            usual = self._fill_usual(ref, offset, value)
            for at, index in enumerate(np.ndindex(*value.shape)):
                expr = self.element(value, index)
                if expr is not usual:
                    self.store(ref, make.iadd(offset, at), expr)
            return
        with self.loops(value.shape) as index:
            self.store(ref, make.place(index, strides, offset), self.element(value, index))

    def _fill_usual(self, ref: Ref, offset: Index, value: Value) -> Expr | None:
        """Write the most frequent of many known elements everywhere, and return it."""
        if not isinstance(value, Elements) or value.size < 2 * MOST_UNROLLED:
            return None
        usual = _usual_of(value)
        if usual is not None:
            with self.loops([value.size]) as (i,):
                self.store(ref, self.make.iadd(offset, i), usual)
        return usual

    def assign(self, pairs: Sequence[tuple[Ref, Value]]) -> None:
        """Write several arrays, all of which are known before the first is written."""
        targets = {id(ref.buffer) for ref, _ in pairs}
        held, writes = [], []
        for ref, value in pairs:
            if isinstance(value, Elements) or value.size <= MOST_UNROLLED:
                value = self.elements(value)
                held.extend(e for e in value.array.flat if not e.is_const)
            elif isinstance(value, Lazy) or id(self.view(value).ref.buffer) in targets:
                copy = self.new(value.dtype, value.size)
                self.write(copy, 0, value)
                value = View(copy, value.shape)
            writes.append((ref, value))
        self.emit(Hold(list(dict.fromkeys(held))))
        for ref, value in writes:
            self.write(ref, 0, value)

    def settled(self, value: Value, most: int = 0) -> Value:
        """A value whose elements cost at most so much to ask for again."""
        return self.view(value) if isinstance(value, Lazy) and value.cost > most else value

    def unrolls(self, values: Sequence[Value], size: int) -> bool:
        """Whether a result of this size, made element by element of these, becomes scalars."""
        if size <= ALWAYS_UNROLLED:
            return True
        wide = [v for v in values if v.size > 1]
        if not any(isinstance(v, Elements) for v in wide):
            return False
        if size > 2 * MOST_ELEMENTS:
            return False
        # Beside known zeros it pays to write out an array in memory, too.
        others = [v for v in wide if not isinstance(v, Elements)]
        few = all(v.size <= 4 * MOST_UNROLLED for v in others)
        if few and any(_is_mostly_known(v) and not _is_varied(v) for v in wide):
            return True
        if size > MOST_ELEMENTS:
            return False
        return all(
            isinstance(v, Elements) or v.size <= (MOST_UNROLLED if size <= MOST_UNROLLED else 1)
            for v in values
        )

    # Jaxprs

    def lower(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """The values of a jaxpr's results."""
        jaxpr = closed.jaxpr
        known: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
        for variable, const in zip(jaxpr.constvars, closed.consts, strict=True):
            known[variable] = self._given(const, variable)
        uses = Counter(v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal))
        uses.update(v for v in jaxpr.outvars if not isinstance(v, Literal))

        def read(atom: Any) -> Value:
            if isinstance(atom, Literal):
                return self._given(atom.val, atom)
            return known[atom]

        for eqn in jaxpr.eqns:
            made = self.apply(eqn, [read(v) for v in eqn.invars])
            for variable, value in zip(eqn.outvars, made, strict=True):
                count = uses[variable]
                if isinstance(value, Lazy) and count:
                    value = self.settled(value, 0 if count > 1 else _MOST_COST)
                known[variable] = value
        return [read(v) for v in jaxpr.outvars]

    def _given(self, value: Any, atom: Any) -> Value:
        """A constant of a jaxpr, which may be wider than what JAX computes with."""
        return self.constant(np.asarray(value, atom.aval.dtype))

    def apply(self, eqn: Any, values: list[Value]) -> list[Value]:
        """The results of one equation."""
        name = eqn.primitive.name
        if name not in RULES:
            raise refused(eqn)
        made = RULES[name](self, eqn, *values)
        return list(made) if isinstance(made, (list, tuple)) else [made]


def _usual_of(value: Elements) -> Expr | None:
    """The constant that at least half of the elements are, if there is one."""
    counts = Counter(e for e in value.array.flat if e.is_const)
    usual, count = counts.most_common(1)[0] if counts else (None, 0)
    return usual if 2 * count >= value.size else None


def _is_mostly_known(value: Value) -> bool:
    """Whether at least three quarters of the elements are constants."""
    if not isinstance(value, Elements):
        return isinstance(value, View) and value.is_known
    return 4 * sum(e.is_const for e in value.array.flat) >= 3 * value.size


def _is_varied(value: Value) -> bool:
    """Whether no constant is half of the elements, as in a list of indices."""
    return isinstance(value, Elements) and _usual_of(value) is None


def _plain(index: Index) -> int | None:
    """The value of an index that is known."""
    if isinstance(index, Expr):
        return int(index.value) if index.is_const else None
    return int(index)
