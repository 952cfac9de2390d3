"""The C target: a folder with header, source, an example program and a CMake file."""

from pathlib import Path

from mbdnode.exports.entries import ENTRIES
from mbdnode.exports.languages.c import c_source
from mbdnode.exports.program import Program
from mbdnode.exports.tables import Quantity

_MAIN = """/* A run of 1,000 steps from where the model is assembled, as a table on the output. */
#include "{name}.h"

#include <stdio.h>

int main(void)
{{
    {name}_state state;
    {number} u[{nu}] = {{0}}; /* inputs, held over a step */
    const {number} *p = {name}_default_parameters;
    const {number} dt = ({number}){upper}_DT;
    int code = {name}_init(&state, 0, {name}_reference_q, {name}_reference_v,
                           {name}_independent, p);
    if (code != {upper}_COMPLETED) {{
        fprintf(stderr, "%s\\n", {name}_status_text(code));
        return 1;
    }}
    printf("t");
    for (int i = 0; i < {upper}_NQ; ++i) printf(",%s", {name}_coordinate_names[i]);
    printf("\\n");
    for (int step = 0; step <= 1000; ++step) {{
        const {number} t = ({number})step * dt;
        printf("%.9g", (double)t);
        for (int i = 0; i < {upper}_NQ; ++i) printf(",%.17g", (double)state.q[i]);
        printf("\\n");
        code = {name}_step(&state, t, dt, u, p);
        if (code > 0) {{
            fprintf(stderr, "t = %g s: %s\\n", (double)t, {name}_status_text(code));
            return 1;
        }}
    }}
    return 0;
}}
"""

_CMAKE = """cmake_minimum_required(VERSION 3.10)
project({name} C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library({name} {name}.c)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()
add_executable({name}_example main.c)
target_link_libraries({name}_example {name})
"""

_README = """# {name}

{model}, exported by mbdnode as C99, with steps of {integrator}. `{name}.c` needs nothing but the
standard library and libm: no allocation, no recursion, no state but the struct that you hold.

    cmake -B build && cmake --build build && ./build/{name}_example
    cc -std=c99 -O3 {name}.c main.c -lm

| function | what it does |
|---|---|
{functions}

Functions that return an int return a status; `{name}_status_text` says what it means. 0 is all is
well. -1: a singular configuration of the constraints is near, the step was taken but may be less
accurate than others. Above 0 the step was not taken and the state is as it was before the call.

## Names
{tables}{renamed}"""


def write_c(program: Program, path: Path) -> None:
    """Fill an empty folder."""
    name = program.name
    c = c_source(program)
    number = "double" if program.precision == "float64" else "float"
    facts = {
        "name": name,
        "upper": name.upper(),
        "number": number,
        "nu": max(len(program.tables.inputs), 1),
        "model": program.model,
        "integrator": program.integrator,
        "functions": _functions(program),
        "tables": _tables(program),
        "renamed": _renamed(program),
    }
    texts = {
        f"{name}.h": c.header,
        f"{name}.c": c.source,
        "main.c": _MAIN.format(**facts),
        "CMakeLists.txt": _CMAKE.format(**facts),
        "README.md": _README.format(**facts),
    }
    for file, text in texts.items():
        (path / file).write_text(text, encoding="utf-8")


def _functions(program: Program) -> str:
    names = program.entries
    return "\n".join(f"| `{program.name}_{name}` | {ENTRIES[name].text} |" for name in names)


def _tables(program: Program) -> str:
    lines = []
    for what, letter, group in program.tables.groups():
        if not group:
            continue
        lines += ["", f"| {letter} | {what} | index | unit | start |", "|---|---|---|---|---|"]
        upper = f"{program.name.upper()}_{letter.upper()}"
        for number, each in enumerate(group):
            start = "" if each.start != each.start else f"{each.start:.9g}"
            cells = (f"{letter}[{number}]", _cell(each.name), f"`{upper}_{each.identifier}`")
            lines.append(f"| {' | '.join(cells)} | {_cell(each.unit)} | {start} |")
    return "\n".join(lines) + "\n"


def _renamed(program: Program) -> str:
    """Which names are others in C, and why."""
    changed: tuple[Quantity, ...] = program.tables.renamed()
    if not changed:
        return ""
    lines = ["", "Names that are no identifiers in C, or are taken, are written otherwise:", ""]
    lines += [f"- {_cell(each.name)} is `{each.identifier}`" for each in changed]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor a line of a table."""
    return "".join(c if c.isprintable() else " " for c in text).replace("|", "\\|")
