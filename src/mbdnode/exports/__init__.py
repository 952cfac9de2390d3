"""One tracer, several languages: models as plain C, as JavaScript, and as what is built on them."""

from mbdnode.exports.entries import ENTRIES
from mbdnode.exports.program import Program, trace_program

__all__ = ["ENTRIES", "Program", "trace_program"]
