"""Double pendulum and slider-crank against another engine, to the accuracy that it gives itself.

MuJoCo runs each model twice, at a step and at half of it. The difference says how good it is, and
ours has to be within a small multiple of that.
"""

import mujoco
import numpy as np

import mbdnode as mbd
from mbdnode.reproduction.cases import get_case

# A point mass: MuJoCo asks for some inertia, and this much changes nothing above 1e-12.
BOB = '<inertial pos="0 0 -1" mass="1" diaginertia="1e-12 1e-12 1e-12"/>'
DOUBLE_PENDULUM = f"""
<mujoco>
  <option integrator="RK4" timestep="{{step}}" gravity="0 0 -9.81"/>
  <worldbody>
    <body><joint type="hinge" axis="0 -1 0"/>{BOB}
      <body pos="0 0 -1"><joint type="hinge" axis="0 -1 0"/>{BOB}</body>
    </body>
  </worldbody>
</mujoco>"""

# The loop is closed by a soft constraint as stiff as the step allows (its time constant is two
# steps); rod and slider meet at qpos = 0 because the slider's body begins at x = 6.
SLIDER_CRANK = """
<mujoco>
  <option integrator="RK4" timestep="{step}" gravity="0 0 0" iterations="200" tolerance="1e-14"/>
  <worldbody>
    <body>
      <joint name="crank" type="hinge" axis="0 0 1"/>
      <inertial pos="1 0 0" mass="3" diaginertia="4 4 4"/>
      <body name="rod" pos="2 0 0">
        <joint type="hinge" axis="0 0 1"/>
        <inertial pos="2 0 0" mass="6" diaginertia="32 32 32"/>
      </body>
    </body>
    <body name="slider" pos="6 0 0">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="slider" body2="rod" anchor="0 0 0" solref="{twice} 1" solimp=".9999 .9999"/>
  </equality>
  <actuator><motor joint="slide"/><motor joint="crank"/></actuator>
</mujoco>"""


def run_mujoco(model, dt_s, substeps, q, v, steps, controls=None):
    """Rows `(qpos, qvel)` at every `dt_s`."""
    step = dt_s / substeps
    model = mujoco.MjModel.from_xml_string(model.format(step=step, twice=2 * step))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    rows = [np.concatenate([data.qpos, data.qvel])]
    for number in range(steps):
        if controls is not None:
            data.ctrl[:] = controls[number]
        mujoco.mj_step(model, data, substeps)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    return np.stack(rows)


def test_the_double_pendulum_moves_as_in_mujoco():
    case = get_case("double-pendulum")
    ours = mbd.simulate(case.mechanism, case.times(), case.initial, integrator="dopri8")
    first, second = np.asarray(ours.q[0])

    def theirs(substeps):
        found = run_mujoco(
            DOUBLE_PENDULUM, case.dt_s, substeps, [first, second - first], 0.0, case.steps
        )
        # MuJoCo's second angle is relative to the first rod.
        found[:, 1] += found[:, 0]
        found[:, 3] += found[:, 2]
        return found

    coarse, fine = theirs(8), theirs(16)
    own_accuracy = np.max(np.abs(coarse - fine))
    assert own_accuracy < 1e-7
    # At order four the finer run is off by a fifteenth of the difference.
    assert np.max(np.abs(np.concatenate([ours.q, ours.v], axis=1) - fine)) <= own_accuracy


def test_the_slider_crank_moves_as_in_mujoco():
    case, steps = get_case("slider-crank"), 1000
    inputs = case.make_inputs(steps)
    ours = mbd.simulate(
        case.mechanism, case.times(steps), case.initial, inputs=inputs, integrator="dopri8"
    )
    names = ("theta1", "theta2", "x3", "theta1_dot", "theta2_dot", "x3_dot")
    expected = np.stack([np.asarray(ours[name]) for name in names], axis=1)
    # The rod's angle is relative to the crank, and the slide counts from x = 6.
    change = np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]])
    start = change @ expected[0, :3] - [0, 0, 6.0]

    def theirs(substeps):
        found = run_mujoco(
            SLIDER_CRANK, case.dt_s, substeps, start, change @ expected[0, 3:], steps, inputs
        )
        found[:, 1] += found[:, 0]
        found[:, 4] += found[:, 3]
        found[:, 2] += 6.0
        return found

    coarse, fine = theirs(16), theirs(32)
    own_accuracy = np.max(np.abs(coarse - fine))
    assert own_accuracy < 1e-5
    # The stiffness of the loop follows the step, at order one: the finer run is off by as much as
    # the two differ.
    assert np.max(np.abs(expected - fine)) <= 2 * own_accuracy
