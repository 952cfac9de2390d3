"""The functions of a program in the form that languages print."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mbdnode.exports.primitive_rules  # noqa: F401  (registers the rules)
from mbdnode.exports.core_primitives import traced
from mbdnode.exports.entries import ENTRIES
from mbdnode.exports.ir import Buffer, Expr, Function, Ref, dtype_of
from mbdnode.exports.jaxpr_to_ir import Lowering, Tables
from mbdnode.exports.program import Argument, Program
from mbdnode.exports.pruning import prune, tables_of
from mbdnode.exports.values import View


@dataclass(frozen=True)
class Lowered:
    """A program's functions, each after those that it calls, and the tables that they read."""

    functions: tuple[Function, ...]
    tables: tuple[Buffer, ...]


# A function in JAX, and arrays such as it takes.
PlainFunction = tuple[Callable[..., Any], Sequence[Any]]


def lower_program(program: Program) -> Lowered:
    """Lower every entry of a program; `UserError` for a primitive without a rule."""
    tables = Tables()
    return _with_tables(
        lower_function(
            each.jaxpr,
            each.arguments,
            each.results,
            tables,
            name=each.name,
            comment=ENTRIES[each.name].text,
        )
        for each in program.entries.values()
    )


def lower_plain(functions: Mapping[str, PlainFunction]) -> Lowered:
    """Lower functions of arrays, which stand beside a program and know no state."""
    tables, lowered = Tables(), []
    for name, (function, given) in functions.items():
        closed = traced(function, *given)
        words = zip(inspect.signature(function).parameters, closed.in_avals, strict=True)
        takes = [Argument(word, x.shape, x.dtype.name, "in") for word, x in words]
        gives = [
            Argument(f"out{number or ''}", x.shape, x.dtype.name, "out")
            for number, x in enumerate(closed.out_avals)
        ]
        comment = (function.__doc__ or "").strip().partition("\n")[0]
        lowered.append(lower_function(closed, takes, gives, tables, name=name, comment=comment))
    return _with_tables(lowered)


def _with_tables(lowered: Iterable[Function]) -> Lowered:
    """Functions with the tables that they read, which get their names here."""
    functions = tuple(lowered)
    used = {id(table): table for function in functions for table in tables_of(function)}
    for number, table in enumerate(used.values()):
        table.name = f"table{number}"
    return Lowered(functions, tuple(used.values()))


def lower_function(
    closed: Any,
    arguments: Sequence[Argument],
    results: Sequence[Argument],
    tables: Tables,
    name: str = "f",
    comment: str = "",
) -> Function:
    """Lower one closed jaxpr as a function of named arrays; a field of the state may be both."""
    low = Lowering(tables)
    buffers: dict[str, Buffer] = {}
    order: list[Buffer] = []

    def buffer_of(argument: Argument, written: bool) -> Buffer:
        if argument.role == "state" and argument.name in buffers:
            found = buffers[argument.name]
        else:
            found = _argument_buffer(argument)
            order.append(found)
            if argument.role == "state":
                buffers[argument.name] = found
        found.written = found.written or written
        return found

    values = [View(Ref(buffer_of(a, False), low.body), a.shape) for a in arguments]
    made = low.lower(closed, values)
    targets = [Ref(buffer_of(r, True), low.body) for r in results]
    changed = [
        (target, value)
        for target, value in zip(targets, made, strict=True)
        if not (isinstance(value, View) and value.ref.buffer is target.buffer)
    ]
    result: Expr | None = None
    for target, value in zip(targets, made, strict=True):
        if target.buffer.name == "state.code":
            result = low.only(value)
    low.assign(changed)
    function = Function(name, order, low.body, comment, result)
    prune(function)
    return function


def _argument_buffer(argument: Argument) -> Buffer:
    dtype = dtype_of(argument.dtype)
    name = f"state.{argument.name}" if argument.role == "state" else argument.name
    kind = "scalar" if argument.shape == () and argument.role != "out" else "argument"
    return Buffer(name, dtype, math.prod(argument.shape), kind)
