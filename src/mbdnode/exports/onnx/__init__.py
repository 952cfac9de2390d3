"""A model as a graph of ONNX, for runtimes that other networks run in."""

from importlib.util import find_spec

from mbdnode.errors import UserError

if find_spec("onnx") is None:
    raise UserError(
        "The package onnx is not installed. Install it with `pip install mbdnode[onnx]`."
    )
