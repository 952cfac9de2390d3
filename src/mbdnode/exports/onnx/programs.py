"""Rules of loops, branches, and of small linear systems."""

from typing import Any

import numpy as np
from onnx import helper

from mbdnode.errors import UserError
from mbdnode.exports.onnx.graph import Graph, Tensor, rule

# A factorization is written out, so its size is that of the graph.
_LARGEST = 64


@rule("while")
def _while(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    p = eqn.params
    count_c, count_b = p["cond_nconsts"], p["body_nconsts"]
    of_cond, of_body = values[:count_c], values[count_c : count_c + count_b]
    start = values[count_c + count_b :]
    (going,) = graph.run_closed(p["cond_jaxpr"], [*of_cond, *start])

    def turn(body: Graph, _: Tensor, now: list[Tensor]) -> list[Tensor]:
        then = body.run_closed(p["body_jaxpr"], [*of_body, *now])
        return [*body.run_closed(p["cond_jaxpr"], [*of_cond, *then]), *then]

    return _loop(graph, None, going, start, eqn, turn)


@rule("scan")
def _scan(graph: Graph, eqn: Any, *values: Tensor) -> list[Tensor]:
    p = eqn.params
    count, carry = p["num_consts"], p["num_carry"]
    consts, start, rows = values[:count], values[count : count + carry], values[count + carry :]

    def turn(body: Graph, number: Tensor, now: list[Tensor]) -> list[Tensor]:
        row = [body.taken(x, number) for x in rows]
        return [body.const(True), *body.run_closed(p["jaxpr"], [*consts, *now, *row])]

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
        return graph.run_closed(branches[0], values)
    here = graph.truth("LessOrEqual", which, graph.const(first, np.int32))
    yes, no = Graph(graph), Graph(graph)
    own = yes.run_closed(branches[0], values)
    others = _branch(no, branches[1:], first + 1, which, values)
    made = [_fresh(graph, x) for x in own]
    graphs: Any = {"then_branch": yes.inner(own), "else_branch": no.inner(others)}
    graph.nodes.append(helper.make_node("If", [here.name], [x.name for x in made], **graphs))
    return made


def _only_one(x: Tensor, what: str) -> None:
    if len(x.shape) != 2:
        raise UserError(
            f"The model solves many linear systems at once ({what!r} of shape {x.shape}), which is "
            "not written as ONNX. Export it to C, or as an FMU."
        )
    if x.shape[0] > _LARGEST:
        raise UserError(
            f"The model solves {x.shape[0]} linear equations ({what!r}), and a graph of ONNX for "
            f"more than {_LARGEST} would be too large. Export it to C, or as an FMU."
        )


@rule("lu")
def _lu(graph: Graph, eqn: Any, a: Tensor) -> list[Tensor]:
    """Gaussian elimination with row exchanges, column by column, written out."""
    _only_one(a, "lu")
    n = a.shape[0]
    order, pivots = graph.const(np.arange(n), np.int64), []
    left = a  # rows from k on are not finished
    for k in range(n):
        column = graph.reshaped(graph.cut(left, [k, k], [n, k + 1]), (n - k,))
        best = graph.node("ArgMax", [graph.like("Abs", column)], (), np.int64, axis=0, keepdims=0)
        pivot = graph.like("Add", best, graph.const(k, np.int64))
        swap = _exchange(graph, n, k, pivot)
        left, order = graph.taken(left, swap), graph.taken(order, swap)
        pivots.append(graph.reshaped(pivot, (1,)))
        if k == n - 1:
            break
        top = graph.cut(left, [0, 0], [k + 1, n])
        low = graph.cut(left, [k + 1, 0], [n, n])
        size = graph.cut(left, [k, k], [k + 1, k + 1])
        # As LAPACK does: a column without a pivot is left as it is.
        zero = graph.truth("Equal", size, graph.const(0.0, a.dtype))
        size = graph.where(zero, graph.const(1.0, a.dtype), size)
        factor = graph.like("Div", graph.cut(low, [0, k], [n - k - 1, k + 1]), size)
        across = graph.cut(left, [k, k + 1], [k + 1, n])
        rest = graph.like("Sub", graph.cut(low, [0, k + 1], [n - k - 1, n]),
                          graph.like("Mul", factor, across))  # fmt: skip
        parts = [graph.cut(low, [0, 0], [n - k - 1, k])] if k else []
        low = graph.joined([*parts, factor, rest], 1)
        left = graph.joined([top, low], 0)
    kinds = [v.aval.dtype for v in eqn.outvars]
    return [left, graph.cast(graph.joined(pivots, 0), kinds[1]), graph.cast(order, kinds[2])]


def _exchange(graph: Graph, n: int, k: int, pivot: Tensor) -> Tensor:
    """The numbers of n rows, with row k and the pivot's in each other's place."""
    rows, here = graph.const(np.arange(n), np.int64), graph.const(k, np.int64)
    swap = graph.where(graph.truth("Equal", rows, pivot), here, rows)
    return graph.where(graph.truth("Equal", rows, here), pivot, swap)


@rule("lu_pivots_to_permutation")
def _permutation(graph: Graph, eqn: Any, pivots: Tensor) -> Tensor:
    n = int(eqn.params["permutation_size"])
    order = graph.const(np.arange(n), np.int64)
    for k in range(pivots.shape[0]):
        pivot = graph.reshaped(graph.cast(graph.cut(pivots, [k], [k + 1]), np.int64), ())
        order = graph.taken(order, _exchange(graph, n, k, pivot))
    return graph.cast(order, eqn.outvars[0].aval.dtype)


@rule("triangular_solve")
def _triangular_solve(graph: Graph, eqn: Any, a: Tensor, b: Tensor) -> Tensor:
    """Substitution, row by row, written out."""
    _only_one(a, "triangular_solve")
    p = eqn.params
    turned = lambda x: graph.node("Transpose", [x], x.shape[::-1], x.dtype, perm=[1, 0])  # noqa: E731
    transpose, lower, left = bool(p["transpose_a"]), bool(p["lower"]), bool(p["left_side"])
    if not left:  # X op(A) = B is op(A)^T X^T = B^T.
        transpose, b = not transpose, turned(b)
    if transpose:
        a, lower = turned(a), not lower
    n, width = a.shape[0], b.shape[1]
    found: dict[int, Tensor] = {}
    for i in range(n) if lower else reversed(range(n)):
        right = graph.cut(b, [i, 0], [i + 1, width])
        known = range(i) if lower else range(i + 1, n)
        if len(known):
            above = graph.joined([found[j] for j in known], 0)
            row = graph.cut(a, [i, known[0]], [i + 1, known[-1] + 1])
            right = graph.like(
                "Sub", right, graph.node("MatMul", [row, above], (1, width), a.dtype)
            )
        if not p["unit_diagonal"]:
            right = graph.like("Div", right, graph.cut(a, [i, i], [i + 1, i + 1]))
        found[i] = right
    x = graph.joined([found[i] for i in range(n)], 0)
    return x if left else turned(x)
