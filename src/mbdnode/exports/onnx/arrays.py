"""Rules of shapes, reductions, gathering and scattering, and products."""

import math
import string
from typing import Any

import numpy as np

from mbdnode.exports.onnx.graph import Graph, Tensor, rule
from mbdnode.exports.values import row_major


@rule("broadcast_in_dim")
def _broadcast(graph: Graph, eqn: Any, x: Tensor, *_: Tensor) -> Tensor:
    shape = eqn.outvars[0].aval.shape
    placed = [1] * len(shape)
    for size, axis in zip(x.shape, eqn.params["broadcast_dimensions"], strict=True):
        placed[axis] = size
    x = graph.reshaped(x, placed)
    if x.shape == tuple(shape):
        return x
    return graph.node("Expand", [x, graph.const(shape, np.int64)], shape, x.dtype)


@rule("reshape")
def _reshape(graph: Graph, eqn: Any, x: Tensor, *_: Tensor) -> Tensor:
    return graph.reshaped(x, eqn.outvars[0].aval.shape)


@rule("transpose")
def _transpose(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    order = [int(i) for i in eqn.params["permutation"]]
    return graph.node("Transpose", [x], [x.shape[i] for i in order], x.dtype, perm=order)


@rule("slice")
def _slice(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    p = eqn.params
    return graph.cut(x, p["start_indices"], p["limit_indices"], p["strides"])


@rule("concatenate")
def _concatenate(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.joined(values, int(eqn.params["dimension"]))


_REDUCTIONS = {
    **{"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"},
    **{"reduce_prod": "ReduceProd", "reduce_and": "ReduceMin", "reduce_or": "ReduceMax"},
}


@rule(*_REDUCTIONS)
def _reduce(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    axes = graph.const([int(a) for a in eqn.params["axes"]], np.int64)
    shape, kind = eqn.outvars[0].aval.shape, x.dtype
    given = graph.cast(x, np.int32) if x.dtype == bool else x
    op = _REDUCTIONS[eqn.primitive.name]
    return graph.cast(graph.node(op, [given, axes], shape, given.dtype, keepdims=0), kind)


@rule("dot_general")
def _dot(graph: Graph, eqn: Any, a: Tensor, b: Tensor) -> Tensor:
    (over_a, over_b), (batch_a, batch_b) = eqn.params["dimension_numbers"]
    letters = iter(string.ascii_lowercase)
    of_a: list[str] = [""] * len(a.shape)
    of_b: list[str] = [""] * len(b.shape)
    shared = []
    for i, j in [*zip(batch_a, batch_b, strict=True), *zip(over_a, over_b, strict=True)]:
        of_a[i] = of_b[j] = next(letters)
        shared.append(of_a[i])
    of_a = [x or next(letters) for x in of_a]
    of_b = [x or next(letters) for x in of_b]
    batch = shared[: len(batch_a)]
    out = batch + [x for x in (*of_a, *of_b) if x not in shared]
    equation = f"{''.join(of_a)},{''.join(of_b)}->{''.join(out)}"
    shape = eqn.outvars[0].aval.shape
    return graph.node("Einsum", [a, b], shape, eqn.outvars[0].aval.dtype, equation=equation)


def _places(graph: Graph, indices: Tensor, mapped, batching, shape, sizes, kept):
    """Where slices start in a flat array, and the steps within one.

    Slices outside, of which JAX was promised that there are none, are moved inside as XLA does.
    """
    strides, batch = row_major(shape), indices.shape[:-1]
    start = graph.const(np.zeros(batch), np.int64)
    if mapped:
        limits = graph.const([shape[dim] - sizes[dim] for dim in mapped], np.int64)
        steps = graph.const([strides[dim] for dim in mapped], np.int64)
        safe = graph.like("Max", graph.cast(indices, np.int64), graph.const(0, np.int64))
        terms = graph.like("Mul", graph.like("Min", safe, limits), steps)
        last = graph.const([len(batch)], np.int64)
        start = graph.node("ReduceSum", [terms, last], batch, np.int64, keepdims=0)
    for axis, dim in batching:
        along = _along(np.arange(batch[axis]) * strides[dim], axis, len(batch))
        start = graph.like("Add", start, graph.const(np.broadcast_to(along, batch), np.int64))
    grid = np.zeros([sizes[d] for d in kept], int)
    for axis, dim in enumerate(kept):
        grid = grid + _along(np.arange(sizes[dim]) * strides[dim], axis, len(kept))
    return start, grid


def _along(values: np.ndarray, axis: int, count: int) -> np.ndarray:
    return values.reshape([-1 if i == axis else 1 for i in range(count)])


def _joint(graph: Graph, start: Tensor, grid: np.ndarray, shape, within) -> Tensor:
    """The places of all elements of `shape`, whose axes `within` are those of a slice."""
    axes = range(len(shape))
    at = graph.reshaped(start, [1 if i in within else shape[i] for i in axes])
    offset = grid.reshape([shape[i] if i in within else 1 for i in axes])
    return graph.like("Add", at, graph.const(offset, np.int64))


@rule("gather")
def _gather(graph: Graph, eqn: Any, x: Tensor, indices: Tensor) -> Tensor:
    d, shape = eqn.params["dimension_numbers"], eqn.outvars[0].aval.shape
    dropped = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    kept = [i for i in range(len(x.shape)) if i not in dropped]
    along = [*zip(d.start_indices_batching_dims, d.operand_batching_dims, strict=True)]
    where = indices, d.start_index_map, along, x.shape, eqn.params["slice_sizes"], kept
    start, grid = _places(graph, *where)
    flat = graph.reshaped(x, (math.prod(x.shape),))
    return graph.taken(flat, _joint(graph, start, grid, shape, d.offset_dims))


_COMBINE = {
    "scatter": "none",
    **{"scatter-add": "add", "scatter-mul": "mul", "scatter-min": "min", "scatter-max": "max"},
}


@rule(*_COMBINE)
def _scatter(graph: Graph, eqn: Any, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    d, shape = eqn.params["dimension_numbers"], updates.shape
    dropped = {*d.inserted_window_dims, *d.operand_batching_dims}
    kept = [i for i in range(len(x.shape)) if i not in dropped]
    sizes = [1] * len(x.shape)
    for dim, axis in zip(kept, d.update_window_dims, strict=True):
        sizes[dim] = shape[axis]
    along = [*zip(d.scatter_indices_batching_dims, d.operand_batching_dims, strict=True)]
    where = indices, d.scatter_dims_to_operand_dims, along, x.shape, sizes, kept
    start, grid = _places(graph, *where)
    flat = graph.reshaped(x, (math.prod(x.shape),))
    place = _joint(graph, start, grid, shape, d.update_window_dims)
    made = graph.node(
        "ScatterElements",
        [
            flat,
            graph.reshaped(place, (math.prod(shape),)),
            graph.reshaped(updates, (math.prod(shape),)),
        ],
        flat.shape,
        x.dtype,
        axis=0,
        reduction=_COMBINE[eqn.primitive.name],
    )
    return graph.reshaped(made, x.shape)
