"""Rules of gather and scatter: elements at places that are computed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Branch, Expr, Ref, Region
from mbdnode.exports.jaxpr_to_ir import ALWAYS_UNROLLED, MOST_ELEMENTS, Lowering, rule
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major


def _place(low: Lowering, indices: Value, batch: tuple, mapped: Sequence[Any]) -> dict[int, Expr]:
    """Where a window starts, by the operand's axis."""
    return {
        int(axis): low.make.cast(low.element(indices, (*batch, k)), "index")
        for k, axis in enumerate(mapped)
    }


def _inside(low: Lowering, at: Expr, most: int) -> Expr:
    make = low.make
    return make.op(
        "and",
        make.op("ge", at, make.const(0, "index")),
        make.op("le", at, make.const(most, "index")),
    )


@rule("gather")
def _gather(low: Lowering, eqn: Any, x: Value, indices: Value) -> Value:
    """From places that are within the array."""
    numbers = eqn.params["dimension_numbers"]
    shape = eqn.outvars[0].aval.shape
    make = low.make
    x, indices = low.settled(x, 8), low.settled(indices, 8)
    batching = dict(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    window = [
        d for d in range(x.ndim)
        if d not in numbers.collapsed_slice_dims and d not in numbers.operand_batching_dims
    ]  # fmt: skip

    def element(out: tuple) -> Expr:
        batch = tuple(i for d, i in enumerate(out) if d not in numbers.offset_dims)
        inner = dict(zip(window, (out[d] for d in numbers.offset_dims), strict=True))
        starts = _place(low, indices, batch, numbers.start_index_map)
        index = []
        for axis in range(x.ndim):
            if axis in batching:
                index.append(batch[batching[axis]])
            else:
                index.append(make.iadd(starts.get(axis, 0), inner.get(axis, 0)))
        return low.element(x, tuple(index))

    size = int(np.prod(shape, dtype=int))
    known = isinstance(indices, Elements) and indices.is_known
    if size <= ALWAYS_UNROLLED or (known and isinstance(x, Elements) and size <= MOST_ELEMENTS):
        return low.filled(shape, x.dtype, element)
    if known and len(numbers.start_index_map) and size <= 16:
        return low.filled(shape, x.dtype, element)
    if isinstance(x, Elements):
        x = low.view(x)
    return Lazy(shape, x.dtype, element, 1)


_COMBINE = {
    "scatter": None,
    **{"scatter-add": "add", "scatter-sub": "sub", "scatter-mul": "mul"},
    **{"scatter-min": "min", "scatter-max": "max"},
}


@rule(*_COMBINE)
def _scatter(low: Lowering, eqn: Any, x: Value, indices: Value, updates: Value) -> Value:
    numbers = eqn.params["dimension_numbers"]
    drops = eqn.params["mode"] == GatherScatterMode.FILL_OR_DROP
    name, make = _COMBINE[eqn.primitive.name], low.make
    updates, indices = low.settled(updates, 2), low.settled(indices, 4)
    batching = dict(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    window = [
        d for d in range(x.ndim)
        if d not in numbers.inserted_window_dims and d not in numbers.operand_batching_dims
    ]  # fmt: skip
    extent = [1] * x.ndim
    for d, k in zip(window, numbers.update_window_dims, strict=True):
        extent[d] = updates.shape[k]

    def target(at: tuple) -> tuple[list[Index], Expr]:
        """The element that an update goes to, and whether it exists."""
        batch = tuple(i for d, i in enumerate(at) if d not in numbers.update_window_dims)
        inner = dict(zip(window, (at[d] for d in numbers.update_window_dims), strict=True))
        starts = _place(low, indices, batch, numbers.scatter_dims_to_operand_dims)
        valid, index = make.const(True, "bool"), []
        for axis, n in enumerate(x.shape):
            if axis in batching:
                index.append(batch[batching[axis]])
                continue
            start: Index = 0
            if axis in starts:
                most = n - extent[axis]
                start = starts[axis]
                if drops:
                    valid = make.op("and", valid, _inside(low, starts[axis], most))
            index.append(make.iadd(start, inner.get(axis, 0)))
        return index, valid

    def combined(old: Expr, new: Expr) -> Expr:
        return new if name is None else make.op(name, old, new)

    known = isinstance(indices, Elements) and indices.is_known
    if known and isinstance(x, Elements) and updates.size <= MOST_ELEMENTS:
        array = x.array.copy()
        for at in np.ndindex(*updates.shape):
            index, valid = target(at)
            if valid.value:
                place = tuple(int(make.index(i).value) for i in index)
                array[place] = combined(array[place], low.element(updates, at))
        return Elements(array, x.dtype)
    ref, strides = low.new(x.dtype, x.size), row_major(x.shape)
    low.write(ref, 0, x)

    def update(at: tuple) -> None:
        index, valid = target(at)
        flat = make.place(index, strides)

        def put() -> None:
            old = make.load(Ref(ref.buffer, low.region), flat)
            low.store(ref, flat, combined(old, low.element(updates, at)))

        if valid.is_const:
            if valid.value:
                put()
            return
        with low.inside("branch") as yes:
            put()
        condition = make.select(valid, make.const(0, "index"), make.const(1, "index"))
        low.emit(Branch(condition, [yes, Region("branch", low.region)]))

    if updates.size <= ALWAYS_UNROLLED:
        for at in np.ndindex(*updates.shape):
            update(at)
    else:
        with low.loops(updates.shape) as at:
            update(at)
    return View(ref, x.shape)
