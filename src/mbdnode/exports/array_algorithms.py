"""Factorizations, triangular systems, sorting and places of extremes, as loops in JAX.

Their primitives are calls of LAPACK and of the like, which no exported model can make. Each is
computed here by a short function of arrays, which is traced in its place, so that C, JavaScript
and ONNX need no rule for it.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


def lu_factors(a: Any) -> tuple[Any, Any, Any]:
    """`L` and `U` of `P A = L U` in one matrix, the row exchanged with each, and the order of rows.

    The largest pivot of a column is taken; a column without one is left as it is.
    """
    rows, columns = a.shape
    row, column = np.arange(rows), np.arange(columns)

    def eliminate(carry, k):
        a, order = carry
        pivot = jnp.argmax(jnp.where(row >= k, jnp.abs(a[:, k]), -1))
        swap = _exchanged(rows, k, pivot)
        a, order = _at(a, swap), _at(order, swap)
        top = jnp.where(column > k, _at(a, k), 0)
        size = _at(_at(a, k), k)
        size = jnp.where(size == 0, 1, size)

        def reduce(_, own):
            i, line = own
            factor = jnp.where(i > k, _at(line, k) / size, 0)
            return None, jnp.where((column == k) & (i > k), factor, line - factor * top)

        return (lax.scan(reduce, None, (row, a))[1], order), pivot

    (a, order), pivots = lax.scan(eliminate, (a, jnp.arange(rows)), jnp.arange(min(rows, columns)))
    return a, pivots, order


def _at(x: Any, index: Any) -> Any:
    """The rows at places that exist."""
    return x.at[index].get(mode="promise_in_bounds")


def order_of_rows(pivots: Any, count: int) -> Any:
    """The order of so many rows after a series of exchanges."""

    def turn(order, exchange):
        return _at(order, _exchanged(count, *exchange)), None

    return lax.scan(turn, jnp.arange(count), (jnp.arange(len(pivots)), pivots))[0]


def _exchanged(count: int, i: Any, j: Any) -> Any:
    """The numbers of rows, with i and j in each other's place."""
    rows = np.arange(count)
    return jnp.where(rows == i, j, jnp.where(rows == j, i, rows))


def triangular_solution(a: Any, b: Any, lower: bool, unit_diagonal: bool) -> Any:
    """`X` of `A X = B`, of which one triangle of `A` is read, row by row."""
    rows = np.arange(a.shape[0])

    def solve(x, i):
        known = jnp.where(rows < i if lower else rows > i, _at(a, i), 0)
        right = _at(b, i) - known @ x
        own = right if unit_diagonal else right / _at(_at(a, i), i)
        return jnp.where((rows == i)[:, None], own, x), None

    return lax.scan(solve, jnp.zeros_like(b), rows if lower else rows[::-1])[0]


def cholesky_factor(a: Any) -> Any:
    """`L` of `A = L L^T`, column by column; not a number if there is none."""
    row = np.arange(a.shape[0])

    def take(factor, k):
        rest = a[:, k] - factor @ factor[k]
        return factor.at[:, k].set(jnp.where(row >= k, rest / jnp.sqrt(rest[k]), 0)), None

    return lax.scan(take, jnp.zeros_like(a), row)[0]


def sorted_together(columns: Sequence[Any], keys: int) -> list[Any]:
    """Arrays of one length, sorted by the first of them; of equals, the first comes first.

    An element's place is the number of those that come before it. What is not a number comes last.
    """
    number = np.arange(len(columns[0]))
    before = number[:, None] > number[None, :]
    for key in reversed(columns[:keys]):
        key = key.astype(np.int32) if key.dtype == bool else key
        here, other = key[:, None], key[None, :]
        less = (other < here) | ((other == other) & (here != here))
        same = (other == here) | ((other != other) & (here != here))
        before = less | (same & before)
    place = jnp.sum(before, axis=1)
    return [jnp.zeros_like(x).at[place].set(x, mode="promise_in_bounds") for x in columns]


def place_of_extreme(x: Any, axis: int, extreme: Any) -> Any:
    """Where the first of the largest, or smallest, is; what is not a number comes before them."""
    x = x.astype(np.int32) if x.dtype == bool else x
    is_it = (x == extreme(x, axis=axis, keepdims=True)) | (x != x)
    along = [-1 if d == axis else 1 for d in range(x.ndim)]
    count = x.shape[axis]
    return jnp.min(jnp.where(is_it, np.arange(count).reshape(along), count - 1), axis=axis)
