"""One tracer, several languages: models as plain C, as JavaScript, and as what is built on them.

The jaxpr of a model's functions is lowered to loops over arrays of fixed sizes, one rule for each
primitive, and printed. It never looks at what the model is, so that mechanisms, laws, networks and
hybrids are exported alike. Names are loaded when first used.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy import lazy_names

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
