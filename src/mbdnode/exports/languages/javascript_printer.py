"""Prints functions as JavaScript.

Numbers of 64 bits are JavaScript's own. Integers are such numbers too, exact up to 2^53, far above
any index. Arrays are typed arrays that are made once, outside of the functions.
"""

import math
from typing import Any

from mbdnode.exports.builder import FUNCTIONS
from mbdnode.exports.ir import FLOATS, Branch, Buffer, Expr, Function, Loop
from mbdnode.exports.languages.printing import (
    EQUAL,
    OR,
    PRIMARY,
    PRODUCT,
    SUM,
    TERNARY,
    UNARY,
    AbstractPrinter,
)

ARRAYS = {
    **{"f64": "Float64Array", "f32": "Float32Array", "bool": "Uint8Array"},
    **{"i64": "Float64Array", "i32": "Int32Array", "index": "Int32Array"},
}
_MATH = {name: f"Math.{name}" for name in (*FUNCTIONS, "abs", "sign", "max", "min")}
# V8 does not optimize functions of more than 60 kB of bytecode: they are interpreted, a hundred
# times slower. A function of more characters than this is divided, into parts of about so many.
_LONG_FUNCTION, _LONG_PART = 40_000, 5_000


class JavaScriptPrinter(AbstractPrinter):
    """JavaScript, with the functions of `javascript_library.py` and `Math`."""

    equal, unequal, counter = "===", "!==", "let"
    reserved = frozenset({"state", "let", "var", "in", "do", "if"})

    def __init__(self):
        super().__init__()
        self.scratch: list[str] = []
        self._made = 0
        self._spans: list[tuple[int, int]] = []

    def body(self, function: Function, names: dict[int, str]) -> None:
        """The statements of a function; long loops and branches are functions of their own."""
        first, self._spans = len(self.lines), []
        super().body(function, names)
        if sum(len(line) for line in self.lines[first:]) > _LONG_FUNCTION:
            self._divide()

    def _loop(self, loop: Loop) -> None:
        first = len(self.lines)
        super()._loop(loop)
        self._spans.append((first, len(self.lines)))

    def _branch(self, branch: Branch) -> None:
        first = len(self.lines)
        super()._branch(branch)
        self._spans.append((first, len(self.lines)))

    def _divide(self) -> None:
        """Put inner loops and branches first, then what is left of those around them, into arrows.

        What they read and assign of the function around them stays where it is.
        """
        length = [len(line) for line in self.lines]
        before, after = {}, {}
        for first, last in self._spans:  # Inner ones end first.
            if sum(length[first:last]) > _LONG_PART:
                before[first] = before.get(first, 0) + 1
                after[last] = after.get(last, 0) + 1
                length[first:last] = [0] * (last - first)
        lines: list[str] = []
        for number, line in enumerate(self.lines):
            lines += (
                ["})();"] * after.get(number, 0) + ["(() => {"] * before.get(number, 0) + [line]
            )
        self.lines = lines + ["})();"] * after.get(len(self.lines), 0)

    def constant(self, value: Any, dtype: str) -> str:
        """A literal."""
        if dtype == "bool":
            return "true" if value else "false"
        if dtype in FLOATS:
            number = float(value)
            if math.isnan(number):
                return "NaN"
            if math.isinf(number):
                return "Infinity" if number > 0 else "-Infinity"
            return repr(number)
        return str(int(value))

    def variable(self, dtype: str, name: str, value: str) -> str:
        """A constant of a block."""
        return f"const {name} = {value};"

    def declare(self, buffer: Buffer, name: str) -> str | None:
        """A variable; arrays are made outside, once."""
        if buffer.kind == "scalar":
            return f"let {name} = {'false' if buffer.dtype == 'bool' else '0'};"
        self._made += 1
        shared = f"w{self._made}"
        self._buffers[id(buffer)] = shared
        self.scratch.append(f"const {shared} = new {ARRAYS[buffer.dtype]}({buffer.size});")
        return None

    def loaded(self, text: str, buffer: Buffer) -> tuple[str, int]:
        """Truth values are stored as bytes."""
        if buffer.dtype == "bool" and buffer.kind != "scalar":
            return f"{text} !== 0", EQUAL
        return text, PRIMARY

    def stored(self, value: Expr, buffer: Buffer) -> str:
        """The value; a truth value as a number."""
        if buffer.dtype == "bool" and buffer.kind != "scalar":
            return f"{self.text(value, OR)} ? 1 : 0"
        return self.text(value)

    def arithmetic(self, expr: Expr) -> tuple[str, int]:
        """Operators and functions of `Math`, or of the library."""
        op = expr.op
        text, binds = self._number(expr)
        if expr.dtype == "f32" and op not in ("neg", "abs", "max", "min", "sign", "floor", "ceil"):
            return f"Math.fround({text})", PRIMARY
        return text, binds

    def _number(self, expr: Expr) -> tuple[str, int]:
        op, is_float = expr.op, expr.args[0].dtype in FLOATS
        if op in ("add", "sub", "mul") or (op == "div" and is_float):
            return self.binary(expr)
        if op == "neg":
            # Zero has no sign among integers.
            operand = self.text(expr.args[0], PRIMARY)
            return (f"-{operand}", UNARY) if is_float else (f"0 - {operand}", SUM)
        if op == "rem" and is_float:
            left, right = expr.args
            return f"{self.text(left, PRODUCT)} % {self.text(right, PRODUCT + 1)}", PRODUCT
        if op == "is_finite":
            return self.function("Number.isFinite", expr)
        if op in _MATH:
            return self.function(_MATH[op], expr)
        name = f"integer_{op}" if op in ("div", "rem") else op
        return self.function(self.helper(name), expr)

    def cast(self, expr: Expr) -> tuple[str, int]:
        """A number within the range of its type."""
        value, target = expr.args[0], expr.dtype
        if value.dtype == "bool":
            return f"{self.text(value, OR)} ? 1 : 0", TERNARY
        if value.dtype in FLOATS and target not in FLOATS:
            # Above 2^53 a number is no longer the integer that it stands for.
            most = 2**53 - 1 if target == "i64" else 2**31 - 1
            return f"{self.helper('integer_from')}({self.text(value)}, {most})", PRIMARY
        if target == "f32" and value.dtype != "f32":
            return f"Math.fround({self.text(value)})", PRIMARY
        return self._text(value)
