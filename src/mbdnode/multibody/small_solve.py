"""Solve `A x = b` for the mass matrices of mechanisms with few degrees of freedom.

A call of LAPACK for two or three unknowns costs more than its numbers: pivots become permutations
in a loop, and each triangle is a call of its own, all of which XLA compiles for every use. Up to
three unknowns the elimination is written out here, with partial pivoting, as LAPACK does it: the
row with the largest entry in the column goes first,

    A x = b   ->   U x = L^-1 P b,

and the same steps are taken again for every right-hand side, those of derivatives among them.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# With four unknowns the steps that are written out compile no faster than calls.
_WRITTEN_OUT = 3


def small_solve(matrix: Float[Array, "n n"], right: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solve `matrix x = right`.

    **Arguments:**

    - `matrix`: square; singular ones give what is not finite.
    - `right`: one right-hand side, or several as columns.

    **Returns:**

    `x`, with the derivatives of a solution.
    """
    count = matrix.shape[0]
    if count == 1:
        return right / matrix.reshape((1,) * right.ndim)
    if count == 0 or count > _WRITTEN_OUT:
        return jnp.linalg.solve(matrix, right)
    kind = jnp.result_type(matrix, right)
    matrix, right = matrix.astype(kind), right.astype(kind)
    held = jax.lax.stop_gradient(matrix)
    return jax.lax.custom_linear_solve(
        lambda x: matrix @ x,
        right,
        lambda _, b: _eliminated(held)(b),
        lambda _, b: _eliminated(held.T)(b),
    )


def _eliminated(matrix: Float[Array, "n n"]) -> Callable[[Array], Array]:
    """A function that solves for a right-hand side."""
    count = matrix.shape[0]
    rows = [[matrix[i, j] for j in range(count)] for i in range(count)]
    steps: list[Callable[[list], None]] = []
    for k in range(count - 1):
        for i in range(k + 1, count):
            larger = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            upper = [jnp.where(larger, b, a) for a, b in zip(rows[k], rows[i], strict=True)]
            lower = [jnp.where(larger, a, b) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[k], rows[i] = upper, lower
            steps.append(_exchange(k, i, larger))
        for i in range(k + 1, count):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [b - factor * a for a, b in zip(rows[k], rows[i], strict=True)]
            steps.append(_subtract(k, i, factor))

    def solve(right: Array) -> Array:
        left = [right[i] for i in range(count)]
        for step in steps:
            step(left)
        found: list[Array] = []
        for i in reversed(range(count)):
            for j, x in zip(reversed(range(count)), found, strict=False):
                left[i] = left[i] - rows[i][j] * x
            found.append(left[i] / rows[i][i])
        return jnp.stack(found[::-1])

    return solve


def _exchange(k: int, i: int, larger: Array) -> Callable[[list], None]:
    def step(left: list) -> None:
        left[k], left[i] = jnp.where(larger, left[i], left[k]), jnp.where(larger, left[k], left[i])

    return step


def _subtract(k: int, i: int, factor: Array) -> Callable[[list], None]:
    def step(left: list) -> None:
        left[i] = left[i] - factor * left[k]

    return step
