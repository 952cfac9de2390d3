"""Mass and forces against the equations that the paper prints, at parameters that are not one.

The text's own parameters have many ones among them, which would hide a wrong power of a length.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import CartPole, DoublePendulum, SinglePendulum, TripleMassSpringDamper
from mbdnode.multibody import resolve_parameters
from mbdnode.multibody.kinematics import vector


@pytest.fixture(params=[0, 1, 2])
def random(request):
    return np.random.default_rng(request.param)


def draw(mechanism, random):
    """Random parameters, state and inputs, and the accelerations there."""
    values = {
        p.name: random.uniform(0.5, 2.0)
        for p in mechanism.parameters
        if p.name != "physical_wall_damper"
    }
    mu = resolve_parameters(mechanism, values)
    q, v = random.normal(size=(2, len(mechanism.coordinates)))
    u = random.normal(size=len(mechanism.inputs))
    x, w, load = (jnp.asarray(a) for a in (q, v, u))
    force = np.asarray(vector(mechanism.force(jnp.zeros(()), x, w, load, mu)))
    mass = np.asarray(mechanism.mass(x, mu))
    return (
        values,
        q,
        v,
        u,
        np.linalg.solve(mass, force),
        mass,
        float(mechanism.potential_energy(x, mu)),
    )


def test_the_pendulum_obeys_its_printed_equation(random):
    p, (theta,), (omega,), (force,), (a,), _, _ = draw(SinglePendulum(), random)
    left = a + p["g"] / p["L"] * np.sin(theta) + p["c"] / (p["m"] * p["L"]) * omega
    np.testing.assert_allclose(left, force / (p["m"] * p["L"]), rtol=1e-13, atol=1e-13)


def test_the_cart_pole_obeys_its_printed_equations(random):
    p, (theta, _), (omega, _), (u,), (a, x), _, _ = draw(CartPole(), random)
    m, length, c, s = p["m"], p["l"], np.cos(theta), np.sin(theta)
    pole = m * length**2 * a + m * length * c * x - m * p["g"] * length * s
    cart = m * length * c * a + (p["M"] + m) * x - m * length * omega**2 * s
    np.testing.assert_allclose([pole, cart], [0.0, u], atol=1e-12)


def test_the_three_masses_obey_their_printed_equations(random):
    p, (x1, x2, x3), (v1, v2, v3), _, found, _, _ = draw(TripleMassSpringDamper(), random)
    m1, m2, m3, k1, k2, k3, d1, d2, d3 = (p[f"{n}{i}"] for n in "mkd" for i in (1, 2, 3))
    printed = [
        -k1 / m1 * x1 - d1 / m1 * (v1 - v2) + k2 / m1 * (x2 - x1) + d2 / m1 * (v2 - v1),
        -k2 / m2 * (x2 - x1) - d2 / m2 * (v2 - v1) + k3 / m2 * (x3 - x2) + d3 / m2 * (v3 - v2),
        -k3 / m3 * (x3 - x2) - d3 / m3 * (v3 - v2),
    ]
    np.testing.assert_allclose(found, printed, rtol=1e-12, atol=1e-12)


def test_the_double_pendulum_has_the_printed_energies_and_hamilton_equations(random):
    p, q, v, _, a, mass, potential = draw(DoublePendulum(), random)
    m1, m2, l1, l2, g = (p[name] for name in ("m1", "m2", "l1", "l2", "g"))
    c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
    kinetic = m1 * l1**2 * v[0] ** 2 / 2
    kinetic += m2 / 2 * (l1**2 * v[0] ** 2 + l2**2 * v[1] ** 2 + 2 * l1 * l2 * v[0] * v[1] * c)
    np.testing.assert_allclose(v @ mass @ v / 2, kinetic, rtol=1e-13)
    height = -m1 * g * l1 * np.cos(q[0]) - m2 * g * (l1 * np.cos(q[0]) + l2 * np.cos(q[1]))
    np.testing.assert_allclose(potential, height, rtol=1e-13)
    # The momenta, and their rates: those printed, and those of our accelerations.
    p1, p2 = mass @ v
    det = m1 + m2 * s**2
    h1 = p1 * p2 * s / (l1 * l2 * det)
    h2 = m2 * l2**2 * p1**2 + (m1 + m2) * l1**2 * p2**2 - 2 * m2 * l1 * l2 * p1 * p2 * c
    h2 *= np.sin(2 * (q[0] - q[1])) / (2 * l1**2 * l2**2 * det**2)
    printed = [
        -(m1 + m2) * g * l1 * np.sin(q[0]) - h1 + h2,
        -m2 * g * l2 * np.sin(q[1]) + h1 - h2,
    ]
    turning = -m2 * l1 * l2 * s * (v[0] - v[1])
    found = mass @ a + turning * v[::-1]
    np.testing.assert_allclose(found, printed, rtol=1e-11, atol=1e-11)
