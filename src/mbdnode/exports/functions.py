"""The functions of a program in the form that languages print."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax.interpreters import partial_eval

import mbdnode.exports.primitive_rules  # noqa: F401  (registers the rules)
from mbdnode.exports.ir import Buffer, Expr, Function, Ref, dtype_of
from mbdnode.exports.jaxpr_to_ir import Lowering, Tables
from mbdnode.exports.program import Argument, Entry, Program
from mbdnode.exports.pruning import prune, tables_of
from mbdnode.exports.values import View

_COMMENTS = {
    "init": "A consistent state from what is known; the other values are guesses.",
    "project": "A state that was changed from outside, back on the constraints.",
    "rates": "The rates of the whole state.",
    "rates_derivative": "The derivative of the rates along q_seed, v_seed and u_seed.",
    "step": "The state a step later, in place; u is held over the step.",
    "outputs": "Energy, if there is one, and the largest residuals of the constraints.",
    "linearize": "A and B of the minimal state, row by row.",
}


@dataclass(frozen=True)
class Lowered:
    """A program's functions, each after those that it calls, and the tables that they read."""

    functions: tuple[Function, ...]
    tables: tuple[Buffer, ...]


def lower_program(program: Program) -> Lowered:
    """Lower every entry of a program.

    **Arguments:**

    - `program`: the traced model.

    **Returns:**

    A `Lowered`. Raises `UserError` for a primitive without a rule.
    """
    tables = Tables()
    return with_tables([_lower_entry(entry, tables) for entry in program.entries.values()])


def with_tables(functions: Sequence[Function]) -> Lowered:
    """Functions with the tables that they read, which get their names here.

    **Arguments:**

    - `functions`: all of them.

    **Returns:**

    A `Lowered`.
    """
    used = {id(table): table for function in functions for table in tables_of(function)}
    for number, table in enumerate(used.values()):
        table.name = f"table{number}"
    return Lowered(tuple(functions), tuple(used.values()))


def lower_function(closed: Any, arguments: list[Argument], results: list[Argument], tables: Tables,
                   name: str = "f", comment: str = "") -> Function:  # fmt: skip
    """Lower one closed jaxpr as a function of named arrays.

    **Arguments:**

    - `closed`: the jaxpr.
    - `arguments`, `results`: its arrays; a field of the state may be both.
    - `tables`: the constants of the program.
    - `name`, `comment`: of the function.

    **Returns:**

    A `Function`.
    """
    jaxpr = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(results), instantiate=True)[0]
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
    made = low.lower(jaxpr, closed.consts, values)
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


def _lower_entry(entry: Entry, tables: Tables) -> Function:
    given = (entry.jaxpr, list(entry.arguments), list(entry.results), tables)
    return lower_function(*given, name=entry.name, comment=_COMMENTS[entry.name])


def _argument_buffer(argument: Argument) -> Buffer:
    dtype = dtype_of(argument.dtype)
    assert dtype is not None
    size = 1
    for n in argument.shape:
        size *= n
    name = f"state.{argument.name}" if argument.role == "state" else argument.name
    kind = "scalar" if argument.shape == () and argument.role != "out" else "argument"
    found = Buffer(name, dtype, size, kind)
    # Indices of coordinates and of constraints.
    found.nonnegative = name.endswith(("dependent", "_rows"))
    return found
