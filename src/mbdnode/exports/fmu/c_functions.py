"""Plain functions of arrays as C99, beside the program of a model."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mbdnode.exports.functions import lower_function, with_tables
from mbdnode.exports.ir import Buffer, Function
from mbdnode.exports.jaxpr_to_ir import Tables
from mbdnode.exports.languages.c import CSource, array_definition, mentions
from mbdnode.exports.languages.c_library import helper_source
from mbdnode.exports.languages.c_printer import C_TYPES, CPrinter
from mbdnode.exports.program import Argument

# A function in JAX, arrays of the shapes that it takes, and the names of its results.
PlainFunction = tuple[Callable[..., Any], Mapping[str, np.ndarray], Sequence[str]]


def c_functions(name: str, functions: Mapping[str, PlainFunction]) -> CSource:
    """Trace functions and print them as C99.

    **Arguments:**

    - `name`: prefix of every function, and of the files.
    - `functions`: by name, each with its arguments by name and the names of its results; all
        arrays of float64.

    **Returns:**

    Header and source. Arguments come first, then the results, all as pointers.
    """
    tables, lowered = Tables(), []
    for key, (function, given, results) in functions.items():
        closed = jax.make_jaxpr(function)(*given.values())
        takes = [Argument(k, x.shape, "float64", "in") for k, x in given.items()]
        gives = [
            Argument(k, x.shape, x.dtype.name, "out")
            for k, x in zip(results, closed.out_avals, strict=True)
        ]
        comment = (function.__doc__ or "").strip().partition("\n")[0]
        lowered.append(lower_function(closed, takes, gives, tables, name=key, comment=comment))
    made = with_tables(lowered)
    return CSource(_header(name, made.functions), _source(name, made.functions, made.tables))


def _signature(name: str, function: Function) -> str:
    parts = [
        f"{'' if one.written else 'const '}{C_TYPES[one.dtype]} {one.name}[{max(one.size, 1)}]"
        for one in function.arguments
    ]
    return f"void {name}_{function.name}(" + ",\n    ".join(parts) + ")"


def _header(name: str, functions: Sequence[Function]) -> str:
    guard = f"{name.upper()}_H"
    lines = [f"#ifndef {guard}", f"#define {guard}", ""]
    for function in functions:
        lines += [f"/* {function.comment} */", f"{_signature(name, function)};", ""]
    return "\n".join([*lines, "#endif", ""])


def _source(name: str, functions: Sequence[Function], tables: Sequence[Buffer]) -> str:
    printer, printed = CPrinter(name), []
    named = {id(t): t.name for t in tables}
    for function in functions:
        printer.lines = []
        printer.body(function, {**{id(b): b.name for b in function.arguments}, **named})
        body = "\n".join(printer.lines)
        quiet = [f"    (void){b.name};" for b in function.arguments if not mentions(body, b.name)]
        printed += ["", _signature(name, function), "{", *quiet, *printer.lines, "}"]
    lines = [f'#include "{name}.h"', "", "#include <math.h>", "#include <stdbool.h>"]
    lines += ["#include <stdint.h>", "#include <string.h>", ""]
    for table in tables:
        assert table.data is not None
        texts = [printer.constant(value, table.dtype) for value in table.data]
        head = f"static const {C_TYPES[table.dtype]} {table.name}"
        lines += array_definition(head, texts, "0")
    for helper in printer.helpers:
        lines += helper_source(helper).rstrip("\n").split("\n")
    return "\n".join([*lines, *printed, ""])
