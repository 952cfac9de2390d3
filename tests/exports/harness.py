"""Functions in JAX, printed, compiled and called, so that their values can be compared."""

import ctypes
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbdnode.exports.core_primitives import traced
from mbdnode.exports.functions import lower_function
from mbdnode.exports.ir import Function
from mbdnode.exports.jaxpr_to_ir import Tables
from mbdnode.exports.languages.c_library import helper_source as c_helper
from mbdnode.exports.languages.c_printer import C_TYPES, CPrinter
from mbdnode.exports.languages.javascript_library import helper_source as javascript_helper
from mbdnode.exports.languages.javascript_printer import ARRAYS, JavaScriptPrinter
from mbdnode.exports.program import Argument
from mbdnode.exports.pruning import tables_of

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
NODE = shutil.which("node")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler (cc, gcc or clang)")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node")


@dataclass(frozen=True)
class Call:
    """A function, and arrays to call it with."""

    name: str
    function: Any
    arguments: tuple[np.ndarray, ...]


def lowered(calls: list[Call]) -> tuple[list[Function], list[list[tuple]], Tables]:
    """Every function, and the shapes and types of its results."""
    tables, functions, shapes = Tables(), [], []
    for number, call in enumerate(calls):
        closed = traced(call.function, *call.arguments)
        arguments = [
            Argument(f"a{i}", np.shape(a), np.asarray(a).dtype.name, "in")
            for i, a in enumerate(call.arguments)
        ]
        results = [
            Argument(f"r{i}", a.shape, a.dtype.name, "out") for i, a in enumerate(closed.out_avals)
        ]
        functions.append(lower_function(closed, arguments, results, tables, f"f{number}"))
        shapes.append([(a.shape, a.dtype.name) for a in closed.out_avals])
    return functions, shapes, tables


def _table_text(functions: list[Function], printer: Any, head: Any) -> list[str]:
    seen, lines = set(), []
    for function in functions:
        for table in tables_of(function):
            if id(table) not in seen:
                seen.add(id(table))
                lines.append(head(table, [printer.constant(v, table.dtype) for v in table.data]))
    return lines


def run_c(calls: list[Call], folder: Path, flags: tuple[str, ...] = ("-O1",)) -> list[list]:
    """The results of every call, from one shared library."""
    functions, shapes, _ = lowered(calls)
    printer, bodies = CPrinter(), []
    for function in functions:
        printer.lines = []
        names = {id(b): b.name for b in function.arguments}
        names |= {id(t): t.name for t in tables_of(function)}
        printer.body(function, names)
        parts = []
        for b in function.arguments:
            const, star = "" if b.written else "const ", "" if b.kind == "scalar" else "*"
            parts.append(f"{const}{C_TYPES[b.dtype]} {star}{b.name}")
        quiet = [f"    (void){b.name};" for b in function.arguments]
        head = f"void {function.name}({', '.join(parts)});"
        bodies += [head, head[:-1], "{", *quiet, *printer.lines, "}"]
    tables = _table_text(
        functions,
        printer,
        lambda t, x: f"static const {C_TYPES[t.dtype]} {t.name}[] = {{{', '.join(x)}}};",
    )
    heads = [f"#include <{h}.h>" for h in ("math", "stdbool", "stdint", "string")]
    helpers = [c_helper(h) for h in printer.helpers]
    source = folder / "calls.c"
    source.write_text("\n".join([*heads, *tables, *helpers, *bodies, ""]))
    library = folder / "calls.so"
    command = [CC, *WARNINGS, *flags, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:3000]
    code = ctypes.CDLL(str(library))
    found = []
    for number, (call, shape) in enumerate(zip(calls, shapes, strict=True)):
        given: list[Any] = []
        for a in call.arguments:
            array = np.asarray(a, order="C")
            if array.ndim == 0:
                given.append(np.ctypeslib.as_ctypes_type(array.dtype)(array.item()))
            else:
                given.append(array.ctypes.data_as(ctypes.c_void_p))
        results = [np.zeros(s, d) for s, d in shape]
        getattr(code, f"f{number}")(*given, *(r.ctypes.data_as(ctypes.c_void_p) for r in results))
        found.append(results)
    return found


def run_javascript(calls: list[Call], folder: Path) -> list[list]:
    """The results of every call, from one run of node."""
    functions, shapes, _ = lowered(calls)
    printer, bodies = JavaScriptPrinter(), []
    for function in functions:
        printer.lines = []
        names = {id(b): b.name for b in function.arguments}
        names |= {id(t): t.name for t in tables_of(function)}
        printer.body(function, names)
        parts = ", ".join(b.name for b in function.arguments)
        bodies += [f"function {function.name}({parts}) {{", *printer.lines, "}"]

    def table(t, x):
        plain = ", ".join(x).replace("true", "1").replace("false", "0")
        return f"const {t.name} = {ARRAYS[t.dtype]}.from([{plain}]);"

    tables = _table_text(functions, printer, table)
    lines = [*tables, *printer.scratch, *dict.fromkeys(map(javascript_helper, printer.helpers))]
    lines += [*bodies, "const found = [];"]
    for number, (call, function) in enumerate(zip(calls, functions, strict=True)):
        given = []
        for buffer, a in zip(function.arguments, call.arguments, strict=False):
            values = [_plain(v) for v in np.asarray(a).ravel().tolist()]
            if buffer.kind == "scalar":
                given.append(values[0])
            else:
                given.append(f"{ARRAYS[buffer.dtype]}.from([{', '.join(values)}])")
        outs = [f"new {ARRAYS[b.dtype]}({b.size})" for b in function.arguments if b.written]
        lines.append(f"{{ const r = [{', '.join(outs)}]; f{number}({', '.join([*given, '...r'])});")
        lines.append("found.push(r.map((x) => Array.from(x, String))); }")
    lines.append("console.log(JSON.stringify(found));")
    script = folder / "calls.js"
    script.write_text("\n".join(lines))
    made = subprocess.run([NODE, str(script)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:3000]
    found = []
    for texts, shape in zip(json.loads(made.stdout), shapes, strict=True):
        found.append(
            [
                np.array([float(v) for v in flat]).astype(d).reshape(s)
                for flat, (s, d) in zip(texts, shape, strict=True)
            ]
        )
    return found


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    text = repr(value)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
