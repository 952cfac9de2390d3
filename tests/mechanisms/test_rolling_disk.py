"""The rolling disk against Newton-Euler equations, and its steady circles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbdnode as mbd
from mbdnode.mechanisms import RollingDisk

MASS, RADIUS, G = 1.0, 0.5, 9.81
ACROSS, ALONG = MASS * RADIUS**2 / 4, MASS * RADIUS**2 / 2


def axes(heading, lean):
    e = np.array([np.cos(heading), np.sin(heading), 0.0])
    k = np.array([0.0, 0.0, 1.0])
    f = np.cross(k, e)
    m, n = np.cos(lean) * k - np.sin(lean) * f, np.cos(lean) * f + np.sin(lean) * k
    return e, m, n, k


def newton_euler(t, y):
    """The contact's force from the center's acceleration, its moment from the spin's."""
    _, _, heading, lean, _, turning, leaning, rolling = y
    e, m, n, k = axes(heading, lean)
    w = rolling + turning * np.sin(lean)
    frame = turning * k + leaning * e

    def moment_missed(rates):
        turning_rate, leaning_rate, w_rate = rates
        own = RADIUS * (w_rate * e - leaning_rate * n)
        carried = np.cross(frame, RADIUS * (w * e - leaning * n))
        force = MASS * (own + carried) + MASS * G * k
        across = turning_rate * np.cos(lean) - turning * leaning * np.sin(lean)
        spin = ACROSS * leaning * e + ACROSS * turning * np.cos(lean) * m + ALONG * w * n
        change = ACROSS * leaning_rate * e + ACROSS * across * m + ALONG * w_rate * n
        return change + np.cross(frame, spin) - np.cross(-RADIUS * m, force)

    # Linear in the three rates.
    rest = moment_missed(np.zeros(3))
    matrix = np.stack([moment_missed(row) - rest for row in np.eye(3)], axis=1)
    turning_rate, leaning_rate, w_rate = np.linalg.solve(matrix, -rest)
    along = turning_rate * np.sin(lean) + turning * leaning * np.cos(lean)
    center = RADIUS * (w * e - leaning * n)
    return [*center[:2], turning, leaning, rolling, turning_rate, leaning_rate, w_rate - along]


def test_disk_that_wobbles_moves_as_newton_and_euler_say():
    t = np.linspace(0.0, 3.0, 151)
    start = {"heading": 0.3, "lean": 0.4, "heading_dot": 0.7, "lean_dot": -0.5, "roll_dot": 6.0}
    run = mbd.simulate(RollingDisk(), t, start, integrator="dopri8")
    first = [0.0, 0.0, 0.3, 0.4, 0.0, 0.7, -0.5, 6.0]
    exact = solve_ivp(newton_euler, (0.0, 3.0), first, "DOP853", t, rtol=1e-12, atol=1e-12)
    assert run.status.ok
    assert np.ptp(run["lean"]) > 0.2
    np.testing.assert_allclose(run.q, exact.y[:5].T, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 2:], exact.y[5:].T, atol=1e-9)


def test_disk_in_a_steady_circle_keeps_its_lean():
    lean, turning = -0.3, 2.0
    s, c = np.sin(lean), np.cos(lean)
    w = (ACROSS * turning**2 * s * c - MASS * G * RADIUS * s) / (
        (ALONG + MASS * RADIUS**2) * turning * c
    )
    t = np.arange(501) * 0.01
    start = {"lean": lean, "heading_dot": turning, "roll_dot": w - turning * s}
    run = mbd.simulate(RollingDisk(), t, start)
    np.testing.assert_allclose(run["lean"], lean, atol=1e-9)
    # The center runs on a circle of radius R w/W, whose center is beside the start.
    circle = RADIUS * w / turning
    np.testing.assert_allclose(run["x"], circle * np.sin(turning * t), atol=1e-8)
    np.testing.assert_allclose(run["y"], circle * (1 - np.cos(turning * t)), atol=1e-8)


def test_energy_and_contact_are_kept():
    t = np.linspace(0.0, 3.0, 151)
    start = {"lean": 0.2, "heading_dot": 1.0, "lean_dot": 0.3, "roll_dot": 8.0}
    run = mbd.simulate(RollingDisk(), t, start, integrator="dopri8")
    energy = np.asarray(mbd.energy(RollingDisk(), run))
    np.testing.assert_allclose(energy, energy[0], rtol=1e-9)
    assert np.max(run.velocity_residual) < 1e-13


@pytest.mark.parametrize("lean", [0.0, 0.5])
def test_quadratic_forces_are_those_of_the_kinetic_energy(lean):
    disk = RollingDisk()
    mu = {p.name: jnp.asarray(p.default) for p in disk.parameters}
    q, v = jnp.array([0.1, 0.2, 0.3, lean, 0.4]), jnp.array([1.0, -2.0, 0.7, 0.9, 3.0])

    def kinetic(q, v):
        return v @ jnp.asarray(disk.mass_matrix(q, mu)) @ v / 2

    momentum_rate = jax.jvp(lambda x: jax.grad(kinetic, 1)(x, v), (q,), (v,))[1]
    weight = -jax.grad(lambda x: disk.potential_energy(x, mu))(q)
    expected = jax.grad(kinetic)(q, v) - momentum_rate + weight
    np.testing.assert_allclose(disk.force(0.0, q, v, (), mu), expected, atol=1e-13)
