"""Machines in space move as equations of motion say that are derived here by hand."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialDescription, SpatialMechanism
from mbdnode.mechanisms.spatial.description import Body, Frame, Joint

G = 9.81
GRAVITY = (0.0, 0.0, -G)


def solved(rate, t, y0):
    """SciPy's most exact answer: its error is near 1e-13 of the motion."""
    found = solve_ivp(rate, (t[0], t[-1]), y0, "DOP853", t, rtol=3e-14, atol=1e-15)
    assert found.success
    return found.y


def test_heavy_top_precesses_and_nutates_as_euler_angles_say():
    mass, arm, across, along = 1.3, 0.4, 0.05, 0.02
    body = Body("top", mass, (0.0, 0.0, arm), (across, across, along, 0.0, 0.0, 0.0))
    pivot = Joint("pivot", "spherical", ("ground", "top"))
    top = SpatialMechanism(SpatialDescription("top", (body,), (pivot,), gravity=GRAVITY))
    pivoted = across + mass * arm**2
    phi0, theta0, psi0, dphi0, dtheta0, dpsi0 = 0.3, 0.7, -0.2, 0.5, -0.4, 40.0
    # The momenta of precession and of spin are constant.
    spin = along * (dpsi0 + dphi0 * np.cos(theta0))
    turn = pivoted * dphi0 * np.sin(theta0) ** 2 + spin * np.cos(theta0)

    def rate(_, y):
        _, theta, _, dtheta = y
        dphi = (turn - spin * np.cos(theta)) / (pivoted * np.sin(theta) ** 2)
        moment = pivoted * dphi**2 * np.cos(theta) - spin * dphi + mass * G * arm
        dpsi = spin / along - dphi * np.cos(theta)
        return [dphi, dtheta, dpsi, moment * np.sin(theta) / pivoted]

    t = np.linspace(0.0, 1.0, 51)
    phi, theta, psi, _ = solved(rate, t, [phi0, theta0, psi0, dtheta0])

    start = Rotation.from_euler("ZXZ", [phi0, theta0, psi0])
    node = Rotation.from_euler("Z", phi0).apply([1.0, 0.0, 0.0])
    omega = dphi0 * np.eye(3)[2] + dtheta0 * node + dpsi0 * start.apply([0.0, 0.0, 1.0])
    x, y, z, w = start.as_quat()
    e, ev = np.array([w, x, y, z]), np.array([x, y, z])
    rates = np.array([-omega @ ev, *(w * omega + np.cross(omega, ev))]) / 2
    initial = {f"pivot_e{n}": e[n] for n in range(4)}
    initial |= {f"pivot_e{n}_dot": rates[n] for n in range(4)}
    run = mbd.simulate(top, t, initial, integrator="dopri8")
    assert run.status.ok
    found = np.stack([run[f"pivot_e{n}"] for n in range(4)], axis=1)
    x, y, z, w = Rotation.from_euler("ZXZ", np.stack([phi, theta, psi], axis=1)).as_quat().T
    expected = np.stack([w, x, y, z], axis=1)
    expected *= np.sign(np.sum(found * expected, axis=1))[:, None]
    # Forty radians of spin: 1e-11 of a turn is 1e-12 of the angle.
    np.testing.assert_allclose(found, expected, atol=2e-11)
    assert float(np.max(run.position_residual)) < 1e-12


def test_pendulum_on_a_universal_joint_follows_lagranges_equations():
    mass, arm, (a, b, c) = 1.2, 0.6, (0.03, 0.05, 0.04)
    body = Body("bob", mass, (0.0, 0.0, -arm), (a, b, c, 0.0, 0.0, 0.0))
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    hooke = Joint("hooke", "universal", ("ground", "bob"), axis=x, second_axis=y)
    pendulum = SpatialMechanism(SpatialDescription("p", (body,), (hooke,), gravity=GRAVITY))
    pa, pb = a + mass * arm**2, b + mass * arm**2

    # With the body turned by alpha about x and then by beta about its y axis, its angular velocity
    # in its axes is (alpha' cos beta, beta', alpha' sin beta), its height -l cos alpha cos beta.
    def rate(_, state):
        alpha, beta, u, v = state
        sa, ca, sb, cb = np.sin(alpha), np.cos(alpha), np.sin(beta), np.cos(beta)
        weight = mass * G * arm
        du = (-weight * sa * cb - 2 * (c - pa) * sb * cb * u * v) / (pa * cb**2 + c * sb**2)
        return [u, v, du, ((c - pa) * sb * cb * u**2 - weight * ca * sb) / pb]

    t = np.linspace(0.0, 2.0, 101)
    initial = {"hooke_1": 1.0, "hooke_2": 0.4, "hooke_1_dot": 0.5, "hooke_2_dot": 2.0}
    expected = solved(rate, t, list(initial.values()))
    run = mbd.simulate(pendulum, t, initial, integrator="dopri8")
    assert run.status.ok
    found = [run[name] for name in initial]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))


CRANK, ROD, SLIDER = 0.12, 0.5, 0.8
RADIUS, LENGTH, BEARING = 0.08, 0.3, (0.1, 0.12)
CRANK_INERTIA, ROD_INERTIA = 1e-3, ROD * LENGTH**2 / 12


def slider_crank(cut):
    """The crank turns about x at y, z of the bearing; the slider moves along x."""
    axial = (CRANK_INERTIA, CRANK_INERTIA, CRANK_INERTIA, 0.0, 0.0, 0.0)
    bodies = (
        Body("crank", CRANK, inertia=axial),
        Body("rod", ROD, (-LENGTH / 2, 0.0, 0.0), (0.0, ROD_INERTIA, ROD_INERTIA, 0.0, 0.0, 0.0)),
        Body("slider", SLIDER, inertia=axial),
    )
    x, y, z = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    at = Frame((0.0, *BEARING))
    ends = Frame((0.0, 0.0, RADIUS)), Frame((-LENGTH, 0.0, 0.0))
    joints = (
        Joint("bearing", "revolute", ("ground", "crank"), (at, Frame()), axis=x),
        Joint("guide", "prismatic", ("ground", "slider"), axis=x, start=(0.2,)),
        Joint("wrist", "universal", ("slider", "rod"), axis=z, second_axis=y, start=(-0.46, 0.73)),
        Joint("pin", "spherical", ("crank", "rod"), ends, cut=cut == "pin"),
    )
    if cut == "guide":
        joints = (
            joints[0],
            *joints[2:],
            Joint("guide", "prismatic", ("ground", "slider"), axis=x, cut=True),
        )
    given = SpatialDescription("slider-crank", bodies, joints, gravity=GRAVITY)
    return SpatialMechanism(given)


def slider_crank_shape(theta):
    """Pin and slider, and their derivatives by the crank's angle."""
    pin = np.array([0.0, BEARING[0] - RADIUS * np.sin(theta), BEARING[1] + RADIUS * np.cos(theta)])
    dpin = np.array([0.0, -RADIUS * np.cos(theta), -RADIUS * np.sin(theta)])
    x = np.sqrt(LENGTH**2 - pin @ pin)
    return pin, dpin, np.array([x, 0.0, 0.0]), np.array([-(pin @ dpin) / x, 0.0, 0.0])


def slider_crank_speed(theta, energy):
    """From the energy: `theta'^2 = 2 (E - V) / M`, while the crank does not turn back."""
    pin, dpin, slide, dslide = slider_crank_shape(theta)
    center = (dpin + dslide) / 2
    turning = (dslide - dpin) / LENGTH
    inertia = CRANK_INERTIA + ROD * center @ center + ROD_INERTIA * turning @ turning
    inertia += SLIDER * dslide @ dslide
    potential = ROD * G * (pin[2] + slide[2]) / 2
    if energy is None:
        return inertia, potential
    return np.sqrt(2 * (energy - potential) / inertia)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["pin", "guide"])
def test_spatial_slider_crank_keeps_its_energy_and_its_loop(cut):
    speed0 = 12.0
    inertia, potential = slider_crank_speed(0.0, None)
    energy = inertia * speed0**2 / 2 + potential
    t = np.linspace(0.0, 0.6, 61)
    (expected,) = solved(lambda _, y: [slider_crank_speed(y[0], energy)], t, [0.0])
    machine = slider_crank(cut)
    known = {"bearing": 0.0, "bearing_dot": speed0}
    run = mbd.simulate(machine, t, known, integrator="dopri8")
    assert run.status.ok
    found = np.asarray(run["bearing"])
    assert expected[-1] > 2 * np.pi  # Once around.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    if cut == "pin":
        slides = [slider_crank_shape(theta)[2][0] for theta in expected]
        np.testing.assert_allclose(run["guide"], slides, rtol=0, atol=1e-10)
    assert float(np.max(run.position_residual)) < 1e-12
    assert float(np.max(run.velocity_residual)) < 1e-11
