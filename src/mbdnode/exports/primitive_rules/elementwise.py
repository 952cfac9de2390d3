"""Rules of element-wise primitives."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mbdnode.exports.builder import OPERATIONS
from mbdnode.exports.ir import Expr, dtype_of
from mbdnode.exports.jaxpr_to_ir import Lowering, refused, rule
from mbdnode.exports.values import Lazy, Value


def elementwise(
    low: Lowering,
    function: Callable[..., Expr],
    values: tuple[Value, ...],
    dtype: str,
    cost: int = 1,
) -> Value:
    """A function of the elements of arrays of one shape, or of scalars beside them."""
    # Axes of length one go with any length.
    shape = np.broadcast_shapes(*(v.shape for v in values))
    size = math.prod(shape)
    values = tuple(low.settled(v) if v.size < size else v for v in values)

    if low.unrolls(values, size):
        columns = [np.broadcast_to(low.elements(v).array, shape).flat for v in values]
        return low.listed(shape, dtype, map(function, *columns))

    def element(index: tuple) -> Expr:
        places = (
            tuple(0 if n == 1 else i for i, n in zip(index, v.shape, strict=False)) for v in values
        )
        return function(*(low.element(v, at) for v, at in zip(values, places, strict=True)))

    return Lazy(shape, dtype, element, cost + sum(v.cost for v in values if isinstance(v, Lazy)))


def _kind(eqn: Any) -> str:
    return dtype_of(eqn.outvars[0].aval.dtype)


_COSTLY = {"exp", "log", "sin", "cos", "tan", "tanh", "pow", "erf", "sqrt", "div"}


@rule(*OPERATIONS)
def _operation(low: Lowering, eqn: Any, *values: Value) -> Value:
    name = eqn.primitive.name
    if name in ("and", "or", "not") and values[0].dtype != "bool":
        raise refused(eqn, "of integers")
    cost = 4 if name in _COSTLY else 1
    return elementwise(low, lambda *x: low.make.op(name, *x), values, _kind(eqn), cost)


@rule("convert_element_type")
def _convert(low: Lowering, eqn: Any, x: Value) -> Value:
    dtype = _kind(eqn)
    if x.dtype == dtype:
        return x
    return elementwise(low, lambda a: low.make.cast(a, dtype), (x,), dtype)


@rule("select_n")
def _select(low: Lowering, eqn: Any, which: Value, *cases: Value) -> Value:
    """Of a truth value: other kinds of choices are nested ones of these."""
    function = lambda w, no, yes=None: low.make.select(w, no if yes is None else yes, no)  # noqa: E731
    return elementwise(low, function, (which, *cases), _kind(eqn))
