"""The linear systems: closed forms in every regime of damping, and the two readings of the text."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import mbdnode as mbd
from mbdnode.mechanisms import SingleMassSpring, SingleMassSpringDamper, TripleMassSpringDamper
from mbdnode.multibody import resolve_parameters

CRITICAL = 2 * np.sqrt(50.0 * 10.0)


def exponential(m, k, d, start, t):
    """SciPy's matrix exponential of `(x, v)' = A (x, v)`, at every time."""
    zero, one = np.zeros_like(m), np.eye(len(m))
    inverse = np.linalg.inv(m)
    matrix = np.block([[zero, one], [-inverse @ k, -inverse @ d]])
    return np.stack([scipy.linalg.expm(matrix * s) @ start for s in t])


@pytest.mark.parametrize(
    "damping",
    [0.0, 2.0, CRITICAL * (1 - 1e-9), CRITICAL, CRITICAL * (1 + 1e-9), 1.001 * CRITICAL, 500.0],
)
def test_the_damped_mass_follows_its_closed_form_below_at_and_above_critical_damping(damping):
    t = np.linspace(0.0, 5.0, 41)
    ours = mbd.simulate(
        SingleMassSpringDamper(),
        t,
        {"x": 1.0, "x_dot": -3.0},
        parameters={"d": damping},
        integrator="analytic",
    )
    m, k, d = (np.array([[value]]) for value in (10.0, 50.0, damping))
    expected = exponential(m, k, d, np.array([1.0, -3.0]), t)
    found = np.concatenate([ours.q, ours.v], axis=1)
    # SciPy's exponential squares up to seven times, which costs it two or three digits.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_very_strong_damper_creeps_and_does_not_overflow():
    t = np.array([0.0, 1e4])
    ours = mbd.simulate(
        SingleMassSpringDamper(), t, {"x": 1.0}, parameters={"d": 1e6}, integrator="analytic"
    )
    # The slow root is -k/d to first order in k m/d^2, the fast one has long gone.
    np.testing.assert_allclose(ours.q[-1, 0], np.exp(-50.0 / 1e6 * 1e4), rtol=1e-8)


@pytest.mark.parametrize("damping", [2.0, CRITICAL, 500.0])
def test_the_closed_form_has_the_derivative_by_damping_that_differences_have(damping):
    system, start, rest = SingleMassSpringDamper(), jnp.ones(1), jnp.zeros(1)

    @jax.jit
    def position(d):
        mu = resolve_parameters(system) | {"d": d}
        return system.solution(jnp.asarray(0.7), start, rest, mu)[0][0]

    by_autodiff = jax.jit(jax.grad(position))(jnp.asarray(damping))
    step = 1e-4
    by_differences = (position(damping + step) - position(damping - step)) / (2 * step)
    # Differences over 1e-4 keep about 1e-12 of positions near one.
    np.testing.assert_allclose(by_autodiff, by_differences, rtol=1e-6, atol=1e-11)


def test_without_a_damper_the_damped_mass_is_the_mass_on_a_spring():
    t = np.linspace(0.0, 30.0, 61)
    start = {"x": 1.0, "x_dot": 0.5}
    free = mbd.simulate(SingleMassSpring(), t, start, integrator="analytic")
    undamped = mbd.simulate(
        SingleMassSpringDamper(), t, start, parameters={"d": 0.0}, integrator="analytic"
    )
    np.testing.assert_allclose(undamped.table, free.table, rtol=0, atol=1e-13)


@pytest.mark.parametrize("physical", [0.0, 1.0])
def test_the_three_masses_follow_the_exponential_of_either_reading(physical):
    t = np.linspace(0.0, 4.0, 17)
    start = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    ours = mbd.simulate(
        TripleMassSpringDamper(),
        t,
        dict(zip(["x1", "x2", "x3"], start[:3], strict=True)),
        parameters={"physical_wall_damper": physical},
        integrator="analytic",
    )
    k = 50.0 * np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1]])
    d = 2.0 * np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1]])
    if physical == 0.0:
        d[0, 1] -= 2.0  # the wall's damper feels v1 - v2
    expected = exponential(np.diag([100.0, 10.0, 1.0]), k, d, start, t)
    found = np.concatenate([ours.q, ours.v], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_only_the_physical_wall_damper_brakes_a_row_that_moves_as_one():
    system = TripleMassSpringDamper()
    together, home = jnp.full(3, 2.0), jnp.zeros(3)
    force = {}
    for physical in (0.0, 1.0):
        mu = resolve_parameters(system, {"physical_wall_damper": physical})
        force[physical] = np.stack(system.force(jnp.zeros(()), home, together, jnp.zeros(0), mu))
    np.testing.assert_array_equal(force[0.0], [0.0, 0.0, 0.0])
    np.testing.assert_array_equal(force[1.0], [-4.0, 0.0, 0.0])
