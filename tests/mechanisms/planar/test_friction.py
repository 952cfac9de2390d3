"""Dry friction of joints from files."""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import from_text

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


# The same slide with every kind of friction in its rail: values on a line give a line of slope
# 2 N/m inside, and backward it is twice as hard.
WORN = TEXT.replace(
    "limit = 3.0",
    """limit = [3.0, 3.5, 4.0, 4.5, 5.0]
backward = [6.0, 7.0, 8.0, 9.0, 10.0]
over = [-0.5, 0.5]
viscous = 0.0
viscous_backward = 1.5
static = 1.0
speed = 0.1""",
)
# Inputs of one kind throughout: one compiled program serves these tests.
FREE = {"push": 0.0, "motor": 0.0}


def test_slide_stops_where_friction_along_the_rail_has_spent_its_energy():
    mechanism = from_text(WORN)
    names = [f"guide_limit_{k}" for k in range(1, 6)]
    assert set(names) <= set(mechanism.parameter_names)
    t = np.linspace(0.0, 1.0, 1001)
    start = {"slide_x": -0.2, "slide_x_dot": 1.0}
    run = mbd.simulate(mechanism, t, start, inputs=FREE)
    # m v^2/2 = 1 J = (4 s + s^2) from -0.2 to the end.
    end = -2 + np.sqrt(4 + 1.0 + (-0.8 + 0.04))
    assert end < 0.25
    assert float(run["slide_x"][-1]) == pytest.approx(end, abs=1e-6)
    assert float(run["slide_x_dot"][-1]) == 0


def test_backward_motion_has_its_own_friction():
    # Equal values: m v' = -8 - 1.5 v while it goes backward, from 1 m/s.
    flat = {f"guide_backward_{k}": 8.0 for k in range(1, 6)}
    t = np.linspace(0.0, 0.2, 1001)
    run = mbd.simulate(from_text(WORN), t, {"slide_x_dot": -1.0}, inputs=FREE, parameters=flat)
    speed = (1 + 8.0 / 1.5) * np.exp(-0.75 * t) - 8.0 / 1.5
    np.testing.assert_allclose(run["slide_x_dot"], -speed, atol=1e-10)


def test_friction_at_rest_holds_more_than_it_brakes():
    # Equal limits of 4 N that hold 1.5 times as much at rest; at 1 m/s nothing is left of that.
    flat = {f"guide_limit_{k}": 4.0 for k in range(1, 6)} | {"guide_static": 1.5}
    mechanism = from_text(WORN)
    t = np.linspace(0.0, 1.0, 1001)
    pushed = {"push": 5.9, "motor": 0.0}
    held = mbd.simulate(mechanism, t, {}, inputs=pushed, parameters=flat)
    np.testing.assert_allclose(held["slide_x_dot"], 0.0, atol=1e-12)
    slides = mbd.simulate(mechanism, t, {"slide_x_dot": 1.0}, inputs=pushed, parameters=flat)
    np.testing.assert_allclose(slides["slide_x_dot"], 1 + 0.95 * t, atol=1e-9)


def test_worn_friction_is_written_and_read_back():
    mechanism = from_text(WORN + "\n")
    again = from_text(mechanism.to_toml({"guide_limit_2": 3.7, "guide_static": 1.2}))
    defaults = {p.name: p.default for p in again.parameters}
    assert again.parameter_names == mechanism.parameter_names
    assert defaults["guide_limit_2"] == 3.7
    assert defaults["guide_static"] == 1.2
    assert [one.name for one in again.profiles] == ["guide_limit", "guide_backward"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("over = [-0.5, 0.5]\n", "", r"friction\.guide\.limit.*Add over = \[low, high\]"),
        ("over = [-0.5, 0.5]", "over = [0.5, -0.5]", "the lower place first"),
        ("speed = 0.1", "", r"friction\.guide\.static.*needs speed"),
        ("static = 1.0", "static = 0.5", "at least 1"),
        ("[3.0, 3.5, 4.0, 4.5, 5.0]", "[3.0]", "two or more along the joint"),
        ("viscous = 0.0\n", "", r"viscous_backward.*needs viscous"),
    ],
)
def test_friction_that_does_not_fit_together_is_refused(old, new, message):
    with pytest.raises(mbd.UserError, match=message):
        from_text(WORN.replace(old, new))
