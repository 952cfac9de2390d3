"""Prints a function as text; what differs between languages is in the subclasses."""

import abc
from typing import Any, ClassVar

from mbdnode.exports.ir import (
    Branch,
    BreakIf,
    Buffer,
    Expr,
    Function,
    Hold,
    Loop,
    Region,
    Store,
    statements_of,
)
from mbdnode.exports.languages.placement import Placement

# How tightly an operation binds; the printed operands of a looser one get parentheses.
TERNARY, OR, AND, EQUAL, COMPARE, SUM, PRODUCT, UNARY, PRIMARY = range(9)
_BINARY = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "div": ("/", PRODUCT),
    "lt": ("<", COMPARE),
    "le": ("<=", COMPARE),
    "gt": (">", COMPARE),
    "ge": (">=", COMPARE),
}
# Of truth values; `min` and `max` of them are `and` and `or`.
_LOGICAL = {"and": AND, "min": AND, "mul": AND, "or": OR, "max": OR, "add": OR}
_LETTERS = {"f64": "x", "f32": "x", "bool": "is"}


class AbstractPrinter(abc.ABC):
    """Prints functions in one language."""

    equal: ClassVar[str]
    unequal: ClassVar[str]
    counter: ClassVar[str]  # how a loop declares its index
    reserved: ClassVar[frozenset[str]]  # names that a variable must not have

    def __init__(self):
        self.lines: list[str] = []
        self.helpers: dict[str, None] = {}
        self._indent = self._depth = 0
        self.placement: Placement

    # What a language says

    @abc.abstractmethod
    def constant(self, value: Any, dtype: str) -> str:
        """A literal."""

    @abc.abstractmethod
    def arithmetic(self, expr: Expr) -> tuple[str, int]:
        """An operation on numbers, and how tightly it binds."""

    @abc.abstractmethod
    def cast(self, expr: Expr) -> tuple[str, int]:
        """A value of another type."""

    @abc.abstractmethod
    def variable(self, dtype: str, name: str, value: str) -> str:
        """The declaration of a variable with its only value."""

    @abc.abstractmethod
    def declare(self, buffer: Buffer, name: str) -> str | None:
        """The declaration of an array or of a variable that changes."""

    def stored(self, value: Expr, buffer: Buffer) -> str:
        """A value as it is written to memory."""
        return self.text(value)

    # Functions

    def helper(self, name: str) -> str:
        """A function of the language's library, noted as used."""
        self.helpers.setdefault(name)
        return name

    def say(self, line: str) -> None:
        """A line of text."""
        self.lines.append("    " * self._indent + line if line else "")

    def body(self, function: Function, names: dict[int, str]) -> None:
        """The statements of a function, given the names of its arguments and tables."""
        self.placement = Placement(function)
        self._buffers = dict(names)
        self._variables: dict[Expr, str] = {}
        self._counters: dict[Expr, str] = {}
        self._taken = self.reserved | set(names.values())
        self._numbers: dict[str, int] = {}
        self._done: set[Expr] = set()
        self._indent += 1
        for buffer in self._declared_in(function.region):
            self._declare(buffer)
        self._statements(function.region)
        if function.result is not None:
            last = Hold([function.result])
            for node in self.placement.needed(last, function.region, self._done):
                self._define(node)
            self.say(f"return {self.result(function.result)};")
        self._indent -= 1

    def result(self, expr: Expr) -> str:
        """What a function returns."""
        return self.text(expr)

    def _unique(self, base: str) -> str:
        while True:
            self._numbers[base] = self._numbers.get(base, 0) + 1
            name = f"{base}{self._numbers[base]}"
            if name not in self._taken:
                return name

    def _declared_in(self, region: Region) -> list[Buffer]:
        """The buffers of a region, in the order in which its statements name them."""
        named = [one.buffer for one in statements_of(region) if isinstance(one, Store)]
        return [buffer for buffer in dict.fromkeys(named) if buffer.region is region]

    def _declare(self, buffer: Buffer) -> None:
        name = self._unique(buffer.name)
        self._buffers[id(buffer)] = name
        text = self.declare(buffer, name)
        if text:
            self.say(text)

    def _statements(self, region: Region) -> None:
        for statement in region.statements:
            for node in self.placement.needed(statement, region, self._done):
                self._define(node)
            self._statement(statement)

    def _define(self, node: Expr) -> None:
        name = self._unique(_LETTERS.get(node.dtype, "n"))
        text = self.text(node)
        self._variables[node] = name
        self.say(self.variable(node.dtype, name, text))

    def _statement(self, statement: Any) -> None:
        if isinstance(statement, Store):
            name = self._buffers[id(statement.buffer)]
            place = self.read(statement.buffer, name, self.text(statement.index))
            self.say(f"{place} = {self.stored(statement.value, statement.buffer)};")
        elif isinstance(statement, Loop):
            self._loop(statement)
        elif isinstance(statement, BreakIf):
            self.say(f"if ({self.text(statement.condition)}) break;")
        elif isinstance(statement, Branch):
            self._branch(statement)
        else:
            assert isinstance(statement, Hold)

    def _inner(self, region: Region) -> None:
        self._indent += 1
        for buffer in self._declared_in(region):
            self._declare(buffer)
        self._statements(region)
        self._indent -= 1

    def _loop(self, loop: Loop) -> None:
        if loop.count is None:
            self.say("for (;;) {")
        else:
            assert loop.index is not None
            name = "ijklabcdefgh"[self._depth] if self._depth < 12 else self._unique("i")
            self._counters[loop.index] = name
            self.say(f"for ({self.counter} {name} = 0; {name} < {loop.count}; ++{name}) {{")
        self._depth += 1
        self._inner(loop.region)
        self._depth -= 1
        self.say("}")

    def _branch(self, branch: Branch) -> None:
        if len(branch.regions) == 2:
            condition, first, second = self._two(branch)
            self.say(f"if ({condition}) {{")
            self._inner(first)
            if second.statements:
                self.say("} else {")
                self._inner(second)
            self.say("}")
            return
        self.say(f"switch ({self.text(branch.index)}) {{")
        for number, region in enumerate(branch.regions):
            last = number == len(branch.regions) - 1
            self.say("default: {" if last else f"case {number}: {{")
            self._inner(region)
            self.say("    break;")
            self.say("}")
        self.say("}")

    def _two(self, branch: Branch) -> tuple[str, Region, Region]:
        """The condition of two branches, that for which it holds first."""
        index, (zero, one) = branch.index, branch.regions
        if index.op == "select" and index not in self._variables:
            condition, yes, no = index.args
            if yes.is_const and no.is_const:
                first, second = (one, zero) if yes.value else (zero, one)
                if not first.statements:
                    return f"!({self.text(condition)})", second, first
                return self.text(condition), first, second
        return f"{self.text(index)} > 0", one, zero

    # Expressions

    def text(self, expr: Expr, least: int = TERNARY) -> str:
        """An expression, in parentheses if it binds less tightly than asked."""
        text, binds = self._text(expr)
        return f"({text})" if binds < least else text

    def _text(self, expr: Expr) -> tuple[str, int]:
        if expr in self._variables:
            return self._variables[expr], PRIMARY
        if expr.op == "const":
            text = self.constant(expr.value, expr.dtype)
            return text, UNARY if text.startswith("-") else PRIMARY
        if expr.op == "index":
            return self._counters[expr], PRIMARY
        if expr.op == "load":
            buffer = expr.data.buffer
            name = self._buffers[id(buffer)]
            return self.loaded(self.read(buffer, name, self.text(expr.args[0])), buffer)
        return self.operation(expr)

    def read(self, buffer: Buffer, name: str, index: str) -> str:
        """An element, or the variable itself."""
        return name if buffer.kind == "scalar" else f"{name}[{index}]"

    def loaded(self, text: str, buffer: Buffer) -> tuple[str, int]:
        """An element as it is read from memory."""
        return text, PRIMARY

    def operation(self, expr: Expr) -> tuple[str, int]:
        """An operation on scalars, and how tightly it binds."""
        op = expr.op
        if op in ("lt", "le", "gt", "ge"):
            return self.binary(expr)
        if op in ("eq", "ne"):
            sign = self.equal if op == "eq" else self.unequal
            left, right = expr.args
            return f"{self.text(left, SUM)} {sign} {self.text(right, SUM)}", EQUAL
        if op == "select":
            condition, yes, no = (self.text(part, OR) for part in expr.args)
            return f"{condition} ? {yes} : {no}", TERNARY
        if op == "cast":
            return self.cast(expr)
        return self._logical(expr) if expr.args[0].dtype == "bool" else self.arithmetic(expr)

    def function(self, name: str, expr: Expr) -> tuple[str, int]:
        """A call with the operands."""
        return f"{name}({', '.join(self.text(a) for a in expr.args)})", PRIMARY

    def _logical(self, expr: Expr) -> tuple[str, int]:
        if expr.op == "not":
            return f"!{self.text(expr.args[0], UNARY)}", UNARY
        binds = _LOGICAL[expr.op]
        sign = "&&" if binds == AND else "||"
        return f" {sign} ".join(self._inside(a, binds) for a in expr.args), binds

    def _inside(self, expr: Expr, binds: int) -> str:
        """An operand of `&&` or `||`; compilers ask for parentheses where both are mixed."""
        text, own = self._text(expr)
        return text if own == binds or own >= EQUAL else f"({text})"

    def binary(self, expr: Expr) -> tuple[str, int]:
        """An operation with a sign between its operands."""
        sign, binds = _BINARY[expr.op]
        left, right = expr.args
        return f"{self.text(left, binds)} {sign} {self.text(right, binds + 1)}", binds
