"""Rules of element-wise primitives.

onnxruntime has no float64 version of some operators. Those are written by others that it has, in
ways that lose no digits; inverse trigonometric functions and the error function cannot be, have no
rule, and are refused by name.
"""

from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.exports.onnx.graph import Graph, SignBits, Tensor, rule

_SAME = {
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs"},
    **{"sign": "Sign", "max": "Max", "min": "Min", "sqrt": "Sqrt", "exp": "Exp", "log": "Log"},
    **{
        "sin": "Sin",
        "cos": "Cos",
        "tanh": "Tanh",
        "floor": "Floor",
        "ceil": "Ceil",
        "add_any": "Add",
    },
}
_TRUTH = {
    **{"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
}
_LOGIC = {"and": ("And", "BitwiseAnd"), "or": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor")}


@rule(*_SAME)
def _same(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.like(_SAME[eqn.primitive.name], *values)


@rule(*_TRUTH)
def _truth(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.truth(_TRUTH[eqn.primitive.name], *values)


@rule("ne")
def _ne(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.truth("Not", graph.truth("Equal", *values))


@rule(*_LOGIC)
def _logic(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    logical, bitwise = _LOGIC[eqn.primitive.name]
    return graph.like(logical if values[0].dtype == bool else bitwise, *values)


@rule("not")
def _not(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Not" if x.dtype == bool else "BitwiseNot", x)


@rule("tan")
def _tan(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Div", graph.like("Sin", x), graph.like("Cos", x))


@rule("logistic")
def _logistic(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    one = graph.const(1.0, x.dtype)
    return graph.like("Div", one, graph.like("Add", one, graph.like("Exp", graph.like("Neg", x))))


@rule("expm1")
def _expm1(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    """Kahan's: the errors of `u - 1` and of `log u` cancel, with `u = exp x`."""
    one = graph.const(1.0, x.dtype)
    u = graph.like("Exp", x)
    less = graph.like("Sub", u, one)
    ratio = graph.like("Div", graph.like("Mul", less, x), graph.like("Log", u))
    small = graph.truth("Equal", u, one)
    large = graph.truth("Greater", graph.like("Abs", x), graph.const(30.0, x.dtype))
    return graph.where(small, x, graph.where(large, less, ratio))


@rule("log1p")
def _log1p(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    """Kahan's: the errors of `log u` and of `u - 1` cancel, with `u = 1 + x`."""
    one = graph.const(1.0, x.dtype)
    u = graph.like("Add", one, x)
    log = graph.like("Log", u)
    ratio = graph.like("Div", graph.like("Mul", log, x), graph.like("Sub", u, one))
    return graph.where(graph.truth("Equal", u, one), x, ratio)


@rule("sinh")
def _sinh(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    """`(e + e / (e + 1)) / 2` with `e = exp x - 1`, exact near zero."""
    e = _expm1(graph, eqn, x)
    other = graph.like("Div", e, graph.like("Add", e, graph.const(1.0, x.dtype)))
    return graph.like("Mul", graph.like("Add", e, other), graph.const(0.5, x.dtype))


@rule("cosh")
def _cosh(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    both = graph.like("Exp", x), graph.like("Exp", graph.like("Neg", x))
    return graph.like("Mul", graph.like("Add", *both), graph.const(0.5, x.dtype))


@rule("exp2")
def _exp2(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Pow", graph.const(2.0, x.dtype), x)


@rule("round")
def _round(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    if int(eqn.params["rounding_method"]) == 1:
        return graph.like("Round", x)  # halves to even
    up = graph.like("Floor", graph.like("Add", graph.like("Abs", x), graph.const(0.5, x.dtype)))
    return graph.like("Mul", graph.like("Sign", x), up)


@rule("bitcast_convert_type")
def _sign_bits(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    """Of the bits of a float only the sign is ever asked, that of a zero too: -1 or 0."""
    zero, one = graph.const(0.0, x.dtype), graph.const(1.0, x.dtype)
    below = graph.truth("Less", x, zero)
    minus = graph.truth("Less", graph.like("Div", one, x), zero)
    negative = graph.like("Or", below, graph.like("And", graph.truth("Equal", x, zero), minus))
    kind = eqn.outvars[0].aval.dtype
    made = graph.where(negative, graph.const(-1, kind), graph.const(0, kind))
    return SignBits(made.name, made.shape, made.dtype)


@rule("shift_right_arithmetic")
def _shift(graph: Graph, eqn: Any, x: Tensor, by: Tensor) -> Tensor:
    whole = 8 * x.dtype.itemsize - 1
    if not isinstance(x, SignBits) or by.value is None or np.any(by.value != whole):
        raise UserError(
            "The model shifts bits ('shift_right_arithmetic'), which is not written as ONNX. "
            "Export it to C, or as an FMU."
        )
    return Tensor(x.name, x.shape, x.dtype)


@rule("rsqrt")
def _rsqrt(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Div", graph.const(1.0, x.dtype), graph.like("Sqrt", x))


@rule("square")
def _square(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Mul", x, x)


@rule("pow")
def _pow(graph: Graph, eqn: Any, x: Tensor, y: Tensor) -> Tensor:
    return graph.like("Pow", x, graph.cast(y, x.dtype))


@rule("integer_pow")
def _integer_pow(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    power = int(eqn.params["y"])
    one = graph.const(1, x.dtype)
    result, factor, left = None, x, abs(power)
    while left:
        if left & 1:
            result = factor if result is None else graph.like("Mul", result, factor)
        left >>= 1
        factor = graph.like("Mul", factor, factor) if left else factor
    result = one if result is None else result
    return graph.like("Div", one, result) if power < 0 else result


@rule("rem")
def _rem(graph: Graph, eqn: Any, x: Tensor, y: Tensor) -> Tensor:
    return graph.like("Mod", x, y, fmod=1)


@rule("is_finite")
def _is_finite(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    # Of what is infinite or not a number, the difference with itself is not a number.
    return graph.truth("Equal", graph.like("Sub", x, x), graph.const(0.0, x.dtype))


@rule("copy", "copy_p", "stop_gradient", "optimization_barrier")
def _unchanged(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    return list(values)


@rule("convert_element_type")
def _convert(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.cast(x, eqn.params["new_dtype"])


@rule("select_n")
def _select(graph: Graph, eqn: Any, which: Tensor, *cases: Tensor) -> Tensor:
    if which.dtype == bool:
        return graph.where(which, cases[-1], cases[0])
    result = cases[-1]
    for number in range(len(cases) - 2, -1, -1):
        here = graph.truth("LessOrEqual", which, graph.const(number, which.dtype))
        result = graph.where(here, cases[number], result)
    return result


@rule("clamp")
def _clamp(graph: Graph, eqn: Any, least: Tensor, x: Tensor, most: Tensor) -> Tensor:
    return graph.like("Min", graph.like("Max", x, least), most)
