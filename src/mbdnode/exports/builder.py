"""Makes expressions, and simplifies them while it does.

Constants are computed here, and what adds zero or multiplies by one is left out. A product with
the constant zero is zero, and so is zero divided by something: the derivatives of constraints are
mostly zeros, and a mechanism's code would be ten times as long with them. In this, and in the sign
of a zero, a result may differ from JAX's where something is infinite or not a number.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbdnode.exports.ir import FLOATS, INTEGERS, Expr, Ref, Region, deepest, numpy_type

Index = Expr | int


def _erf(x):
    import scipy.special

    return scipy.special.erf(x)


def _erfc(x):
    import scipy.special

    return scipy.special.erfc(x)


def _truncated(a, b):
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    if b == 0:
        return a.dtype.type(-1)
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)


def _remainder(a, b):
    if np.issubdtype(a.dtype, np.floating):
        return np.fmod(a, b)
    return a if b == 0 else np.fmod(a, b)


# Functions that NumPy, C and JavaScript have by the same names.
_NAMES = """
sqrt cbrt exp expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
floor ceil pow
"""
FUNCTIONS = tuple(_NAMES.split())
# Every operation by the name of its primitive, with its value for constants.
OPERATIONS: dict[str, Callable] = {
    **{name: getattr(np, name) for name in FUNCTIONS},
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _truncated},
    **{"rem": _remainder, "neg": np.negative, "abs": np.abs, "sign": np.sign},
    **{"max": np.maximum, "min": np.minimum, "round": np.round, "is_finite": np.isfinite},
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal, "erf": _erf, "erfc": _erfc},
    **{"and": np.logical_and, "or": np.logical_or, "not": np.logical_not},
}
_TO_BOOL = {"eq", "ne", "lt", "le", "gt", "ge", "is_finite"}
# Of a number and itself, which is no NaN.
_OF_SAME = {"eq": True, "ne": False, "lt": False, "le": True, "gt": False, "ge": True}
_ZEROS = {"neg", "mul", "div"}
_COMMUTE = {"add", "mul", "max", "min", "and", "or", "eq", "ne"}


class Builder:
    """Makes the expressions of the function whose body is a region."""

    def __init__(self, function: Region):
        self.function = function
        self._known: dict[Any, Expr] = {}
        # Most operations on a mechanism's derivatives are on the same few constants.
        self._operated: dict[Any, Expr] = {}
        self._count = 0

    def _make(self, op: str, args: tuple, dtype: str, data: Any, key: Any, region: Region) -> Expr:
        name = (op, args, dtype, key)
        found = self._known.get(name)
        if found is None:
            found = Expr(op, args, dtype, data, region, self._count)
            self._count += 1
            self._known[name] = found
        return found

    def const(self, value: Any, dtype: str) -> Expr:
        """A constant."""
        number = np.asarray(value).astype(numpy_type(dtype))
        return self._make("const", (), dtype, number[()], number.tobytes(), self.function)

    def index(self, value: Index) -> Expr:
        """An index that is known, or the one given."""
        return value if isinstance(value, Expr) else self.const(value, "index")

    def counter(self, region: Region) -> Expr:
        """The index of a loop with this body."""
        return self._make("index", (), "index", region, id(region), region)

    def load(self, ref: Ref, index: Index) -> Expr:
        """An element of an array."""
        buffer, at = ref.buffer, self.index(index)
        if buffer.data is not None and at.is_const:
            return self.const(buffer.data[int(at.value)], buffer.dtype)
        region = deepest(ref.region, at.region)
        return self._make("load", (at,), buffer.dtype, ref, id(ref), region)

    def op(self, name: str, *args: Expr) -> Expr:
        """An operation on scalars of one type."""
        key = (name, *args)
        found = self._operated.get(key)
        if found is None:
            found = self._operated[key] = self._operation(name, args)
        return found

    def _operation(self, name: str, args: tuple[Expr, ...]) -> Expr:
        dtype = "bool" if name in _TO_BOOL else args[0].dtype
        if all(a.is_const for a in args):
            with np.errstate(all="ignore"):
                value = OPERATIONS[name](*(a.value for a in args))
            # Zeros are one constant: with signs, a negated matrix of zeros is two kinds of them.
            return self.const(abs(value) if name in _ZEROS and value == 0 else value, dtype)
        if name in _COMMUTE:
            args = tuple(sorted(args, key=lambda a: (a.is_const, a.number)))
        same = len(args) == 2 and args[0] is args[1] and args[0].dtype not in FLOATS
        if same and name in _OF_SAME:
            return self.const(_OF_SAME[name], "bool")
        simple = self._simplified(name, args)
        if simple is not None:
            return simple
        region = self.function
        for a in args:
            region = deepest(region, a.region)
        return self._make(name, args, dtype, None, None, region)

    def select(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """`yes` where the condition holds."""
        if condition.is_const:
            return yes if condition.value else no
        if yes is no:
            return yes
        if yes.dtype == "bool" and yes.is_const and no.is_const:
            return condition if yes.value else self.op("not", condition)
        if condition.op == "not":
            condition, yes, no = condition.args[0], no, yes
        region = deepest(deepest(condition.region, yes.region), no.region)
        return self._make("select", (condition, yes, no), yes.dtype, None, None, region)

    def cast(self, value: Expr, dtype: str) -> Expr:
        """A value of another type, as XLA converts: cut towards zero, kept within the range."""
        if value.dtype == dtype:
            return value
        if value.is_const:
            number = value.value
            if value.dtype in FLOATS and dtype in INTEGERS:
                number = clip_to(number, dtype)
            with np.errstate(all="ignore"):
                return self.const(number, dtype)
        if dtype == "bool":
            return self.op("ne", value, self.const(0, value.dtype))
        if value.op == "cast" and dtype == "index" and value.args[0].dtype in INTEGERS:
            return self.cast(value.args[0], "index")
        return self._make("cast", (value,), dtype, None, None, value.region)

    def iadd(self, a: Index, b: Index) -> Index:
        """The sum of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return self.op("add", self.index(a), self.index(b))

    def imul(self, a: Index, b: Index) -> Index:
        """The product of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        return self.op("mul", self.index(a), self.index(b))

    def place(self, index: Sequence[Index], strides: Sequence[Any], offset: Index = 0) -> Index:
        """Where an element stands in memory."""
        for i, stride in zip(index, strides, strict=True):
            offset = self.iadd(offset, self.imul(i, stride))
        return offset

    def _simplified(self, name: str, args: tuple) -> Expr | None:
        """A simpler expression of the same value, if there is one."""
        rule = _RULES.get(name)
        return None if rule is None else rule(self, *args)


def clip_to(number: Any, dtype: str) -> int:
    """A float within the range of an integer type; zero for what is not a number."""
    limits = np.iinfo(numpy_type(dtype))
    if np.isnan(number):
        return 0
    if abs(number) >= 2.0**62:
        return limits.max if number > 0 else limits.min
    return min(max(int(number), limits.min), limits.max)


def _is(a: Expr, value: Any) -> bool:
    return a.is_const and a.dtype != "bool" and bool(a.value == value)


def _add(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if _is(b, 0):
        return a
    if a.dtype == "index" and b.is_const and a.op == "add" and a.args[1].is_const:
        return make.op("add", a.args[0], make.op("add", a.args[1], b))
    if b.op == "neg" and b.dtype in FLOATS:
        return make.op("sub", a, b.args[0])
    if a.op == "neg" and a.dtype in FLOATS:
        return make.op("sub", b, a.args[0])
    return None


def _sub(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if _is(b, 0):
        return a
    if _is(a, 0) and a.dtype in FLOATS:
        return make.op("neg", b)
    if a.dtype == "index" and b.is_const:
        return make.op("add", a, make.const(-b.value, "index"))
    if b.op == "neg" and b.dtype in FLOATS:
        return make.op("add", a, b.args[0])
    return None


def _mul(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if _is(b, 0):
        return make.const(0, b.dtype)
    if _is(b, 1):
        return a
    if _is(b, -1) and b.dtype in FLOATS:
        return make.op("neg", a)
    if a.dtype == "index" and b.is_const and a.op == "mul" and a.args[1].is_const:
        return make.op("mul", a.args[0], make.op("mul", a.args[1], b))
    if a.op == "neg" and b.op == "neg" and a.dtype in FLOATS:
        return make.op("mul", a.args[0], b.args[0])
    return None


def _div(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if _is(b, 1):
        return a
    return make.const(0, a.dtype) if _is(a, 0) and a.dtype in FLOATS else None


def _neg(make: Builder, a: Expr) -> Expr | None:
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub" and a.dtype in FLOATS:
        return make.op("sub", a.args[1], a.args[0])
    return None


def _max(make: Builder, a: Expr, b: Expr) -> Expr | None:
    return a if a is b or _is(b, -np.inf) else None


def _min(make: Builder, a: Expr, b: Expr) -> Expr | None:
    return a if a is b or _is(b, np.inf) else None


def _and(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if b.is_const:
        return a if b.value else b
    return a if a is b else None


def _or(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if b.is_const:
        return b if b.value else a
    return a if a is b else None


def _not(make: Builder, a: Expr) -> Expr | None:
    return a.args[0] if a.op == "not" else None


def _ne(make: Builder, a: Expr, b: Expr) -> Expr | None:
    if a.op == "select" and b.is_const and a.args[1].is_const and a.args[2].is_const:
        return make.select(a.args[0], make.op("ne", a.args[1], b), make.op("ne", a.args[2], b))
    if a.dtype == "bool" and b.is_const:
        return make.op("not", a) if b.value else a
    if a.op == "cast" and a.args[0].dtype == "bool" and _is(b, 0):
        return a.args[0]
    return None


_RULES: dict[str, Callable] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "max": _max,
    "min": _min,
    "and": _and,
    "or": _or,
    "not": _not,
    "ne": _ne,
}
