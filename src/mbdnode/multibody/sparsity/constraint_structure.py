"""On which coordinates each constraint depends, and on which of them linearly.

The program of the constraints (its jaxpr) is followed from the coordinates to the residuals, with
no number of the state looked at. Of every entry of every value it is known

    value_k = sum_j coefficient_kj q_j  +  what depends on the coordinates j where nonlinear_kj,

where a coefficient is a number: the same in every configuration, at all times, for all parameters.
What is not known of an operation counts as nonlinear, so that the pattern of `Phi_q` can be too
full but never too sparse, and a coefficient is a constant wherever one is stated.

Since a joint couples two bodies, `Phi_q` has few entries in a row, and few directional derivatives
give all that are not constants (see `Coloring`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array, Float

# The result has the shape of its arguments, and is nonlinear in each of them, entry by entry.
_ELEMENTWISE = (
    "abs acos acosh and asin asinh atan atan2 atanh cbrt ceil clamp cos cosh div eq erf erfc exp "
    "exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne not or "
    "pow rem round rsqrt select_n sign sin sinh sqrt square tan tanh xor"
)
# The result is made of entries of its arguments, or of the first of them.
_JOINING = frozenset(["concatenate", "stack"])
_MOVING = (
    "broadcast_in_dim dynamic_slice expand_dims gather reshape rev slice split squeeze transpose "
    "unstack"
)
_SAME = frozenset(["copy", "reduce_precision", "stop_gradient"])
_CALLS = frozenset(["jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"])


class Structure(NamedTuple):
    """How values depend on the coordinates, which are the last axis.

    **Arguments:**

    - `coefficient`: of each coordinate, where the value is linear in it.
    - `nonlinear`: whether the value may depend on it in another way; its coefficient is then zero.
    """

    coefficient: np.ndarray
    nonlinear: np.ndarray

    @property
    def depends(self) -> np.ndarray:
        """Whether the value may depend on each coordinate."""
        return self.nonlinear | (self.coefficient != 0)


class Coloring(NamedTuple):
    """Columns of a Jacobian in groups, of which no two have a row in common.

    All columns of one color are found by one directional derivative, so that a mechanism of any
    size needs a few of them. Columns that are constant in all rows have no color.

    **Arguments:**

    - `seeds`: the direction of each color.
    - `color`: of each column; any where it has none.
    - `column`: of each row, the column of each color; any where it has none.
    - `used`: where it has one.
    - `constant`: the entries of the columns without a color.
    """

    seeds: np.ndarray
    color: np.ndarray
    column: np.ndarray
    used: np.ndarray
    constant: np.ndarray

    def derivatives(self, function: Callable, q: Float[Array, " nq"]) -> Float[Array, "... colors"]:
        """The derivatives of a function along all seeds, as the last axis of its result."""
        along = lambda seed: jax.jvp(function, (q,), (seed,))[1]  # noqa: E731
        return jax.vmap(along, out_axes=-1)(jnp.asarray(self.seeds, q.dtype))

    def jacobian(self, function: Callable, q: Float[Array, " nq"]) -> Float[Array, "nc nq"]:
        """All of the Jacobian of a function with this pattern."""
        present = np.zeros((len(self.column), len(self.color)), bool)
        rows, colors = np.nonzero(self.used)
        present[rows, self.column[rows, colors]] = True
        constant = jnp.asarray(self.constant, q.dtype)
        if not len(self.seeds):
            return constant
        # Spread by a product: XLA would evaluate the function again for every entry of a gather.
        spread = jnp.asarray(np.eye(len(self.seeds))[:, self.color], q.dtype)
        return jnp.where(present, self.derivatives(function, q) @ spread, constant)


def color_columns(structure: Structure) -> Coloring:
    """A `Coloring` of the Jacobian of what has a structure."""
    nonlinear_columns = structure.nonlinear.any(axis=0)
    depends = structure.depends & nonlinear_columns
    count, size = depends.shape
    # Of 32 bits, since exported programs may be traced without larger integers.
    color, taken = np.zeros(size, np.int32), []
    for column in np.flatnonzero(nonlinear_columns):
        own = depends[:, column]
        number = next((n for n, rows in enumerate(taken) if not np.any(rows & own)), len(taken))
        if number == len(taken):
            taken.append(np.zeros(count, bool))
        taken[number] = taken[number] | own
        color[column] = number
    seeds = ((color[None, :] == np.arange(len(taken))[:, None]) & nonlinear_columns).astype(float)
    column = np.zeros((count, len(taken)), np.int32)
    used = np.zeros((count, len(taken)), bool)
    rows, columns = np.nonzero(depends)
    column[rows, color[columns]], used[rows, color[columns]] = columns, True
    return Coloring(
        seeds, color, column, used, np.where(nonlinear_columns, 0.0, structure.coefficient)
    )


def structure_of(function: Callable, size: int, *others: Any) -> Structure:
    """How the vector that a function returns depends on its first argument, a vector."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), others)
    closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((size,), float), *shapes)
    start = Structure(np.eye(size), np.zeros((size, size), bool))
    rest = [None] * (len(closed.jaxpr.invars) - 1)
    (found,) = _follow(closed, [start, *rest], size)
    return found or _nothing(closed.out_avals[0].shape, size)


def _nothing(shape: tuple[int, ...], size: int) -> Structure:
    return Structure(np.zeros((*shape, size)), np.zeros((*shape, size), bool))


def _follow(closed: ClosedJaxpr, arguments: list[Structure | None], size: int):
    """The structures of a program's results; None for what depends on no coordinate."""
    jaxpr = closed.jaxpr
    known: dict[Any, Structure | None] = dict(zip(jaxpr.invars, arguments, strict=True))
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    makers: dict[Any, Any] = {}

    def read(var):
        return None if isinstance(var, Literal) else known.get(var)

    def value(var):
        """A number that is known before any state is; None for parameters and the like."""
        if isinstance(var, Literal):
            return np.asarray(var.val)
        if var not in values and var in makers:
            values.update(zip(makers[var].outvars, _evaluate(makers[var], value), strict=True))
        found = values.get(var)
        return None if found is None or isinstance(found, Tracer) else np.asarray(found)

    for equation in jaxpr.eqns:
        given = [read(var) for var in equation.invars]
        if any(entry is not None for entry in given):
            found = _through(equation, given, value, size)
            known.update(zip(equation.outvars, found, strict=True))
        else:
            makers.update((var, equation) for var in equation.outvars)
    return [read(var) for var in jaxpr.outvars]


def _evaluate(equation, value: Callable) -> list[Any]:
    """The results of an operation on constants, such as indices; None for what is none."""
    constants = [value(var) for var in equation.invars]
    if any(constant is None for constant in constants):
        return [None] * len(equation.outvars)
    with jax.ensure_compile_time_eval():
        found = equation.primitive.bind(*map(jnp.asarray, constants), **equation.params)
    return list(found) if equation.primitive.multiple_results else [found]


def _through(equation, given: list[Structure | None], value: Callable, size: int):
    """The structures of an operation's results."""
    name, shapes = equation.primitive.name, [var.aval.shape for var in equation.outvars]
    full = [g or _nothing(v.aval.shape, size) for g, v in zip(given, equation.invars, strict=True)]
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if name in _CALLS and isinstance(inner, ClosedJaxpr) and len(inner.jaxpr.invars) == len(given):
        return _follow(inner, given, size)
    if name in _SAME:
        return [full[0]]
    if name == "convert_element_type" and jnp.issubdtype(equation.params["new_dtype"], jnp.inexact):
        return [full[0]]
    if name in ("add", "add_any", "sub", "neg"):
        signs = {"sub": (1, -1), "neg": (-1,)}.get(name, (1, 1))
        total = np.zeros((*shapes[0], size))
        for sign, x in zip(signs, full, strict=True):
            total = total + sign * x.coefficient
        return [_made(total, _any([x.nonlinear for x in full], shapes[0], size))]
    if name in ("mul", "div"):
        scaled = _scaled(equation, given, full, value)
        if scaled is not None:
            return [scaled]
    if name == "reduce_sum":
        axes = tuple(equation.params["axes"])
        nonlinear = np.asarray(full[0].nonlinear.any(axis=axes))
        return [_made(full[0].coefficient.sum(axis=axes), nonlinear)]
    if name == "dot_general":
        found = _product(equation, given, full, value)
        if found is not None:
            return [found]
    if name in _JOINING or name in _MOVING.split():
        found = _moved(equation, given, full, value, size)
        if found is not None:
            return found
    if name in _ELEMENTWISE.split():
        nonlinear = _any([x.depends for x in full], shapes[0], size)
        return [_made(np.zeros((*shapes[0], size)), nonlinear)]
    touched = np.any([x.depends.reshape(-1, size).any(axis=0) for x in full], axis=0)
    return [_made(np.zeros((*s, size)), np.broadcast_to(touched, (*s, size))) for s in shapes]


def _made(coefficient: np.ndarray, nonlinear: np.ndarray) -> Structure:
    return Structure(np.where(nonlinear, 0.0, coefficient), nonlinear)


def _any(masks: list[np.ndarray], shape: tuple[int, ...], size: int) -> np.ndarray:
    """Where any of the masks is true, entry by entry."""
    found = np.zeros((*shape, size), bool)
    for mask in masks:
        found = found | mask
    return found


def _scaled(equation, given, full, value: Callable) -> Structure | None:
    """A product with, or a quotient by, a constant."""
    divides = equation.primitive.name == "div"
    for own, other in ((0, 1),) if divides else ((0, 1), (1, 0)):
        constant = None if given[other] is not None else value(equation.invars[other])
        if constant is not None and np.all(np.isfinite(constant)) and not divides:
            factor = constant[..., None]
            return _made(full[own].coefficient * factor, full[own].nonlinear & (factor != 0))
        if constant is not None and divides and np.all(constant != 0):
            return _made(full[own].coefficient / constant[..., None], full[own].nonlinear)
    return None


def _product(equation, given, full, value: Callable) -> Structure | None:
    """A constant matrix times what depends on the coordinates; its zeros hide what they meet."""
    (left, right), (batch, _) = equation.params["dimension_numbers"]
    own = 0 if given[1] is None else 1
    constant = None if given[1 - own] is not None else value(equation.invars[1 - own])
    if batch or constant is None or not np.all(np.isfinite(constant)):
        return None
    axes = (right, left) if own == 0 else (left, right)

    def times(matrix, entries):
        # The axes that are left of the first factor come first in the result.
        found = np.tensordot(matrix, entries, axes=(axes[0], axes[1]))
        free = matrix.ndim - len(axes[0])
        return found if own == 1 else np.moveaxis(found, range(free), range(-free - 1, -1))

    nonlinear = times((constant != 0).astype(float), full[own].nonlinear.astype(float)) > 0
    return _made(times(constant, full[own].coefficient), nonlinear)


def _moved(equation, given, full, value: Callable, size: int) -> list[Structure] | None:
    """Apply the operation to the entries' numbers, and see which of them end up where."""
    count = len(full) if equation.primitive.name in _JOINING else 1
    if any(g is not None for g in given[count:]):
        return None
    constants = [value(var) for var in equation.invars[count:]]
    if any(constant is None for constant in constants):
        return None
    # Number zero is what an operation fills up with.
    starts = np.cumsum([1, *(int(np.prod(x.nonlinear.shape[:-1])) for x in full[:count])])
    numbers = [
        np.arange(a, b, dtype=np.int32).reshape(x.nonlinear.shape[:-1])
        for a, b, x in zip(starts, starts[1:], full[:count], strict=False)
    ]
    none = _nothing((1,), size)
    table = [
        np.concatenate([getattr(x, field).reshape(-1, size) for x in (none, *full[:count])])
        for field in Structure._fields
    ]
    places = _move(equation, numbers, constants)
    return [Structure(*(part[np.asarray(place)] for part in table)) for place in places]


def _move(equation, numbers: list[np.ndarray], constants: list[Any]) -> list[Any]:
    """What the operation makes of numbers; the common ones without a compiler."""
    name, params = equation.primitive.name, dict(equation.params)
    shape = equation.outvars[0].aval.shape
    if name in ("squeeze", "expand_dims") or (name == "reshape" and params["dimensions"] is None):
        return [numbers[0].reshape(shape)]
    if name == "slice":
        steps = params["strides"] or (1,) * len(shape)
        limits = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
        return [numbers[0][tuple(slice(*limit) for limit in limits)]]
    if name == "broadcast_in_dim" and not constants:
        wide = [1] * len(shape)
        for axis, length in zip(params["broadcast_dimensions"], numbers[0].shape, strict=True):
            wide[axis] = length
        return [np.broadcast_to(numbers[0].reshape(wide), shape)]
    if name == "concatenate":
        return [np.concatenate(numbers, axis=params["dimension"])]
    if name == "stack":
        return [np.stack(numbers, axis=params["axis"])]
    if "fill_value" in params:
        params["fill_value"] = 0
    with jax.ensure_compile_time_eval():
        found = equation.primitive.bind(*map(jnp.asarray, [*numbers, *constants]), **params)
    return list(found) if equation.primitive.multiple_results else [found]
