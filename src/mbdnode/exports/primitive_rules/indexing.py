"""Rules of gather and scatter: elements at places that are computed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Expr, Ref
from mbdnode.exports.jaxpr_to_ir import ALWAYS_UNROLLED, MOST_ELEMENTS, Lowering, rule
from mbdnode.exports.values import Elements, Lazy, Value, View, row_major


def _place(low: Lowering, indices: Value, batch: tuple, mapped: Sequence[Any]) -> dict[int, Index]:
    """Where a window starts, by the operand's axis."""
    return {
        int(axis): low.make.cast(low.element(indices, (*batch, k)), "index")
        for k, axis in enumerate(mapped)
    }


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
        starts |= {axis: batch[along] for axis, along in batching.items()}
        return low.element(
            x, tuple(make.iadd(starts.get(d, 0), inner.get(d, 0)) for d in range(x.ndim))
        )

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
    **{"scatter-add": "add", "scatter-mul": "mul", "scatter-min": "min", "scatter-max": "max"},
}


@rule(*_COMBINE)
def _scatter(low: Lowering, eqn: Any, x: Value, indices: Value, updates: Value) -> Value:
    """To places that are within the array."""
    numbers = eqn.params["dimension_numbers"]
    name, make = _COMBINE[eqn.primitive.name], low.make
    updates, indices = low.settled(updates, 2), low.settled(indices, 4)
    batching = dict(
        zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    window = [
        d for d in range(x.ndim)
        if d not in numbers.inserted_window_dims and d not in numbers.operand_batching_dims
    ]  # fmt: skip

    def target(at: tuple) -> list[Index]:
        """The element that an update goes to."""
        batch = tuple(i for d, i in enumerate(at) if d not in numbers.update_window_dims)
        inner = dict(zip(window, (at[d] for d in numbers.update_window_dims), strict=True))
        starts = _place(low, indices, batch, numbers.scatter_dims_to_operand_dims)
        starts |= {axis: batch[along] for axis, along in batching.items()}
        return [make.iadd(starts.get(d, 0), inner.get(d, 0)) for d in range(x.ndim)]

    def combined(old: Expr, new: Expr) -> Expr:
        return new if name is None else make.op(name, old, new)

    known = isinstance(indices, Elements) and indices.is_known
    if known and isinstance(x, Elements) and updates.size <= MOST_ELEMENTS:
        array = x.array.copy()
        for at in np.ndindex(*updates.shape):
            place = tuple(int(make.index(i).value) for i in target(at))
            array[place] = combined(array[place], low.element(updates, at))
        return Elements(array, x.dtype)
    ref, strides = low.new(x.dtype, x.size), row_major(x.shape)
    low.write(ref, 0, x)

    def update(at: tuple) -> None:
        flat = make.place(target(at), strides)
        old = make.load(Ref(ref.buffer, low.region), flat)
        low.store(ref, flat, combined(old, low.element(updates, at)))

    if updates.size <= ALWAYS_UNROLLED:
        for at in np.ndindex(*updates.shape):
            update(at)
    else:
        with low.loops(updates.shape) as at:
            update(at)
    return View(ref, x.shape)
