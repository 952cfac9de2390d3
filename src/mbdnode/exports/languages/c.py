"""A program as C99: a header and a source that need nothing but the standard library and libm."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.exports.entries import STATUS_TEXTS
from mbdnode.exports.functions import Lowered, PlainFunction, lower_plain, lower_program
from mbdnode.exports.ir import Function, dtype_of
from mbdnode.exports.languages.c_library import helper_source
from mbdnode.exports.languages.c_printer import C_TYPES, CPrinter
from mbdnode.exports.program import Program


@dataclass(frozen=True)
class CSource:
    """The text of `<name>.h`, its `header`, and of `<name>.c`, its `source`."""

    header: str
    source: str


def c_source(program: Program) -> CSource:
    """Print a program as C99.

    **Arguments:**

    - `program`: of `trace_program`.

    **Returns:**

    Header and source, the same for the same program.
    """
    lowered, name = lower_program(program), program.name
    header = [*_head(program), *_declarations(name, lowered)]
    header += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return CSource("\n".join(header), _source(name, lowered, _constants(program)))


def c_functions(name: str, functions: Mapping[str, PlainFunction]) -> CSource:
    """Print functions of arrays as C99, their results as pointers after their arguments."""
    lowered, guard = lower_plain(functions), f"{name.upper()}_H"
    header = [f"#ifndef {guard}", f"#define {guard}", "", *_declarations(name, lowered)]
    return CSource("\n".join([*header, "#endif", ""]), _source(name, lowered, []))


def _number(program: Program) -> str:
    return "double" if program.precision == "float64" else "float"


_SIZES = {
    "NQ": "coordinates, and as many velocities",
    "NU": "inputs",
    "NP": "parameters",
    "NY": "outputs",
    "NZ": "the minimal state: independent coordinates, then velocities",
}


def _head(program: Program) -> list[str]:
    """What the header says of the model: sizes, places, the state, the names."""
    name, upper, kind = program.name, program.name.upper(), _number(program)
    lines = [
        f"/* {program.model}, exported by mbdnode: {program.integrator} steps, {kind}.",
        " *",
        " * q: coordinates, v: velocities, u: inputs, p: parameters, y: outputs. All arrays have",
        " * the sizes below; one of size 0 may be any pointer. Functions that return an int return",
        " * a status, 0 if all is well. No function allocates, prints, or keeps anything between",
        " * calls but what is in the state, which may be copied like any other struct.",
        " */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    sizes = program.tables.sizes()
    lines += [f"#define {upper}_{key} {sizes[key]} /* {what} */" for key, what in _SIZES.items()]
    lines += [f"#define {upper}_DT {program.dt_s!r} /* the usual step in seconds */", ""]
    for _, letter, group in program.tables.groups():
        for number, each in enumerate(group):
            unit = f" /* {_comment(each.name)} [{_comment(each.unit)}] */"
            lines.append(f"#define {upper}_{letter.upper()}_{each.identifier} {number}{unit}")
    lines += ["", f"typedef struct {name}_state {{"]
    for field in program.state:
        short = dtype_of(field.dtype)
        size = int(np.prod(field.shape, dtype=int))
        array = f"[{max(size, 1)}]" if field.shape else ""
        what = _FIELDS.get(field.name, "")
        lines.append(f"    {C_TYPES[short]} {field.name}{array};{f' /* {what} */' if what else ''}")
    lines += [f"}} {name}_state;", "", "/* What can come back. */", "enum {"]
    lines += [f"    {upper}_{each} = {code}, /* {text} */" for each, code, text in STATUS_TEXTS]
    lines[-1] = lines[-1].replace(",", "", 1) if lines[-1].count(",") == 1 else lines[-1]
    lines += ["};", f"const char *{name}_status_text(int code);", ""]
    size = lambda n: max(n, 1)  # noqa: E731
    for what, _, group in program.tables.groups():
        count = size(len(group))
        lines.append(f"extern const char *const {name}_{what}_names[{count}];")
        lines.append(f"extern const char *const {name}_{what}_units[{count}];")
    counts = {letter: size(len(group)) for _, letter, group in program.tables.groups()}
    lines += [
        f"extern const {kind} {name}_default_parameters[{counts['p']}];",
        f"extern const {kind} {name}_reference_q[{counts['q']}];",
        f"extern const {kind} {name}_reference_v[{counts['q']}];",
        "/* What is known of a state as a rule: its independent coordinates and velocities. */",
        f"extern const unsigned char {name}_independent[{2 * counts['q']}];",
        "",
    ]
    return lines


def _declarations(name: str, lowered: Lowered) -> list[str]:
    lines = []
    for function in lowered.functions:
        lines += [f"/* {function.comment} */", f"{_signature(name, function)};", ""]
    return lines


_FIELDS = {
    "q": "coordinates",
    "v": "velocities",
    "member_q": "coordinates of every member, one after the other",
    "member_v": "velocities of every member",
    "scale": "the coordinates' sizes",
    "velocity_dependent": "indices of dependent coordinates",
    "velocity_independent": "indices of independent coordinates",
    "determinant": "of the constraints' dependent block",
    "trend": "its change for each unit of distance",
    "code": "the last status",
    "coordinate": "the coordinate that it is about, or -1",
}


def _comment(text: str) -> str:
    """Text that cannot end a comment, nor a line."""
    plain = text.replace("*/", "* /").replace("/*", "/ *")
    return "".join(c if c.isprintable() and c != "\\" else " " for c in plain)


def _string(text: str) -> str:
    """A string literal; bytes that are not plain ASCII in octal."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        plain = 32 <= byte < 127 and char not in '"\\?'
        out.append(char if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def _signature(name: str, function: Function) -> str:
    writes = function.result is not None
    parts = []
    if _has_state(function):
        parts.append(f"{'' if writes else 'const '}{name}_state *state")
    for buffer in function.arguments:
        if buffer.name.startswith("state."):
            continue
        kind = "unsigned char" if buffer.name == "known" else C_TYPES[buffer.dtype]
        if buffer.kind == "scalar":
            parts.append(f"{kind} {buffer.name}")
        else:
            const = "" if buffer.written else "const "
            parts.append(f"{const}{kind} {buffer.name}[{max(buffer.size, 1)}]")
    head = f"{'int' if writes else 'void'} {name}_{function.name}("
    text = head + ", ".join(parts) + ")"
    if len(text) <= 100:
        return text
    return head + ",\n    ".join(parts) + ")"


def _has_state(function: Function) -> bool:
    return any(b.name.startswith("state.") for b in function.arguments)


def _source(name: str, lowered: Lowered, constants: list[str]) -> str:
    printer, printed = CPrinter(), []
    named = {id(t): t.name for t in lowered.tables}
    for function in lowered.functions:
        printer.lines = []
        names = {id(b): b.name.replace("state.", "state->", 1) for b in function.arguments}
        printer.body(function, {**names, **named})
        printed += ["", *_definition(name, function, printer.lines)]
    lines = [f'#include "{name}.h"', ""]
    lines += [f"#include <{each}.h>" for each in ("math", "stdbool", "stdint", "string")]
    lines += ["", *constants, ""]
    for table in lowered.tables:
        assert table.data is not None
        texts = [printer.constant(value, table.dtype) for value in table.data]
        lines += _array(f"static const {C_TYPES[table.dtype]} {table.name}", texts, "0")
    for helper in printer.helpers:
        lines += helper_source(helper).rstrip("\n").split("\n")
    return "\n".join([*lines, *printed, ""])


def _definition(name: str, function: Function, body: list[str]) -> list[str]:
    used = "\n".join(body)
    plain = [b.name for b in function.arguments if not b.name.startswith("state.")]
    unused = ["state"] if _has_state(function) and "state->" not in used else []
    # A name stands there as a word of its own, and not as a member of something.
    unused += [word for word in plain if not re.search(rf"(?<![\w>]){word}\b", used)]
    return [
        f"/* {function.comment} */",
        _signature(name, function),
        "{",
        *(f"    (void){word};" for word in unused),
        *body,
        "}",
    ]


def _constants(program: Program) -> list[str]:
    name, kind = program.name, _number(program)
    lines = []
    printer = CPrinter()
    short = "f64" if kind == "double" else "f32"
    for what, _, group in program.tables.groups():
        for suffix, texts in (
            ("names", [x.name for x in group]),
            ("units", [x.unit for x in group]),
        ):
            lines += _array(
                f"const char *const {name}_{what}_{suffix}", list(map(_string, texts)), '""'
            )

    def numbers(label: str, values: Any) -> None:
        texts = [printer.constant(v, short) for v in values]
        lines.extend(_array(f"const {kind} {name}_{label}", texts, "0"))

    numbers("default_parameters", [x.start for x in program.tables.parameters])
    numbers("reference_q", [x.start for x in program.tables.coordinates])
    numbers("reference_v", [x.start for x in program.tables.rates])
    known = program.tables.known()
    lines += _array(f"const unsigned char {name}_independent", list(map(str, known)), "0")
    lines += ["", f"const char *{name}_status_text(int code)", "{", "    switch (code) {"]
    lines += [f"    case {code}: return {_string(text)};" for _, code, text in STATUS_TEXTS]
    lines += ['    default: return "unknown status";', "    }", "}"]
    return lines


def _array(head: str, texts: list[str], filling: str) -> list[str]:
    """The definition of an array, in lines of readable length."""
    texts = texts or [filling]
    lines, line = [], "   "
    for text in texts:
        if len(line) + len(text) > 96:
            lines.append(line)
            line = "   "
        line += f" {text},"
    lines.append(line.rstrip(","))
    if len(lines) == 1 and len(head) + len(lines[0]) < 80:
        return [f"{head}[{len(texts)}] = {{{lines[0].strip()}}};"]
    return [f"{head}[{len(texts)}] = {{", *lines, "};"]
