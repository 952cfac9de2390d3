"""A traced function in few primitives: what C, JavaScript and ONNX share.

JAX has several primitives for one thing. Here calls of other jaxprs are written out, and what is a
composition of others becomes that composition, so that languages and ONNX need rules for the core
alone; factorizations and sorting become loops (`array_algorithms`). Numbers are those of JAX up to
round-off.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.interpreters import partial_eval
from jax.lax import GatherScatterMode

from mbdnode.errors import UserError
from mbdnode.exports import array_algorithms

_REWRITES: dict[str, Callable[..., Any]] = {}


def traced(function: Callable[..., Any], *arguments: Any) -> ClosedJaxpr:
    """The jaxpr of a function in core primitives, without what its results do not need.

    **Arguments:**

    - `function`: of arrays.
    - `arguments`: arrays, or their shapes and types.

    **Returns:**

    A closed jaxpr.
    """
    return _core(jax.make_jaxpr(function)(*arguments))


def _core(closed: ClosedJaxpr) -> ClosedJaxpr:
    made = jax.make_jaxpr(functools.partial(_run, closed))(*closed.in_avals)
    used = [True] * len(made.jaxpr.outvars)
    jaxpr, _ = partial_eval.dce_jaxpr(made.jaxpr, used, instantiate=True)
    return ClosedJaxpr(jaxpr, made.consts)


def _run(closed: ClosedJaxpr | Jaxpr, *values: Any) -> list[Any]:
    """The results of a jaxpr, by core primitives."""
    jaxpr, consts = (closed, ()) if isinstance(closed, Jaxpr) else (closed.jaxpr, closed.consts)
    known: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
    known |= zip(jaxpr.constvars, consts, strict=True)

    def read(atom: Any) -> Any:
        return known[atom] if not isinstance(atom, Literal) else _literal(atom)

    eqn: Any
    for eqn in jaxpr.eqns:
        name, given = eqn.primitive.name, [*map(read, eqn.invars)]
        if name != "shift_right_arithmetic" and any(isinstance(x, _Bits) for x in given):
            raise UserError(
                f"The model uses the bits of a float in {name!r}, which the export cannot look at."
            )
        made = _REWRITES.get(name, _unchanged)(eqn, *given)
        made = made if isinstance(made, (list, tuple)) else [made]
        known |= zip(eqn.outvars, made, strict=True)
    return [read(atom) for atom in jaxpr.outvars]


def _literal(atom: Any) -> np.ndarray:
    return np.asarray(atom.val, atom.aval.dtype)


def _unchanged(eqn: Any, *values: Any) -> Any:
    return eqn.primitive.bind(*values, **eqn.params)


def _rewrite(*names: str) -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        _REWRITES.update(dict.fromkeys(names, function))
        return function

    return register


# Calls, loops and branches


@_rewrite("jit", "checkpoint", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call")
def _call(eqn: Any, *values: Any) -> list[Any]:
    names = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
    return _run(next(eqn.params[n] for n in names if eqn.params.get(n) is not None), *values)


@_rewrite("custom_linear_solve")
def _linear_solve(eqn: Any, *values: Any) -> list[Any]:
    lengths = eqn.params["const_lengths"]
    start = lengths.matvec + lengths.vecmat
    right = values[start + lengths.solve + lengths.transpose_solve :]
    return _run(eqn.params["jaxprs"].solve, *values[start : start + lengths.solve], *right)


@_rewrite("platform_index")
def _platform(eqn: Any) -> Any:
    """The branch for a processor, or the one for everything else."""
    platforms = list(eqn.params["platforms"])
    own = [k for k, names in enumerate(platforms) if names is not None and "cpu" in names]
    return np.int32(own[0] if own else platforms.index(None))


@_rewrite("cond")
def _cond(eqn: Any, which: Any, *values: Any) -> Any:
    branches = eqn.params["branches"]
    if isinstance(which, (np.generic, np.ndarray)):
        return _run(branches[min(max(int(which), 0), len(branches) - 1)], *values)
    return _unchanged_but(eqn, [which, *values], branches=tuple(map(_core, branches)))


@_rewrite("while")
def _while(eqn: Any, *values: Any) -> Any:
    inner = {key: _core(eqn.params[key]) for key in ("cond_jaxpr", "body_jaxpr")}
    return _unchanged_but(eqn, values, **inner)


@_rewrite("scan")
def _scan(eqn: Any, *values: Any) -> Any:
    """Forwards: one that goes backwards has its rows turned."""
    p = eqn.params
    first, back = p["num_consts"] + p["num_carry"], p["reverse"]
    turned = lambda rows: [_reversed(x, 0) for x in rows] if back else rows  # noqa: E731
    given = [*values[:first], *turned(values[first:])]
    made = _unchanged_but(eqn, given, jaxpr=_core(p["jaxpr"]), reverse=False)
    return [*made[: p["num_carry"]], *turned(made[p["num_carry"] :])]


def _unchanged_but(eqn: Any, values: Sequence[Any], **params: Any) -> Any:
    return eqn.primitive.bind(*values, **{**eqn.params, **params})


# Element by element


@_rewrite("copy", "stop_gradient", "optimization_barrier")
def _same(eqn: Any, *values: Any) -> Any:
    return values


@_rewrite("square")
def _square(eqn: Any, x: Any) -> Any:
    return lax.mul(x, x)


@_rewrite("rsqrt")
def _rsqrt(eqn: Any, x: Any) -> Any:
    return lax.div(_like(x, 1), lax.sqrt(x))


@_rewrite("exp2")
def _exp2(eqn: Any, x: Any) -> Any:
    return lax.pow(_like(x, 2), x)


@_rewrite("logistic")
def _logistic(eqn: Any, x: Any) -> Any:
    return lax.div(_like(x, 1), lax.add(lax.exp(lax.neg(x)), _like(x, 1)))


@_rewrite("clamp")
def _clamp(eqn: Any, least: Any, x: Any, most: Any) -> Any:
    wide = lambda a: jnp.broadcast_to(a, x.shape)  # noqa: E731
    return lax.min(lax.max(x, wide(least)), wide(most))


@_rewrite("pow")
def _pow(eqn: Any, x: Any, y: Any) -> Any:
    shape = eqn.outvars[0].aval.shape
    wide = (jnp.broadcast_to(lax.convert_element_type(a, x.dtype), shape) for a in (x, y))
    return lax.pow(*wide)


@_rewrite("integer_pow")
def _integer_pow(eqn: Any, x: Any) -> Any:
    """By squaring."""
    result, factor, left = None, x, abs(eqn.params["y"])
    while left:
        if left & 1:
            result = factor if result is None else lax.mul(result, factor)
        left >>= 1
        factor = lax.mul(factor, factor) if left else factor
    result = _like(x, 1) if result is None else result
    return lax.div(_like(x, 1), result) if eqn.params["y"] < 0 else result


@_rewrite("round")
def _round(eqn: Any, x: Any) -> Any:
    if eqn.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN:
        return _unchanged(eqn, x)
    size = lax.abs(x)
    below = lax.floor(size)
    up = lax.ge(lax.sub(size, below), _like(x, 0.5))
    return lax.mul(lax.sign(x), lax.select(up, lax.add(below, _like(x, 1)), below))


@_rewrite("add_any")
def _add_any(eqn: Any, x: Any, y: Any) -> Any:
    return lax.add(x, y)


@_rewrite("select_n")
def _select(eqn: Any, which: Any, *cases: Any) -> Any:
    if which.dtype == bool:
        return _unchanged(eqn, which, *cases)
    result = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        here = lax.le(which, _like(which, number))
        result = lax.select(jnp.broadcast_to(here, result.shape), cases[number], result)
    return result


class _Bits:
    """The bits of a float, of which only the sign is ever asked."""

    def __init__(self, x: Any):
        self.x = x


@_rewrite("bitcast_convert_type")
def _bitcast(eqn: Any, x: Any) -> Any:
    if x.dtype.kind != "f":
        raise UserError(
            f"The model reads {x.dtype} as the bits of another type (bitcast_convert_type), which "
            "the export does not know."
        )
    return _Bits(x)


@_rewrite("shift_right_arithmetic")
def _shift(eqn: Any, x: Any, by: Any) -> Any:
    """-1 for a number with a sign, that of a zero too, and 0 for others."""
    if not isinstance(x, _Bits):
        raise UserError("The model shifts the bits of integers, which the export does not do.")
    number, kind, zero = x.x, eqn.outvars[0].aval.dtype, _like(x.x, 0)
    if not isinstance(by, np.ndarray) or by.item() != 8 * kind.itemsize - 1:
        raise UserError("The model shifts the bits of a float, which the export cannot look at.")
    minus = lax.lt(lax.div(_like(number, 1), number), zero)
    minus = lax.bitwise_and(lax.eq(number, zero), minus)
    minus = lax.bitwise_or(lax.lt(number, zero), minus)
    return lax.neg(lax.convert_element_type(minus, kind))


def _like(x: Any, value: Any) -> Any:
    return lax.full(np.shape(x), value, x.dtype)


# Shapes


@_rewrite("squeeze", "expand_dims", "reshape")
def _reshape(eqn: Any, x: Any, *_: Any) -> Any:
    if eqn.primitive.name == "reshape" and eqn.params["dimensions"] is not None:
        x = lax.transpose(x, eqn.params["dimensions"])
    return _shaped(x, eqn.outvars[0].aval.shape)


def _shaped(x: Any, shape: Sequence[int]) -> Any:
    return x if x.shape == tuple(shape) else lax.reshape(x, tuple(shape))


@_rewrite("tile")
def _tile(eqn: Any, x: Any) -> Any:
    apart = [n for pair in zip(eqn.params["reps"], x.shape, strict=True) for n in pair]
    wide = lax.broadcast_in_dim(x, apart, [2 * axis + 1 for axis in range(x.ndim)])
    return _shaped(wide, eqn.outvars[0].aval.shape)


@_rewrite("split")
def _split(eqn: Any, x: Any) -> list[Any]:
    axis, ends = eqn.params["axis"], np.cumsum([0, *eqn.params["sizes"]])
    return [lax.slice_in_dim(x, a, b, axis=axis) for a, b in itertools.pairwise(map(int, ends))]


@_rewrite("unstack")
def _unstack(eqn: Any, x: Any) -> list[Any]:
    axis = eqn.params["axis"]
    rows = [lax.slice_in_dim(x, k, k + 1, axis=axis) for k in range(x.shape[axis])]
    return [_shaped(row, eqn.outvars[0].aval.shape) for row in rows]


@_rewrite("stack")
def _stack(eqn: Any, *values: Any) -> Any:
    axis, shape = eqn.params["axis"], values[0].shape
    return lax.concatenate([_shaped(x, (*shape[:axis], 1, *shape[axis:])) for x in values], axis)


@_rewrite("rev")
def _rev(eqn: Any, x: Any) -> Any:
    for axis in eqn.params["dimensions"]:
        x = _reversed(x, axis)
    return x


def _reversed(x: Any, axis: int) -> Any:
    return _rows(x, axis, np.arange(x.shape[axis])[::-1])


def _rows(x: Any, axis: int, places: np.ndarray) -> Any:
    """The rows at places that are known, along an axis."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=others, collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = [1 if d == axis else n for d, n in enumerate(x.shape)]
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(x, np.asarray(places[:, None]), numbers, sizes, mode=mode)


@_rewrite("pad")
def _pad(eqn: Any, x: Any, filling: Any) -> Any:
    """Rows of `x` where there are such, and the filling elsewhere."""
    shape, inside = eqn.outvars[0].aval.shape, np.array(True)
    if x.size == 0:
        return lax.full(shape, filling)
    for axis, (before, _, between) in enumerate(eqn.params["padding_config"]):
        place, rest = np.divmod(np.arange(shape[axis]) - before, between + 1)
        good = (rest == 0) & (place >= 0) & (place < x.shape[axis])
        along = [-1 if d == axis else 1 for d in range(len(shape))]
        inside = inside & good.reshape(along)
        x = _rows(x, axis, np.where(good, place, 0))
    return lax.select(np.array(np.broadcast_to(inside, shape)), x, lax.full(shape, filling))


@_rewrite("dynamic_slice")
def _dynamic_slice(eqn: Any, x: Any, *starts: Any) -> Any:
    sizes, axes = eqn.params["slice_sizes"], tuple(range(x.ndim))
    if not axes:
        return x
    numbers = lax.GatherDimensionNumbers(
        offset_dims=axes, collapsed_slice_dims=(), start_index_map=axes
    )
    return _gathered(x, _vector(starts), numbers, sizes, GatherScatterMode.CLIP, None)


@_rewrite("dynamic_update_slice")
def _dynamic_update_slice(eqn: Any, x: Any, update: Any, *starts: Any) -> Any:
    axes = tuple(range(x.ndim))
    if not axes:
        return update
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=axes, inserted_window_dims=(), scatter_dims_to_operand_dims=axes
    )
    most = [n - m for n, m in zip(x.shape, update.shape, strict=True)]
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.scatter(x, _clipped(_vector(starts), most), update, numbers, mode=mode)


def _vector(scalars: Sequence[Any]) -> Any:
    return lax.concatenate([lax.reshape(jnp.asarray(x, int), (1,)) for x in scalars], 0)


@_rewrite("gather")
def _gather(eqn: Any, x: Any, indices: Any) -> Any:
    p = eqn.params
    how = p["dimension_numbers"], p["slice_sizes"], p["mode"], p["fill_value"]
    return _gathered(x, indices, *how)


def _gathered(x: Any, indices: Any, numbers: Any, sizes: Any, mode: Any, filling: Any) -> Any:
    """Elements at places within the array; others are moved there, or filled."""
    most = [x.shape[d] - sizes[d] for d in numbers.start_index_map]
    promised = mode == GatherScatterMode.PROMISE_IN_BOUNDS or not most
    safe = indices if promised else _clipped(indices, most)
    found = lax.gather(x, safe, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
    if promised or mode != GatherScatterMode.FILL_OR_DROP:
        return found
    good = lax.reduce_and(lax.eq(safe, indices), [indices.ndim - 1])
    axes = [d for d in range(found.ndim) if d not in numbers.offset_dims]
    good = lax.broadcast_in_dim(good, found.shape, axes)
    return lax.select(good, found, lax.full(found.shape, _filling(x.dtype, filling), x.dtype))


def _clipped(indices: Any, most: Sequence[int]) -> Any:
    limits = jnp.broadcast_to(np.asarray(most, indices.dtype), indices.shape)
    return lax.min(lax.max(indices, _like(indices, 0)), limits)


def _filling(dtype: Any, given: Any) -> Any:
    """What stands for an element that does not exist."""
    if given is not None:
        return given
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max


@_rewrite("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")
def _scatter(eqn: Any, x: Any, indices: Any, updates: Any) -> Any:
    """At places within the array: others are moved there, or go to rows that are cut off again."""
    numbers, mode = eqn.params["dimension_numbers"], eqn.params["mode"]
    promised, axes = GatherScatterMode.PROMISE_IN_BOUNDS, numbers.scatter_dims_to_operand_dims
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = [d for d in range(x.ndim) if d not in dropped]
    sizes = dict(zip(window, (updates.shape[k] for k in numbers.update_window_dims), strict=True))
    drops = mode == GatherScatterMode.FILL_OR_DROP and axes
    count = x.shape[axes[0]] if drops else 0
    if axes and mode != promised:
        safe = _clipped(indices, [x.shape[d] - sizes.get(d, 1) for d in axes])
        if drops:
            inside = lax.reduce_and(lax.eq(safe, indices), [indices.ndim - 1])
            inside = lax.broadcast_in_dim(inside, indices.shape, range(indices.ndim - 1))
            first = np.broadcast_to(np.arange(len(axes)) == 0, indices.shape)
            safe = lax.select(inside | ~first, safe, _like(safe, count))
            rows = [sizes.get(d, 1) if d == axes[0] else n for d, n in enumerate(x.shape)]
            x = lax.concatenate([x, lax.full(rows, 0, x.dtype)], axes[0])
        indices = safe
    if eqn.primitive.name == "scatter-sub":
        made = lax.scatter_add(x, indices, lax.neg(updates), numbers, mode=promised)
    else:
        made = _unchanged_but(eqn, [x, indices, updates], mode=promised)
    return lax.slice_in_dim(made, 0, count, axis=axes[0]) if drops else made


# Along an axis


@_rewrite("cumsum", "cumprod", "cummax", "cummin")
def _cumulative(eqn: Any, x: Any) -> Any:
    names = {"cumsum": lax.add, "cumprod": lax.mul, "cummax": lax.max, "cummin": lax.min}
    combine, axis, back = names[eqn.primitive.name], eqn.params["axis"], eqn.params["reverse"]
    rows = lax.transpose(x, (axis, *(d for d in range(x.ndim) if d != axis)))
    rows = _reversed(rows, 0) if back else rows
    if len(rows) > 1:
        add = lambda total, row: 2 * (combine(total, row),)  # noqa: E731
        first = lax.slice_in_dim(rows, 0, 1)
        others = lax.slice_in_dim(rows, 1, len(rows))
        start = _shaped(first, rows.shape[1:])
        rows = lax.concatenate([first, lax.scan(add, start, others)[1]], 0)
    rows = _reversed(rows, 0) if back else rows
    return lax.transpose(rows, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


@_rewrite("argmax", "argmin")
def _place_of_extreme(eqn: Any, x: Any) -> Any:
    axis, best = int(eqn.params["axes"][0]), jnp.max if eqn.primitive.name == "argmax" else jnp.min
    return _composed(eqn, lambda x: array_algorithms.place_of_extreme(x, axis, best), x)


@_rewrite("sort")
def _sort(eqn: Any, *values: Any) -> Any:
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    one = lambda *columns: array_algorithms.sorted_together(columns, keys)  # noqa: E731
    rows = _of_stack(one, values[0].ndim - 1)

    def along(*values):
        found = rows(*(jnp.moveaxis(x, axis, -1) for x in values))
        return [jnp.moveaxis(x, -1, axis) for x in found]

    return _composed(eqn, along, *values)


# Linear systems


@_rewrite("lu")
def _lu(eqn: Any, x: Any) -> Any:
    return _composed(eqn, _of_stack(array_algorithms.lu_factors, x.ndim - 2), x)


@_rewrite("lu_pivots_to_permutation")
def _order_of_rows(eqn: Any, pivots: Any) -> Any:
    count = eqn.params["permutation_size"]
    one = lambda x: array_algorithms.order_of_rows(x, count)  # noqa: E731
    return _composed(eqn, _of_stack(one, pivots.ndim - 1), pivots)


@_rewrite("triangular_solve")
def _triangular_solve(eqn: Any, a: Any, b: Any) -> Any:
    """`op(A) X = B`, or `X op(A) = B` as `op(A)^T X^T = B^T`."""
    p = eqn.params
    turns_a = bool(p["transpose_a"]) == p["left_side"]

    def one(a, b):
        a, b = a.T if turns_a else a, b if p["left_side"] else b.T
        lower = p["lower"] != turns_a
        x = array_algorithms.triangular_solution(a, b, lower, p["unit_diagonal"])
        return x if p["left_side"] else x.T

    return _composed(eqn, _of_stack(one, a.ndim - 2), a, b)


@_rewrite("cholesky")
def _cholesky(eqn: Any, x: Any) -> Any:
    return _composed(eqn, _of_stack(array_algorithms.cholesky_factor, x.ndim - 2), x)


def _of_stack(function: Callable, axes: int) -> Callable:
    """The same of arrays with so many axes more, which come first."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function


def _composed(eqn: Any, function: Callable, *values: Any) -> list[Any]:
    """The results of a function in JAX, in core primitives and of the equation's types."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        made = _run(jax.make_jaxpr(function)(*values), *values)
    kinds = [v.aval.dtype for v in eqn.outvars]
    return [lax.convert_element_type(x, kind) for x, kind in zip(made, kinds, strict=True)]
