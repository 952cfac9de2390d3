"""Removes arrays that nobody reads: those of values that were simplified away."""

from collections.abc import Iterator
from typing import Any

from mbdnode.exports.ir import (
    BreakIf,
    Buffer,
    Expr,
    Function,
    Hold,
    Region,
    Store,
    reached,
    regions_of,
    roots_of,
    statements_of,
)


def prune(function: Function) -> None:
    """Drop what writes to arrays that no expression reads, until there is nothing of the kind."""
    results = {id(b) for b in function.arguments if b.written}
    while _drop(function.region, results | {id(b) for b in _read_by(function)}):
        pass


def _drop(region: Region, read: set[int]) -> bool:
    """Drop it from a region; whether there was any."""
    changed = any([_drop(inner, read) for each in region.statements for inner in regions_of(each)])
    kept = [each for each in region.statements if _has_effect(each, read)]
    for place, each in enumerate(kept):
        if isinstance(each, Hold):
            stored = {id(s.value) for s in kept[place + 1 :] if isinstance(s, Store)}
            each.values = [value for value in each.values if id(value) in stored]
    kept = [each for each in kept if not isinstance(each, Hold) or each.values]
    changed = changed or len(kept) < len(region.statements)
    region.statements[:] = kept
    return changed


def _has_effect(statement: Any, read: set[int]) -> bool:
    if isinstance(statement, Store):
        return id(statement.buffer) in read
    inner = [each for region in regions_of(statement) for each in region.statements]
    ends = isinstance(statement, (BreakIf, Hold))
    return ends or any(not isinstance(each, (BreakIf, Hold)) for each in inner)


def _read_by(function: Function) -> Iterator[Buffer]:
    """The arrays that a function reads, in the order of use; what is held is stored later."""
    statements = [s for s in statements_of(function.region) if not isinstance(s, Hold)]
    roots = [root for each in statements for root in roots_of(each)]
    seen: set[Expr] = set()
    for root in [*roots, *([] if function.result is None else [function.result])]:
        for node in reached(root, seen):
            if node.op == "load":
                yield node.data.buffer


def tables_of(function: Function) -> list[Buffer]:
    """The tables that a function reads, in the order of use."""
    return [buffer for buffer in dict.fromkeys(_read_by(function)) if buffer.kind == "table"]
