"""The slider-crank: the matrices that the paper's appendix prints, and 10,000 steps of forcing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import SliderCrank
from mbdnode.multibody import gamma, kkt, position_jacobian, position_residual, resolve_parameters
from mbdnode.reproduction.cases import get_case

CRANK, T = SliderCrank(), jnp.zeros(())
MU = resolve_parameters(CRANK)


@pytest.fixture(params=[0, 1, 2])
def state(request):
    """Any state, on the manifold or off it: the printed formulas do not ask."""
    random = np.random.default_rng(request.param)
    return jnp.asarray(random.normal(size=9)), jnp.asarray(random.normal(size=9))


def test_the_mass_matrix_is_the_printed_one(state):
    printed = np.diag([3.0, 3.0, 4.0, 6.0, 6.0, 32.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(CRANK.mass(state[0], MU), printed)


def test_the_constraints_are_the_printed_ones(state):
    q, _ = state
    x1, y1, th1, x2, y2, th2, x3, y3, th3 = np.asarray(q)
    printed = [
        x1 - np.cos(th1),
        y1 - np.sin(th1),
        x1 + np.cos(th1) - x2 + 2 * np.cos(th2),
        y1 + np.sin(th1) - y2 + 2 * np.sin(th2),
        x2 + 2 * np.cos(th2) - x3,
        y2 + 2 * np.sin(th2) - y3,
        y3,
        th3,
    ]
    np.testing.assert_allclose(position_residual(CRANK, T, q, MU), printed, atol=1e-15)


def test_the_jacobian_is_the_printed_one(state):
    q, _ = state
    s1, c1, s2, c2 = np.sin(q[2]), np.cos(q[2]), np.sin(q[5]), np.cos(q[5])
    printed = [
        [1, 0, s1, 0, 0, 0, 0, 0, 0],
        [0, 1, -c1, 0, 0, 0, 0, 0, 0],
        [1, 0, -s1, -1, 0, -2 * s2, 0, 0, 0],
        [0, 1, c1, 0, -1, 2 * c2, 0, 0, 0],
        [0, 0, 0, 1, 0, -2 * s2, -1, 0, 0],
        [0, 0, 0, 0, 1, 2 * c2, 0, -1, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(position_jacobian(CRANK, T, q, MU), printed, atol=1e-15)


def test_gamma_is_the_printed_one(state):
    q, v = state
    s1, c1, s2, c2 = np.sin(q[2]), np.cos(q[2]), np.sin(q[5]), np.cos(q[5])
    w1, w2 = v[2] ** 2, v[5] ** 2
    printed = [
        -w1 * c1,
        -w1 * s1,
        w1 * c1 + 2 * w2 * c2,
        w1 * s1 + 2 * w2 * s2,
        2 * w2 * c2,
        2 * w2 * s2,
        0.0,
        0.0,
    ]
    found = jax.jit(lambda: gamma(CRANK, T, q, v, MU))()
    np.testing.assert_allclose(found, printed, atol=1e-14)


def test_torque_turns_the_crank_and_force_pushes_the_slider():
    q, u = jnp.zeros(9), jnp.array([5.0, 7.0])
    matrix, right = kkt(CRANK, T, q, q, u, MU)
    np.testing.assert_array_equal(right, [0, 0, 7, 0, 0, 0, 5, 0, 0, *[0] * 8])
    np.testing.assert_array_equal(matrix[:9, 9:], matrix[9:, :9].T)


@pytest.mark.slow
def test_ten_thousand_steps_of_random_forcing_keep_the_constraints():
    case = get_case("slider-crank")
    run = mbd.simulate(
        case.mechanism, case.times(), case.initial, inputs=case.make_inputs(case.steps)
    )
    assert run.status.ok
    assert float(run.position_residual.max()) <= 1e-12
    assert float(run.velocity_residual.max()) <= 1e-12
    # The crank keeps turning, so the residuals were met all the way round.
    assert float(jnp.ptp(run["theta1"])) > 2 * np.pi
