"""A mechanism from a file keeps the contract of every mechanism, and works like any other."""

import json

import numpy as np
import pytest
from mechanism_texts import EVERYTHING

import mbdnode as mbd
from mbdnode.mechanisms import from_dict, from_text
from mbdnode.testing import check_mechanism


def test_a_mechanism_of_all_parts_keeps_the_contract():
    mechanism = from_text(EVERYTHING)
    assert not mechanism.conservative
    assert len(mechanism.constraint_names) == 13
    check_mechanism(mechanism)


def test_all_parts_come_back_from_json():
    mechanism = from_text(EVERYTHING)
    assert from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism


PENDULUM = """
gravity = [0.0, -9.81]
independent = ["bar_angle"]
bodies.bar = { mass = 2.0, inertia = 0.1, center = [0.0, -0.4], angle = "-90 deg" }
joints.pin = { type = "revolute", bodies = ["ground", "bar"], points = [[0, 0], [-0.4, 0]] }
torques.T.bodies = ["ground", "bar"]
springs.coil = { type = "torsional", bodies = ["ground", "bar"], stiffness = 3.0, free_angle = -2 }
"""


def test_it_can_be_linearized():
    # J angle'' = T - m g l cos(angle) - k (angle - free), with J = I + m l^2.
    angle, inertia = -1.2, 0.1 + 2.0 * 0.4**2
    A, B, _, _ = mbd.linearize(from_text(PENDULUM), {"bar_angle": angle})
    slope = (2.0 * 9.81 * 0.4 * np.sin(angle) - 3.0) / inertia
    np.testing.assert_allclose(A, [[0, 1], [slope, 0]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B, [[0], [1 / inertia]], rtol=1e-12)


def test_a_parameter_out_of_range_is_refused():
    with pytest.raises(ValueError, match="'bar_mass' is -1 kg; it must be above 0"):
        mbd.consistent_state(from_text(PENDULUM), {}, parameters={"bar_mass": -1.0})
