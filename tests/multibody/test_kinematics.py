"""Derivatives of the constraints against closed forms and finite differences."""

import jax.numpy as jnp
import numpy as np
import pytest
from toys import Pendulum, ShakenPendulum, TurningBlade

from mbdnode.multibody import (
    accelerations,
    choose_partition,
    consistent_state,
    constraint_counts,
    gamma,
    kkt,
    position_jacobian,
    position_residual,
    position_time_derivative,
    resolve_parameters,
    velocity_constraints,
    velocity_residual,
)

TIME = 0.4
STATES = {
    Pendulum: (np.array([0.5, -1.2]), np.array([0.7, -0.3])),
    ShakenPendulum: (np.array([0.5, -1.2]), np.array([0.7, -0.3])),
    TurningBlade: (np.array([0.5, -1.2, 0.3]), np.array([0.7, -0.3, 1.1])),
}
toys = pytest.mark.parametrize("toy", STATES, ids=lambda toy: toy.__name__)


def closed_forms(toy, t, q, v):
    """`C`, `c` and `gamma`, derived by hand."""
    if toy is TurningBlade:
        phi, turning = 0.7 * t + q[2], 0.7 + v[2]
        matrix = np.array([[-np.sin(phi), np.cos(phi), 0.0]])
        changing = -turning * np.array([np.cos(phi), np.sin(phi), 0.0])
        return matrix, [0.2 * t + 0.1 * q[0]], [0.2 + 0.1 * v[0] - changing @ v]
    pivot, speed, acceleration = 0.0, 0.0, 0.0
    if toy is ShakenPendulum:
        pivot, speed, acceleration = (
            0.3 * np.sin(2 * t),
            0.6 * np.cos(2 * t),
            -1.2 * np.sin(2 * t),
        )
    arm, relative = q - [pivot, 0.0], v - [speed, 0.0]
    return (
        2 * arm[None, :],
        [2 * arm[0] * speed],
        [-2 * relative @ relative + 2 * arm[0] * acceleration],
    )


@toys
def test_velocity_constraints_and_gamma_match_closed_form(toy):
    q, v = STATES[toy]
    t, mu = jnp.array(TIME), resolve_parameters(toy())
    matrix, right, curvature = closed_forms(toy, TIME, q, v)
    found = velocity_constraints(toy(), t, jnp.asarray(q), mu)
    # Round-off of a handful of operations on numbers of size one.
    np.testing.assert_allclose(found[0], matrix, atol=1e-14)
    np.testing.assert_allclose(found[1], right, atol=1e-14)
    np.testing.assert_allclose(
        gamma(toy(), t, jnp.asarray(q), jnp.asarray(v), mu), curvature, atol=1e-14
    )
    np.testing.assert_allclose(
        velocity_residual(toy(), t, jnp.asarray(q), jnp.asarray(v), mu),
        matrix @ v - right,
        atol=1e-14,
    )


@toys
def test_derivatives_match_central_differences(toy):
    q, v = STATES[toy]
    mu, h = resolve_parameters(toy()), 1e-5

    def phi(t, x):
        return np.asarray(position_residual(toy(), jnp.array(t), jnp.asarray(x), mu))

    def leaving(t, x):
        return np.asarray(
            velocity_residual(toy(), jnp.array(t), jnp.asarray(x), jnp.asarray(v), mu)
        )

    columns = [(phi(TIME, q + h * e) - phi(TIME, q - h * e)) / (2 * h) for e in np.eye(q.size)]
    drift = (phi(TIME + h, q) - phi(TIME - h, q)) / (2 * h)
    bend = (leaving(TIME + h, q + h * v) - leaving(TIME - h, q - h * v)) / (2 * h)
    t, q, v = jnp.array(TIME), jnp.asarray(q), jnp.asarray(v)
    # Truncation h^2 and cancellation eps/h are both near 1e-10 at this step.
    np.testing.assert_allclose(position_jacobian(toy(), t, q, mu), np.transpose(columns), atol=1e-9)
    np.testing.assert_allclose(position_time_derivative(toy(), t, q, mu), drift, atol=1e-9)
    np.testing.assert_allclose(gamma(toy(), t, q, v, mu), -bend, atol=1e-9)


def test_constraints_are_counted_by_kind():
    assert constraint_counts(Pendulum(), resolve_parameters(Pendulum())) == (1, 0)
    assert constraint_counts(TurningBlade(), resolve_parameters(TurningBlade())) == (0, 1)


@toys
def test_reduced_equations_solve_the_kkt_system(toy):
    system, t, mu = toy(), jnp.array(TIME), resolve_parameters(toy())
    known = {"x": 0.5, "x_dot": 0.7}
    state = consistent_state(system, known, t=TIME)
    u = jnp.full(len(system.inputs), 0.8)
    matrix, right = kkt(system, t, state.q, state.v, u, mu)
    expected = np.linalg.solve(matrix, right)
    split = choose_partition(system, t, state.q, mu).velocity
    a, multipliers = accelerations(system, split, t, state.q, state.v, u, mu)
    np.testing.assert_allclose(np.concatenate([a, multipliers]), expected, rtol=1e-12, atol=1e-12)


def test_kkt_matrix_is_the_papers():
    mu = resolve_parameters(Pendulum())
    q, v = jnp.array([0.9, -1.2]), jnp.array([1.2, 0.9])
    matrix, right = kkt(Pendulum(), jnp.zeros(()), q, v, jnp.zeros(0), mu)
    np.testing.assert_allclose(matrix, [[2, 0, 1.8], [0, 2, -2.4], [1.8, -2.4, 0]], atol=1e-15)
    np.testing.assert_allclose(right, [0, -2 * 9.81, -4.5], atol=1e-14)


@pytest.mark.parametrize("theta", [-2.5, 0.3, 1.4])
def test_multiplier_is_the_tension_of_the_rod(theta):
    m, length, g, omega = 2.0, 1.5, 9.81, 1.7
    q = length * jnp.array([jnp.sin(theta), -jnp.cos(theta)])
    v = length * omega * jnp.array([jnp.cos(theta), jnp.sin(theta)])
    mu, t = resolve_parameters(Pendulum()), jnp.zeros(())
    split = choose_partition(Pendulum(), t, q, mu).velocity
    a, multipliers = accelerations(Pendulum(), split, t, q, v, jnp.zeros(0), mu)
    tension = m * (length * omega**2 + g * np.cos(theta))
    # The rod pulls with -Phi_q^T lambda = -2 lambda (x, y), toward the pivot.
    np.testing.assert_allclose(2 * length * multipliers[0], tension, rtol=1e-13)
    swing = -g / length * np.sin(theta)
    expected = swing * np.array([v[0], v[1]]) / omega - omega**2 * np.asarray(q)
    np.testing.assert_allclose(a, expected, rtol=1e-12, atol=1e-13)
