"""URDF files, against MuJoCo's reading of the same file; what is wrong is told with its line."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.urdf_file import read_urdf
from tests.mechanisms.spatial.mujoco_oracle import Oracle

INERTIAL = """
<inertial>
  <origin xyz="{xyz}" rpy="{rpy}"/>
  <mass value="{mass}"/>
  <inertia ixx="0.3" iyy="0.25" izz="0.2" ixy="0.02" ixz="-0.01" iyz="0.03"/>
</inertial>"""
# A direction of any length, a wrist without mass of its own, a sensor that is fixed, a mesh that
# is not there.
ARM = f"""<?xml version="1.0"?>
<robot name="arm">
  <link name="world"/>
  <link name="base">{INERTIAL.format(xyz="0 0 0.1", rpy="0 0 0", mass=4)}</link>
  <link name="upper">
    {INERTIAL.format(xyz="0.1 0 0.2", rpy="0.3 -0.2 0.5", mass=2)}
    <visual><geometry><mesh filename="package://arm/upper.dae"/></geometry></visual>
    <collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
  </link>
  <link name="sensor">{INERTIAL.format(xyz="0 0.1 0", rpy="1 0 0", mass=0.5)}</link>
  <link name="wrist">
    {INERTIAL.format(xyz="0 0 0", rpy="0 0 1", mass=1)}
    <visual>
      <origin xyz="0 0 0.1" rpy="0 1.5707963267948966 0"/>
      <geometry><cylinder radius="0.02" length="0.3"/></geometry>
    </visual>
  </link>
  <link name="finger">{INERTIAL.format(xyz="0.02 0 0", rpy="0 0.4 0", mass=0.3)}</link>
  <joint name="mount" type="BASE"><parent link="world"/><child link="base"/></joint>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0.1 0.3" rpy="0.2 1.5707963267948966 -0.7"/>
    <axis xyz="0 3 4"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/>
    <dynamics damping="0.7"/>
  </joint>
  <joint name="tilt" type="fixed">
    <parent link="upper"/><child link="sensor"/><origin xyz="0 0 0.1" rpy="0 0.4 0"/>
  </joint>
  <joint name="spin" type="continuous">
    <parent link="upper"/><child link="wrist"/><origin xyz="0.3 0 0.1" rpy="1 0 0"/>
  </joint>
  <joint name="grip" type="prismatic">
    <parent link="wrist"/><child link="finger"/><origin xyz="0 0.05 0"/><axis xyz="0 0 -1"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/>
  </joint>
</robot>
"""
MOVING = ["shoulder", "spin", "grip"]


def written(tmp_path, text):
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("base", "names"), [("fixed", MOVING), ("floating", ["mount", *MOVING])])
def test_masses_and_accelerations_are_those_of_mujoco(tmp_path, base, names):
    text = ARM.replace("BASE", base)
    with pytest.warns(UserWarning, match="1 meshes that are not there, 2 limits of joints, 1 coll"):
        ours = SpatialMechanism(read_urdf(written(tmp_path, text)))
    drawn = text[: text.index("<visual>")] + text[text.index("</visual>") + len("</visual>") :]
    oracle = Oracle(mujoco.MjModel.from_xml_string(drawn), ours, names)
    assert ours.input_names == ("shoulder_torque", "spin_torque", "grip_force")
    for seed in range(5):
        oracle.move(seed)
        matrix = oracle.matrix()
        state = mbd.State(jnp.asarray(oracle.coordinates()), jnp.asarray(matrix @ oracle.data.qvel))
        theirs = oracle.mass_matrix()
        found = matrix.T @ mbd.mass_matrix(ours, state) @ matrix
        np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max())
        expected = matrix @ oracle.data.qacc + oracle.changing()
        found = mbd.accelerations(ours, state)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_a_floating_base_is_the_same_as_a_joint_of_that_type(tmp_path):
    with pytest.warns(UserWarning, match="not taken over"):
        free = read_urdf(written(tmp_path, ARM.replace("BASE", "floating")))
    with pytest.warns(UserWarning, match="not taken over"):
        asked = read_urdf(written(tmp_path, ARM.replace("BASE", "fixed")), floating=True)
    state = np.random.default_rng(0).normal(size=(2, 10))
    q, v = (jnp.asarray(x.copy()) for x in state)
    q = q.at[3:7].divide(jnp.linalg.norm(q[3:7]))
    v = v.at[3:7].add(-(q[3:7] @ v[3:7]) * q[3:7])
    first, second = (
        mbd.accelerations(SpatialMechanism(one), mbd.State(q, v)) for one in (free, asked)
    )
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-11 * np.abs(first).max())


def test_shapes_are_read_with_their_places(tmp_path):
    with pytest.warns(UserWarning, match="not taken over"):
        found = read_urdf(written(tmp_path, ARM.replace("BASE", "fixed")))
    bodies = {body.name: body for body in found.bodies}
    (mesh,) = bodies["upper"].shapes
    assert (mesh.type, mesh.file, mesh.size) == ("mesh", "package://arm/upper.dae", (1, 1, 1))
    (cylinder,) = bodies["wrist"].shapes
    assert cylinder.size == (0.02, 0.3)
    assert cylinder.frame.at == (0, 0, 0.1)
    assert cylinder.frame.rpy == pytest.approx((0, np.pi / 2, 0))


def test_a_joint_that_mimics_another_follows_it(tmp_path):
    mimic = '<mimic joint="spin" multiplier="-0.5" offset="0.1"/></joint>'
    head, _, tail = ARM.replace("BASE", "fixed").rpartition("</joint>")
    with pytest.warns(UserWarning, match="not taken over"):
        ours = mbd.read_mechanism(written(tmp_path, head + mimic + tail))
    assert ours.input_names == ("shoulder_torque", "spin_torque")
    state = mbd.consistent_state(ours, {"shoulder": 0.3, "spin": 0.8, "spin_dot": 2.0})
    place = ours.coordinate_names.index("grip")
    assert state.q[place] == pytest.approx(0.1 - 0.5 * 0.8, abs=1e-14)
    assert state.v[place] == pytest.approx(-1.0, abs=1e-14)


def test_dynamics_of_a_joint_are_its_damper_and_its_friction(tmp_path):
    text = ARM.replace("BASE", "fixed").replace('damping="0.7"', 'damping="0.7" friction="0.2"')
    with pytest.warns(UserWarning, match="not taken over"):
        found = read_urdf(written(tmp_path, text))
    (spring,), (friction,) = found.springs, found.friction
    assert (spring.coordinate, spring.damping, spring.stiffness) == ("shoulder", 0.7, 0.0)
    assert (friction.joint, friction.limit) == ("shoulder", 0.2)


def test_names_that_columns_cannot_have_are_changed_and_told(tmp_path):
    text = ARM.replace("BASE", "fixed").replace("shoulder", "left/shoulder.1")
    renamed = r"renamed: left/shoulder.1 \(left_shoulder_1\), spin \(spin_link\)"
    with pytest.warns(UserWarning, match=renamed):
        found = read_urdf(written(tmp_path, text.replace("wrist", "spin")))
    assert {"left_shoulder_1", "spin"} < {joint.name for joint in found.joints}
    assert "spin_link" in {body.name for body in found.bodies}


def test_an_inertia_that_no_body_has_is_told_and_kept(tmp_path):
    text = ARM.replace("BASE", "fixed").replace('ixx="0.3"', 'ixx="3"', 1)
    with pytest.warns(UserWarning, match=r"inertias that no body has: base\.$"):
        found = read_urdf(written(tmp_path, text))
    assert next(body for body in found.bodies if body.name == "base").inertia[0] == 3


@pytest.mark.parametrize(
    ("old", "new", "at", "message"),
    [
        (
            'link="upper"/><child',
            'link="uper"/><child',
            "",
            "Unknown link 'uper'. Did you mean 'upper'",
        ),
        ('type="continuous"', 'type="hinge"', "", "Unknown type of a joint 'hinge'"),
        (
            'link="finger"/>',
            'link="wrist"/>',
            '<joint name="grip"',
            "joint 'grip' leads to link 'wrist'",
        ),
        (
            '<joint name="tilt"',
            '<joint name="shoulder"',
            '<joint name="shoulder" type="fixed"',
            "there is a joint 'shoulder' on line",
        ),
        ('mass value="2"', 'mass value="two"', "", "value of <mass> is 'two'; it must be a finite"),
        ('mass value="2"', 'mass value="-2"', "", "the mass of 'upper' is -2; it is at least 0"),
        ('axis xyz="0 3 4"', 'axis xyz="0 0 0"', "", "the axis of joint 'shoulder' is zero"),
        ('axis xyz="0 3 4"', 'axis xyz="0 3"', "", "xyz of <axis> is '0 3'; it must be 3 finite"),
        (
            'link="world"/><c',
            'link="finger"/><c',
            '<link name="base"',
            "the parents of link 'base' lead",
        ),
        ('<parent link="world"/>', "", '<joint name="mount"', "<joint> has no <parent>"),
        (
            '<link name="world"/>',
            '<link name="world"/><link name="b"/>',
            "",
            "no joint leads to 'b', nor",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, at, message):
    text = ARM.replace("BASE", "fixed")
    assert old in text
    wrong = text.replace(old, new, 1)
    line = wrong[: wrong.index(at or new)].count("\n") + 1
    with pytest.raises(mbd.UserError, match=rf"arm.urdf, line {line}: {message}"):
        read_urdf(written(tmp_path, wrong))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot name='r'>", "is not XML: no element found: line 1"),
        ("<sdf/>", "line 1: <sdf> is no robot"),
        ("<robot name='r'/>", "line 1: it has no links"),
    ],
)
def test_what_is_no_robot_is_refused(tmp_path, text, message):
    with pytest.raises(mbd.UserError, match=message):
        read_urdf(written(tmp_path, text))


def test_a_file_with_twenty_thousand_links_is_refused(tmp_path):
    links = "".join(f'<link name="l{k}"/>\n' for k in range(20_000))
    with pytest.raises(mbd.UserError, match="has 20,000 bodies; a mechanism has at most 1,000"):
        read_urdf(written(tmp_path, f"<robot name='r'>{links}</robot>"))
