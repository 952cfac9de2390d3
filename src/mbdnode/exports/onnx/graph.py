"""Builds a graph of ONNX, node by node, from a jaxpr.

Every array of the jaxpr becomes a `Tensor`: a name in the graph, with its shape and type, and its
value where that is known. What is computed from known values alone is computed now. The graphs of
loops and branches may use names of those around them, as ONNX allows, so nothing has to be handed
in; all names are unique.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import onnx
from jax.extend.core import Literal
from onnx import helper, numpy_helper

from mbdnode.errors import UserError

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


@dataclass(frozen=True, eq=False)
class Tensor:
    """An array of the graph, by its name there; with its value where that is known."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    value: np.ndarray | None = None


def rule(*primitives: str) -> Callable[[Rule], Rule]:
    """Register a function of the graph, the equation and its tensors as the rule of primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(primitives, function))
        return function

    return register


class Graph:
    """The nodes of a graph, or of the body of a loop or a branch in it."""

    def __init__(self, parent: "Graph | None" = None):
        self.nodes: list[onnx.NodeProto] = []
        self.root: Graph = self if parent is None else parent.root
        if parent is None:
            self.initializers: dict[tuple, onnx.TensorProto] = {}
            self.count = 0

    def name(self, stem: str = "x") -> str:
        """A name that is not taken."""
        self.root.count += 1
        return f"{stem}{self.root.count}"

    def const(self, value: Any, dtype: Any = None) -> Tensor:
        """A constant; equal ones are one."""
        array = np.asarray(value, dtype)
        key = (array.shape, array.dtype.str, array.tobytes())
        found = self.root.initializers
        if key not in found:
            found[key] = numpy_helper.from_array(array, self.name("c"))
        return Tensor(found[key].name, array.shape, array.dtype, array)

    def node(
        self, op: str, inputs: Sequence[Tensor], shape: Sequence[int], dtype: Any, **attributes: Any
    ) -> Tensor:
        """The result of an operator that has one."""
        out = Tensor(self.name(), tuple(int(n) for n in shape), np.dtype(dtype))
        names = [x.name for x in inputs]
        self.nodes.append(helper.make_node(op, names, [out.name], **attributes))
        return out

    def like(self, op: str, *inputs: Tensor, **attributes: Any) -> Tensor:
        """The result of an element-wise operator, of the inputs' common shape and first type."""
        shape = np.broadcast_shapes(*(x.shape for x in inputs))
        return self.node(op, inputs, shape, inputs[0].dtype, **attributes)

    def truth(self, op: str, *inputs: Tensor) -> Tensor:
        """The same for an operator that gives truth values."""
        shape = np.broadcast_shapes(*(x.shape for x in inputs))
        return self.node(op, inputs, shape, bool)

    def reshaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in another shape."""
        shape = tuple(int(n) for n in shape)
        if shape == x.shape:
            return x
        if x.value is not None:
            return self.const(x.value.reshape(shape))
        return self.node("Reshape", [x, self.const(shape, np.int64)], shape, x.dtype)

    def cast(self, x: Tensor, dtype: Any) -> Tensor:
        """The same values in another type."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.value is not None:
            return self.const(x.value.astype(dtype))
        return self.node("Cast", [x], x.shape, dtype, to=helper.np_dtype_to_tensor_dtype(dtype))

    def cut(
        self,
        x: Tensor,
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> Tensor:
        """A part of an array."""
        steps = [1] * len(starts) if steps is None else list(steps)
        shape = [len(range(*each)) for each in zip(starts, ends, steps, strict=True)]
        if tuple(shape) == x.shape:
            return x
        given = [self.const(list(v), np.int64) for v in (starts, ends, range(len(starts)), steps)]
        return self.node("Slice", [x, *given], shape, x.dtype)

    def joined(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Arrays one after the other along an axis."""
        parts = [x for x in parts if 0 not in x.shape] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(x.shape[axis] for x in parts)
        return self.node("Concat", parts, shape, parts[0].dtype, axis=axis)

    def taken(self, x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
        """Rows of an array, by their numbers."""
        shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
        return self.node("Gather", [x, index], shape, x.dtype, axis=axis)

    def where(self, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
        """One of two arrays, element by element."""
        shape = np.broadcast_shapes(condition.shape, yes.shape, no.shape)
        if yes.dtype == bool:  # for which onnxruntime has no Where
            other = self.like("And", self.truth("Not", condition), no)
            return self.like("Or", self.like("And", condition, yes), other)
        return self.node("Where", [condition, yes, no], shape, yes.dtype)

    def run(self, closed: Any, values: Sequence[Tensor]) -> list[Tensor]:
        """The results of a jaxpr; `UserError` for a primitive that has no rule."""
        jaxpr = closed.jaxpr
        known: dict[Any, Tensor] = dict(zip(jaxpr.invars, values, strict=True))
        known |= {
            var: self.const(np.asarray(value))
            for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
        }

        def read(atom: Any) -> Tensor:
            if isinstance(atom, Literal):
                aval: Any = atom.aval
                return self.const(np.asarray(atom.val, aval.dtype))
            return known[atom]

        for eqn in jaxpr.eqns:
            for var, made in zip(
                eqn.outvars, self.apply(eqn, [*map(read, eqn.invars)]), strict=True
            ):
                known[var] = made
        return [read(atom) for atom in jaxpr.outvars]

    def apply(self, eqn: Any, values: list[Tensor]) -> list[Tensor]:
        """One equation."""
        name, avals = eqn.primitive.name, [v.aval for v in eqn.outvars]
        if all(0 in aval.shape for aval in avals):
            return [self.const(np.zeros(aval.shape, aval.dtype)) for aval in avals]
        if name not in _NOT_NOW and all(x.value is not None for x in values):
            with jax.ensure_compile_time_eval():
                made = eqn.primitive.bind(*(x.value for x in values), **eqn.params)
            made = made if eqn.primitive.multiple_results else [made]
            return [self.const(np.asarray(x)) for x in made]
        if name not in RULES:
            raise UserError(
                f"The model uses {name!r}, which has no counterpart in ONNX here. Export it to C, "
                "or as an FMU."
            )
        made = RULES[name](self, eqn, *values)
        return made if isinstance(made, list) else [made]

    def inner(self, results: Sequence[Tensor], inputs: Sequence[Tensor] = ()) -> onnx.GraphProto:
        """The graph as the body of a loop or a branch."""
        out = [self.node("Identity", [x], x.shape, x.dtype) for x in results]
        return helper.make_graph(
            needed(self.nodes, [x.name for x in out]),
            self.name("body"),
            [described(x) for x in inputs],
            [described(x) for x in out],
        )


_NOT_NOW = {"cond", "while", "scan"}


def described(x: Tensor) -> onnx.ValueInfoProto:
    """Name, type and shape of a tensor."""
    return helper.make_tensor_value_info(
        x.name, helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
    )


def needed(nodes: Sequence[onnx.NodeProto], wanted: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes without which something wanted could not be computed, in their order."""
    names, kept = set(wanted), []
    for node in reversed(nodes):
        if names.isdisjoint(node.output):
            continue
        kept.append(node)
        names |= names_read(node)
    return kept[::-1]


def names_read(node: onnx.NodeProto) -> set[str]:
    """What a node reads, in the graphs of its loop or branches too."""
    found = set(node.input)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            for inner in attribute.g.node:
                found |= names_read(inner)
            found |= {x.name for x in attribute.g.output}
    return found
