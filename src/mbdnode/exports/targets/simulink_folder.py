"""The Simulink target: the sources of a level-2 S-function."""

from pathlib import Path

from mbdnode.errors import UserError
from mbdnode.exports.loops import simulink_files
from mbdnode.exports.program import Program


def write(program: Program, path: Path) -> None:
    """Fill the folder.

    **Arguments:**

    - `program`: of `trace_program`.
    - `path`: an empty folder.
    """
    if program.precision != "float64":
        raise UserError("Simulink's signals are float64; export the model in that precision.")
    for name, text in simulink_files(program).items():
        (path / name).write_text(text, encoding="utf-8")
