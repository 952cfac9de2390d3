"""Indices that lie beyond an array, in a trace.

Of `q[7]` with three coordinates JAX takes the last one. In a trace, an index that is there is a
slice; one that is not stays an index, made by integer operations of a constant. Those operations
are done here by NumPy; an index that depends on values is not known, and is left alone.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# Of a constant index JAX makes one from the end, and of several an array.
_OPERATIONS = {
    "lt": lambda a, b: np.less(a, b),
    "add": lambda a, b: np.add(a, b),
    "select_n": lambda which, a, b: np.where(which, b, a),
    "convert_element_type": lambda a, new_dtype, **_: np.asarray(a, new_dtype),
    "broadcast_in_dim": lambda a, shape, broadcast_dimensions, **_: _broadcast(
        np.asarray(a), shape, broadcast_dimensions
    ),
}


def indices_beyond(traced: Any) -> Iterator[tuple[int, int]]:
    """Every constant index that is beyond its axis, with the size of that axis."""
    inner = traced.jaxpr
    known = dict(zip(inner.constvars, traced.consts, strict=True))
    yield from _beyond(inner, {x: c for x, c in known.items() if not isinstance(c, Tracer)})


def _beyond(jaxpr: Any, known: dict[Any, Any]) -> Iterator[tuple[int, int]]:
    for equation in jaxpr.eqns:
        name, settings = equation.primitive.name, equation.params
        given = [x.val if isinstance(x, Literal) else known.get(x) for x in equation.invars]
        if name in _OPERATIONS and all(x is not None for x in given):
            known[equation.outvars[0]] = _OPERATIONS[name](*given, **settings)
        for size, index in _indexed(equation, given):
            # JAX has added the size to an index from the end.
            for value in np.ravel(index)[(np.ravel(index) < 0) | (np.ravel(index) >= size)]:
                yield int(value if value >= 0 else value - size), size
        for inner in jax.tree.leaves(list(settings.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                closed = isinstance(inner, ClosedJaxpr)
                body = inner.jaxpr if closed else inner
                # Only a call hands its arguments on as they are.
                passed = zip(body.invars, given, strict=True) if name == "jit" else ()
                own = {x: value for x, value in passed if value is not None}
                own |= dict(zip(body.constvars, inner.consts if closed else (), strict=closed))
                yield from _beyond(body, own)


def _indexed(equation: Any, given: list) -> list:
    """The sizes of axes, and the indices that are taken along them, where those are known."""
    name, settings = equation.primitive.name, equation.params
    shape = equation.invars[0].aval.shape if equation.invars else ()
    if name in ("dynamic_slice", "dynamic_update_slice"):
        pairs = zip(shape, given[-len(shape) :], strict=True)
    elif (name == "gather" or name.startswith("scatter")) and given[1] is not None:
        numbers = settings["dimension_numbers"]
        axes = getattr(numbers, "start_index_map", None)
        axes = numbers.scatter_dims_to_operand_dims if axes is None else axes
        # Where the user asked for a value in place of what is not there, that is what is meant.
        asked = name == "gather" and settings["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
        pairs = () if asked else ((shape[a], given[1][..., k]) for k, a in enumerate(axes))
    else:
        return []
    return [(size, index) for size, index in pairs if index is not None]


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, (Jaxpr, ClosedJaxpr))


def _broadcast(array: np.ndarray, shape: tuple[int, ...], axes: tuple[int, ...]) -> np.ndarray:
    sizes = dict(zip(axes, array.shape, strict=True))
    return np.broadcast_to(array.reshape([sizes.get(i, 1) for i in range(len(shape))]), shape)
