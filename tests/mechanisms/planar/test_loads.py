"""Springs, dampers, weight, forces and torques against mechanics written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import from_text
from mbdnode.multibody import resolve_parameters

BODIES = """
[bodies.a]
mass = 2.0
inertia = 0.5
center = [0.0, 0.0]
[bodies.b]
mass = 3.0
inertia = 0.25
center = [1.0, 0.0]
"""
Q = np.array([0.5, -0.2, 0.3, 1.4, 0.6, -0.8])
V = np.array([0.3, 0.1, -0.6, -0.2, 0.4, 1.1])
POINT_A, POINT_B = (0.2, -0.4), (-0.3, 0.7)
BETWEEN = f'bodies = ["a", "b"]\npoints = [{list(POINT_A)}, {list(POINT_B)}]'


def force(mechanism, u=(), q=Q, v=V):
    mu = resolve_parameters(mechanism)
    arrays = [jnp.asarray(x, float) for x in (q, v, np.array(u))]
    return np.asarray(jax.jit(mechanism.force)(jnp.zeros(()), *arrays, mu))


def arm(number, point):
    """From a body's center to its point, turned into the plane."""
    c, s = np.cos(Q[3 * number + 2]), np.sin(Q[3 * number + 2])
    return np.array([c * point[0] - s * point[1], s * point[0] + c * point[1]])


def pushed(number, point, vector):
    """The generalized force of a force at a point: itself, and its moment about the center."""
    lever, found = arm(number, point), np.zeros(6)
    found[3 * number : 3 * number + 3] = [*vector, lever[0] * vector[1] - lever[1] * vector[0]]
    return found


def speed(number, point):
    x, y = arm(number, point)
    return V[3 * number : 3 * number + 2] + V[3 * number + 2] * np.array([-y, x])


def line():
    """Between the two points: the unit vector, the length and its rate."""
    span = Q[3:5] + arm(1, POINT_B) - Q[:2] - arm(0, POINT_A)
    length = np.hypot(*span)
    rate = (speed(1, POINT_B) - speed(0, POINT_A)) @ span / length
    return span / length, length, rate


def test_weight_acts_at_the_centers():
    found = force(from_text("gravity = [1.0, -9.81]\n" + BODIES))
    np.testing.assert_allclose(found, [2.0, -19.62, 0, 3.0, -29.43, 0], atol=1e-14)


def test_a_spring_pulls_along_the_line_between_its_points():
    spring = f'[springs.s]\ntype = "linear"\n{BETWEEN}\nstiffness = 40.0\nfree_length = 0.5'
    unit, length, _ = line()
    pull = 40.0 * (length - 0.5) * unit
    expected = pushed(0, POINT_A, pull) - pushed(1, POINT_B, pull)
    np.testing.assert_allclose(force(from_text(f"{BODIES}\n{spring}")), expected, rtol=1e-13)


def test_a_damper_resists_the_rate_of_its_length():
    damper = f'[dampers.d]\ntype = "linear"\n{BETWEEN}\ndamping = 7.0'
    unit, _, rate = line()
    expected = pushed(0, POINT_A, 7.0 * rate * unit) - pushed(1, POINT_B, 7.0 * rate * unit)
    np.testing.assert_allclose(force(from_text(f"{BODIES}\n{damper}")), expected, rtol=1e-13)


def test_torsional_springs_and_dampers_act_on_the_angle_between_bodies():
    parts = '[springs.s]\ntype = "torsional"\nbodies = ["a", "b"]\nstiffness = 4.0\n'
    parts += 'free_angle = "20 deg"\n[dampers.d]\ntype = "torsional"\nbodies = ["a", "b"]\n'
    torque = 4.0 * (-1.1 - np.radians(20)) + 0.5 * (1.1 + 0.6)
    found = force(from_text(f"{BODIES}\n{parts}damping = 0.5"))
    np.testing.assert_allclose(found, [0, 0, torque, 0, 0, -torque], rtol=1e-14)


def test_forces_and_torques_without_a_value_are_inputs():
    parts = f'[forces.f]\nbody = "a"\npoint = {list(POINT_A)}\ndirection = "50 deg"\n'
    parts += f'[forces.g]\nbody = "b"\npoint = {list(POINT_B)}\ndirection = 0.4\nframe = "body"\n'
    mechanism = from_text(f'{BODIES}\n{parts}[torques.m]\nbodies = ["a", "b"]')
    assert mechanism.input_names == ("f", "g", "m")
    steady = np.array([np.cos(np.radians(50)), np.sin(np.radians(50))])
    turning = np.array([np.cos(0.4 - 0.8), np.sin(0.4 - 0.8)])
    expected = pushed(0, POINT_A, 3.0 * steady) + pushed(1, POINT_B, -2.0 * turning)
    expected += np.array([0, 0, -5.0, 0, 0, 5.0])
    np.testing.assert_allclose(force(mechanism, (3.0, -2.0, 5.0)), expected, rtol=1e-13)


def test_constant_loads_are_parameters():
    parts = f'[forces.f]\nbody = "a"\npoint = {list(POINT_A)}\nvalue = 3.0\n'
    parts += f'[forces.g]\nbody = "b"\npoint = {list(POINT_B)}\nframe = "body"\nvalue = 2.0\n'
    mechanism = from_text(f'{BODIES}\n{parts}[torques.m]\nbodies = ["ground", "b"]\nvalue = -1.5')
    assert mechanism.inputs == ()
    assert mechanism.parameter_names[-3:] == ("f_value", "g_value", "m_value")
    turning = 2.0 * np.array([np.cos(-0.8), np.sin(-0.8)])
    expected = pushed(0, POINT_A, (3.0, 0.0)) + pushed(1, POINT_B, turning)
    expected[5] -= 1.5
    np.testing.assert_allclose(force(mechanism), expected, rtol=1e-13)


def test_a_spring_of_no_length_has_no_force_and_a_finite_slope():
    spring = '[springs.s]\ntype = "linear"\nbodies = ["ground", "a"]\npoints = [[0, 0], [0, 0]]\n'
    mechanism = from_text(f"{BODIES}\n{spring}stiffness = 2.0\nfree_length = 0.0")
    found = force(mechanism, q=np.zeros(6), v=np.zeros(6))
    np.testing.assert_array_equal(found, np.zeros(6))


LOADS = {
    "weight": ("", True),
    "an input": ('[forces.f]\nbody = "a"', True),
    "a constant force": ('[forces.f]\nbody = "a"\nvalue = 1.0', True),
    "a constant torque": ('[torques.f]\nbodies = ["a", "b"]\nvalue = 1.0', True),
    "a force that turns with its body": (
        '[forces.f]\nbody = "a"\nvalue = 1.0\nframe = "body"',
        False,
    ),
    "a damper": ('[dampers.d]\ntype = "torsional"\nbodies = ["a", "b"]\ndamping = 0.0', False),
}


@pytest.mark.parametrize("load", LOADS)
def test_energy_is_kept_where_every_load_has_a_potential(load):
    text, kept = LOADS[load]
    mechanism = from_text(f"gravity = [0.0, -9.81]\n{BODIES}\n{text}")
    assert mechanism.conservative is kept
    if kept:
        mu, q = resolve_parameters(mechanism), jnp.asarray(Q)
        slope = jax.jit(jax.grad(mechanism.potential_energy))(q, mu)
        inputs = np.zeros(len(mechanism.inputs))
        np.testing.assert_allclose(-np.asarray(slope), force(mechanism, inputs), atol=1e-14)
