"""The JavaScript target: one file."""

from pathlib import Path

from mbdnode.exports.languages.javascript import javascript_source
from mbdnode.exports.program import Program


def write(program: Program, path: Path) -> None:
    """Write the script; `require` of node gets the model, a page a constant of its name.

    **Arguments:**

    - `program`: of `trace_program`.
    - `path`: the file.
    """
    name = program.name
    tail = f'if (typeof module !== "undefined") module.exports = {name};\n'
    path.write_text(javascript_source(program) + tail, encoding="utf-8")
