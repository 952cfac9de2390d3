"""The vehicle against FNODE's equations of speed and heading, by SciPy, and its circles."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbdnode as mbd
from mbdnode.mechanisms import Vehicle

CAR = Vehicle()
OTHER = {
    "l": 2.5,
    "R": 0.3,
    "I": 0.6,
    "tau0": 100.0,
    "omega0": 1200.0,
    "c0": 0.01,
    "c1": 0.02,
    "delta": 0.667,
    "gamma": 1 / 3,
    "s": 30.0,
}


def throttle(t):
    return 0.05 * (1 - np.cos(0.7 * t))


def steering(t):
    return 0.1 * np.sin(2 * t)


def inputs(t):
    return [0.05 * (1 - jnp.cos(0.7 * t)), 0.1 * jnp.sin(2 * t)]


def published(t, y, p):
    """Speed and heading as they are printed, with the servo before the steering."""
    _, _, theta, steer, speed, steering_rate = y
    w = speed / (p["R"] * p["gamma"])
    torque = throttle(t) * (p["tau0"] - p["tau0"] * w / p["omega0"]) - p["c1"] * w - p["c0"]
    servo = p["s"] ** 2 * (p["delta"] * steering(t) - steer) - 2 * p["s"] * steering_rate
    return [
        speed * np.cos(theta),
        speed * np.sin(theta),
        speed * np.tan(steer) / p["l"],
        steering_rate,
        torque * p["gamma"] / p["I"] * p["R"],
        servo,
    ]


@pytest.mark.parametrize("given", [{}, OTHER])
def test_motion_is_that_of_the_published_equations_by_scipy(given):
    t = np.linspace(0.0, 4.0, 401)
    p = {q.name: q.default for q in CAR.parameters} | given
    start = {"theta": 0.3, "x_dot": 2.0 * np.cos(0.3), "y_dot": 2.0 * np.sin(0.3)}
    run = mbd.simulate(CAR, t, start, inputs=inputs, parameters=given, integrator="dopri8")
    first = [0.0, 0.0, 0.3, 0.0, 2.0, 0.0]
    exact = solve_ivp(published, (0.0, 4.0), first, "DOP853", t, args=(p,), rtol=3e-14, atol=1e-14)
    assert run.status.ok
    assert np.ptp(run["theta"]) > 0.05
    theta, speed = exact.y[2], exact.y[4]
    np.testing.assert_allclose(run.q, exact.y[:4].T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run["x_dot"], speed * np.cos(theta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run["y_dot"], speed * np.sin(theta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run["steer_dot"], exact.y[5], atol=1e-12)
    assert np.max(run.velocity_residual) < 1e-13


def test_steered_front_wheels_lead_round_a_circle():
    # At rest in its steering and without drag the vehicle rolls on, around the point where the
    # lines of both axles meet.
    t, steer = np.linspace(0.0, 10.0, 1001), 0.4
    free = {"c0": 0.0, "c1": 0.0}
    start = {"steer": steer, "x_dot": 3.0}
    held = {"alpha": 0.0, "beta": steer / 0.675}
    run = mbd.simulate(CAR, t, start, inputs=held, parameters=free)
    radius = 2.8 / np.tan(steer)
    turned = 3.0 * t / radius
    assert turned[-1] > 4.0
    np.testing.assert_allclose(run["x"], radius * np.sin(turned), atol=1e-9)
    np.testing.assert_allclose(run["y"], radius * (1 - np.cos(turned)), atol=1e-9)


def test_it_rolls_up_to_the_speed_at_which_torque_and_drag_agree():
    t = np.arange(1_001) * 0.1
    run = mbd.simulate(CAR, t, {}, inputs={"alpha": 0.1, "beta": 0.0})
    w = (0.1 * 300.0 - 0.02) / (0.1 * 300.0 / 1350.0 + 0.035)
    assert run["x_dot"][-1] == pytest.approx(0.2 * 0.335 * w, rel=1e-2)
    assert np.max(np.abs(run["y"])) == 0.0
