"""Prints functions as C99."""

import math
from typing import Any

from mbdnode.exports.builder import FUNCTIONS
from mbdnode.exports.ir import FLOATS, Buffer, Expr
from mbdnode.exports.languages.printing import EQUAL, PRIMARY, UNARY, AbstractPrinter
from mbdnode.exports.names import C_KEYWORDS

C_TYPES = {
    **{"f64": "double", "f32": "float", "bool": "bool"},
    **{"i64": "int64_t", "i32": "int32_t", "index": "int"},
}
# Functions of the C library; those of float end in f.
_MATH = {name: name for name in (*FUNCTIONS, "erf", "erfc")}
_MATH |= {"abs": "fabs", "rem": "fmod", "round": "rint"}


class CPrinter(AbstractPrinter):
    """C99, with the functions of `c_library.py` and `math.h`."""

    equal, unequal, counter = "==", "!=", "int"
    reserved = C_KEYWORDS | frozenset(_MATH.values())

    def constant(self, value: Any, dtype: str) -> str:
        """A literal of its type."""
        if dtype == "bool":
            return "true" if value else "false"
        if dtype in FLOATS:
            return _float(float(value), dtype)
        number = int(value)
        if dtype == "i64" and number == -(2**63):
            return "INT64_MIN"
        if dtype == "i32" and number == -(2**31):
            return "INT32_MIN"
        if dtype == "i64" and abs(number) >= 2**31:
            return f"INT64_C({number})"
        return str(number)

    def variable(self, dtype: str, name: str, value: str) -> str:
        """Constants, as every variable here has one value."""
        return f"const {C_TYPES[dtype]} {name} = {value};"

    def declare(self, buffer: Buffer, name: str) -> str | None:
        """An array, or a variable that changes."""
        kind = C_TYPES[buffer.dtype]
        return f"{kind} {name};" if buffer.kind == "scalar" else f"{kind} {name}[{buffer.size}];"

    def result(self, expr: Expr) -> str:
        """A status code."""
        return f"(int){self.text(expr, UNARY)}"

    def arithmetic(self, expr: Expr) -> tuple[str, int]:
        """Operators and functions of `math.h`, or of the library."""
        op, dtype = expr.op, expr.args[0].dtype
        if op in ("add", "sub", "mul") or (op == "div" and dtype in FLOATS):
            return self.binary(expr)
        if op == "neg":
            return f"-{self.text(expr.args[0], PRIMARY)}", UNARY
        if op == "is_finite":
            return f"isfinite({self.text(expr.args[0])}) != 0", EQUAL
        if op in _MATH and dtype in FLOATS:
            name = _MATH[op] + ("f" if dtype == "f32" else "")
            return self.function(name, expr)
        return self.function(self.helper(f"{op}_{dtype}"), expr)

    def cast(self, expr: Expr) -> tuple[str, int]:
        """A function of the library from numbers with a fraction to those without."""
        value, target = expr.args[0], expr.dtype
        if value.dtype in FLOATS and target not in FLOATS:
            if target == "index":
                target = "i32"
            return self.function(self.helper(f"{target}_from_{value.dtype}"), expr)
        return f"({C_TYPES[target]}){self.text(value, UNARY)}", UNARY


def _float(value: float, dtype: str) -> str:
    if math.isnan(value):
        return "(double)NAN" if dtype == "f64" else "NAN"
    if math.isinf(value):
        text = "(double)INFINITY" if dtype == "f64" else "INFINITY"
        return text if value > 0 else f"-{text}"
    if dtype == "f32":
        import numpy as np

        text = str(np.float32(value))
    else:
        text = repr(value)
    if "." not in text and "e" not in text:
        text += ".0"
    return f"{text}f" if dtype == "f32" else text
