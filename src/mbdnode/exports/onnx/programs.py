"""Rules of loops and branches."""

from typing import Any

import numpy as np
from onnx import helper

from mbdnode.exports.onnx.graph import Graph, Tensor, rule


@rule("while")
def _while(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    p = eqn.params
    count_c, count_b = p["cond_nconsts"], p["body_nconsts"]
    of_cond, of_body = values[:count_c], values[count_c : count_c + count_b]
    start = values[count_c + count_b :]
    (going,) = graph.run(p["cond_jaxpr"], [*of_cond, *start])

    def turn(body: Graph, _: Tensor, now: list[Tensor]) -> list[Tensor]:
        then = body.run(p["body_jaxpr"], [*of_body, *now])
        return [*body.run(p["cond_jaxpr"], [*of_cond, *then]), *then]

    return _loop(graph, None, going, start, eqn, turn)


@rule("scan")
def _scan(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    p = eqn.params
    count, carry = p["num_consts"], p["num_carry"]
    consts, start, rows = values[:count], values[count : count + carry], values[count + carry :]

    def turn(body: Graph, number: Tensor, now: list[Tensor]) -> list[Tensor]:
        row = [body.taken(x, number) for x in rows]
        return [body.const(True), *body.run(p["jaxpr"], [*consts, *now, *row])]

    length = graph.const(p["length"], np.int64)
    return _loop(graph, length, graph.const(True), start, eqn, turn)


def _fresh(graph: Graph, like: Any) -> Tensor:
    return Tensor(graph.name(), tuple(like.shape), np.dtype(like.dtype))


def _loop(graph: Graph, count: Tensor | None, going: Tensor, start, eqn: Any, turn) -> list[Tensor]:
    """A loop of so many turns, or as long as it goes on; a turn says first whether it does."""
    body = Graph(graph)
    number, before = (Tensor(body.name(), (), np.dtype(kind)) for kind in (np.int64, bool))
    now = [_fresh(body, x) for x in start]
    inner = body.inner(turn(body, number, now), [number, before, *now])
    made = [_fresh(graph, x.aval) for x in eqn.outvars]
    names = ["" if count is None else count.name, going.name, *(x.name for x in start)]
    graph.nodes.append(helper.make_node("Loop", names, [x.name for x in made], body=inner))
    return made


@rule("cond")
def _cond(graph: Graph, eqn: Any, which: Tensor, *values: Tensor) -> list[Tensor]:
    return _branch(graph, eqn.params["branches"], 0, graph.cast(which, np.int32), values)


def _branch(graph: Graph, branches, first: int, which: Tensor, values) -> list[Tensor]:
    """The branches from the first on: one, or one of the others."""
    if len(branches) == 1:
        return graph.run(branches[0], values)
    here = graph.truth("LessOrEqual", which, graph.const(first, np.int32))
    yes, no = Graph(graph), Graph(graph)
    own = yes.run(branches[0], values)
    others = _branch(no, branches[1:], first + 1, which, values)
    made = [_fresh(graph, x) for x in own]
    graphs: Any = {"then_branch": yes.inner(own), "else_branch": no.inner(others)}
    graph.nodes.append(helper.make_node("If", [here.name], [x.name for x in made], **graphs))
    return made
