"""The driven crank: motion from kinematics alone, and the drive's torque from the work it does."""

import jax.numpy as jnp
import numpy as np
import pytest
from problems import crank_inertia, crank_kinematics, slider_crank_state

import mbdnode as mbd
from mbdnode.mechanisms import DrivenCrank

SPEED, PARAMETERS = -3.0, {"theta0": 0.7, "omega": -3.0}
TIMES = np.linspace(0.0, 3.0, 301)
ANGLE = 0.7 + SPEED * TIMES


def force(t):
    """A load on the slider."""
    return 20.0 * jnp.cos(5.0 * t)


@pytest.fixture(scope="module")
def run():
    return mbd.simulate(
        DrivenCrank(), TIMES, {}, parameters=PARAMETERS, inputs=lambda t: force(t)[None]
    )


def test_a_driven_crank_has_no_freedom_and_needs_no_start(run):
    assert run.status.ok
    expected = slider_crank_state(np.stack([ANGLE, np.full_like(ANGLE, SPEED)], axis=1))
    found = np.concatenate([run.q, run.v], axis=1)
    # Nothing is integrated, so nothing accumulates.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    assert float(run.position_residual.max()) <= 1e-14
    assert float(run.velocity_residual.max()) <= 1e-13


def test_a_start_against_the_drive_is_refused():
    with pytest.raises(ValueError, match="theta1 = 2"):
        mbd.simulate(DrivenCrank(), TIMES, {"theta1": 2.0}, parameters=PARAMETERS)


def test_accelerations_follow_from_the_curvature_of_the_motion(run):
    found = mbd.reactions(DrivenCrank(), run, PARAMETERS).accelerations
    phi, x2, y2, x3 = crank_kinematics(ANGLE)
    zero = np.zeros_like(ANGLE)
    curvature = [-np.cos(ANGLE), -np.sin(ANGLE), zero, x2[2], y2[2], phi[2], x3[2], zero, zero]
    np.testing.assert_allclose(found, np.stack(curvature, axis=1) * SPEED**2, atol=1e-11)


def test_the_drive_torque_is_the_last_multiplier_and_balances_the_power(run):
    torque = -np.asarray(mbd.reactions(DrivenCrank(), run, PARAMETERS).multipliers[:, -1])
    # d(kinetic energy)/dt = T omega + F x3', where the energy is J(theta) omega^2/2.
    half_slope = crank_inertia(ANGLE)[1]
    gained = half_slope * SPEED**3
    pushed = np.asarray(force(TIMES)) * crank_kinematics(ANGLE)[3][1] * SPEED
    np.testing.assert_allclose(torque * SPEED + pushed, gained, atol=1e-10)


def test_the_work_of_drive_and_load_is_the_energy_that_the_mechanism_gains(run):
    energy = np.asarray(mbd.energy(DrivenCrank(), run, PARAMETERS))
    torque = -np.asarray(mbd.reactions(DrivenCrank(), run, PARAMETERS).multipliers[:, -1])
    power = torque * SPEED + np.asarray(run["F"] * run["x3_dot"])
    # Fourth-order differences over 0.01 s of a motion with rates up to about ten a second.
    rate = (8 * (energy[3:-1] - energy[1:-3]) - (energy[4:] - energy[:-4])) / (12 * 0.01)
    np.testing.assert_allclose(power[2:-2], rate, atol=1e-3 * np.max(np.abs(rate)))
