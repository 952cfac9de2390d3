"""Rules of element-wise primitives."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.exports.ir import FLOATS, Expr, dtype_of
from mbdnode.exports.jaxpr_to_ir import Lowering, rule
from mbdnode.exports.values import Lazy, Value


def elementwise(
    low: Lowering,
    function: Callable[..., Expr],
    values: tuple[Value, ...],
    dtype: str,
    cost: int = 1,
) -> Value:
    """A function of the elements of arrays of one shape, or of scalars beside them.

    **Arguments:**

    - `low`: the lowering.
    - `function`: of one element of each.
    - `values`: the arrays.
    - `dtype`: of the result.
    - `cost`: in operations.

    **Returns:**

    The array of its values.
    """
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
    dtype = dtype_of(eqn.outvars[0].aval.dtype)
    if dtype is None:
        raise UserError(
            f"The model computes in {eqn.outvars[0].aval.dtype} ({eqn.primitive.name}), which no "
            "language of the export has. Use real numbers, integers or truth values."
        )
    return dtype


# Primitives that are one operation; the others follow.
_SAME = {
    **{name: name for name in ("add", "sub", "mul", "div", "rem", "neg", "abs", "sign", "max")},
    **{name: name for name in ("min", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p")},
    **{name: name for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh")},
    **{name: name for name in ("cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc")},
    **{name: name for name in ("floor", "ceil", "nextafter", "is_finite")},
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not")},
    "shift_left": "shl",
    "shift_right_arithmetic": "shr",
    "add_any": "add",
}
_COSTLY = {"exp", "log", "sin", "cos", "tan", "tanh", "pow", "erf", "logistic", "sqrt", "div"}


@rule(*_SAME)
def _operation(low: Lowering, eqn: Any, *values: Value) -> Value:
    name = _SAME[eqn.primitive.name]
    cost = 4 if name in _COSTLY else 1
    return elementwise(low, lambda *x: low.make.op(name, *x), values, _kind(eqn), cost)


@rule("copy", "copy_p", "stop_gradient", "reduce_precision", "optimization_barrier", "nonbatchable")
def _same(low: Lowering, eqn: Any, *values: Value) -> list[Value]:
    if eqn.primitive.name == "reduce_precision":
        bits = eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
        if bits not in ((11, 52), (8, 23)):
            raise UserError(f"The model rounds to {bits} bits, which the export does not do.")
    return list(values)


@rule("square")
def _square(low: Lowering, eqn: Any, x: Value) -> Value:
    return elementwise(low, lambda a: low.make.op("mul", a, a), (low.settled(x),), _kind(eqn))


@rule("rsqrt")
def _rsqrt(low: Lowering, eqn: Any, x: Value) -> Value:
    make = low.make
    one = make.const(1, _kind(eqn))
    inverse = lambda a: make.op("div", one, make.op("sqrt", a))  # noqa: E731
    return elementwise(low, inverse, (x,), _kind(eqn), 8)


@rule("logistic")
def _logistic(low: Lowering, eqn: Any, x: Value) -> Value:
    make = low.make
    one = make.const(1, _kind(eqn))

    def function(a):
        return make.op("div", one, make.op("add", make.op("exp", make.op("neg", a)), one))

    return elementwise(low, function, (x,), _kind(eqn), 8)


@rule("pow")
def _pow(low: Lowering, eqn: Any, x: Value, y: Value) -> Value:
    make, dtype = low.make, _kind(eqn)
    function = lambda a, b: make.op("pow", a, make.cast(b, dtype))  # noqa: E731
    return elementwise(low, function, (x, y), dtype, 8)


@rule("integer_pow")
def _integer_pow(low: Lowering, eqn: Any, x: Value) -> Value:
    make, power, dtype = low.make, eqn.params["y"], _kind(eqn)

    def function(a: Expr) -> Expr:
        result, factor, left = None, a, abs(power)
        while left:
            if left & 1:
                result = factor if result is None else make.op("mul", result, factor)
            left >>= 1
            factor = make.op("mul", factor, factor) if left else factor
        result = make.const(1, dtype) if result is None else result
        return make.op("div", make.const(1, dtype), result) if power < 0 else result

    return elementwise(low, function, (low.settled(x),), dtype, 2)


@rule("round")
def _round(low: Lowering, eqn: Any, x: Value) -> Value:
    name = "rint" if int(eqn.params["rounding_method"]) == 1 else "round_away"
    return elementwise(low, lambda a: low.make.op(name, a), (x,), _kind(eqn))


@rule("convert_element_type")
def _convert(low: Lowering, eqn: Any, x: Value) -> Value:
    dtype = _kind(eqn)
    if x.dtype == dtype:
        return x
    return elementwise(low, lambda a: low.make.cast(a, dtype), (x,), dtype)


@rule("select_n")
def _select(low: Lowering, eqn: Any, which: Value, *cases: Value) -> Value:
    make = low.make

    def function(w: Expr, *options: Expr) -> Expr:
        if w.dtype == "bool":
            no, yes = options if len(options) == 2 else (options[0], options[0])
            return make.select(w, yes, no)
        result = options[-1]
        for number in range(len(options) - 2, -1, -1):
            here = make.op("le", w, make.const(number, w.dtype))
            result = make.select(here, options[number], result)
        return result

    return elementwise(low, function, (which, *cases), _kind(eqn))


@rule("clamp")
def _clamp(low: Lowering, eqn: Any, least: Value, x: Value, most: Value) -> Value:
    make = low.make
    function = lambda a, b, c: make.op("min", make.op("max", b, a), c)  # noqa: E731
    return elementwise(low, function, (least, x, most), _kind(eqn), 2)


@rule("bitcast_convert_type")
def _bitcast(low: Lowering, eqn: Any, x: Value) -> Value:
    """Only the sign is ever asked of the bits of a float: see `shift_right_arithmetic`."""
    dtype = _kind(eqn)
    if x.dtype not in FLOATS:
        raise UserError(
            f"The model reads {x.dtype} as the bits of {dtype} (bitcast_convert_type), which the "
            "export does not know."
        )
    return elementwise(low, lambda a: low.make.bits(a, dtype), (x,), dtype)
