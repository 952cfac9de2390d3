"""Joints and drives against their geometry, written out by hand; what is redundant, by name."""

import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.errors import UserError
from mbdnode.mechanisms import from_text
from mbdnode.mechanisms.planar import analyze
from mbdnode.multibody import choose_partition, position_residual, resolve_parameters

BODIES = """
[bodies.a]
center = [0.5, -0.2]
angle = 0.3
[bodies.b]
center = [1.4, 0.6]
angle = -0.8
"""
POSE_A, POSE_B = (0.5, -0.2, 0.3), (1.4, 0.6, -0.8)
POINT_A, POINT_B = (0.2, -0.4), (-0.3, 0.7)


def two_bodies(kind, rest=""):
    points = f"points = [{list(POINT_A)}, {list(POINT_B)}]"
    return from_text(
        f'{BODIES}\n[joints.j]\ntype = "{kind}"\nbodies = ["a", "b"]\n{points}\n{rest}'
    )


def residual(mechanism, q, t=0.0):
    mu = resolve_parameters(mechanism)
    return np.asarray(position_residual(mechanism, jnp.asarray(t), jnp.asarray(q), mu))


def complex_place(pose, point):
    """A point of a body, in the complex plane."""
    return complex(*pose[:2]) + np.exp(1j * pose[2]) * complex(*point)


@pytest.fixture
def apart():
    """From the joint's point of one body to that of the other."""
    return complex_place(POSE_B, POINT_B) - complex_place(POSE_A, POINT_A)


Q = np.array([*POSE_A, *POSE_B])
TURN = -1.1


def test_a_revolute_joint_joins_two_points(apart):
    found = residual(two_bodies("revolute"), Q)
    np.testing.assert_allclose(found, [apart.real, apart.imag], atol=1e-15)


def test_a_fixed_joint_also_holds_the_angle(apart):
    found = residual(two_bodies("fixed", "angle = 0.25"), Q)
    np.testing.assert_allclose(found, [apart.real, apart.imag, TURN - 0.25], atol=1e-15)


def test_a_prismatic_joint_leaves_the_motion_along_its_axis(apart):
    found = residual(two_bodies("prismatic", 'direction = "40 deg"\nangle = -1.0'), Q)
    seen = apart * np.exp(-1j * (0.3 + np.radians(40)))
    np.testing.assert_allclose(found, [seen.imag, TURN + 1.0], atol=1e-15)


def test_a_distance_joint_keeps_points_apart_by_its_length(apart):
    mechanism = two_bodies("distance", "length = 0.7")
    found = residual(mechanism, Q)
    np.testing.assert_allclose(found, [(abs(apart) ** 2 - 0.49) / 1.4], atol=1e-15)
    assert [p.name for p in mechanism.parameters] == ["j_length"]


def test_a_wheel_turns_by_what_it_rolls(apart):
    mechanism = two_bodies("rolling", "radius = 0.3\ndirection = 0.2")
    # In the pose of the file nothing is rolled yet.
    seen = apart * np.exp(-1j * 0.5)
    np.testing.assert_allclose(residual(mechanism, Q), [seen.imag - 0.3, 0.0], atol=1e-15)
    # Half a turn clockwise about the wheel's center carries it half a circumference along.
    ahead = 0.3 * np.pi * np.exp(1j * 0.5)
    hub = complex_place(POSE_B, POINT_B) + ahead
    angle = POSE_B[2] - np.pi
    center = hub - np.exp(1j * angle) * complex(*POINT_B)
    rolled = np.array([*POSE_A, center.real, center.imag, angle])
    np.testing.assert_allclose(residual(mechanism, rolled), [seen.imag - 0.3, 0.0], atol=1e-14)


@pytest.mark.parametrize(
    ("motion", "value"),
    [
        ('motion = "rate"\nrate = 2.0\nstart = "90 deg"', lambda t: np.pi / 2 + 2 * t),
        (
            'motion = "sine"\namplitude = 0.3\nfrequency = 1.5\nphase = "30 deg"\noffset = 0.1',
            lambda t: 0.1 + 0.3 * np.sin(3 * np.pi * t + np.pi / 6),
        ),
        (
            'motion = "polynomial"\ncoefficients = [1.0, -2.0, 0.5, 0.25]',
            lambda t: 1 - 2 * t + 0.5 * t**2 + 0.25 * t**3,
        ),
    ],
)
def test_a_drive_prescribes_the_angle_of_its_joint(motion, value):
    mechanism = two_bodies("revolute", f'[drives.d]\njoint = "j"\n{motion}')
    assert mechanism.constraint_names == ("j (x)", "j (y)", "d (drive)")
    for t in (0.0, 0.7):
        assert residual(mechanism, Q, t)[2] == pytest.approx(TURN - value(t), abs=1e-14)


def test_a_drive_prescribes_the_displacement_of_a_slider(apart):
    drive = '[drives.d]\njoint = "j"\nmotion = "rate"\nrate = 0.4\nstart = 0.1'
    mechanism = two_bodies("prismatic", f"direction = 0.5\n{drive}")
    along = (apart * np.exp(-1j * 0.8)).real
    assert residual(mechanism, Q, 2.0)[2] == pytest.approx(along - 0.9, abs=1e-14)


# Three parallel bars of equal length carry a table: one of them is not needed.
TABLE = """
[bodies.table]
center = [1.0, 1.0]
[bodies.left]
center = [0.0, 0.5]
angle = "90 deg"
[bodies.middle]
center = [1.0, 0.5]
angle = "90 deg"
[bodies.right]
center = [2.0, 0.5]
angle = "90 deg"
""" + "".join(
    f'[joints.{name}_{end}]\ntype = "revolute"\nbodies = ["{body}", "{name}"]\n'
    f"points = [[{x}, 0.0], [{at}, 0.0]]\n"
    for name, place in (("left", 0.0), ("middle", 1.0), ("right", 2.0))
    for end, body, x, at in (("foot", "ground", place, -0.5), ("top", "table", place - 1, 0.5))
)


def test_a_redundant_constraint_is_found_and_named():
    table = from_text(TABLE)
    found = analyze(table)
    assert found.degrees_of_freedom == 1
    assert len(found.constraints) == 12
    (redundancy,) = found.redundant
    # All three bars say the same of the table's angle; which is left out is a matter of pivots.
    bars = {name.split("_")[0] for name in (redundancy.constraint, *redundancy.repeats)}
    assert bars == {"left", "middle", "right"}
    assert redundancy.constraint not in redundancy.repeats
    assert redundancy.constraint in found.constraints
    # It is refused unless the file allows it.
    with pytest.raises(ValueError, match="rank 11"):
        choose_partition(table, jnp.zeros(()), found.state.q, {})
    assert from_text("allow_redundant = true\n" + TABLE).allow_redundant


def test_without_the_third_bar_nothing_is_redundant():
    two = TABLE[: TABLE.index("[bodies.middle]")] + TABLE[TABLE.index("[bodies.right]") :]
    start, end = two.index("[joints.middle_foot]"), two.index("[joints.right_foot]")
    found = analyze(from_text(two[:start] + two[end:]))
    assert found.degrees_of_freedom == 1
    assert found.redundant == ()


def test_a_welded_and_pinned_body_has_no_freedom():
    weld = '[joints.weld]\ntype = "fixed"\nbodies = ["ground", "a"]\npoints = [[1, 2], [0, 0]]\n'
    found = analyze(from_text(f"[bodies.a]\ncenter = [0.9, 2.1]\n{weld}angle = '90 deg'\n"))
    assert found.degrees_of_freedom == 0
    assert found.independent == ()
    np.testing.assert_allclose(found.state.q, [1.0, 2.0, np.pi / 2], atol=1e-15)


def test_a_mechanism_that_cannot_be_assembled_names_its_joint():
    text = """
    [bodies.link]
    center = [0.5, 0.0]
    [joints.left]
    type = "revolute"
    bodies = ["ground", "link"]
    points = [[0.0, 0.0], [-0.5, 0.0]]
    [joints.right]
    type = "revolute"
    bodies = ["ground", "link"]
    points = [[0.0, 9.0], [0.5, 0.0]]
    """
    with pytest.raises(
        UserError, match=r"constraint of the joint or drive (left|right) \(y\).*points"
    ):
        analyze(from_text(text))
