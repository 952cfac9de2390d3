"""Friction by the guide's own force, against a free-body derivation in NumPy and SciPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import mbdnode as mbd
from mbdnode.mechanisms import SliderCrankFriction

G, D, K, X0, INERTIA = 9.81, 0.05, 1.0, 6.5, 0.1
CRANK, START = SliderCrankFriction(), {"theta1": -0.3, "theta1_dot": 0.0}


def geometry(theta, omega):
    """Of crank (2 m) and rod (4 m): rod angle and its rate, slider's velocity."""
    phi = -np.arcsin(np.sin(theta) / 2)
    spin = -np.cos(theta) / (2 * np.cos(phi)) * omega
    return phi, spin, -2 * np.sin(theta) * omega - 4 * np.sin(phi) * spin


def newton_euler(theta, omega, friction):
    """Crank's angular acceleration and the guide's force, for a friction force along `-x`.

    Unknowns: accelerations of crank and rod, forces of the pin on the rod and of the rod on the
    slider, and the guide. Each body is cut free; the crank turns about the ground.
    """
    phi, spin, _ = geometry(theta, omega)
    s1, c1, s2, c2 = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
    damper = D * (omega - spin)
    x3 = 2 * c1 + 4 * c2
    pull = K * (X0 - x3) - friction
    rows, right = np.zeros((7, 7)), np.zeros(7)  # a1, a2, Px, Py, Rx, Ry, N
    # Crank about the ground: (I + m a^2) a1 = -m g a c1 - damper - moment of the pin's forces.
    rows[0, [0, 2, 3]] = INERTIA + 1.0, -2 * s1, 2 * c1
    right[0] = -G * c1 - damper
    # Rod's center: P - R = m a, with a of the pin and of the half rod.
    rows[1, [0, 1, 2, 4]] = -2 * s1, -2 * s2, -1.0, 1.0
    right[1] = 2 * c1 * omega**2 + 2 * c2 * spin**2
    rows[2, [0, 1, 3, 5]] = 2 * c1, 2 * c2, -1.0, 1.0
    right[2] = 2 * s1 * omega**2 + 2 * s2 * spin**2 - G
    # Rod about its center: P at -2 m, -R at +2 m.
    rows[3, 1] = INERTIA
    rows[3, 2:6] = -2 * s2, 2 * c2, -2 * s2, 2 * c2
    right[3] = damper
    # Slider along x and y.
    rows[4, [0, 1, 4]] = -2 * s1, -4 * s2, -1.0
    right[4] = pull + 2 * c1 * omega**2 + 4 * c2 * spin**2
    rows[5, [5, 6]] = 1.0, 1.0
    right[5] = G
    # The slider stays at its height: 2 s1 + 4 s2 = 0, twice differentiated.
    rows[6, [0, 1]] = 2 * c1, 4 * c2
    right[6] = 2 * s1 * omega**2 + 4 * s2 * spin**2
    found = np.linalg.solve(rows, right)
    return found[0], found[6]


def slipping(theta, omega, c, sign):
    """Acceleration while the slider slips, with the friction that its own guide force makes."""
    missing = lambda f: f - c * abs(newton_euler(theta, omega, sign * f)[1])  # noqa: E731
    friction = brentq(missing, 0.0, 1e4, xtol=1e-14, rtol=1e-14)
    return newton_euler(theta, omega, sign * friction)[0]


def state(theta, omega):
    phi, spin, slide = geometry(theta, omega)
    s1, c1, s2, c2 = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
    q = [c1, s1, theta, 2 * c1 + 2 * c2, 2 * s1 + 2 * s2, phi, 2 * c1 + 4 * c2, 0.0, 0.0]
    v = [-s1 * omega, c1 * omega, omega, -2 * s1 * omega - 2 * s2 * spin]
    return q, [*v, 2 * c1 * omega + 2 * c2 * spin, spin, slide, 0.0, 0.0]


@pytest.mark.parametrize("c", [0.0, 0.4, 0.6])
@pytest.mark.parametrize(("theta", "omega"), [(0.7, 1.5), (0.7, -1.5), (2.4, 3.0), (-1.2, 0.4)])
def test_acceleration_and_guide_force_are_those_of_the_free_bodies(theta, omega, c):
    sign = np.sign(geometry(theta, omega)[2])
    run = mbd.simulate(
        CRANK, np.array([0.0, 1e-3]), {"theta1": theta, "theta1_dot": omega}, parameters={"c": c}
    )
    q, v = state(theta, omega)
    np.testing.assert_allclose(run.q[0], q, atol=1e-12)
    np.testing.assert_allclose(run.v[0], v, atol=1e-12)
    found = mbd.reactions(CRANK, run, {"c": c})
    expected = slipping(theta, omega, c, sign)
    np.testing.assert_allclose(found.accelerations[0, 2], expected, rtol=1e-10)
    a, _ = newton_euler(theta, omega, 0.0)
    friction = brentq(lambda f: newton_euler(theta, omega, f)[0] - expected, -1e3, 1e3)
    guide = newton_euler(theta, omega, friction)[1]
    np.testing.assert_allclose(abs(found.multipliers[0, 6]), abs(guide), rtol=1e-8)
    if c == 0:
        assert expected == pytest.approx(a, rel=1e-12)


def solve_with_turns(y, c, times):
    """`(theta, omega)` at the times, and how often the slip turned; each slip is one solve."""
    sign = np.sign(geometry(y[0], newton_euler(*y, 0.0)[0])[2])
    found, begin, turns = np.zeros((len(times), 2)), 0.0, 0
    while True:
        slip = lambda t, y, b=begin, s=sign: geometry(*y)[2] if t > b + 1e-6 else s  # noqa: E731
        slip.terminal = True
        right = lambda t, y, s=sign: [y[1], slipping(*y, c, s)]  # noqa: E731
        given = {"events": slip, "dense_output": True, "rtol": 1e-11, "atol": 1e-12}
        part = solve_ivp(right, (begin, times[-1]), y, "DOP853", **given)
        assert part.success
        inside = np.flatnonzero((times >= begin) & (times <= part.t[-1]))
        found[inside] = part.sol(times[inside]).T
        if part.status == 0:
            return found, turns
        begin, y, sign, turns = part.t[-1], part.y[:, -1], -sign, turns + 1


def test_motion_is_that_of_scipy_through_the_turns_of_the_slip():
    times = np.arange(401) * 0.01
    run = mbd.simulate(CRANK, times, START, parameters={"c": 0.1})
    expected, turns = solve_with_turns([START["theta1"], 0.0], 0.1, times)
    assert turns >= 2
    assert run.status.ok
    # A step with a turn in it is of first order: a jump of 2 rad/s^2, over 0.01 s, for 4 s.
    np.testing.assert_allclose(run.q[:, 2], expected[:, 0], atol=2e-3)


def test_energy_is_lost_to_friction_and_damper_alone():
    times = np.arange(301) * 0.005
    run = mbd.simulate(CRANK, times, START, parameters={"c": 0.3})
    mu = mbd.multibody.resolve_parameters(CRANK, {"c": 0.3})
    energy = np.array(
        [
            0.5 * np.sum(np.asarray(CRANK.given_mass(q, mu)) * np.asarray(v) ** 2)
            + float(CRANK.potential_energy(q, mu))
            for q, v in zip(run.q, run.v, strict=True)
        ]
    )
    guide = np.abs(np.asarray(mbd.reactions(CRANK, run, {"c": 0.3}).multipliers)[:, 6])
    v = np.asarray(run.v)
    power = 0.3 * guide * np.abs(v[:, 6]) + D * (v[:, 2] - v[:, 5]) ** 2
    lost = np.concatenate([[0.0], np.cumsum((power[1:] + power[:-1]) / 2 * 0.005)])
    np.testing.assert_allclose(energy[0] - energy, lost, atol=2e-3 * lost[-1])


def test_a_guide_that_bears_enough_holds_the_slider():
    # Below the friction of either direction the crank stays where it is.
    run = mbd.simulate(CRANK, np.arange(51) * 0.01, {"theta1": -np.pi / 2, "theta1_dot": 0.0})
    np.testing.assert_allclose(run.q[:, 2], -np.pi / 2, atol=1e-12)


def test_friction_without_a_unique_solution_ends_as_diverged():
    run = mbd.simulate(
        CRANK, np.arange(11) * 0.01, {"theta1": -1.2, "theta1_dot": 1.0}, parameters={"c": 50.0}
    )
    assert not run.status.ok
    assert not jnp.all(jnp.isfinite(run.q))
