"""The CasADi target: a library of external functions, and its sources."""

from pathlib import Path

from mbdnode.errors import UserError
from mbdnode.exports.fmu.compiling import compiled, find_compiler
from mbdnode.exports.loops import casadi_files
from mbdnode.exports.program import Program


def write(program: Program, path: Path) -> None:
    """Fill the folder.

    **Arguments:**

    - `program`: of `trace_program`.
    - `path`: an empty folder.
    """
    if program.precision != "float64":
        raise UserError("CasADi's numbers are float64; export the model in that precision.")
    compiler = find_compiler("external functions")
    files = casadi_files(program)
    (path / f"lib{program.name}.so").write_bytes(compiled(compiler, files))
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
