"""Small linear systems `A x = b`: of masses, and of the dependent coordinates.

A call of LAPACK for a few unknowns costs far more than its numbers: XLA cannot compile a loop over
steps as one function if there is a call in it, pivots become permutations in loops of their own,
and each triangle is another call. Up to five unknowns the factorization is written out here, with
partial pivoting, in LAPACK's own form: `P A = L U`, with `L` and `U` in one matrix and for each
column the row that it was exchanged with.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float, Int

# With more unknowns what is written out takes longer to compile than it saves.
_WRITTEN_OUT = 5

Factor = tuple[Float[Array, "n n"], Int[Array, " n"]]


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
    factor = lu_factor(jax.lax.stop_gradient(matrix))
    return jax.lax.custom_linear_solve(
        lambda x: matrix @ x,
        right,
        lambda _, b: lu_solve(factor, b),
        lambda _, b: lu_solve(factor, b, trans=1),
    )


def lu_factor(matrix: Float[Array, "n n"]) -> Factor:
    """As `jax.scipy.linalg.lu_factor`, written out for few unknowns."""
    count = matrix.shape[0]
    if count > _WRITTEN_OUT:
        return jsl.lu_factor(matrix)
    rows = [matrix[k] for k in range(count)]
    exchanged = []
    for k in range(count):
        place, largest = jnp.asarray(k, jnp.int32), jnp.abs(rows[k][k])
        for i in range(k + 1, count):
            larger = jnp.abs(rows[i][k]) > largest
            place = jnp.where(larger, jnp.asarray(i, jnp.int32), place)
            largest = jnp.where(larger, jnp.abs(rows[i][k]), largest)
        exchanged.append(place)
        _exchange(rows, k, place)
        for i in range(k + 1, count):
            factor = rows[i][k] / rows[k][k]
            after = rows[i][k + 1 :] - factor * rows[k][k + 1 :]
            rows[i] = jnp.concatenate([rows[i][:k], factor[None], after])
    if not count:
        return matrix, jnp.zeros(0, jnp.int32)
    return jnp.stack(rows), jnp.stack(exchanged)


def lu_solve(factor: Factor, right: Float[Array, "n *k"], trans: int = 0) -> Float[Array, "n *k"]:
    """As `jax.scipy.linalg.lu_solve`, written out for few unknowns."""
    lu, exchanged = factor
    count = lu.shape[0]
    if count > _WRITTEN_OUT:
        return jsl.lu_solve(factor, right, trans=trans)
    if not count:
        return right
    x = [right[i] for i in range(count)]
    if not trans:
        for k in range(count):
            _exchange(x, k, exchanged[k])
        for i in range(count):
            for j in range(i):
                x[i] = x[i] - lu[i, j] * x[j]
        for i in reversed(range(count)):
            for j in range(i + 1, count):
                x[i] = x[i] - lu[i, j] * x[j]
            x[i] = x[i] / lu[i, i]
    else:
        for i in range(count):
            for j in range(i):
                x[i] = x[i] - lu[j, i] * x[j]
            x[i] = x[i] / lu[i, i]
        for i in reversed(range(count)):
            for j in range(i + 1, count):
                x[i] = x[i] - lu[j, i] * x[j]
        for k in reversed(range(count)):
            _exchange(x, k, exchanged[k])
    return jnp.stack(x)


def _exchange(rows: list, k: int, place: Array) -> None:
    """Exchange row `k` with a later one, whose number is only known when it runs."""
    first = rows[k]
    for i in range(k + 1, len(rows)):
        here = place == i
        rows[k] = jnp.where(here, rows[i], rows[k])
        rows[i] = jnp.where(here, first, rows[i])
