"""Completion of positions: round-off, implicit derivatives, and failure that shows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Pendulum, ShakenPendulum

from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import (
    choose_partition,
    complete,
    complete_position,
    consistent_state,
    position_residual,
    resolve_parameters,
)

NOW = jnp.zeros(())
CRANK = SliderCrank()
MU = resolve_parameters(CRANK)
THETA1, THETA2, X3 = 2, 5, 6


@pytest.fixture(scope="module")
def partition():
    return choose_partition(CRANK, NOW, consistent_state(CRANK, {"theta1": 0.7}).q, MU)


@pytest.fixture(scope="module")
def near():
    return consistent_state(CRANK, {"theta1": 0.7}).q


@pytest.fixture(scope="module")
def close(partition, near):
    """All coordinates as a function of the crank's angle and length."""

    def solve(theta, length=2.0):
        mu = {**MU, "l": jnp.asarray(length, float)}
        split, scale = partition.position, partition.scale
        return complete_position(CRANK, split, NOW, theta[None], near, scale, mu)

    return solve


def rod_angle(theta, length=2.0):
    return jnp.arcsin(-length * jnp.sin(theta) / 4.0)


def slider(theta, length=2.0):
    return length * jnp.cos(theta) + 4.0 * jnp.cos(rod_angle(theta, length))


ANGLES = jnp.array([0.2, 0.7, 1.2, 1.5])


def test_completed_positions_match_rod_kinematics_to_round_off(close):
    q, solved = jax.jit(jax.vmap(close))(ANGLES)
    assert bool(jnp.all(solved))
    # A few units in the last place of lengths up to six.
    np.testing.assert_allclose(q[:, THETA2], rod_angle(ANGLES), atol=4e-15)
    np.testing.assert_allclose(q[:, X3], slider(ANGLES), atol=4e-15)
    residual = jax.vmap(lambda x: position_residual(CRANK, NOW, x, MU))(q)
    assert float(jnp.max(jnp.abs(residual))) < 4e-15


def test_first_and_second_derivatives_match_closed_form(close):
    def derivatives(function):
        modes = (jax.jacfwd(function), jax.jacrev(function), jax.hessian(function))
        return jax.jit(jax.vmap(lambda theta: [mode(theta) for mode in modes]))(ANGLES)

    found = derivatives(lambda theta: close(theta)[0][jnp.array([THETA2, X3])])
    expected = derivatives(lambda theta: jnp.stack([rod_angle(theta), slider(theta)]))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_derivative_with_respect_to_a_parameter_matches_closed_form(close):
    found = jax.jit(jax.grad(lambda length: close(jnp.array(1.2), length)[0][X3]))(2.0)
    np.testing.assert_allclose(found, jax.grad(lambda length: slider(1.2, length))(2.0), rtol=1e-13)


def test_derivative_through_a_scan_matches_finite_differences(partition, near):
    def sweep(step):
        """Completes along an arc, each time from the last configuration."""

        def move(q, _):
            theta = q[THETA1] + step
            q, _ = complete_position(
                CRANK, partition.position, NOW, theta[None], q, partition.scale, MU
            )
            return q, q[X3]

        return jnp.sum(jax.lax.scan(move, near, None, length=5)[1])

    h = 1e-5
    value_and_slope = jax.jit(jax.value_and_grad(sweep))
    expected = (value_and_slope(0.1 + h)[0] - value_and_slope(0.1 - h)[0]) / (2 * h)
    # Central differences at this step are good to about 1e-10.
    np.testing.assert_allclose(value_and_slope(0.1)[1], expected, rtol=1e-8)


def test_derivative_with_respect_to_time_is_the_drift_of_the_pivot():
    system, mu = ShakenPendulum(), resolve_parameters(ShakenPendulum())
    q = consistent_state(system, {"y": -1.2}, t=0.4, guess={"x": 1.0}).q
    partition = choose_partition(system, jnp.array(0.4), q, mu, ("y",))

    @jax.jit
    @jax.value_and_grad
    def x_and_drift(t):
        split, scale = partition.position, partition.scale
        return complete_position(system, split, t, q[1:], q, scale, mu)[0][0]

    # At constant y the mass keeps its distance 0.9 from the pivot 0.3 sin(2 t).
    x, drift = x_and_drift(jnp.array(0.4))
    np.testing.assert_allclose(x, 0.9 + 0.3 * np.sin(0.8), atol=1e-15)
    np.testing.assert_allclose(drift, 0.6 * np.cos(0.8), rtol=1e-14)


@pytest.fixture(scope="module")
def close_pendulum():
    mu = resolve_parameters(Pendulum())
    partition = choose_partition(Pendulum(), NOW, jnp.array([0.9, -1.2]), mu, ("x",))
    return jax.jit(
        lambda x, guess: complete(Pendulum(), partition, NOW, x[None], jnp.ones(1), guess, mu)
    )


def test_guess_decides_between_the_branches(close_pendulum):
    for sign in (-1.0, 1.0):
        q, _, _, solved = close_pendulum(jnp.array(0.9), jnp.array([0.0, sign]))
        assert bool(solved)
        np.testing.assert_allclose(q, [0.9, sign * 1.2], atol=1e-15)


def test_failure_is_reported_and_leaves_no_numbers(close_pendulum):
    q, _, _, solved = close_pendulum(jnp.array(1.6), jnp.array([0.9, -1.2]))
    assert not bool(solved)
    assert bool(jnp.all(jnp.isnan(q)))


def test_whole_state_is_completed_in_one_call(partition, near):
    whole = jax.jit(lambda z, s: complete(CRANK, partition, NOW, z, s, near, MU))
    _, v, tangent, solved = whole(jnp.array([1.2]), jnp.array([3.0]))
    assert bool(solved)
    rates = jax.jacfwd(lambda th: jnp.stack([rod_angle(th), slider(th)]))(jnp.array(1.2)) * 3.0
    np.testing.assert_allclose(v[jnp.array([THETA2, X3])], rates, rtol=1e-13)
    assert float(v[THETA1]) == 3.0
    np.testing.assert_allclose(tangent.velocity(jnp.array([3.0])), v, atol=0)
