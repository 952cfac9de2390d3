"""Levenberg-Marquardt against SciPy's, on curves with a known minimum and on linear problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from mbdnode.levenberg_marquardt import (
    damped_step,
    iterate,
    minimize,
    minimize_each,
    solve_by_residuals,
    solve_by_unknowns,
)

T = np.linspace(0.0, 3.0, 40)
NOISE = np.random.default_rng(0).normal(size=(3, 40))


def decay(x, noise=0.0):
    """A sum of a decay and an oscillation, of which all four numbers are unknown."""
    clean = 2.0 * np.exp(-0.7 * T) + 0.5 * np.sin(2.5 * T)
    return x[0] * np.exp(-x[1] * T) + x[2] * np.sin(x[3] * T) - clean - 0.05 * noise


def decay_slopes(x):
    e = np.exp(-x[1] * T)
    return np.stack([e, -x[0] * T * e, np.sin(x[3] * T), x[2] * T * np.cos(x[3] * T)], axis=1)


START = np.array([1.0, 0.2, 0.3, 2.2])


def test_minimum_of_a_noisy_curve_is_scipys():
    found = minimize(lambda x: decay(x, NOISE[0]), decay_slopes, START, tolerance=1e-12)
    other = scipy.optimize.least_squares(lambda x: decay(x, NOISE[0]), START, xtol=1e-14)
    # Both stop where the cost is flat to round-off, the square root of which is left in x.
    np.testing.assert_allclose(found.x, other.x, rtol=1e-6)
    assert found.cost == pytest.approx(2 * other.cost, rel=1e-12)
    assert 3 < found.iterations < 30


def test_rosenbrocks_valley_is_followed_to_its_end():
    residual = lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])  # noqa: E731
    slopes = lambda x: np.array([[-20 * x[0], 10.0], [-1.0, 0.0]])  # noqa: E731
    found = minimize(residual, slopes, np.array([-1.2, 1.0]), tolerance=1e-12)
    np.testing.assert_allclose(found.x, [1.0, 1.0], rtol=1e-12)


def test_problems_at_once_end_where_each_ends_alone():
    starts = np.stack([START, START + 0.1, START - 0.1])
    each = lambda x: np.stack([decay(a, n) for a, n in zip(x, NOISE, strict=True)])  # noqa: E731
    slopes = lambda x: np.stack([decay_slopes(a) for a in x])  # noqa: E731
    found = minimize_each(each, slopes, starts)
    for i, noise in enumerate(NOISE):
        alone = minimize(lambda x, n=noise: decay(x, n), decay_slopes, starts[i])
        np.testing.assert_array_equal(found.x[i], alone.x)
        assert found.iterations[i] == alone.iterations


def test_problem_without_a_finite_residual_stays_and_holds_up_no_other():
    starts = np.stack([START, np.full(4, np.nan)])
    each = lambda x: np.stack([decay(a) for a in x])  # noqa: E731
    slopes = lambda x: np.stack([decay_slopes(a) for a in x])  # noqa: E731
    found = minimize_each(each, slopes, starts, tolerance=1e-12)
    np.testing.assert_allclose(found.x[0], [2.0, 0.7, 0.5, 2.5], rtol=1e-9)
    assert np.all(np.isnan(found.x[1]))
    assert found.iterations[1] == 0


def test_start_stays_where_nothing_is_lower():
    found = minimize(lambda x: np.array([1.0 + x[0] ** 2]), lambda x: np.ones((1, 1)), np.zeros(1))
    assert found.x[0] == 0.0
    assert found.cost == 1.0


def test_unknowns_may_be_a_tree_with_a_step_of_its_own():
    # A line's offset is eliminated: the mean of what its slope leaves.
    x, y = T, 3.0 * T + 1.0

    def step(slopes, residual, damping):
        tilt = damped_step(slopes - slopes.mean(axis=0), residual - residual.mean(), damping)
        return {"tilt": tilt, "offset": -(residual + slopes @ tilt).mean()}

    found = minimize(
        lambda p: p["tilt"][0] * x + p["offset"] - y,
        lambda p: x[:, None],
        {"tilt": np.zeros(1), "offset": np.zeros(())},
        step=step,
        tolerance=1e-12,
    )
    np.testing.assert_allclose([found.x["tilt"][0], found.x["offset"]], [3.0, 1.0], rtol=1e-12)


def test_step_without_damping_is_the_least_squares_solution():
    matrix = np.random.default_rng(1).normal(size=(7, 3)) * [1.0, 1e6, 1e-6]
    right = np.arange(7.0)
    expected = np.linalg.lstsq(matrix, -right, rcond=1e-15)[0]
    np.testing.assert_allclose(damped_step(matrix, right, 0.0), expected, rtol=1e-9)
    assert damped_step(np.zeros((2, 1)), np.ones(2), 1e-3) == 0


def compiled(residual, x, iterations, damping=1e-3):
    one = jax.jit(lambda x, damping: iterate(residual, x, damping))
    found = one(x, jnp.asarray(damping))
    for _ in range(iterations - 1):
        found = one(found.x, found.damping)
    return found


def test_compiled_iterations_reach_scipys_minimum():
    t, noise = jnp.asarray(T), jnp.asarray(NOISE[0])
    clean = 2.0 * jnp.exp(-0.7 * t) + 0.5 * jnp.sin(2.5 * t)

    def residual(x):
        fall, wave = x["fall"], x["wave"]
        model = fall[0] * jnp.exp(-fall[1] * t) + wave[0] * jnp.sin(wave[1] * t)
        return model - clean - 0.05 * noise

    start = {"fall": jnp.asarray(START[:2]), "wave": jnp.asarray(START[2:])}
    found = compiled(residual, start, 12)
    other = scipy.optimize.least_squares(lambda x: decay(x, NOISE[0]), START, xtol=1e-14)
    both = np.concatenate([found.x["fall"], found.x["wave"]])
    np.testing.assert_allclose(both, other.x, rtol=1e-6)
    assert float(found.cost) == pytest.approx(2 * other.cost, rel=1e-12)


def test_more_unknowns_than_residuals_are_changed_least():
    matrix = np.random.default_rng(2).normal(size=(3, 8))
    right, start = np.array([1.0, -2.0, 0.5]), np.full(8, 0.3)
    residual = lambda x: jnp.asarray(matrix) @ x - jnp.asarray(right)  # noqa: E731
    found = compiled(residual, jnp.asarray(start), 6)
    least = start + np.linalg.pinv(matrix) @ (right - matrix @ start)
    np.testing.assert_allclose(found.x, least, rtol=1e-9)


@pytest.mark.parametrize("count", [3, 12])
def test_ridge_of_each_unknown_is_that_of_regression(count):
    """With more and with fewer residuals than unknowns, one of which is free of it."""
    matrix = np.random.default_rng(3).normal(size=(count, 5))
    right, ridge = np.arange(count) - 0.7, np.array([0.1, 0.0, 2.0, 0.1, 0.5])
    residual = lambda x: jnp.asarray(matrix) @ x - jnp.asarray(right)  # noqa: E731
    one = jax.jit(lambda x, c: iterate(residual, x, c, ridge=jnp.asarray(ridge)))
    found = one(jnp.ones(5), jnp.asarray(1e-3))
    for _ in range(8):
        found = one(found.x, found.damping)
    curvature = matrix.T @ matrix + np.diag(ridge)
    expected = np.linalg.solve(curvature, matrix.T @ right)
    # Iterations end where rounding hides that the cost still falls. At a distance d from its
    # minimum it is higher by d @ curvature @ d, and its sum is rounded once a residual.
    cost = np.sum((matrix @ expected - right) ** 2) + ridge @ expected**2
    hidden = count * np.finfo(float).eps * cost
    nearest = np.sqrt(hidden / np.linalg.eigvalsh(curvature)[0])
    np.testing.assert_allclose(found.x, expected, rtol=0, atol=nearest)
    assert float(found.cost) == pytest.approx(np.sum((matrix @ expected - right) ** 2))


@pytest.mark.parametrize("count", [4, 30])
def test_damped_step_is_the_same_by_unknowns_by_residuals_and_block_by_block(count):
    """Least squares of the errors and of the damped weights, one below the other."""
    random, damping = np.random.default_rng(0), 1e-3
    slopes, errors = random.normal(size=(count, 7)), random.normal(size=count)
    size = np.sqrt(damping * np.sum(slopes**2) / 7)
    stacked = np.vstack([slopes, size * np.eye(7)])
    expected = np.linalg.lstsq(stacked, np.concatenate([errors, np.zeros(7)]))[0]
    given = lambda rows: (jnp.asarray(slopes)[rows], jnp.asarray(errors)[rows])  # noqa: E731
    pull = lambda e: e.reshape(-1) @ slopes  # noqa: E731
    for blocks in (np.arange(count)[None], np.arange(count).reshape(2, -1)):
        for now, solver in (
            solve_by_unknowns(given, jnp.asarray(blocks), pull),
            solve_by_residuals(given, jnp.asarray(blocks)),
        ):
            step, solve = solver(damping)
            np.testing.assert_allclose(step, expected)
            np.testing.assert_allclose(solve(2 * now), 2 * expected)


def test_blocks_of_data_change_nothing():
    t = jnp.asarray(T)
    residual = lambda x, rows: (x[0] * jnp.sin(x[1] * t[rows]) - t[rows])[:, None]  # noqa: E731
    start, rows = jnp.array([1.0, 0.4]), np.arange(40)
    whole = iterate(lambda x: residual(x, rows), start, 1e-3)
    parts = iterate(residual, start, 1e-3, blocks=rows.reshape(5, 8))
    np.testing.assert_allclose(parts.x, whole.x, rtol=1e-10)
    assert float(parts.cost) == pytest.approx(float(whole.cost))


def test_weights_in_float32_stay_in_float32():
    found = iterate(lambda x: x**2 - 2.0, jnp.ones(3, jnp.float32), jnp.float32(1e-3))
    assert {x.dtype for x in found} == {jnp.dtype("float32")}
    assert np.all(np.abs(np.asarray(found.x) ** 2 - 2.0) < 1.0)
