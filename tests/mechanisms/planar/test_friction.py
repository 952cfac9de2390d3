"""Dry friction of joints from files."""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms.planar import from_text

T = np.linspace(0.0, 1.0, 101)

# A slide of 2 kg on a rail along x, a disk of 0.5 kg m^2 on a fixed bearing.
TEXT = """
[bodies.slide]
mass = 2.0
inertia = 0.1
center = [0.0, 0.0]
[bodies.disk]
mass = 1.0
inertia = 0.5
center = [1.0, 1.0]
[joints.rail]
type = "prismatic"
bodies = ["ground", "slide"]
points = [[0.0, 0.0], [0.0, 0.0]]
[joints.bearing]
type = "revolute"
bodies = ["ground", "disk"]
points = [[1.0, 1.0], [0.0, 0.0]]
[friction.guide]
joint = "rail"
limit = 3.0
[friction.seal]
joint = "bearing"
limit = 0.4
[forces.push]
body = "slide"
[torques.motor]
bodies = ["ground", "disk"]
"""


def test_joints_hold_up_to_their_limits_and_slip_against_them():
    mechanism = from_text(TEXT)
    assert not mechanism.conservative
    held = mbd.simulate(mechanism, T, {}, inputs={"push": 2.9, "motor": -0.39})
    rest = np.asarray(held.q)
    np.testing.assert_allclose(rest - rest[0], 0.0, atol=1e-13)
    moved = mbd.simulate(mechanism, T, {}, inputs={"push": 5.0, "motor": -0.9})
    np.testing.assert_allclose(moved["slide_x"], 0.5 * 1.0 * T**2, atol=1e-12)
    np.testing.assert_allclose(moved["disk_angle"], -0.5 * 1.0 * T**2, atol=1e-12)
    freed = {"guide_limit": 0.0, "seal_limit": 0.0}
    free = mbd.simulate(mechanism, T, {}, inputs={"push": 5.0, "motor": 0.0}, parameters=freed)
    np.testing.assert_allclose(free["slide_x"], 0.5 * 2.5 * T**2, atol=1e-12)


def test_friction_is_written_and_read_back():
    mechanism = from_text(TEXT)
    again = from_text(mechanism.to_toml({"seal_limit": 0.7}))
    assert again.parameter_names == mechanism.parameter_names
    assert {p.name: p.default for p in again.parameters}["seal_limit"] == 0.7


def test_friction_in_a_joint_that_has_none_is_refused():
    rod = TEXT.replace('type = "prismatic"', 'type = "distance"\nlength = 1.0')
    with pytest.raises(mbd.UserError, match=r"friction\.guide\.joint.*'rail' is a distance joint"):
        from_text(rod)
