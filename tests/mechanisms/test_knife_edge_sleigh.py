"""The sleigh against the closed form of Neimark and Fufaev, written out as in the book."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import KnifeEdgeSleigh

FALL = 9.81 * np.sin(0.5)


def textbook(t, x0, y0, theta0, speed, spin):
    """Direct integration of `s' = A cos(theta)`, `x' = s cos(theta)`, `y' = s sin(theta)`."""
    theta = theta0 + spin * t
    s, c, s0, c0 = np.sin(theta), np.cos(theta), np.sin(theta0), np.cos(theta0)
    free = speed - FALL / spin * s0
    along = free + FALL / spin * s
    x = x0 + free / spin * (s - s0) + FALL / (2 * spin**2) * (s**2 - s0**2)
    y = y0 + free / spin * (c0 - c)
    y += FALL / (2 * spin**2) * (spin * t - (np.sin(2 * theta) - np.sin(2 * theta0)) / 2)
    return np.stack([x, y, theta, along * c, along * s, np.full_like(t, spin)], axis=1)


def start(theta0, speed, spin):
    known = {"x": 0.3, "y": -0.2, "theta": theta0, "theta_dot": spin}
    along = {"x_dot": speed * np.cos(theta0), "y_dot": speed * np.sin(theta0)}
    return {**known, **along}


@pytest.mark.parametrize("integrator", ["analytic", "dopri8"])
@pytest.mark.parametrize(("theta0", "speed", "spin"), [(0.4, 1.0, 2.0), (-2.0, -0.5, -3.0)])
def test_the_sleigh_follows_the_textbook(integrator, theta0, speed, spin):
    t = np.linspace(0.0, 5.0, 251)
    run = mbd.simulate(KnifeEdgeSleigh(), t, start(theta0, speed, spin), integrator=integrator)
    assert run.status.ok
    found = np.concatenate([run.q, run.v], axis=1)
    expected = textbook(t, 0.3, -0.2, theta0, speed, spin)
    assert np.max(np.abs(found - expected)) <= 1e-10 * np.max(np.abs(expected))


def test_the_blade_never_slides_across():
    t = np.linspace(0.0, 5.0, 251)
    run = mbd.simulate(KnifeEdgeSleigh(), t, start(0.4, 1.0, 2.0))
    across = run["x_dot"] * jnp.sin(run["theta"]) - run["y_dot"] * jnp.cos(run["theta"])
    # The blade turns through the angles at which x or y alone could not carry the velocity.
    assert np.max(np.abs(across)) <= 1e-13


@pytest.mark.parametrize("spin", [0.0, 1e-9])
def test_a_sleigh_that_hardly_spins_slides_along_its_blade(spin):
    t = np.linspace(0.0, 2.0, 21)
    run = mbd.simulate(KnifeEdgeSleigh(), t, start(0.4, 1.0, spin), integrator="analytic")
    along = 1.0 * t + FALL * np.cos(0.4) * t**2 / 2
    np.testing.assert_allclose(run["x"], 0.3 + along * np.cos(0.4), atol=1e-7)
    np.testing.assert_allclose(run["y"], -0.2 + along * np.sin(0.4), atol=1e-7)


def test_a_spinning_sleigh_drifts_across_the_slope_and_not_down():
    turns, spin = 10, 2.0
    t = np.linspace(0.0, turns * 2 * np.pi / spin, 501)
    run = mbd.simulate(KnifeEdgeSleigh(), t, start(0.0, 0.0, spin), integrator="dopri8")
    np.testing.assert_allclose(run["x"][-1], run["x"][0], atol=1e-9)
    np.testing.assert_allclose(run["y"][-1] - run["y"][0], FALL / (2 * spin) * t[-1], rtol=1e-10)


def test_the_sleigh_keeps_its_energy_because_the_blade_does_no_work():
    t = np.linspace(0.0, 5.0, 251)
    run = mbd.simulate(KnifeEdgeSleigh(), t, start(0.4, 1.0, 2.0), integrator="dopri8")
    energy = np.asarray(mbd.energy(KnifeEdgeSleigh(), run))
    np.testing.assert_allclose(energy, energy[0], atol=1e-10 * np.max(np.abs(energy)))
