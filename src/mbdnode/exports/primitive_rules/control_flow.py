"""Rules of loops and branches.

What a loop hands on lives in variables that are written at the end of each turn. A value that it
hands on unchanged is left where it is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Jaxpr, Var

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Branch, BreakIf, Loop, Ref, Region, dtype_of
from mbdnode.exports.jaxpr_to_ir import Lowering, rule
from mbdnode.exports.primitive_rules.shapes import cut, reshape
from mbdnode.exports.values import Elements, Value, View


class _Carried:
    """What a loop hands from one turn to the next."""

    def __init__(self, low: Lowering, start: Sequence[Value], changed: Sequence[bool]):
        self.low, self.start, self.changed = low, list(start), list(changed)
        self.refs: list[Ref | None] = []
        for value, moves in zip(start, changed, strict=True):
            kind = "scalar" if value.size == 1 else "local"
            ref = low.new(value.dtype, value.size, "c", kind) if moves else None
            if ref is not None:
                low.write(ref, 0, value)
            self.refs.append(ref)

    def seen(self, region: Region) -> list[Value]:
        """The values as a region sees them."""
        return [
            value if ref is None else self._seen(ref, value, region)
            for ref, value in zip(self.refs, self.start, strict=True)
        ]

    def _seen(self, ref: Ref, value: Value, region: Region) -> Value:
        view = View(Ref(ref.buffer, region), value.shape)
        return self.low.elements(view) if value.size == 1 else view

    def hand_on(self, new: Sequence[Value]) -> None:
        """Write the values of the next turn."""
        pairs = zip(self.refs, new, strict=True)
        self.low.assign([(ref, value) for ref, value in pairs if ref is not None])


def _changed(jaxpr: Jaxpr, first: int, outvars: Sequence[Any]) -> list[bool]:
    """Which of the values that a loop hands on its body changes."""
    own = jaxpr.invars[first : first + len(outvars)]
    return [not (isinstance(o, Var) and o is v) for o, v in zip(outvars, own, strict=True)]


@rule("while")
def _while(low: Lowering, eqn: Any, *values: Value) -> list[Value]:
    p = eqn.params
    count_c, count_b = p["cond_nconsts"], p["body_nconsts"]
    of_cond, of_body = values[:count_c], values[count_c : count_c + count_b]
    start = values[count_c + count_b :]
    body = p["body_jaxpr"]
    changed = _changed(body.jaxpr, count_b, body.jaxpr.outvars)
    carried = _Carried(low, [low.settled(v) for v in start], changed)
    with low.inside("loop") as region:
        now = carried.seen(region)
        (going,) = low.lower(p["cond_jaxpr"], [*of_cond, *now])
        low.emit(BreakIf(low.make.op("not", low.only(going))))
        carried.hand_on(low.lower(body, [*of_body, *now]))
    low.emit(Loop(None, None, region))
    return carried.seen(low.region)


@rule("scan")
def _scan(low: Lowering, eqn: Any, *values: Value) -> list[Value]:
    p = eqn.params
    closed, length = p["jaxpr"], p["length"]
    count, carry = p["num_consts"], p["num_carry"]
    consts, start, rows = values[:count], values[count : count + carry], values[count + carry :]
    rows = [low.settled(v, 2) for v in rows]
    changed = _changed(closed.jaxpr, count, closed.jaxpr.outvars[:carry])
    carried = _Carried(low, [low.settled(v) for v in start], changed)
    stacked = []
    for variable in closed.jaxpr.outvars[carry:]:
        dtype = dtype_of(variable.aval.dtype)
        size = int(np.prod(variable.aval.shape, dtype=int))
        stacked.append((low.new(dtype, length * size), variable.aval.shape, size))
    make = low.make
    # Rows that are scalars with known values become tables, outside of the loop.
    rows = [low.view(v) if isinstance(v, Elements) and v.size else v for v in rows]
    with low.inside("loop") as region:
        counter = make.counter(region)
        made = low.lower(
            closed, [*consts, *carried.seen(region), *(_row(low, v, counter) for v in rows)]
        )
        for (ref, _, size), value in zip(stacked, made[carry:], strict=True):
            low.write(ref, make.imul(counter, size), value)
        carried.hand_on(made[:carry])
    low.emit(Loop(counter, length, region))
    ys = [View(ref, (length, *shape)) for ref, shape, _ in stacked]
    return [*carried.seen(low.region), *ys]


def _row(low: Lowering, value: Value, at: Index) -> Value:
    shape = value.shape[1:]
    block = cut(low, value, [at, *([0] * len(shape))], (1, *shape))
    return reshape(low, block, shape)


@rule("cond")
def _cond(low: Lowering, eqn: Any, which: Value, *values: Value) -> list[Value]:
    branches, make = eqn.params["branches"], low.make
    index = low.only(which)
    if index.dtype == "bool":
        # The second branch is that of True.
        index = make.select(index, make.const(1, "index"), make.const(0, "index"))
    index = make.cast(index, "index")
    if index.is_const:
        number = min(max(int(index.value), 0), len(branches) - 1)
        return low.lower(branches[number], values)
    # What a branch asks for again and again is made once, before.
    values = tuple(low.settled(v, 2) for v in values)
    outs = [v.aval for v in branches[0].jaxpr.outvars]
    refs = []
    for aval in outs:
        dtype = dtype_of(aval.dtype)
        size = int(np.prod(aval.shape, dtype=int))
        refs.append(low.new(dtype, size, "r", "scalar" if size == 1 else "local"))
    regions = []
    for branch in branches:
        with low.inside("branch") as region:
            for ref, value in zip(refs, low.lower(branch, values), strict=True):
                low.write(ref, 0, value)
        regions.append(region)
    low.emit(Branch(index, regions))
    made: list[Value] = []
    for ref, aval in zip(refs, outs, strict=True):
        view = View(Ref(ref.buffer, low.region), aval.shape)
        made.append(low.elements(view) if view.size == 1 else view)
    return made
