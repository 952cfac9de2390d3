"""The rule of products of matrices."""

from typing import Any

import numpy as np

from mbdnode.exports.ir import Expr, Ref, dtype_of
from mbdnode.exports.jaxpr_to_ir import MOST_ELEMENTS, Lowering, rule
from mbdnode.exports.primitive_rules.reductions import reduced
from mbdnode.exports.primitive_rules.shapes import transpose
from mbdnode.exports.values import Elements, Lazy, Value, View

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

    written_out = _written_out(x, y, products)
    x, y = (v if written_out else low.settled(v) for v in (x, y))

    def parts(out: tuple, k: tuple) -> tuple[Expr, Expr]:
        b, rest = out[:batch], out[batch:]
        left = low.element(x, (*b, *rest[: len(free_x)], *k))
        right = low.element(y, (*b, *rest[len(free_x) :], *k))
        return low.make.cast(left, dtype), low.make.cast(right, dtype)

    if len(shape) == 1 and len(inner) == 1 and products > 4 * MOST_ELEMENTS:
        matrix, vector = (x, y) if x.ndim == 2 else (y, x)
        if isinstance(matrix, View) and matrix.is_known:
            return _table_times(low, matrix, vector, dtype)
    both: Value = Lazy((*shape, *inner), dtype, lambda at: low.make.op(
        "mul", *parts(at[: len(shape)], at[len(shape) :])
    ), 2)  # fmt: skip
    both = low.elements(both) if written_out else both
    axes = tuple(range(len(shape), len(shape) + len(inner)))
    return reduced(low, both, axes, lambda a, b: low.make.op("add", a, b), 0)


def _written_out(x: Value, y: Value, products: int) -> bool:
    """Whether a product becomes scalars: of few terms, or of many that are known to vanish."""
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
