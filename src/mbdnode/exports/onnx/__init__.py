"""A model as a graph of ONNX, for runtimes that other networks run in."""

from mbdnode.exports.onnx.convert import onnx_model, write_onnx

__all__ = ["onnx_model", "write_onnx"]
