"""Least squares of more rows than fit in one place: triangular factors, merged one by one.

The factor `R` of a block of equations, `A = Q R`, has its lengths and angles in few rows, and that
of two blocks is the factor of their factors, one above the other:

    [A; B] = Q [R_A; R_B] = Q' R.

Rounding depends on the order of the merges, and on nothing else: it is that of the blocks as they
are numbered, whoever made them. So one process and any number of machines of one kind end with the
same bits.

A `Factor` is a tuple of arrays. Those with two axes are blocks of equations; the others are sums.
"""

import functools
from collections.abc import Iterable

import numpy as np

Factor = tuple[np.ndarray, ...]


def triangle(block: np.ndarray) -> np.ndarray:
    """A matrix with the same lengths and angles between its columns, in few rows."""
    return np.asarray(np.linalg.qr(block, mode="r")) if block.shape[0] > block.shape[1] else block


def merge_all(parts: Iterable[Factor]) -> Factor:
    """The factor of the equations of all parts, at least one, merged in their order.

    **Arguments:**

    - `parts`: with arrays of the same meaning. One is held at a time.
    """
    return functools.reduce(_merge, parts)


def _merge(one: Factor, other: Factor) -> Factor:
    return tuple(
        triangle(np.vstack([a, b])) if np.ndim(a) == 2 else np.asarray(a + b)
        for a, b in zip(one, other, strict=True)
    )
