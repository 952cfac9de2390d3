"""One step and the rates of a model as a graph of ONNX.

The same jaxprs that become C become nodes of ONNX, in float64, with loops as `Loop` and branches as
`If`; factorizations, which ONNX has not, are written out. The graph has the program's arguments as
inputs (the state's fields, `t`, `dt`, `u`, `p`), and as outputs the state a step later, as
`next_<field>`, and the rates `dq` and `dv` where it is now. Arrays without elements are left out.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

import mbdnode.exports.onnx.arrays
import mbdnode.exports.onnx.elementwise
import mbdnode.exports.onnx.programs  # noqa: F401  (these three register the rules)
from mbdnode import __version__
from mbdnode.exports.onnx.graph import Graph, Tensor, described, names_read, needed
from mbdnode.exports.program import Entry, Program

# The oldest version with all operators that are used.
_OPSET, _IR_VERSION = 18, 8


def onnx_model(program: Program) -> onnx.ModelProto:
    """The graph of a model, checked; `UserError`, by name, for a primitive that ONNX has not."""
    graph = Graph()
    given: dict[str, Tensor] = {}
    outputs: list[Tensor] = []
    for key, prefix in (("step", "next_"), ("rates", "")):
        entry = program.entries[key]
        for one in entry.arguments:
            if one.name not in given:
                shape, dtype = tuple(one.shape), np.dtype(one.dtype)
                empty = np.zeros(shape, dtype) if 0 in shape else None
                given[one.name] = Tensor(one.name, shape, dtype, empty)
                if empty is not None:
                    given[one.name] = graph.const(empty)
        outputs += _entry(graph, entry, given, prefix)
    nodes = needed(graph.nodes, [x.name for x in outputs])
    read = set().union(*map(names_read, nodes))
    inputs = [x for x in given.values() if x.value is None and x.name in read]
    made = helper.make_graph(
        nodes,
        program.name,
        [described(x) for x in inputs],
        [described(x) for x in outputs],
        [x for x in graph.initializers.values() if x.name in read],
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="mbdnode",
        producer_version=__version__,
        doc_string=f"{program.model}: next_q and next_v after a {program.integrator} step of dt "
        "with u held, and the rates dq and dv.",
    )
    names = {"coordinates": program.tables.coordinates, "inputs": program.tables.inputs}
    names |= {"rates": program.tables.rates, "parameters": program.tables.parameters}
    helper.set_model_props(
        model,
        {key: "\n".join(f"{x.name} [{x.unit}]" for x in group) for key, group in names.items()},
    )
    onnx.checker.check_model(model)
    return model


def write_onnx(program: Program, out: Path) -> None:
    """Write the graph of a model from the entries "step" and "rates"."""
    out.write_bytes(onnx_model(program).SerializeToString(deterministic=True))


def _entry(graph: Graph, entry: Entry, given: dict[str, Tensor], prefix: str) -> list[Tensor]:
    """The nodes of an entry, and its results under their names."""
    found = graph.run(entry.jaxpr, [given[one.name] for one in entry.arguments])
    named = []
    for one, x in zip(entry.results, found, strict=True):
        if 0 in x.shape:
            continue
        name = f"{prefix}{one.name}"
        graph.nodes.append(helper.make_node("Identity", [x.name], [name]))
        named.append(Tensor(name, x.shape, x.dtype))
    return named
