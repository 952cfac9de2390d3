"""The FMU target: one file for Model Exchange and Co-Simulation."""

from pathlib import Path

from mbdnode.exports.fmu import write_fmu
from mbdnode.exports.program import Program


def write(program: Program, path: Path, version: int) -> None:
    """Write the FMU.

    **Arguments:**

    - `program`: of `trace_program`.
    - `path`: the file.
    - `version`: of FMI, 2 or 3.
    """
    write_fmu(program, path, version)
