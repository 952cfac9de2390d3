"""Rules of primitives that only move elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Expr, dtype_of
from mbdnode.exports.jaxpr_to_ir import (
    ALWAYS_UNROLLED,
    MOST_ELEMENTS,
    Lowering,
    rule,
)
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major


@rule("broadcast_in_dim")
def _broadcast(low: Lowering, eqn: Any, x: Value, *_: Value) -> Value:
    """`x` with its axes at `axes` of a larger shape, repeated along the others."""
    shape, axes = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    size = int(np.prod(shape, dtype=int))
    if size == 0:
        return low.filled(shape, x.dtype, lambda _: low.make.const(0, x.dtype))
    if (isinstance(x, Elements) and size <= MOST_ELEMENTS) or size <= ALWAYS_UNROLLED:
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


@rule("reshape")
def _reshape(low: Lowering, eqn: Any, x: Value, *_: Value) -> Value:
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
    offset = make.place(start, view.strides, view.offset)
    taken = [stride * k for stride, k in zip(view.strides, steps, strict=True)]
    return View(view.ref, shape, taken, offset)


@rule("slice")
def _slice(low: Lowering, eqn: Any, x: Value) -> Value:
    shape = eqn.outvars[0].aval.shape
    return cut(low, x, list(eqn.params["start_indices"]), shape, eqn.params["strides"])


@rule("concatenate")
def _concatenate(low: Lowering, eqn: Any, *values: Value) -> Value:
    axis = eqn.params["dimension"]
    shape = list(values[0].shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    size = int(np.prod(shape, dtype=int))
    small = size <= MOST_ELEMENTS and all(isinstance(v, Elements) or v.size <= 4 for v in values)
    if small or low.unrolls(values, size):
        arrays = [low.elements(v).array for v in values]
        return Elements(np.concatenate(arrays, axis=axis), values[0].dtype)
    ref = low.new(values[0].dtype, size)
    strides, start = row_major(shape), 0
    make = low.make
    for value in values:
        if value.size == 0:
            continue
        unrolled = isinstance(value, Elements) or value.size <= ALWAYS_UNROLLED
        if unrolled:
            for index in np.ndindex(*value.shape):
                at = start * strides[axis] + sum(i * s for i, s in zip(index, strides, strict=True))
                low.store(ref, at, low.element(value, index))
        else:
            with low.loops(value.shape) as index:
                at = make.place(index, strides, start * strides[axis])
                low.store(ref, at, low.element(value, index))
        start += value.shape[axis]
    return View(ref, shape)


@rule("iota")
def _iota(low: Lowering, eqn: Any, *_: Value) -> Value:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    dtype, make = dtype_of(eqn.params["dtype"]), low.make
    if int(np.prod(shape, dtype=int)) <= MOST_ELEMENTS:
        return low.filled(shape, dtype, lambda index: make.const(index[axis], dtype))
    return Lazy(shape, dtype, lambda index: make.cast(make.index(index[axis]), dtype), 0)
