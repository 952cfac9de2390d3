"""Small linear systems `A x = b`: of masses, and of the dependent coordinates.

A call of LAPACK for a few unknowns costs far more than its numbers: XLA cannot compile a loop over
steps as one function if there is a call in it, pivots become permutations in loops of their own,
and each triangle is another call. Up to five unknowns the factorization is written out here, with
partial pivoting, in LAPACK's own form: `P A = L U`, with `L` and `U` in one matrix and for each
column the row that it was exchanged with.

A mass matrix is symmetric and positive definite, so that `M = L D L^T` needs no pivots; it is
written out, or a loop over its columns, for as many coordinates as robots have.
"""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float, Int

# With more unknowns what is written out takes longer to compile than it saves.
_WRITTEN_OUT = 5

# Of symmetric matrices, which need no pivots: written out, and in a loop over the columns.
_SYMMETRIC_WRITTEN_OUT, _SYMMETRIC_IN_LOOP = 12, 64

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


def mass_solve(matrix: Float[Array, "n n"], right: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solve `matrix x = right` for a mass matrix, which is symmetric and positive definite.

    **Arguments:**

    - `matrix`: square; what is not positive definite gives what is not finite, or has no meaning.
    - `right`: one right-hand side, or several as columns.

    **Returns:**

    `x`, with the derivatives of a solution.
    """
    count = matrix.shape[0]
    if count <= _WRITTEN_OUT or count > _SYMMETRIC_IN_LOOP:
        return small_solve(matrix, right)
    kind = jnp.result_type(matrix, right)
    matrix, right = matrix.astype(kind), right.astype(kind)
    given = jax.lax.stop_gradient(matrix)
    if count <= _SYMMETRIC_WRITTEN_OUT:
        factor, solve = _ldl_written_out(given), _ldl_solve_written_out
    else:
        factor, solve = _ldl_in_loop(given), _ldl_solve_in_loop
    own = lambda _, b: solve(factor, b)  # noqa: E731
    return jax.lax.custom_linear_solve(lambda x: matrix @ x, right, own, symmetric=True)


def _ldl_written_out(matrix):
    """The rows of `L` below its diagonal of ones, and `D`."""
    count = matrix.shape[0]
    rows, diagonal = [[matrix[i, j] for j in range(i + 1)] for i in range(count)], []
    for i in range(count):
        scaled = []
        for j in range(i):
            for k in range(j):
                rows[i][j] = rows[i][j] - scaled[k] * rows[j][k]
            scaled.append(rows[i][j])
            rows[i][j] = rows[i][j] / diagonal[j]
        diagonal.append(rows[i][i] - sum(s * x for s, x in zip(scaled, rows[i], strict=False)))
    return rows, diagonal


def _ldl_solve_written_out(factor, right):
    rows, diagonal = factor
    count, x = len(diagonal), [right[i] for i in range(len(diagonal))]
    for i in range(count):
        for j in range(i):
            x[i] = x[i] - rows[i][j] * x[j]
    x = [value / d for value, d in zip(x, diagonal, strict=True)]
    for i in reversed(range(count)):
        for j in range(i + 1, count):
            x[i] = x[i] - rows[j][i] * x[j]
    return jnp.stack(x)


def _ldl_in_loop(matrix):
    """`L^T` with zeros below its diagonal of ones, row by row, and `D`."""
    places = jnp.arange(matrix.shape[0])

    def column(rest, k):
        row = jnp.where(places >= k, rest[k], 0.0)
        pivot = rest[k, k]
        scaled = row / pivot
        return rest - scaled[:, None] * row[None, :], (scaled, pivot)

    return jax.lax.scan(column, matrix, places)[1]


def _ldl_solve_in_loop(factor, right):
    upper, diagonal = factor
    places = jnp.arange(upper.shape[0])
    shape = (-1,) + (1,) * (right.ndim - 1)

    def down(x, k):
        below = jnp.where(places > k, upper[k], 0.0)
        return x - below.reshape(shape) * x[k], None

    def up(x, k):
        above = jnp.where(places > k, upper[k], 0.0)
        return x.at[k].add(-jnp.tensordot(above, x, 1)), None

    x, _ = jax.lax.scan(down, right, places)
    return jax.lax.scan(up, x / diagonal.reshape(shape), places, reverse=True)[0]


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
