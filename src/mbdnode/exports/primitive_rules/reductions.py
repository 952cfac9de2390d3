"""Rules of sums, products, extremes and the like, along axes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbdnode.exports.ir import FLOATS, Expr, Ref, dtype_of, numpy_type
from mbdnode.exports.jaxpr_to_ir import MOST_UNROLLED, Lowering, rule
from mbdnode.exports.values import Elements, Value, View, row_major

_OPERATION = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
    "reduce_xor": "xor",
}


def _start(name: str, dtype: str) -> Any:
    """The value of no elements."""
    if name in ("add", "or", "xor"):
        return 0
    if name == "mul":
        return 1
    if name == "and":
        return True if dtype == "bool" else -1
    if dtype == "bool":
        return name == "min"
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


@rule("argmax", "argmin")
def _arg(low: Lowering, eqn: Any, x: Value) -> Value:
    """The first of the extremes; what is not a number comes before all others."""
    (axis,), make = eqn.params["axes"], low.make
    dtype = dtype_of(eqn.params["index_dtype"])
    better = "gt" if eqn.primitive.name == "argmax" else "lt"
    shape = [n for a, n in enumerate(x.shape) if a != axis]
    x = low.settled(x, 8)

    def wins(new: Expr, old: Expr) -> Expr:
        if x.dtype == "bool":  # Where the old one is known, a comparison would not be left out.
            more, less = (new, old) if better == "gt" else (old, new)
            return make.op("and", more, make.op("not", less))
        found = make.op(better, new, old)
        if x.dtype in FLOATS:
            odd = make.op("and", make.op("ne", new, new), make.op("eq", old, old))
            found = make.op("or", found, odd)
        return found

    if isinstance(x, Elements) or x.size <= MOST_UNROLLED:

        def element(out: tuple) -> Expr:
            best, at = low.element(x, (*out[:axis], 0, *out[axis:])), make.const(0, dtype)
            for i in range(1, x.shape[axis]):
                new = low.element(x, (*out[:axis], i, *out[axis:]))
                better_here = wins(new, best)
                best = make.select(better_here, new, best)
                at = make.select(better_here, make.const(i, dtype), at)
            return at

        return low.filled(shape, dtype, element)
    ref = low.new(dtype, int(np.prod(shape, dtype=int)))
    with low.loops(shape) as out:
        best, at = low.new(x.dtype, 1, "best", "scalar"), low.new(dtype, 1, "at", "scalar")
        low.store(best, 0, low.element(x, (*out[:axis], 0, *out[axis:])))
        low.store(at, 0, make.const(0, dtype))
        with low.loops([x.shape[axis]]) as (i,):
            new = low.element(x, (*out[:axis], i, *out[axis:]))
            now = wins(new, make.load(Ref(best.buffer, low.region), 0))
            place = make.select(
                now, make.cast(make.index(i), dtype), make.load(Ref(at.buffer, low.region), 0)
            )
            low.store(at, 0, place)
            kept = make.select(now, new, make.load(Ref(best.buffer, low.region), 0))
            low.store(best, 0, kept)
        low.store(ref, make.place(out, row_major(shape)), make.load(Ref(at.buffer, low.region), 0))
    return View(ref, shape)
