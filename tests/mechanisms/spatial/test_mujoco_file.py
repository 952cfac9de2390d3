"""MJCF files, against MuJoCo itself: masses, accelerations, constraints; what is not taken over."""

import sys

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.mujoco_file import read_mujoco
from mbdnode.multibody import resolve_parameters
from tests.mechanisms.spatial.mujoco_oracle import Oracle

# Every kind of joint; several of them on the torso; references, springs, motors, meshless masses.
MACHINE = """
<mujoco model="walker">
  <compiler angle="degree" inertiagrouprange="0 2"/>
  <option gravity="0.3 -0.2 -9.7"/>
  <default><joint damping="0.4"/><default class="heavy"><geom density="3000"/></default></default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="torso" pos="0 0.2 1" euler="10 90 20">
      <joint name="rail" type="slide" axis="1 0 1" pos="0.1 0 0" ref="0.3" stiffness="30"
             springref="0.1"/>
      <joint name="lift" type="slide" axis="0 0 1"/>
      <joint name="pitch" type="hinge" axis="0 1 0.5" pos="0.1 0.2 0" ref="20" armature="0.2"/>
      <geom name="hull" type="capsule" size="0.1" fromto="0 0 0 0.5 0.1 0"/>
      <geom class="heavy" type="box" size="0.1 0.05 0.2" pos="0.1 0.2 0.3" euler="30 0 40"/>
      <body name="arm" pos="0.5 0.1 0">
        <joint name="shoulder" type="ball" pos="0.05 0 0" damping="0"/>
        <geom type="cylinder" size="0.04 0.3" pos="0 0 -0.3"/>
        <body name="sensor" pos="0 0 -0.6" euler="0 0 15">
          <geom type="sphere" size="0.05"/>
          <body name="hand">
            <joint name="hand_joint" axis="1 0 0" range="-90 90" armature="0.01"/>
            <geom type="sphere" size="0.06" pos="0 0.1 -0.1"/>
          </body>
        </body>
      </body>
    </body>
    <body name="bird" pos="3 3 3">
      <freejoint/>
      <inertial pos="0.1 0 0.02" mass="2" fullinertia="0.3 0.2 0.25 0.02 0.01 0.03"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="rail" joint="rail" gear="7"/>
    <motor joint="hand_joint" gear="2"/>
    <motor joint="pitch" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""
JOINTS = ["rail", "lift", "pitch", "shoulder", "hand_joint", "bird"]
NOT_TAKEN = (
    r"not taken over: 6 geoms that may touch, 1 limits of joints, 1 limits of controls, "
    r"1 shapes of the ground\. renamed: rail \(rail_force\)\.$"
)


def read(tmp_path, text, match="not taken over"):
    path = tmp_path / "machine.xml"
    path.write_text(text)
    with pytest.warns(UserWarning, match=match):
        return SpatialMechanism(read_mujoco(path))


def test_masses_and_accelerations_are_those_of_mujoco(tmp_path):
    ours = read(tmp_path, MACHINE, NOT_TAKEN)
    oracle = Oracle(mujoco.MjModel.from_xml_string(MACHINE), ours, JOINTS)
    oracle.model.actuator_ctrllimited[:] = False
    assert ours.input_names == ("rail_force", "hand_joint_torque", "pitch_torque")
    for seed in range(5):
        oracle.move(seed)
        matrix = oracle.matrix()
        v = matrix @ oracle.data.qvel
        state = mbd.State(jnp.asarray(oracle.coordinates()), jnp.asarray(v))
        mass, a = (
            mbd.mass_matrix(ours, state),
            mbd.accelerations(ours, state, inputs=oracle.data.ctrl),
        )
        theirs = oracle.mass_matrix()
        np.testing.assert_allclose(
            matrix.T @ mass @ matrix, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max()
        )
        expected = matrix @ oracle.data.qacc + oracle.changing()
        np.testing.assert_allclose(a, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


CLOSED = """
<mujoco>
  <compiler angle="radian"/>
  <option><flag gravity="disable"/></option>
  <worldbody>
    <body name="left">
      <joint name="a" axis="0 1 0" ref="0.2"/><geom size="0.1"/>
      <body name="bar" pos="1 0 0" euler="0 0.5 0">
        <joint name="b" type="ball" pos="0.1 0 0"/><geom size="0.1" pos="0.5 0 0"/>
        <site name="tip" pos="1 0 0.1" euler="0 0 0.6"/>
      </body>
    </body>
    <body name="right" pos="0 1 0">
      <joint name="c" axis="1 0 1" ref="-0.4"/><geom size="0.1"/>
      <body name="rod" pos="0.3 0 0"><joint name="d" type="slide" axis="1 0 0" ref="0.1"/>
        <geom size="0.1"/><site name="eye" pos="0.2 0.1 0"/></body>
    </body>
    <body name="loose" pos="2 2 2"><freejoint/><geom size="0.2"/></body>
  </worldbody>
  <equality>
    <connect name="pin" body1="bar" body2="rod" anchor="0.3 0.1 0.2"/>
    <weld name="plate" body1="loose" body2="right" anchor="0.1 0.2 0.3"/>
    <connect site1="tip" site2="eye"/>
    <weld site1="eye" site2="tip"/>
    <joint name="gear" joint1="a" joint2="c" polycoef="0.1 -0.5 0.3 0.2 0.1"/>
    <joint name="locked" joint1="d" polycoef="0.05 0 0 0 0"/>
    <weld body1="loose" active="false"/>
  </equality>
</mujoco>
"""


def test_equalities_bind_the_velocities_that_mujoco_binds(tmp_path):
    """At the reference configuration, where points and frames given in bodies coincide.

    Those of sites do not coincide there, so each of theirs is compared by its position residual.
    """
    ours = read(tmp_path, CLOSED, "6 geoms that may touch|1 equalities that are not active")
    model = mujoco.MjModel.from_xml_string(CLOSED)
    oracle = Oracle(model, ours, ["a", "b", "c", "d", "loose"])
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = oracle.data
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    theirs = data.efc_J.reshape(data.nefc, model.nv)
    mu, q = resolve_parameters(ours), jnp.asarray(oracle.coordinates())
    jacobian = jax.jit(jax.jacfwd(lambda q: ours.constraint(0.0, q, mu)))(q) @ oracle.matrix()
    residual = np.asarray(ours.constraint(0.0, q, mu))
    of_mujoco = {
        name: data.efc_id[: data.nefc] == model.equality(name).id
        for name in ("pin", "plate", "gear", "locked")
    }
    for name, rows in of_mujoco.items():
        own = np.array([label.split(" ")[0] == name for label in ours.constraint_names])
        together = np.concatenate([theirs[rows], jacobian[own]])
        rank = np.linalg.matrix_rank(theirs[rows], tol=1e-9)
        assert own.sum() == rows.sum() == rank
        assert np.linalg.matrix_rank(together, tol=1e-9) == rank
        if name in ("gear", "locked"):
            assert residual[own] == pytest.approx(data.efc_pos[: data.nefc][rows], abs=1e-15)
        else:
            assert residual[own] == pytest.approx(np.zeros(own.sum()), abs=1e-14)
    point = [label.startswith("connect3 ") for label in ours.constraint_names]
    gap = data.site("tip").xpos - data.site("eye").xpos
    assert np.linalg.norm(residual[point]) == pytest.approx(np.linalg.norm(gap), rel=1e-13)


def test_coupled_coordinates_follow_the_polynomial_from_the_references(tmp_path):
    gear = '<equality><joint joint1="a" joint2="c" polycoef="0.1 -0.5 0.3 0.2 0.1"/></equality>'
    ours = read(tmp_path, f"{CLOSED[: CLOSED.index('<equality>')]}{gear}</mujoco>")
    state = mbd.consistent_state(ours, {"c": 0.7})
    found = state.q[ours.coordinate_names.index("a")]
    expected = 0.2 + (0.7 + 0.4) ** np.arange(5) @ [0.1, -0.5, 0.3, 0.2, 0.1]
    assert found == pytest.approx(expected, abs=1e-12)


PENDULUM = """
<mujoco>
  <asset>{mesh}<texture name="wood" type="cube" file="wood.png"/>
    <material name="wood" texture="wood"/></asset>
  <worldbody>
    <body name="pole">
      <joint name="pole" axis="0 1 0" damping="0.1" stiffness="2" springref="30"
             frictionloss="0.05"/>
      {inertial}<geom type="{kind}" {size} material="wood" pos="0 0 -0.5"/>
    </body>
  </worldbody>
  {rest}
</mujoco>
"""
BALL = {"mesh": "", "inertial": "", "kind": "sphere", "size": 'size="0.1"', "rest": ""}


def test_what_has_no_counterpart_is_named_with_its_count(tmp_path):
    rest = """
    <tendon><fixed name="cord"><joint joint="pole" coef="1"/></fixed></tendon>
    <actuator><position joint="pole" kp="3"/><velocity joint="pole" kv="1"/>
      <motor tendon="cord"/><motor joint="pole" gear="4" forcerange="-1 1"/></actuator>
    <sensor><jointpos joint="pole"/></sensor>"""
    match = (
        "not taken over: 1 position actuators, 1 velocity actuators, 1 actuators of tendons, "
        "1 geoms that may touch, 1 limits of actuator forces, 1 tendons, 1 sensors. "
        r"renamed: pole \(pole_body\)\.$"
    )
    ours = read(tmp_path, PENDULUM.format(**{**BALL, "rest": rest}), match)
    assert ours.coordinate_names == ("pole",)
    assert ours.input_names == ("pole_torque",)
    values = {parameter.name: parameter.default for parameter in ours.parameters}
    assert values["pole_torque_gear"] == 4
    assert values["pole_friction_limit"] == 0.05
    assert values["pole_spring_damping"] == 0.1
    assert values["pole_spring_free"] == pytest.approx(np.pi / 6)


def test_the_first_keyframe_is_where_it_starts(tmp_path):
    key = '<keyframe><key name="home" qpos="0.7"/><key qpos="0.1"/></keyframe>'
    ours = read(tmp_path, PENDULUM.format(**{**BALL, "rest": key}))
    assert ours.reference == {"pole": 0.7}


CORNERS = "".join(f"v {x} {y} {z}\n" for x in (0, 2) for y in (0, 1) for z in (0, 3))
FACES = ("1 2 4", "1 4 3", "5 7 8", "5 8 6", "1 5 6", "1 6 2")
FACES += ("3 4 8", "3 8 7", "1 3 7", "1 7 5", "2 6 8", "2 8 4")
CUBE = CORNERS + "".join(f"f {face}\n" for face in FACES)
MESH = {
    "mesh": '<mesh name="cube" file="cube.obj" scale="0.1 0.2 0.1"/>',
    "kind": "mesh",
    "size": 'mesh="cube" euler="0 0 90" density="500"',
}


def test_a_mesh_gives_mass_and_is_drawn_where_its_file_has_it(tmp_path):
    """A box from 0 to 0.2 by 0.2 by 0.3 m, turned by 90 degrees and lowered by half a meter."""
    (tmp_path / "cube.obj").write_text(CUBE)
    path = tmp_path / "machine.xml"
    path.write_text(PENDULUM.format(**{**BALL, **MESH}))
    with pytest.warns(UserWarning, match="not taken over"):
        (body,) = read_mujoco(path).bodies
    assert body.mass == pytest.approx(500 * 0.2 * 0.2 * 0.3)
    assert body.center == pytest.approx((-0.1, 0.1, 0.15 - 0.5))
    (shape,) = body.shapes
    assert shape.type == "mesh"
    assert shape.size == pytest.approx((0.1, 0.2, 0.1))
    assert shape.frame.at == pytest.approx((0, 0, -0.5), abs=1e-12)
    assert shape.frame.rpy == pytest.approx((0, 0, np.pi / 2), abs=1e-12)
    assert shape.file == str(tmp_path / "cube.obj")


def test_a_mesh_that_is_not_there_matters_only_where_mass_follows_from_it(tmp_path):
    inertial = '<inertial pos="0 0 -1" mass="1" diaginertia="0.1 0.1 0.1"/>'
    text = PENDULUM.format(**{**BALL, **MESH, "inertial": inertial})
    ours = read(tmp_path, text, "1 meshes that are not there")
    assert resolve_parameters(ours)["pole_body_mass"] == 1
    path = tmp_path / "machine.xml"
    path.write_text(PENDULUM.format(**{**BALL, **MESH}))
    with pytest.raises(
        mbd.UserError, match=r"'cube.obj' is not there, and the mass of body 'pole'"
    ):
        read_mujoco(path)


def test_what_mujoco_does_not_compile_is_told_with_its_line(tmp_path):
    path = tmp_path / "machine.xml"
    path.write_text(
        "<mujoco>\n<worldbody>\n<body><joint tipe='hinge'/></body></worldbody></mujoco>"
    )
    with pytest.raises(mbd.UserError, match=r"does not compile it: .*tipe.*line 3"):
        mbd.read_mechanism(path)
    path.write_text("<mujoco>\n<worldbody>\n<body></worldbody></mujoco>")
    with pytest.raises(mbd.UserError, match=r"is not XML: mismatched tag: line 3"):
        mbd.read_mechanism(path)
    path.write_text("<mujoco/>")
    with pytest.raises(mbd.UserError, match="floating is for URDF"):
        mbd.read_mechanism(path, floating=True)
    with pytest.raises(mbd.UserError, match="There is no file"):
        mbd.read_mechanism(tmp_path / "other.xml")


def test_without_mujoco_the_message_says_how_to_install_it(tmp_path, monkeypatch):
    path = tmp_path / "machine.xml"
    path.write_text("<mujoco/>")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(mbd.UserError, match=r"pip install 'mbdnode\[robots\]'"):
        mbd.read_mechanism(path)
