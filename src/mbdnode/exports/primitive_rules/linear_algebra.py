"""Rules of products of matrices, of factorizations and of sorting.

Factorizations are calls of a function of the language's library, `c_library` or
`javascript_library`.
"""

import math
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.exports.ir import BreakIf, Call, Expr, Loop, Ref, dtype_of
from mbdnode.exports.jaxpr_to_ir import MOST_ELEMENTS, Lowering, rule
from mbdnode.exports.primitive_rules.reductions import reduced
from mbdnode.exports.primitive_rules.shapes import transpose
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major

# A product of this many multiplications at most is written out.
_MOST_PRODUCTS = 256
# A vector times a table of constants is summed over so many rows at once.
_ROWS_AT_ONCE = 4


@rule("dot_general")
def _dot_general(low: Lowering, eqn: Any, x: Value, y: Value) -> Value:
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    dtype = dtype_of(eqn.outvars[0].aval.dtype)
    free_x = [d for d in range(x.ndim) if d not in (*cx, *bx)]
    free_y = [d for d in range(y.ndim) if d not in (*cy, *by)]
    # Batch, free, contracted.
    x = transpose(low, x, [*bx, *free_x, *cx])
    y = transpose(low, y, [*by, *free_y, *cy])
    batch = len(bx)
    shape = (*x.shape[: batch + len(free_x)], *y.shape[batch : batch + len(free_y)])
    inner = x.shape[batch + len(free_x) :]
    products = int(np.prod(shape, dtype=int) * np.prod(inner, dtype=int))

    if _written_out(x, y, products):
        return _sums_of_products(low, x, y, math.prod(inner), shape, batch, dtype)
    x, y = low.settled(x), low.settled(y)

    def parts(out: tuple, k: tuple) -> tuple[Expr, Expr]:
        b, rest = out[:batch], out[batch:]
        left = low.element(x, (*b, *rest[: len(free_x)], *k))
        right = low.element(y, (*b, *rest[len(free_x) :], *k))
        return low.make.cast(left, dtype), low.make.cast(right, dtype)

    if len(shape) == 1 and len(inner) == 1 and products > 4 * MOST_ELEMENTS:
        matrix, vector = (x, y) if x.ndim == 2 else (y, x)
        if isinstance(matrix, View) and matrix.is_known:
            return _table_times(low, matrix, vector, dtype)
    both = Lazy((*shape, *inner), dtype, lambda at: low.make.op(
        "mul", *parts(at[: len(shape)], at[len(shape) :])
    ), 2)  # fmt: skip
    axes = tuple(range(len(shape), len(shape) + len(inner)))
    return reduced(low, both, axes, lambda a, b: low.make.op("add", a, b), 0)


def _written_out(x: Value, y: Value, products: int) -> bool:
    """Whether a product becomes scalars: few terms, or many that are known to vanish."""
    if products > 16 * MOST_ELEMENTS:
        return False
    small = lambda v: isinstance(v, Elements) or v.size <= 16  # noqa: E731
    if not (small(x) and small(y)):
        return False
    share = 1.0
    for v in (x, y):
        if isinstance(v, Elements) and v.size:
            share *= sum(not (e.is_const and e.value == 0) for e in v.array.flat) / v.size
    return products * share <= _MOST_PRODUCTS


def _sums_of_products(
    low: Lowering, x: Value, y: Value, length: int, shape: tuple[int, ...], batch: int, dtype: str
) -> Elements:
    """A product as one expression an element, each a sum of so many terms."""
    make, zero = low.make, low.make.const(0, dtype)
    count = math.prod(shape[:batch])

    def rows(value: Value) -> np.ndarray:
        """What is summed over, batch by batch."""
        flat = [make.cast(e, dtype) for e in low.elements(value).array.flat]
        array = np.empty(len(flat), dtype=object)
        array[:] = flat
        return array.reshape(count, len(flat) // max(count * length, 1), length)

    def total(left: np.ndarray, right: np.ndarray) -> Expr:
        found = zero
        for a, b in zip(left, right, strict=True):
            if a is not zero and b is not zero:
                found = make.op("add", found, make.op("mul", a, b))
        return found

    if length == 0:
        return low.listed(shape, dtype, [zero] * math.prod(shape))
    pairs = zip(rows(x), rows(y), strict=True)
    return low.listed(
        shape, dtype, [total(a, b) for left, right in pairs for a in left for b in right]
    )


def _table_times(low: Lowering, matrix: View, vector: Value, dtype: str) -> Value:
    """A constant matrix times a vector, column by column.

    The matrix is stored by columns, so that the inner loop runs over the results, which a compiler
    can vectorize without changing the order of a sum.
    """
    make = low.make
    rows, columns = matrix.shape
    data = matrix.ref.buffer.data
    assert data is not None
    assert isinstance(matrix.offset, int)
    numbers = np.lib.stride_tricks.as_strided(
        data[matrix.offset :], matrix.shape, [s * data.itemsize for s in matrix.strides]
    )
    table = Ref(low.tables.add(numbers.T, matrix.dtype), low.body)
    vector, ref = low.settled(vector), low.new(dtype, rows)
    low.write(ref, 0, Lazy((rows,), dtype, lambda _: make.const(0, dtype), 0))
    whole = columns - columns % _ROWS_AT_ONCE

    def accumulate(first: Any, count: int) -> None:
        factors = [
            make.cast(low.element(vector, (make.iadd(first, j),)), dtype) for j in range(count)
        ]
        with low.loops([rows]) as (i,):
            total = make.load(Ref(ref.buffer, low.region), i)
            for j, factor in enumerate(factors):
                at = make.iadd(make.imul(make.iadd(first, j), rows), i)
                term = make.op("mul", make.cast(make.load(table, at), dtype), factor)
                total = make.op("add", total, term)
            low.store(ref, i, total)

    if whole:
        with low.loops([whole // _ROWS_AT_ONCE]) as (block,):
            accumulate(make.imul(block, _ROWS_AT_ONCE), _ROWS_AT_ONCE)
    if columns % _ROWS_AT_ONCE:
        accumulate(whole, columns % _ROWS_AT_ONCE)
    return View(ref, (rows,))


def _matrices(low: Lowering, x: Value) -> tuple[Ref, int]:
    """A copy of a stack of matrices, and how many there are."""
    ref = low.new(x.dtype, x.size)
    low.write(ref, 0, x)
    return ref, int(np.prod(x.shape[:-2], dtype=int))


def _for_each(low: Lowering, count: int, call: Any) -> None:
    with low.loops([count]) as (at,):
        call(low.make.index(at))


@rule("lu")
def _lu(low: Lowering, eqn: Any, x: Value) -> list[Value]:
    rows, columns = x.shape[-2:]
    least, batch = min(rows, columns), x.shape[:-2]
    if rows == columns == 1:
        zero = lambda shape: low.filled(shape, "i32", lambda _: low.make.const(0, "i32"))  # noqa: E731
        return [x, zero((*batch, 1)), zero((*batch, 1))]
    ref, count = _matrices(low, x)
    pivots, order = low.new("i32", count * least), low.new("i32", count * rows)
    make = low.make

    def call(at: Expr) -> None:
        places = [make.index(make.imul(at, n)) for n in (rows * columns, least, rows)]
        sizes = [make.const(n, "index") for n in (rows, columns)]
        buffers = (ref.buffer, pivots.buffer, order.buffer)
        low.emit(Call(f"lu_{x.dtype}", [*sizes, *zip(buffers, places, strict=True)]))

    _for_each(low, count, call)
    return [View(ref, x.shape), View(pivots, (*batch, least)), View(order, (*batch, rows))]


@rule("lu_pivots_to_permutation")
def _permutation(low: Lowering, eqn: Any, pivots: Value) -> Value:
    size, batch = eqn.params["permutation_size"], pivots.shape[:-1]
    if size == 1:
        return low.filled((*batch, 1), "i32", lambda _: low.make.const(0, "i32"))
    source = low.dense(pivots)
    count, least = int(np.prod(batch, dtype=int)), pivots.shape[-1]
    ref, make = low.new("i32", count * size), low.make

    def call(at: Expr) -> None:
        start = make.index(make.iadd(source.offset, make.imul(at, least)))
        sizes = [make.const(least, "index"), make.const(size, "index")]
        end = make.index(make.imul(at, size))
        low.emit(Call("permutation", [*sizes, (source.ref.buffer, start), (ref.buffer, end)]))

    _for_each(low, count, call)
    return View(ref, (*batch, size))


@rule("triangular_solve")
def _triangular_solve(low: Lowering, eqn: Any, a: Value, b: Value) -> Value:
    """`op(A) X = B`, or `X op(A) = B` as `op(A)^T X^T = B^T`."""
    left, lower = eqn.params["left_side"], eqn.params["lower"]
    transposed, unit = bool(eqn.params["transpose_a"]), eqn.params["unit_diagonal"]
    n, axes = a.shape[-1], list(range(b.ndim))
    if not left:
        b = transpose(low, b, [*axes[:-2], axes[-1], axes[-2]])
        transposed = not transposed
    if n == 1:
        from mbdnode.exports.primitive_rules.elementwise import elementwise
        from mbdnode.exports.primitive_rules.shapes import broadcast

        if not unit:
            wide = broadcast(low, a, b.shape, tuple(range(a.ndim))) if a.shape != b.shape else a
            b = elementwise(low, lambda r, d: low.make.op("div", r, d), (b, wide), b.dtype, 4)
        return b if left else transpose(low, b, [*axes[:-2], axes[-1], axes[-2]])
    source, columns = low.dense(a), b.shape[-1]
    ref, count = _matrices(low, b)
    make = low.make

    def call(at: Expr) -> None:
        first = make.index(make.iadd(source.offset, make.imul(at, n * n)))
        second = make.index(make.imul(at, n * columns))
        flags = [n, columns, int(lower), int(transposed), int(unit)]
        arguments = [make.const(f, "index") for f in flags]
        arrays = [(source.ref.buffer, first), (ref.buffer, second)]
        low.emit(Call(f"triangular_{b.dtype}", [*arguments, *arrays]))

    _for_each(low, count, call)
    solved = View(ref, b.shape)
    return solved if left else transpose(low, solved, [*axes[:-2], axes[-1], axes[-2]])


@rule("cholesky")
def _cholesky(low: Lowering, eqn: Any, x: Value) -> Value:
    if eqn.params.get("symmetrize_input"):
        raise UserError("The model asks for a Cholesky factor of a matrix that is not symmetric.")
    n = x.shape[-1]
    ref, count = _matrices(low, x)
    make = low.make

    def call(at: Expr) -> None:
        place = make.index(make.imul(at, n * n))
        low.emit(Call(f"cholesky_{x.dtype}", [make.const(n, "index"), (ref.buffer, place)]))

    _for_each(low, count, call)
    return View(ref, x.shape)


@rule("sort")
def _sort(low: Lowering, eqn: Any, *values: Value) -> list[Value]:
    """Stable insertion, by the first `num_keys` operands; what is not a number comes last."""
    axis, keys, make = eqn.params["dimension"], eqn.params["num_keys"], low.make
    length, shape = values[0].shape[axis], values[0].shape
    if length == 1:
        return list(values)
    refs = [low.new(v.dtype, v.size) for v in values]
    for ref, value in zip(refs, values, strict=True):
        low.write(ref, 0, value)
    strides = row_major(shape)
    lanes = [n for a, n in enumerate(shape) if a != axis]

    def at(lane: tuple, i: Any) -> Any:
        return make.place((*lane[:axis], i, *lane[axis:]), strides)

    with low.loops(lanes) as lane, low.loops([length - 1]) as (step,):
        moving = []
        for ref in refs:
            here = low.new(ref.buffer.dtype, 1, "moving", "scalar")
            first = make.load(Ref(ref.buffer, low.region), at(lane, make.iadd(step, 1)))
            low.store(here, 0, first)
            moving.append(make.load(Ref(here.buffer, low.region), 0))
        place = low.new("index", 1, "place", "scalar")
        low.store(place, 0, make.index(step))
        outer = low.region
        with low.inside("loop") as region:
            here = make.load(Ref(place.buffer, region), 0)
            low.emit(BreakIf(make.op("lt", here, make.const(0, "index"))))
            before = [make.load(Ref(r.buffer, region), at(lane, here)) for r in refs]
            smaller = _precedes(low, moving[:keys], before[:keys])
            low.emit(BreakIf(make.op("not", smaller)))
            for ref, old in zip(refs, before, strict=True):
                low.store(ref, at(lane, make.iadd(here, 1)), old)
            low.store(place, 0, make.op("add", here, make.const(-1, "index")))
        low.emit(Loop(None, None, region))
        end = make.load(Ref(place.buffer, outer), 0)
        for ref, value in zip(refs, moving, strict=True):
            low.store(ref, at(lane, make.iadd(end, 1)), value)
    return [View(ref, shape) for ref in refs]


def _precedes(low: Lowering, a: list[Expr], b: list[Expr]) -> Expr:
    """Whether one tuple of keys comes before another."""
    make = low.make
    result = make.const(False, "bool")
    for x, y in zip(reversed(a), reversed(b), strict=True):
        less = make.op("lt", x, y)
        less = make.op("or", less, make.op("and", make.op("eq", x, x), make.op("ne", y, y)))
        same = make.op("eq", x, y)
        same = make.op("or", same, make.op("and", make.op("ne", x, x), make.op("ne", y, y)))
        result = make.op("or", less, make.op("and", same, result))
    return result
