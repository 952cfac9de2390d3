"""The ONNX target: one graph with a step and the rates."""

from pathlib import Path

from mbdnode.errors import UserError
from mbdnode.exports.program import Program


def write(program: Program, path: Path) -> None:
    """Write the graph.

    **Arguments:**

    - `program`: of `trace_program`.
    - `path`: the file.
    """
    try:
        from mbdnode.exports.onnx import write_onnx
    except ImportError as error:
        raise UserError(
            "The package onnx is not installed. Install it with `pip install mbdnode[onnx]`."
        ) from error
    write_onnx(program, path)
