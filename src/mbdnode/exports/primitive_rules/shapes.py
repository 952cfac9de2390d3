"""Rules of primitives that only move elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Expr, dtype_of
from mbdnode.exports.jaxpr_to_ir import (
    ALWAYS_UNROLLED,
    MOST_ELEMENTS,
    MOST_KNOWN,
    Lowering,
    is_mostly_known,
    refused,
    rule,
    usual_of,
)
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major


@rule("broadcast_in_dim")
def _broadcast(low: Lowering, eqn: Any, x: Value, *_: Value) -> Value:
    return broadcast(low, x, eqn.params["shape"], eqn.params["broadcast_dimensions"])


def broadcast(low: Lowering, x: Value, shape: Sequence[Any], axes: Sequence[Any]) -> Value:
    """`x` with its axes at `axes` of a larger shape, repeated along the others."""
    size = int(np.prod(shape, dtype=int))
    if size == 0:
        return low.filled(shape, x.dtype, lambda _: low.make.const(0, x.dtype))
    small = isinstance(x, Elements) and size <= MOST_ELEMENTS
    small = small or (isinstance(x, Elements) and size <= MOST_KNOWN and is_mostly_known(x))
    if small or size <= ALWAYS_UNROLLED:
        array = low.elements(x).array
        placed = array.reshape([
            x.shape[axes.index(d)] if d in axes else 1 for d in range(len(shape))
        ])  # fmt: skip
        return Elements(np.broadcast_to(placed, shape), x.dtype)
    if x.size == 1:
        only = low.only(x)
        return Lazy(shape, x.dtype, lambda _: only, 0)
    x = low.settled(x) if size > x.size else x

    def source(index: tuple) -> tuple:
        return tuple(0 if n == 1 else index[a] for a, n in zip(axes, x.shape, strict=True))

    if isinstance(x, Lazy):
        return Lazy(shape, x.dtype, lambda index: low.element(x, source(index)), x.cost)
    view = low.view(x)
    strides = [0] * len(shape)
    for axis, n, stride in zip(axes, x.shape, view.strides, strict=True):
        strides[axis] = stride if n > 1 else 0
    return View(view.ref, shape, strides, view.offset)


def reshape(low: Lowering, x: Value, shape: Sequence[Any]) -> Value:
    """The same elements in the same order, in another shape."""
    shape = tuple(int(n) for n in shape)
    if isinstance(x, Elements):
        return Elements(x.array.reshape(shape), x.dtype)
    if [n for n in shape if n > 1] == [n for n in x.shape if n > 1]:
        return _without_ones(low, x, shape)
    view = low.dense(x)
    return View(view.ref, shape, None, view.offset)


def _without_ones(low: Lowering, x: Value, shape: tuple[int, ...]) -> Value:
    """A shape that differs in axes of length one alone."""
    kept = [axis for axis, n in enumerate(x.shape) if n > 1]
    wide = [axis for axis, n in enumerate(shape) if n > 1]
    if isinstance(x, View):
        strides = [0] * len(shape)
        for axis, old in zip(wide, kept, strict=True):
            strides[axis] = x.strides[old]
        return View(x.ref, shape, strides, x.offset)

    def element(index: tuple) -> Expr:
        source: list[Index] = [0] * x.ndim
        for axis, old in zip(wide, kept, strict=True):
            source[old] = index[axis]
        return low.element(x, tuple(source))

    return Lazy(shape, x.dtype, element, x.cost if isinstance(x, Lazy) else 0)


@rule("reshape", "squeeze", "expand_dims")
def _reshape(low: Lowering, eqn: Any, x: Value, *_: Value) -> Value:
    if eqn.primitive.name == "reshape" and eqn.params.get("dimensions") is not None:
        raise refused(eqn, "with the parameter 'dimensions'")
    return reshape(low, x, eqn.outvars[0].aval.shape)


@rule("transpose")
def _transpose(low: Lowering, eqn: Any, x: Value) -> Value:
    order = eqn.params["permutation"]
    return transpose(low, x, order)


def transpose(low: Lowering, x: Value, order: Sequence[Any]) -> Value:
    """The axes in another order."""
    if isinstance(x, Elements):
        return Elements(x.array.transpose(order), x.dtype)
    shape = [x.shape[axis] for axis in order]
    if isinstance(x, View):
        return View(x.ref, shape, [x.strides[axis] for axis in order], x.offset)
    back = np.argsort(order)
    assert isinstance(x, Lazy)
    return Lazy(shape, x.dtype, lambda index: low.element(x, tuple(index[a] for a in back)), x.cost)


def cut(
    low: Lowering,
    x: Value,
    start: Sequence[Index],
    shape: Sequence[Any],
    strides: Sequence[Any] | None = None,
) -> Value:
    """A block of an array; where it starts need not be known."""
    steps = [1] * x.ndim if strides is None else list(strides)
    if isinstance(x, Elements) and all(isinstance(s, int) for s in start):
        where = tuple(
            slice(s, s + (n - 1) * k + 1 if n else s, k)  # pyright: ignore[reportOperatorIssue]
            for s, n, k in zip(start, shape, steps, strict=True)
        )
        return Elements(x.array[where], x.dtype)
    make = low.make
    if isinstance(x, Lazy):

        def element(index: tuple) -> Expr:
            moved = (
                make.iadd(s, make.imul(i, k)) for s, i, k in zip(start, index, steps, strict=True)
            )
            return low.element(x, tuple(moved))

        return Lazy(shape, x.dtype, element, x.cost)
    view = low.view(x)
    offset = view.offset
    for s, stride in zip(start, view.strides, strict=True):
        offset = make.iadd(offset, make.imul(s, stride))
    taken = [stride * k for stride, k in zip(view.strides, steps, strict=True)]
    return View(view.ref, shape, taken, offset)


@rule("slice")
def _slice(low: Lowering, eqn: Any, x: Value) -> Value:
    shape = eqn.outvars[0].aval.shape
    return cut(low, x, list(eqn.params["start_indices"]), shape, eqn.params["strides"])


@rule("tile")
def _tile(low: Lowering, eqn: Any, x: Value) -> Value:
    pairs = zip(eqn.params["reps"], x.shape, strict=True)
    apart = [int(n) for pair in pairs for n in pair]
    wide = broadcast(low, x, apart, [2 * axis + 1 for axis in range(x.ndim)])
    return reshape(low, wide, eqn.outvars[0].aval.shape)


@rule("split")
def _split(low: Lowering, eqn: Any, x: Value) -> list[Value]:
    axis, made, start = eqn.params["axis"], [], [0] * x.ndim
    x = low.settled(x, 2)
    for size in eqn.params["sizes"]:
        shape = list(x.shape)
        shape[axis] = int(size)
        made.append(cut(low, x, list(start), shape))
        start[axis] += int(size)
    return made


@rule("unstack")
def _unstack(low: Lowering, eqn: Any, x: Value) -> list[Value]:
    axis, x = eqn.params["axis"], low.settled(x, 2)
    made = []
    for number, out in enumerate(eqn.outvars):
        start, shape = [0] * x.ndim, list(x.shape)
        start[axis], shape[axis] = number, 1
        made.append(reshape(low, cut(low, x, start, shape), out.aval.shape))
    return made


@rule("dynamic_slice")
def _dynamic_slice(low: Lowering, eqn: Any, x: Value, *starts: Value) -> Value:
    shape = eqn.params["slice_sizes"]
    return cut(low, x, clamped_starts(low, starts, x.shape, shape), shape)


def clamped_starts(
    low: Lowering, starts: Sequence[Value], whole: Sequence[Any], shape: Sequence[Any]
) -> list[Index]:
    """Where a block starts, moved so that all of it is inside."""
    found: list[Index] = []
    for value, n, size in zip(starts, whole, shape, strict=True):
        found.append(clamped(low, low.make.cast(low.only(value), "index"), n - size))
    return found


def clamped(low: Lowering, at: Expr, most: int) -> Index:
    """An index between zero and `most`."""
    make = low.make
    if at.is_const:
        return min(max(int(at.value), 0), most)
    if most == 0:
        return 0
    return make.op("min", make.op("max", at, make.const(0, "index")), make.const(most, "index"))


@rule("dynamic_update_slice")
def _dynamic_update_slice(low: Lowering, eqn: Any, x: Value, new: Value, *starts: Value) -> Value:
    start = clamped_starts(low, starts, x.shape, new.shape)
    if isinstance(x, Elements) and all(isinstance(s, int) for s in start):
        array = x.array.copy()
        where = tuple(slice(s, s + n) for s, n in zip(start, new.shape, strict=True))  # pyright: ignore[reportOperatorIssue]
        array[where] = low.elements(new).array
        return Elements(array, x.dtype)
    new = low.settled(new)
    ref = low.new(x.dtype, x.size)
    low.write(ref, 0, x)
    make, strides = low.make, row_major(x.shape)
    with low.loops(new.shape) as index:
        at: Index = 0
        for s, i, stride in zip(start, index, strides, strict=True):
            at = make.iadd(at, make.imul(make.iadd(s, i), stride))
        low.store(ref, at, low.element(new, index))
    return View(ref, x.shape)


def joined(low: Lowering, values: Sequence[Value], axis: int) -> Value:
    """Arrays one after the other along an axis."""
    shape = list(values[0].shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    size = int(np.prod(shape, dtype=int))
    known = size <= MOST_KNOWN and all(is_mostly_known(v) for v in values if v.size)
    small = size <= MOST_ELEMENTS and all(isinstance(v, Elements) or v.size <= 4 for v in values)
    if known or small or low.unrolls(values, size):
        arrays = [low.elements(v).array for v in values]
        return Elements(np.concatenate(arrays, axis=axis), values[0].dtype)
    ref = low.new(values[0].dtype, size)
    strides, start = row_major(shape), 0
    make = low.make
    scalars = [v for v in values if isinstance(v, Elements)]
    usual = usual_of(scalars) if sum(v.size for v in scalars) >= 32 else None
    if usual is not None:
        low.write(ref, 0, Lazy((size,), ref.buffer.dtype, lambda _: usual, 0))
    for value in values:
        if value.size == 0:
            continue
        unrolled = isinstance(value, Elements) or value.size <= ALWAYS_UNROLLED
        if unrolled:
            for index in np.ndindex(*value.shape):
                at = start * strides[axis] + sum(i * s for i, s in zip(index, strides, strict=True))
                if low.element(value, index) is not usual:
                    low.store(ref, at, low.element(value, index))
        else:
            with low.loops(value.shape) as index:
                at: Index = start * strides[axis]
                for i, stride in zip(index, strides, strict=True):
                    at = make.iadd(at, make.imul(i, stride))
                low.store(ref, at, low.element(value, index))
        start += value.shape[axis]
    return View(ref, shape)


@rule("concatenate")
def _concatenate(low: Lowering, eqn: Any, *values: Value) -> Value:
    return joined(low, values, eqn.params["dimension"])


@rule("stack")
def _stack(low: Lowering, eqn: Any, *values: Value) -> Value:
    axis = eqn.params["axis"]
    shape = list(values[0].shape)
    shape.insert(axis, 1)
    return joined(low, [reshape(low, v, shape) for v in values], axis)


@rule("rev")
def _rev(low: Lowering, eqn: Any, x: Value) -> Value:
    axes, make = eqn.params["dimensions"], low.make
    if isinstance(x, Elements):
        return Elements(np.flip(x.array, axes), x.dtype)

    def element(index: tuple) -> Expr:
        turned = [
            make.iadd(n - 1, make.imul(i, -1)) if axis in axes else i
            for axis, (i, n) in enumerate(zip(index, x.shape, strict=True))
        ]
        return low.element(x, tuple(turned))

    return Lazy(x.shape, x.dtype, element, x.cost if isinstance(x, Lazy) else 0)


@rule("pad")
def _pad(low: Lowering, eqn: Any, x: Value, filling: Value) -> Value:
    shape, widths = eqn.outvars[0].aval.shape, eqn.params["padding_config"]
    only, size = low.only(filling), int(np.prod(shape, dtype=int))
    inside = []
    for n, (before, _, between), m in zip(x.shape, widths, shape, strict=True):
        places = [(i, before + i * (between + 1)) for i in range(n)]
        inside.append([(i, at) for i, at in places if 0 <= at < m])
    known = size <= MOST_KNOWN and isinstance(x, Elements) and (only.is_const or size == x.size)
    if known or (size <= MOST_ELEMENTS and (x.size <= ALWAYS_UNROLLED)):
        array = np.full(shape, only, dtype=object)
        source = low.elements(x).array
        for pairs in np.ndindex(*(len(p) for p in inside)):
            old = tuple(p[k][0] for p, k in zip(inside, pairs, strict=True))
            new = tuple(p[k][1] for p, k in zip(inside, pairs, strict=True))
            array[new] = source[old]
        return Elements(array, x.dtype)
    ref = low.new(x.dtype, size)
    low.write(ref, 0, Lazy(shape, x.dtype, lambda _: only, 0))
    make, strides = low.make, row_major(shape)
    if all(inside):
        with low.loops([len(p) for p in inside]) as index:
            at: Index = 0
            source = []
            for i, p, width, stride in zip(index, inside, widths, strides, strict=True):
                step = make.imul(i, (width[2] + 1) * stride)
                at = make.iadd(at, make.iadd(step, p[0][1] * stride))
                source.append(make.iadd(i, p[0][0]))
            low.store(ref, at, low.element(x, tuple(source)))
    return View(ref, shape)


@rule("iota")
def _iota(low: Lowering, eqn: Any, *_: Value) -> Value:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    dtype, make = dtype_of(eqn.params["dtype"]), low.make
    assert dtype is not None
    if int(np.prod(shape, dtype=int)) <= MOST_ELEMENTS:
        return low.filled(shape, dtype, lambda index: make.const(index[axis], dtype))
    return Lazy(shape, dtype, lambda index: make.cast(make.index(index[axis]), dtype), 0)
