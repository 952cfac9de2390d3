"""A program as JavaScript: one constant of functions, for a page or for node."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mbdnode.exports.entries import STATUS_TEXTS
from mbdnode.exports.functions import Lowered, lower_function, lower_program, with_tables
from mbdnode.exports.ir import Function, dtype_of
from mbdnode.exports.jaxpr_to_ir import Tables
from mbdnode.exports.languages.javascript_library import helper_source
from mbdnode.exports.languages.javascript_printer import ARRAYS, JavaScriptPrinter
from mbdnode.exports.program import Argument, Program
from mbdnode.exports.tables import Quantity


def javascript_source(program: Program) -> str:
    """Print a program as JavaScript.

    **Arguments:**

    - `program`: of `trace_program`.

    **Returns:**

    `const <name> = (() => {...})();`, the same for the same program. It neither imports nor exports
    anything, and makes no arrays after it was read.
    """
    lowered = lower_program(program)
    printer = JavaScriptPrinter()
    printed: list[str] = []
    tables = {id(t): t.name for t in lowered.tables}
    for function in lowered.functions:
        printed += ["", *_function(printer, function, tables)]
    lines = [
        f"// {program.model}, exported by mbdnode: {program.integrator} steps.",
        f"const {program.name} = (() => {{",
        '"use strict";',
        *_facts(program),
        *_tables(lowered),
        *printer.scratch,
        *_library(printer),
    ]
    names = [f.name for f in lowered.functions]
    lines += [*printed, "", *_state(program), "", _result(program, names), "})();", ""]
    return "\n".join(lines)


def javascript_functions(
    name: str, functions: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]
) -> str:
    """Print plain functions of arrays as JavaScript, beside a program that has a state.

    **Arguments:**

    - `name`: an identifier.
    - `functions`: by name, each with arrays such as it takes; it gives one array.

    **Returns:**

    `const <name> = (() => {...})();`, whose functions take their arguments as typed arrays, and
    another one to write their result to.
    """
    tables = Tables()
    made = with_tables([_plain(key, *each, tables) for key, each in functions.items()])
    names = {id(table): table.name for table in made.tables}
    printer = JavaScriptPrinter()
    printed = [line for each in made.functions for line in ["", *_function(printer, each, names)]]
    lines = [
        f"const {name} = (() => {{",
        '"use strict";',
        *_tables(made),
        *printer.scratch,
        *_library(printer),
        *printed,
        "",
        f"return {{{', '.join(functions)}}};",
        "})();",
        "",
    ]
    return "\n".join(lines)


def _plain(name: str, function: Callable[..., Any], given: Sequence[Any], tables: Tables):
    closed = jax.make_jaxpr(function)(*given)
    (out,) = closed.out_avals
    words = list(inspect.signature(function).parameters)
    takes = zip(words, closed.in_avals, strict=True)
    arguments = [Argument(word, x.shape, x.dtype.name, "in") for word, x in takes]
    result = Argument("out", out.shape, out.dtype.name, "out")
    return lower_function(closed, arguments, [result], tables, name=name)


def _library(printer: JavaScriptPrinter) -> list[str]:
    """The functions of the library that were used, each once: two may bring the same others."""
    seen: set[str] = set()
    lines: list[str] = []
    for helper in printer.helpers:
        for block in helper_source(helper).strip("\n").split("\nfunction "):
            text = block if block.startswith(("function ", "//", "const")) else f"function {block}"
            if text not in seen:
                seen.add(text)
                lines += ["", *text.split("\n")]
    return lines


def _function(printer: JavaScriptPrinter, function: Function, tables: dict[int, str]) -> list[str]:
    printer.lines = []
    names, parts, heads = dict(tables), [], []
    if any(b.name.startswith("state.") for b in function.arguments):
        parts.append("state")
    for buffer in function.arguments:
        if not buffer.name.startswith("state."):
            parts.append(buffer.name)
            names[id(buffer)] = buffer.name
            continue
        field = buffer.name.removeprefix("state.")
        if buffer.kind == "scalar":
            names[id(buffer)] = f"state.{field}"
        else:
            names[id(buffer)] = f"state_{field}"
            heads.append(f"    const state_{field} = state.{field};")
    printer.body(function, names)
    text = "\n".join(printer.lines)
    heads = [h for h in heads if h.split()[1] in text]
    return [
        f"// {function.comment}",
        f"function {function.name}({', '.join(parts)}) {{",
        *heads,
        *printer.lines,
        "}",
    ]


def _facts(program: Program) -> list[str]:
    tables = program.tables
    minimal = len(tables.independent) + len(tables.independent_rates)
    sizes = {
        "NQ": len(tables.coordinates),
        "NU": len(tables.inputs),
        "NP": len(tables.parameters),
        "NY": len(tables.outputs),
        "NZ": minimal,
        "DT": program.dt_s,
    }
    lines = [f"const {key} = {value!r};" for key, value in sizes.items()]
    lines.append("const tables = {")
    for what, _, group in tables.groups():
        rows = ",\n".join(f"        {_quantity(x)}" for x in group)
        lines.append(f"    {what}s: [\n{rows}\n    ]," if rows else f"    {what}s: [],")
    count = len(tables.coordinates)
    known = [int(i in tables.independent) for i in range(count)]
    known += [int(i in tables.independent_rates) for i in range(count)]
    lines += [f"    independent: Uint8Array.from({known}),", "};"]
    texts = {code: text for _, code, text in STATUS_TEXTS}
    lines.append(f"const texts = {json.dumps(texts)};")
    lines.append('function statusText(code) { return texts[code] || "unknown status"; }')
    return lines


def _quantity(each: Quantity) -> str:
    facts: dict[str, Any] = {
        "name": each.name,
        "identifier": each.identifier,
        "unit": each.unit,
        "start": each.start,
        "low": each.low,
        "high": each.high,
        "is_angle": each.is_angle,
    }
    # JSON has no infinities, JavaScript has; a page must not find the end of a script in a name.
    return json.dumps(facts).replace("</", "<\\/")


def _tables(lowered: Lowered) -> list[str]:
    printer, lines = JavaScriptPrinter(), []
    for table in lowered.tables:
        assert table.data is not None
        texts = ", ".join(printer.constant(v, table.dtype) for v in table.data)
        texts = texts.replace("true", "1").replace("false", "0")
        lines.append(f"const {table.name} = {ARRAYS[table.dtype]}.from([{texts}]);")
    return lines


def _state(program: Program) -> list[str]:
    lines = ["// A state; init makes it consistent.", "function newState() {", "    return {"]
    copies = []
    for field in program.state:
        dtype = dtype_of(field.dtype)
        assert dtype is not None
        if field.shape:
            size = int(np.prod(field.shape, dtype=int))
            lines.append(f"        {field.name}: new {ARRAYS[dtype]}({size}),")
            copies.append(f"    to.{field.name}.set(from.{field.name});")
        else:
            lines.append(f"        {field.name}: 0,")
            copies.append(f"    to.{field.name} = from.{field.name};")
    return [*lines, "    };", "}", "function copyState(from, to) {", *copies, "}"]


def _result(program: Program, functions: list[str]) -> str:
    names = [
        *("NQ", "NU", "NP", "NY", "NZ", "DT"),
        *("tables", "statusText", "newState", "copyState"),
        *functions,
    ]
    return f"return {{{', '.join(names)}}};"
