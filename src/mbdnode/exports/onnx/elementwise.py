"""Rules of element-wise primitives.

onnxruntime has no float64 version of some operators. Those are written by others that it has, in
ways that lose no digits; inverse trigonometric functions and the error function cannot be, have no
rule, and are refused by name.
"""

from typing import Any

from mbdnode.exports.onnx.graph import Graph, Tensor, rule

_SAME = {
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "abs": "Abs"},
    **{"sign": "Sign", "max": "Max", "min": "Min", "sqrt": "Sqrt", "exp": "Exp", "log": "Log"},
    **{"sin": "Sin", "cos": "Cos", "tanh": "Tanh", "floor": "Floor", "ceil": "Ceil"},
    **{"pow": "Pow", "round": "Round"},  # halves to even
    **{"and": "And", "or": "Or", "not": "Not"},
}
_TRUTH = {
    **{"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
}


@rule(*_SAME)
def _same(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.like(_SAME[eqn.primitive.name], *values)


@rule(*_TRUTH)
def _truth(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.truth(_TRUTH[eqn.primitive.name], *values)


@rule("ne")
def _ne(graph: Graph, eqn: Any, *values: Tensor) -> Tensor:
    return graph.truth("Not", graph.truth("Equal", *values))


@rule("tan")
def _tan(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.like("Div", graph.like("Sin", x), graph.like("Cos", x))


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


@rule("rem")
def _rem(graph: Graph, eqn: Any, x: Tensor, y: Tensor) -> Tensor:
    return graph.like("Mod", x, y, fmod=1)


@rule("is_finite")
def _is_finite(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    # Of what is infinite or not a number, the difference with itself is not a number.
    return graph.truth("Equal", graph.like("Sub", x, x), graph.const(0.0, x.dtype))


@rule("convert_element_type")
def _convert(graph: Graph, eqn: Any, x: Tensor) -> Tensor:
    return graph.cast(x, eqn.params["new_dtype"])


@rule("select_n")
def _select(graph: Graph, eqn: Any, which: Tensor, *cases: Tensor) -> Tensor:
    return graph.where(which, cases[-1], cases[0])
