"""Rules of shapes, reductions, gathering and scattering, and products."""

import string
from typing import Any

import numpy as np
from jax.lax import GatherScatterMode

from mbdnode.errors import UserError
from mbdnode.exports.onnx.graph import Graph, Tensor, rule


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape))]


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


@rule("reshape", "squeeze", "expand_dims")
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


@rule("split")
def _split(graph: Graph, eqn: Any, x: Tensor) -> list[Tensor]:
    axis, made, start = eqn.params["axis"], [], 0
    for size in map(int, eqn.params["sizes"]):
        low, high = [0] * len(x.shape), list(x.shape)
        low[axis], high[axis] = start, start + size
        made.append(graph.cut(x, low, high))
        start += size
    return made


@rule("tile")
def _tile(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    for axis, count in enumerate(map(int, eqn.params["reps"])):
        x = graph.joined([x] * count, axis) if count > 1 else x
    return x


@rule("concatenate")
def _concatenate(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.joined(values, int(eqn.params["dimension"]))


@rule("stack")
def _stack(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    axis = int(eqn.params["axis"])
    shape = [*values[0].shape[:axis], 1, *values[0].shape[axis:]]
    return graph.joined([graph.reshaped(x, shape) for x in values], axis)


@rule("unstack")
def _unstack(graph: Graph, eqn: Any, x: Tensor) -> list[Tensor]:
    axis, made = int(eqn.params["axis"]), []
    for i, out in enumerate(eqn.outvars):
        low, high = [0] * len(x.shape), list(x.shape)
        low[axis], high[axis] = i, i + 1
        made.append(graph.reshaped(graph.cut(x, low, high), out.aval.shape))
    return made


@rule("rev")
def _rev(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    back = set(eqn.params["dimensions"])
    axes = range(len(x.shape))
    starts = [x.shape[i] - 1 if i in back else 0 for i in axes]
    ends = [-1 if i in back else x.shape[i] for i in axes]
    return graph.cut(x, starts, ends, [-1 if i in back else 1 for i in axes])


@rule("pad")
def _pad(graph: Graph, eqn: Any, x: Tensor, filling: Tensor) -> Tensor:
    """Elements at places that are known, in an array of the filling."""
    shape = eqn.outvars[0].aval.shape
    axes = []
    for size, (before, _, between), most in zip(
        x.shape, eqn.params["padding_config"], shape, strict=True
    ):
        at = before + np.arange(size) * (between + 1)
        inside = np.flatnonzero((at >= 0) & (at < most))
        axes.append((inside, at[inside]))
    source = np.ravel_multi_index(np.meshgrid(*(a for a, _ in axes), indexing="ij"), x.shape)
    target = np.ravel_multi_index(np.meshgrid(*(b for _, b in axes), indexing="ij"), shape)
    whole = graph.node(
        "Expand", [graph.reshaped(filling, (1,)), graph.const([int(np.prod(shape))], np.int64)],
        (int(np.prod(shape)),), x.dtype,
    )  # fmt: skip
    flat = graph.taken(graph.reshaped(x, (int(np.prod(x.shape)),)),
                       graph.const(source.ravel(), np.int64))  # fmt: skip
    return graph.reshaped(
        _scattered(graph, whole, graph.const(target.ravel(), np.int64), flat), shape
    )


def _scattered(graph: Graph, flat: Tensor, index: Tensor, updates: Tensor, **how: Any) -> Tensor:
    given = [flat, index, updates]
    return graph.node("ScatterElements", given, flat.shape, flat.dtype, axis=0, **how)


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


@rule("unvmap_any", "unvmap_all")
def _whole(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    """Equinox's: of all elements, over batches too."""
    if not x.shape:
        return x
    op = "ReduceMax" if eqn.primitive.name == "unvmap_any" else "ReduceMin"
    return graph.cast(graph.node(op, [graph.cast(x, np.int32)], (), np.int32, keepdims=0), bool)


@rule("argmax", "argmin")
def _argmax(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    (axis,) = eqn.params["axes"]
    x = graph.cast(x, np.int32) if x.dtype == bool else x
    op = "ArgMax" if eqn.primitive.name == "argmax" else "ArgMin"
    found = graph.node(op, [x], eqn.outvars[0].aval.shape, np.int64, axis=int(axis), keepdims=0)
    return graph.cast(found, eqn.params["index_dtype"])


@rule("cumsum")
def _cumsum(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    axis = graph.const(int(eqn.params["axis"]), np.int64)
    reverse = int(eqn.params["reverse"])
    return graph.node("CumSum", [x, axis], x.shape, x.dtype, reverse=reverse)


@rule("cumprod", "cummax", "cummin")
def _cumulative(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    op = {"cumprod": "Mul", "cummax": "Max", "cummin": "Min"}[eqn.primitive.name]
    axis, rows = int(eqn.params["axis"]), []
    order = range(x.shape[axis])
    order = reversed(order) if eqn.params["reverse"] else order
    for i in order:
        low, high = [0] * len(x.shape), list(x.shape)
        low[axis], high[axis] = i, i + 1
        row = graph.cut(x, low, high)
        rows.append(graph.like(op, rows[-1], row) if rows else row)
    return graph.joined(rows[::-1] if eqn.params["reverse"] else rows, axis)


@rule("sort")
def _sort(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    """By the first array; of equals the first comes first, as ONNX promises, too."""
    if eqn.params["num_keys"] != 1:
        raise UserError("The model sorts by several keys ('sort'), which ONNX cannot. Export C.")
    axis, first = int(eqn.params["dimension"]), values[0]
    key = graph.cast(first, np.int32) if first.dtype == bool else first
    index = Tensor(graph.name(), first.shape, np.dtype(np.int64))
    ordered = graph.node("TopK", [key, graph.const([first.shape[axis]], np.int64)], first.shape,
                         key.dtype, axis=axis, largest=0, sorted=1)  # fmt: skip
    graph.nodes[-1].output.append(index.name)
    others = [
        graph.node("GatherElements", [x, index], x.shape, x.dtype, axis=axis) for x in values[1:]
    ]
    return [graph.cast(ordered, first.dtype), *others]


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


def _flat_index(
    graph: Graph, indices: Tensor, dims, shape: tuple[int, ...], sizes, batch_in_operand, out
) -> tuple[Tensor, Tensor | None, np.ndarray]:
    """The places in a flat array of what is gathered or scattered.

    `dims` are the operand's dimensions that the last axis of `indices` speaks of. Returns starts
    for each batch, whether each is inside, and the offsets within a slice.
    """
    strides = _strides(shape)
    batch = indices.shape[:-1]
    start, inside = None, None
    index = graph.cast(indices, np.int64)
    for k, dim in enumerate(dims):
        part = graph.reshaped(graph.cut(index, [0] * len(batch) + [k], [*batch, k + 1]), batch)
        most = shape[dim] - sizes[dim]
        low, high = graph.const(0, np.int64), graph.const(most, np.int64)
        good = graph.like("And", graph.truth("GreaterOrEqual", part, low),
                          graph.truth("LessOrEqual", part, high))  # fmt: skip
        inside = good if inside is None else graph.like("And", inside, good)
        part = graph.like("Min", graph.like("Max", part, low), high)
        term = graph.like("Mul", part, graph.const(strides[dim], np.int64))
        start = term if start is None else graph.like("Add", start, term)
    for axis, dim in batch_in_operand:
        along = np.arange(batch[axis]) * strides[dim]
        along = along.reshape([-1 if i == axis else 1 for i in range(len(batch))])
        along = graph.const(np.broadcast_to(along, batch), np.int64)
        start = along if start is None else graph.like("Add", start, along)
    if start is None:
        start = graph.const(np.zeros(batch), np.int64)
    grid = np.zeros([sizes[d] for d in out], int)
    for axis, dim in enumerate(out):
        steps = np.arange(sizes[dim]) * strides[dim]
        grid = grid + steps.reshape([-1 if i == axis else 1 for i in range(len(out))])
    return start, inside, grid


@rule("gather")
def _gather(graph: Graph, eqn: Any, x: Tensor, indices: Tensor) -> Tensor:
    d, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    shape = eqn.outvars[0].aval.shape
    dropped = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    kept = [i for i in range(len(x.shape)) if i not in dropped]
    along = list(zip(d.start_indices_batching_dims, d.operand_batching_dims, strict=True))
    start, inside, grid = _flat_index(
        graph, indices, d.start_index_map, x.shape, sizes, along, kept
    )
    # Batch axes and slice axes, each in its place in the result.
    batch_axes = [i for i in range(len(shape)) if i not in d.offset_dims]
    at = graph.reshaped(start, [shape[i] if i in batch_axes else 1 for i in range(len(shape))])
    offset = grid.reshape([1 if i in batch_axes else shape[i] for i in range(len(shape))])
    index = graph.like("Add", at, graph.const(offset, np.int64))
    flat = graph.reshaped(x, (int(np.prod(x.shape)),))
    found = graph.taken(flat, index)
    if GatherScatterMode.from_any(eqn.params["mode"]) != GatherScatterMode.FILL_OR_DROP:
        return found
    if inside is None:
        return found
    filling = eqn.params["fill_value"]
    if filling is None:
        kind = x.dtype.kind
        filling = np.nan if kind == "f" else (np.iinfo(x.dtype).min if kind == "i" else 0)
    mask = graph.reshaped(inside, at.shape)
    return graph.where(mask, found, graph.const(filling, x.dtype))


@rule("scatter", "scatter_add", "scatter-add", "scatter_mul")
def _scatter(graph: Graph, eqn: Any, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    d = eqn.params["dimension_numbers"]
    dropped = {*d.inserted_window_dims, *d.operand_batching_dims}
    kept = [i for i in range(len(x.shape)) if i not in dropped]
    sizes = [1] * len(x.shape)
    for dim, axis in zip(kept, d.update_window_dims, strict=True):
        sizes[dim] = updates.shape[axis]
    along = list(zip(d.scatter_indices_batching_dims, d.operand_batching_dims, strict=True))
    start, inside, grid = _flat_index(
        graph, indices, d.scatter_dims_to_operand_dims, x.shape, sizes, along, kept
    )
    shape = updates.shape
    axes = [i for i in range(len(shape)) if i not in d.update_window_dims]
    at = graph.reshaped(start, [shape[i] if i in axes else 1 for i in range(len(shape))])
    offset = grid.reshape([1 if i in axes else shape[i] for i in range(len(shape))])
    index = graph.like("Add", at, graph.const(offset, np.int64))
    size, count = int(np.prod(x.shape)), int(np.prod(shape))
    flat = graph.reshaped(x, (size,))
    mode = GatherScatterMode.from_any(eqn.params["mode"])
    drops = mode == GatherScatterMode.FILL_OR_DROP and inside is not None
    if drops and inside is not None:  # What is outside goes to one more place, which is cut off.
        mask = graph.reshaped(inside, at.shape)
        index = graph.where(mask, index, graph.const(size, np.int64))
        flat = graph.joined([flat, graph.const(np.zeros(1), x.dtype)], 0)
    how = {"scatter_add": "add", "scatter-add": "add", "scatter_mul": "mul"}.get(
        eqn.primitive.name, "none"
    )
    made = _scattered(
        graph,
        flat,
        graph.reshaped(index, (count,)),
        graph.reshaped(updates, (count,)),
        reduction=how,
    )
    made = graph.cut(made, [0], [size]) if drops else made
    return graph.reshaped(made, x.shape)


def _starts(graph: Graph, shape, sizes, starts) -> Tensor:
    """The start of a dynamic slice, kept inside, as one vector."""
    parts = [graph.reshaped(graph.cast(s, np.int64), (1,)) for s in starts]
    whole = graph.joined(parts, 0)
    most = graph.const([n - m for n, m in zip(shape, sizes, strict=True)], np.int64)
    return graph.like("Min", graph.like("Max", whole, graph.const([0], np.int64)), most)


@rule("dynamic_slice")
def _dynamic_slice(graph: Graph, eqn: Any, x: Tensor, *starts: Tensor) -> Tensor:
    sizes = eqn.params["slice_sizes"]
    start = _starts(graph, x.shape, sizes, starts)
    end = graph.like("Add", start, graph.const(sizes, np.int64))
    axes = graph.const(range(len(sizes)), np.int64)
    return graph.node("Slice", [x, start, end, axes], sizes, x.dtype)


@rule("dynamic_update_slice")
def _dynamic_update(graph: Graph, eqn: Any, x: Tensor, update: Tensor, *starts: Tensor) -> Tensor:
    strides = _strides(x.shape)
    start = _starts(graph, x.shape, update.shape, starts)
    first = graph.node(
        "ReduceSum",
        [graph.like("Mul", start, graph.const(strides, np.int64)), graph.const([0], np.int64)],
        (1,), np.int64, keepdims=1,
    )  # fmt: skip
    grid = np.zeros(update.shape, int)
    for axis, stride in enumerate(strides):
        steps = np.arange(update.shape[axis]) * stride
        grid = grid + steps.reshape([-1 if i == axis else 1 for i in range(len(strides))])
    index = graph.like("Add", graph.const(grid.ravel(), np.int64), first)
    flat = graph.reshaped(x, (int(np.prod(x.shape)),))
    made = _scattered(graph, flat, index, graph.reshaped(update, (grid.size,)))
    return graph.reshaped(made, x.shape)
