"""Least squares of more rows than fit in one place: triangular factors, merged in a tree.

The factor `R` of a block of equations, `A = Q R`, has its lengths and angles in few rows, and that
of two blocks is the factor of their factors, one above the other:

    [A; B] = Q [R_A; R_B] = Q' R.

Rounding depends on the order of the merges, and on nothing else. The order is that of a binary
counter over the blocks as they are numbered,

    ((1 2) (3 4)) ((5 6) (7 8)) ...,

whoever made a block, and whenever it was done. So one process and any number of machines of one
kind end with the same bits.

A `Factor` is a tuple of arrays. Those with two axes are blocks of equations; the others are sums.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Factor = tuple[np.ndarray, ...]


def triangle(block: np.ndarray) -> np.ndarray:
    """A matrix with the same lengths and angles between its columns, in few rows."""
    return np.asarray(np.linalg.qr(block, mode="r")) if block.shape[0] > block.shape[1] else block


def merge(one: Factor, other: Factor) -> Factor:
    """The factor of the equations of both.

    **Arguments:**

    - `one`, `other`: with arrays of the same meaning.

    **Returns:**

    Triangles of the blocks of equations, and sums of the rest.
    """
    return tuple(
        triangle(np.vstack([a, b])) if np.ndim(a) == 2 else np.asarray(a + b)
        for a, b in zip(one, other, strict=True)
    )


class MergeTree:
    """Merges what comes in order, and holds no more than one part for each level of the tree.

    **Arguments:**

    - `merged`: makes one of two; it may be a promise of one, as of a task on another machine.
    """

    def __init__(self, merged: Callable[[Any, Any], Any] = merge):
        self._merged = merged
        self._levels: list[tuple[int, Any]] = []

    def add(self, part: Any) -> None:
        """The next one."""
        level = 0
        while self._levels and self._levels[-1][0] == level:
            part, level = self._merged(self._levels.pop()[1], part), level + 1
        self._levels.append((level, part))

    def result(self) -> Any:
        """All of them as one; None if there was none."""
        if not self._levels:
            return None
        *rest, (_, found) = self._levels
        for _, part in reversed(rest):
            found = self._merged(part, found)
        return found


def merge_all(parts: Iterable[Any], merged: Callable[[Any, Any], Any] = merge) -> Any:
    """Many as one, in the order of the tree.

    **Arguments:**

    - `parts`: factors in order, or promises of them.
    - `merged`: as for `MergeTree`.

    **Returns:**

    One; None if there is none.
    """
    tree = MergeTree(merged)
    for part in parts:
        tree.add(part)
    return tree.result()
