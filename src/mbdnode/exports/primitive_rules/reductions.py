"""Rules of sums, products, extremes and the like, along axes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbdnode.exports.ir import FLOATS, Expr, Ref, numpy_type
from mbdnode.exports.jaxpr_to_ir import MOST_UNROLLED, Lowering, rule
from mbdnode.exports.values import Elements, Value, View, row_major

_OPERATION = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
}


def _start(name: str, dtype: str) -> Any:
    """The value of no elements."""
    if name in ("add", "or"):
        return 0
    if name in ("mul", "and"):
        return 1
    if dtype in FLOATS:
        return -np.inf if name == "max" else np.inf
    limits = np.iinfo(numpy_type(dtype))
    return limits.min if name == "max" else limits.max


@rule(*_OPERATION)
def _reduce(low: Lowering, eqn: Any, x: Value) -> Value:
    name = _OPERATION[eqn.primitive.name]
    axes = eqn.params["axes"]
    return reduced(low, x, axes, lambda a, b: low.make.op(name, a, b), _start(name, x.dtype))


def reduced(
    low: Lowering, x: Value, axes: Sequence[Any], combine: Callable[[Expr, Expr], Expr], start: Any
) -> Value:
    """Elements along axes, combined one after the other."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    first = low.make.const(start, x.dtype)

    def whole(out: tuple, inner: tuple) -> tuple:
        index = [0] * x.ndim
        for axis, i in zip(kept, out, strict=True):
            index[axis] = i
        for axis, i in zip(axes, inner, strict=True):
            index[axis] = i
        return tuple(index)

    lengths = [x.shape[axis] for axis in axes]
    if isinstance(x, Elements) or x.size <= MOST_UNROLLED:

        def element(out: tuple) -> Expr:
            total = first
            for inner in np.ndindex(*lengths):
                total = combine(total, low.element(x, whole(out, inner)))
            return total

        return low.filled(shape, x.dtype, element)
    return _by_loops(low, shape, lengths, x, whole, combine, first)


def _by_loops(low: Lowering, shape, lengths, x: Value, whole, combine, first: Expr) -> Value:
    size = int(np.prod(shape, dtype=int))
    ref = low.new(x.dtype, size)
    strides = row_major(shape)
    with low.loops(shape) as out:
        total = low.new(x.dtype, 1, "total", "scalar")
        low.store(total, 0, first)
        with low.loops(lengths) as inner:
            before = low.make.load(Ref(total.buffer, low.region), 0)
            after = combine(before, low.element(x, whole(out, inner)))
            if after is not before:  # A sum of zeros.
                low.store(total, 0, after)
        low.store(
            ref, low.make.place(out, strides), low.make.load(Ref(total.buffer, low.region), 0)
        )
    return View(ref, shape)
