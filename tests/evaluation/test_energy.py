"""Energy along a trajectory, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import TIMES, Oscillator, Pendulum, TurningBlade

from mbdnode.evaluation import energy
from mbdnode.simulation import simulate
from mbdnode.trajectory import State


def test_energy_is_half_m_v_squared_plus_the_potential():
    run = simulate(Pendulum(), TIMES, {"x": 0.9, "x_dot": 0.4}, parameters={"m": 3.0})
    expected = 1.5 * (run["x_dot"] ** 2 + run["y_dot"] ** 2) + 3.0 * 9.81 * run["y"]
    np.testing.assert_allclose(energy(Pendulum(), run, {"m": 3.0}), expected, rtol=1e-14)


def test_damped_oscillator_loses_the_energy_that_the_closed_form_loses():
    # k = 4, m = 1, c = 4 is critically damped: x = (1 + 2 t) exp(-2 t), v = -4 t exp(-2 t).
    run = simulate(Oscillator(), TIMES, {"x": 1.0}, parameters={"c": 4.0})
    # RK4 at 0.025 s.
    fade = np.exp(-4 * TIMES)
    expected = (8 * TIMES**2 + 2 * (1 + 2 * TIMES) ** 2) * fade
    np.testing.assert_allclose(energy(Oscillator(), run), expected, rtol=1e-6)


def test_energy_of_a_batch_goes_through_vmap():
    starts = State(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 1)))
    batch = jax.vmap(lambda s: simulate(Oscillator(), TIMES, s))(starts)
    found = jax.vmap(lambda run: energy(Oscillator(), run))(batch)
    # RK4 at 0.025 s loses less than 1e-7 of it in a second.
    np.testing.assert_allclose(found, np.array([[2.0], [8.0]]) * np.ones(41), rtol=1e-6)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\).*jax\.vmap"):
        energy(Oscillator(), batch)


def test_mechanism_without_a_potential_is_refused():
    run = simulate(Oscillator(), TIMES, {"x": 1.0})
    with pytest.raises(ValueError, match=r"TurningBlade defines no potential.*potential_energy"):
        energy(TurningBlade(), run)


def test_unknown_parameter_is_refused():
    run = simulate(Oscillator(), TIMES, {"x": 1.0})
    with pytest.raises(ValueError, match=r"'q'.*Known: m, k, c, bias"):
        energy(Oscillator(), run, {"q": 1.0})
