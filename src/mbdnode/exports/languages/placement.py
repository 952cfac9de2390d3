"""Where each expression is computed: C. Click's global code motion, on a tree of regions.

An expression can be computed from the outermost region that has its operands on, and must be
before the innermost region that holds all of its uses. Between the two the region with the fewest
loops around it is taken, and of several such the innermost, so that a branch that is not taken
costs nothing. It becomes a variable there, or part of its only user's text.
"""

from typing import Any

from mbdnode.exports.ir import (
    Buffer,
    Expr,
    Function,
    Hold,
    Region,
    common,
    reached,
    regions_of,
    roots_of,
)

# An expression of more operations than this is broken into variables, so that lines stay short.
_LONGEST = 8


class Placement:
    """The homes of a function's expressions."""

    def __init__(self, function: Function):
        self.home: dict[Expr, Region] = {}
        self._uses: dict[Expr, int] = {}
        self._held: set[Expr] = set()
        self._first: dict[Expr, Region] = {}
        self._weight: dict[Expr, int] = {}
        self._collect(function)

    def _collect(self, function: Function) -> None:
        found: set[Expr] = set()

        def visit(root: Expr, region: Region) -> None:
            self._use(root, region)
            for _ in reached(root, found):
                pass

        def walk(region: Region) -> None:
            for statement in region.statements:
                for root in roots_of(statement):
                    visit(root, region)
                if isinstance(statement, Hold):
                    self._held.update(statement.values)
                for inner in regions_of(statement):
                    walk(inner)

        walk(function.region)
        if function.result is not None:
            visit(function.result, function.region)
        for node in sorted(found, key=lambda e: -e.number):
            home = self._choose(node)
            self.home[node] = home
            for operand in node.args:
                self._use(operand, home)
        for node in sorted(found, key=lambda e: e.number):
            self._weight[node] = 1 + sum(
                self._weight[a] if self.is_inline(a) else 0 for a in node.args
            )

    def _use(self, node: Expr, region: Region) -> None:
        self._uses[node] = self._uses.get(node, 0) + 1
        before = self._first.get(node)
        self._first[node] = region if before is None else common(before, region)

    def _choose(self, node: Expr) -> Region:
        best = here = self._first[node]
        while here is not node.region:
            if here.parent is None:
                break
            here = here.parent
            if here.loops < best.loops:
                best = here
        return best

    def is_inline(self, node: Expr) -> bool:
        """Whether it is written where it is used, and is no variable."""
        if node.op in ("const", "index"):
            return True
        if node in self._held:
            return False
        if node.op == "load" and _is_by_value(node.data.buffer):
            return True
        if node.dtype == "index" and node.op in ("add", "mul", "sub") and _is_plain(node):
            return True
        single = self._uses[node] == 1 and self.home[node] is self._first[node]
        return single and self._weight.get(node, 1) <= _LONGEST

    def needed(self, statement: Any, region: Region, done: set[Expr]) -> list[Expr]:
        """The variables that must be made in `region` before a statement, operands first."""
        order: list[Expr] = []
        seen: set[Expr] = set()

        def visit(root: Expr) -> None:
            stack = [(root, False)]
            while stack:
                node, ready = stack.pop()
                if ready:
                    if self.home[node] is region and not self.is_inline(node):
                        order.append(node)
                        done.add(node)
                    continue
                if node in seen or node in done:
                    continue
                seen.add(node)
                stack.append((node, True))
                stack.extend((a, False) for a in reversed(node.args))

        def walk(item: Any) -> None:
            for root in roots_of(item):
                visit(root)
            for inner in regions_of(item):
                for each in inner.statements:
                    walk(each)

        walk(statement)
        return order


def _is_by_value(buffer: Buffer) -> bool:
    """Whether it is an argument that nothing changes."""
    return buffer.kind == "scalar" and buffer.region is None and not buffer.written


def _is_plain(node: Expr) -> bool:
    """Whether it is made of loop indices and constants alone."""
    return all(
        a.op in ("const", "index") or (a.op in ("add", "mul", "sub") and _is_plain(a))
        for a in node.args
    )
