"""Small linear systems, against NumPy, exact solutions and differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from mbdnode.multibody import small_solve
from mbdnode.multibody.small_systems import lu_factor, lu_solve

SIZES = (1, 2, 3, 5, 6)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("columns", [(), (5,)])
def test_solution_is_that_of_numpy(count, columns):
    random = np.random.default_rng(count)
    matrices = random.normal(size=(500, count, count))
    right = random.normal(size=(500, count, *columns))
    found = np.asarray(jax.vmap(small_solve)(jnp.asarray(matrices), jnp.asarray(right)))
    expected = np.linalg.solve(matrices, right.reshape(500, count, -1)).reshape(right.shape)
    away = np.abs(found - expected).reshape(500, -1).max(axis=1)
    # Both are wrong by a few units in the last place, times the condition of the matrix.
    allowed = 20 * np.finfo(float).eps * np.linalg.cond(matrices)
    assert np.all(away <= allowed * np.abs(expected).reshape(500, -1).max(axis=1))


@pytest.mark.parametrize("order", [(1, 0), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_zeros_on_the_diagonal_are_exchanged(order):
    matrix = np.eye(len(order))[list(order)]
    right = np.arange(1.0, len(order) + 1)
    np.testing.assert_array_equal(
        small_solve(jnp.asarray(matrix), jnp.asarray(right)), matrix.T @ right
    )


def test_small_pivots_are_not_divided_by():
    # Without an exchange of rows the solution would be (0, 1).
    found = small_solve(jnp.array([[1e-20, 1.0], [1.0, 1.0]]), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(found, [1.0, 1.0], rtol=1e-15)


def test_singular_matrix_gives_no_number():
    assert not np.all(np.isfinite(small_solve(jnp.ones((2, 2)), jnp.array([1.0, 2.0]))))


@pytest.mark.parametrize("count", SIZES)
def test_derivatives_are_those_of_the_solution(count):
    random = np.random.default_rng(7)
    matrix = jnp.asarray(random.normal(size=(count, count)) + 3 * np.eye(count))
    right = jnp.asarray(random.normal(size=count))
    way = random.normal(size=(count, count)), random.normal(size=count)
    _, moved = jax.jvp(small_solve, (matrix, right), tuple(map(jnp.asarray, way)))
    ahead, behind = (
        np.linalg.solve(matrix + h * way[0], right + h * way[1]) for h in (1e-6, -1e-6)
    )
    # Central differences: 1e-12 of truncation, 1e-10 of rounding.
    np.testing.assert_allclose(moved, (ahead - behind) / 2e-6, rtol=0, atol=1e-8)
    # Reverse mode is the transpose of forward mode.
    weights = jnp.asarray(random.normal(size=count))
    _, back = jax.vjp(small_solve, matrix, right)
    pulled = sum(
        float(jnp.vdot(a, jnp.asarray(b))) for a, b in zip(back(weights), way, strict=True)
    )
    assert pulled == pytest.approx(float(weights @ moved), rel=1e-10)


def test_precision_is_kept():
    found = small_solve(jnp.eye(3, dtype=jnp.float32), jnp.ones(3, jnp.float32))
    assert found.dtype == jnp.float32


@pytest.mark.parametrize("count", SIZES)
def test_factors_are_those_of_lapack(count):
    random = np.random.default_rng(3)
    for _ in range(20):
        matrix, right = random.normal(size=(count, count)), random.normal(size=count)
        lu, exchanged = lu_factor(jnp.asarray(matrix))
        expected, pivots = scipy.linalg.lu_factor(matrix)
        np.testing.assert_array_equal(exchanged, pivots)
        # Entries of `U` may cancel: a few units in the last place of the largest.
        np.testing.assert_allclose(lu, expected, rtol=0, atol=1e-14 * np.abs(expected).max())
        for trans in (0, 1):
            given = jnp.asarray(expected), jnp.asarray(pivots, jnp.int32)
            found = lu_solve(given, jnp.asarray(right), trans=trans)
            solved = scipy.linalg.lu_solve((expected, pivots), right, trans=trans)
            np.testing.assert_allclose(found, solved, rtol=0, atol=1e-13 * np.abs(solved).max())
