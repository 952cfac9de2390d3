"""A program as JavaScript: one constant of functions, for a page or for node."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mbdnode.exports.entries import STATUS_TEXTS
from mbdnode.exports.functions import Lowered, PlainFunction, lower_plain, lower_program
from mbdnode.exports.ir import Function, dtype_of
from mbdnode.exports.languages.javascript_library import helper_source
from mbdnode.exports.languages.javascript_printer import ARRAYS, JavaScriptPrinter
from mbdnode.exports.program import Program
from mbdnode.exports.tables import Quantity


def javascript_source(program: Program) -> str:
    """Print a program as JavaScript.

    **Arguments:**

    - `program`: of `trace_program`.

    **Returns:**

    `const <name> = (() => {...})();`, the same for the same program. It neither imports nor exports
    anything, and makes no arrays after it was read.
    """
    printed, names = _printed(lower_program(program))
    lines = [
        f"// {program.model}, exported by mbdnode: {program.integrator} steps.",
        f"const {program.name} = (() => {{",
        '"use strict";',
        *_facts(program),
        *printed,
        "",
        *_state(program),
        "",
        _result(names),
        "})();",
        "",
    ]
    return "\n".join(lines)


def write_javascript(program: Program, path: Path) -> None:
    """Write the script; `require` of node gets the model, a page a constant of its name."""
    name = program.name
    tail = f'if (typeof module !== "undefined") module.exports = {name};\n'
    path.write_text(javascript_source(program) + tail, encoding="utf-8")


def javascript_functions(name: str, functions: Mapping[str, PlainFunction]) -> str:
    """Print plain functions of arrays as JavaScript, beside a program that has a state.

    **Arguments:**

    - `name`: an identifier.
    - `functions`: by name, each with arrays such as it takes.

    **Returns:**

    `const <name> = (() => {...})();`, whose functions take their arguments as typed arrays, and
    others to write their results to.
    """
    lines, names = _printed(lower_plain(functions))
    lines = [f"const {name} = (() => {{", '"use strict";', *lines]
    return "\n".join([*lines, "", f"return {{{', '.join(names)}}};", "})();", ""])


def _printed(lowered: Lowered) -> tuple[list[str], list[str]]:
    """Tables, arrays of the functions, the library, the functions; and what these are called."""
    printer = JavaScriptPrinter()
    tables = {id(table): table.name for table in lowered.tables}
    printed = [
        line for each in lowered.functions for line in ["", *_function(printer, each, tables)]
    ]
    library = "".join(dict.fromkeys(map(helper_source, printer.helpers)))
    lines = [*_tables(lowered), *printer.scratch, *library.splitlines(), *printed]
    return lines, [function.name for function in lowered.functions]


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
        *([f"// {function.comment}"] if function.comment else []),
        f"function {function.name}({', '.join(parts)}) {{",
        *heads,
        *printer.lines,
        "}",
    ]


def _facts(program: Program) -> list[str]:
    tables = program.tables
    sizes = {**tables.sizes(), "DT": program.dt_s}
    lines = [f"const {key} = {value!r};" for key, value in sizes.items()]
    lines.append("const tables = {")
    for what, _, group in tables.groups():
        rows = ",\n".join(f"        {_quantity(x)}" for x in group)
        lines.append(f"    {what}s: [\n{rows}\n    ]," if rows else f"    {what}s: [],")
    lines += [f"    independent: Uint8Array.from({tables.known()}),", "};"]
    texts = {code: text for _, code, text in STATUS_TEXTS}
    lines.append(f"const texts = {json.dumps(texts)};")
    lines.append('function statusText(code) { return texts[code] || "unknown status"; }')
    return lines


def _quantity(each: Quantity) -> str:
    facts = {key: value for key, value in asdict(each).items() if key != "renamed"}
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
        if field.shape:
            size = int(np.prod(field.shape, dtype=int))
            lines.append(f"        {field.name}: new {ARRAYS[dtype]}({size}),")
            copies.append(f"    to.{field.name}.set(from.{field.name});")
        else:
            lines.append(f"        {field.name}: 0,")
            copies.append(f"    to.{field.name} = from.{field.name};")
    return [*lines, "    };", "}", "function copyState(from, to) {", *copies, "}"]


def _result(functions: list[str]) -> str:
    names = [
        *("NQ", "NU", "NP", "NY", "NZ", "DT"),
        *("tables", "statusText", "newState", "copyState"),
        *functions,
    ]
    return f"return {{{', '.join(names)}}};"
