"""Removes statements whose results nobody reads."""

from typing import Any

from mbdnode.exports.ir import (
    Branch,
    BreakIf,
    Buffer,
    Expr,
    Function,
    Hold,
    Loop,
    Region,
    Store,
    reached,
    regions_of,
    roots_of,
    statements_of,
)


def prune(function: Function) -> None:
    """Keep what the function's results depend on, and nothing else."""
    live: set[int] = {id(b) for b in function.arguments if b.written}
    seen: set[Expr] = set()

    def read(root: Expr) -> None:
        live.update(id(node.data.buffer) for node in reached(root, seen) if node.op == "load")

    if function.result is not None:
        read(function.result)
    before = -1
    while before != len(live):
        before = len(live)
        _mark(function.region, live, read)
    _sweep(function.region, live)


def _mark(region: Region, live: set[int], read: Any) -> bool:
    """Read what live statements read, the last first; whether there are any."""
    found = False
    for statement in reversed(region.statements):
        if isinstance(statement, (Loop, Branch)):
            inner = regions_of(statement)
            alive = any([_mark(each, live, read) for each in inner])
            if alive:
                _mark_breaks(inner, read)
        else:
            alive = isinstance(statement, Store) and id(statement.buffer) in live
        if alive:
            found = True
            for root in roots_of(statement):
                read(root)
    return found


def _mark_breaks(regions: list[Region], read: Any) -> None:
    for region in regions:
        for statement in region.statements:
            if isinstance(statement, BreakIf):
                read(statement.condition)


def _sweep(region: Region, live: set[int]) -> bool:
    """Drop dead statements; whether any are left that write."""
    kept, found = [], False
    for statement in region.statements:
        if isinstance(statement, (Loop, Branch)):
            alive = any([_sweep(each, live) for each in regions_of(statement)])
        elif isinstance(statement, (BreakIf, Hold)):
            kept.append(statement)
            continue
        else:
            alive = id(statement.buffer) in live
        if alive:
            found = True
            kept.append(statement)
    region.statements[:] = kept
    _trim_holds(region, kept)
    return found


def _trim_holds(region: Region, kept: list[Any]) -> None:
    """A value is held only for a store that follows."""
    for place, statement in enumerate(kept):
        if isinstance(statement, Hold):
            stored = {id(s.value) for s in kept[place + 1 :] if isinstance(s, Store)}
            statement.values = [v for v in statement.values if id(v) in stored]
    region.statements[:] = [s for s in kept if not isinstance(s, Hold) or s.values]


def tables_of(function: Function) -> list[Buffer]:
    """The tables that a function reads, in the order of use."""
    found: list[Buffer] = []
    seen: set[Expr] = set()

    def read(roots: list[Expr]) -> None:
        for root in roots:
            found.extend(node.data.buffer for node in reached(root, seen) if node.op == "load")

    for statement in statements_of(function.region):
        read(roots_of(statement))
    read([] if function.result is None else [function.result])
    return [buffer for buffer in dict.fromkeys(found) if buffer.kind == "table"]
