"""One tracer, several languages: models as plain C, as JavaScript, and as what is built on them.

The jaxpr of a model's functions is lowered to loops over arrays of fixed sizes, one rule for each
primitive, and printed. It never looks at what the model is, so that mechanisms, laws, networks and
hybrids are exported alike. In the order in which a model goes through the files:

    writing                 `export`: what is asked for, checked; the file put in place as a whole
    program                 names, state and jaxpr of each function, by `trace_program`
        entries             these functions: init, step, rates, outputs, linearize
        consistent_start    a consistent start, by operations that can be traced
        ensembles           the same for the mean of several models
    functions               each jaxpr as a function of named arrays
        jaxpr_to_ir         from core primitives to loops
        primitive_rules     a rule for each of them
        values, builder     what a rule works with: arrays, and expressions simplified as they grow
        ir, pruning         the loops, and what of them nobody reads
    languages               printed as C or JavaScript; `placement` says where each expression goes
    targets                 folders and files of them; `fmu`, `onnx` and `loops` for other programs

Names are loaded when first used.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.exports.entries import ENTRIES
    from mbdnode.exports.languages.c import CSource, c_source
    from mbdnode.exports.languages.javascript import javascript_source
    from mbdnode.exports.program import Program, trace_program
    from mbdnode.exports.tables import Quantity, QuantityTables
    from mbdnode.exports.targets import TARGETS, Target
    from mbdnode.exports.writing import export

__all__ = [
    "ENTRIES",
    "TARGETS",
    "CSource",
    "Program",
    "Quantity",
    "QuantityTables",
    "Target",
    "c_source",
    "export",
    "javascript_source",
    "trace_program",
]

__getattr__ = lazy_names(
    __name__,
    {
        "CSource": "languages.c",
        "c_source": "languages.c",
        "ENTRIES": "entries",
        "export": "writing",
        "javascript_source": "languages.javascript",
        "Program": "program",
        "Quantity": "tables",
        "QuantityTables": "tables",
        "Target": "targets",
        "TARGETS": "targets",
        "trace_program": "program",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
