"""Mechanisms from files in motion: against SciPy on minimal equations, and closed forms."""

from pathlib import Path

import jax
import jax.numpy as jnp
import linkage_oracles
import numpy as np
import pytest
import scipy.integrate
from problems import solve

import mbdnode as mbd
from mbdnode.mechanisms import SliderCrank, from_text, read_mechanism
from mbdnode.multibody import accelerations, choose_partition, position_residual, resolve_parameters

EXAMPLES = Path(__file__).parents[3] / "examples" / "mechanisms"


@pytest.mark.slow
def test_a_chain_of_five_links_moves_as_its_minimal_equations_say():
    mechanism = read_mechanism(EXAMPLES / "five_link_chain.toml")
    names = ("one", "two", "three", "four", "five")
    angles = np.radians([-30.0, -50.0, -80.0, -100.0, -120.0])
    start = {f"{name}_angle": angle for name, angle in zip(names, angles, strict=True)}
    t, inputs = np.linspace(0.0, 2.0, 2001), np.tile([0.4, 0.3], (2000, 1))
    run = mbd.simulate(mechanism, t, start, inputs=inputs)
    assert run.status.ok
    assert mechanism.input_names == ("pull", "shoulder")
    right, poses = linkage_oracles.chain(5, 0.3, 0.5, 0.00375, 9.81, torque=0.3, pull=0.4)
    expected = solve(right, [*angles, *np.zeros(5)], t)
    np.testing.assert_allclose(run.q, poses(expected), rtol=0, atol=1e-6)
    found = np.stack([run[f"{name}_angle_dot"] for name in names], axis=1)
    np.testing.assert_allclose(found, expected[:, 5:], rtol=0, atol=1e-5)
    assert float(run.position_residual.max()) <= 1e-14


def test_a_crank_rocker_accelerates_as_its_minimal_equation_says():
    mechanism = read_mechanism(EXAMPLES / "four_bar.toml")
    bars = linkage_oracles.FourBar(1.0, (0.4, 0.9, 0.8), (0.4, 0.9, 0.8), 9.81)
    cranks, rates = np.linspace(0.0, 2 * np.pi, 25), np.linspace(-9.0, 9.0, 25)
    q = np.stack([bars.pose(crank) for crank in cranks])
    v = np.stack([bars.pose_slope(crank) * rate for crank, rate in zip(cranks, rates, strict=True)])
    mu, t, u = resolve_parameters(mechanism), jnp.zeros(()), jnp.zeros(1)
    split = choose_partition(mechanism, t, jnp.asarray(q[0]), mu, ("crank_angle",)).velocity
    one = lambda q, v: accelerations(mechanism, split, t, q, v, u, mu)[0]  # noqa: E731
    found = jax.jit(jax.vmap(one))(jnp.asarray(q), jnp.asarray(v))[:, 2]
    expected = [bars.right(0.0, [c, r])[1] for c, r in zip(cranks, rates, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


PARALLELOGRAM = """
gravity = [0.0, -9.81]
bodies.crank = { mass = 0.4, inertia = 0.01, center = [0.27, 0.42], angle = 1.0 }
bodies.coupler = { mass = 0.9, inertia = 0.1, center = [1.54, 0.84] }
bodies.rocker = { mass = 0.8, inertia = 0.05, center = [2.27, 0.42], angle = 1.0 }
torques.T.bodies = ["ground", "crank"]
[joints]
a = { type = "revolute", bodies = ["ground", "crank"], points = [[0, 0], [-0.5, 0]] }
b = { type = "revolute", bodies = ["crank", "coupler"], points = [[0.5, 0], [-1.0, 0]] }
c = { type = "revolute", bodies = ["coupler", "rocker"], points = [[1.0, 0], [0.5, 0]] }
d = { type = "revolute", bodies = ["ground", "rocker"], points = [[2.0, 0], [-0.5, 0]] }
"""


@pytest.fixture(scope="module")
def parallelogram():
    """The mechanism, and the inertia that its crank feels, which does not depend on the angle."""
    return from_text(PARALLELOGRAM), (0.01 + 0.4 / 4) + 0.9 + (0.05 + 0.8 / 4)


@pytest.mark.slow
def test_a_four_bar_linkage_moves_as_its_minimal_equation_says(parallelogram):
    mechanism, inertia = parallelogram
    t = np.linspace(0.0, 2.0, 801)
    run = mbd.simulate(mechanism, t, {"crank_angle": 1.0, "crank_angle_dot": 8.9})
    assert run.status.ok
    # The coupler is lifted as the crank's end is, the other two by their half lengths.
    lifted = 9.81 * (0.4 / 2 + 0.9 + 0.8 / 2) / inertia
    expected = solve(lambda t, y: [y[1], -lifted * np.cos(y[0])], [1.0, 8.9], t)
    angle = expected[:, 0]
    assert np.ptp(angle) > 6 * np.pi  # through at least six flat positions
    c, s, zero = np.cos(angle), np.sin(angle), 0 * angle
    poses = [c / 2, s / 2, angle, 1 + c, s, zero, 2 + c / 2, s / 2, angle]
    np.testing.assert_allclose(run.q, np.stack(poses, axis=1), rtol=0, atol=1e-6)
    energy = np.asarray(mbd.energy(mechanism, run))
    assert np.ptp(energy) <= 1e-7 * np.max(np.abs(energy))
    assert float(run.position_residual.max()) <= 1e-14


def test_a_parallelogram_keeps_to_its_branch_through_the_change_points(parallelogram):
    # Without weight the coupler only translates, and a constant torque gives a constant
    # acceleration.
    (mechanism, inertia), weightless = parallelogram, {"gravity_y": 0.0}
    t, torque = np.linspace(0.0, 6.0, 801), 0.5
    start = mbd.consistent_state(
        mechanism, {"crank_angle": 1.15, "crank_angle_dot": 2.0}, parameters=weightless
    )
    inputs = np.full(len(t) - 1, torque)
    run = mbd.simulate(mechanism, t, start, inputs=inputs, parameters=weightless)
    assert run.status.ok
    angle = 1.15 + 2.0 * t + torque / inertia * t**2 / 2
    assert angle[-1] > 6 * np.pi  # through at least six flat positions
    # Near a flat position round-off is divided by the cube of the sine at the nearest stage of a
    # step, as in the catalog's parallelogram; here that is no less than 0.003.
    for name, expected in (("crank", angle), ("rocker", angle), ("coupler", 0 * angle)):
        np.testing.assert_allclose(run[f"{name}_angle"], expected, rtol=0, atol=1e-6)
    assert float(run.position_residual.max()) <= 1e-14


def test_the_slider_crank_of_the_file_is_that_of_the_catalog():
    ours, theirs = read_mechanism(EXAMPLES / "slider_crank.toml"), SliderCrank()
    assert ours.coordinates == theirs.coordinates
    assert ours.inputs == theirs.inputs
    state = mbd.consistent_state(theirs, {"theta1": 0.8, "theta1_dot": -3.0})
    t, u = jnp.zeros(()), jnp.array([5.0, -7.0])

    def found(mechanism):
        mu = resolve_parameters(mechanism)
        split = choose_partition(mechanism, t, state.q, mu).velocity
        solve = jax.jit(lambda: accelerations(mechanism, split, t, state.q, state.v, u, mu)[0])
        away = state.q + jnp.arange(9.0) / 10
        return solve(), position_residual(mechanism, t, away, mu)

    (a, residual), (expected, printed) = found(ours), found(theirs)
    np.testing.assert_allclose(a, expected, rtol=1e-13, atol=1e-13)
    # The same rows in the same order; the paper writes some of them with the other sign.
    np.testing.assert_allclose(np.abs(residual), np.abs(printed), atol=1e-15)


def test_a_wheel_rolls_down_an_incline_with_the_acceleration_of_the_textbook():
    mechanism = from_text("""
        gravity = [0.0, -9.81]
        [bodies.wheel]
        mass = 2.0
        inertia = 0.03
        center = [0.2, 0.3]
        [joints.road]
        type = "rolling"
        bodies = ["ground", "wheel"]
        points = [[0.0, 0.0], [0.0, 0.0]]
        direction = "-25 deg"
        radius = 0.3
    """)
    state = mbd.consistent_state(mechanism, {"wheel_x": 0.5, "wheel_angle_dot": -2.0})
    mu, t, u = resolve_parameters(mechanism), jnp.zeros(()), jnp.zeros(0)
    split = choose_partition(mechanism, t, state.q, mu).velocity
    solve = jax.jit(lambda: accelerations(mechanism, split, t, state.q, state.v, u, mu))
    a, multipliers = solve()
    slope = np.radians(25)
    along = 9.81 * np.sin(slope) / (1 + 0.03 / (2.0 * 0.3**2))
    expected = [along * np.cos(slope), -along * np.sin(slope), -along / 0.3]
    np.testing.assert_allclose(a, expected, rtol=1e-13)
    # It stands off the line by its radius, and rolls as fast as it turns.
    downhill, upward = np.array([[np.cos(slope), -np.sin(slope)], [np.sin(slope), np.cos(slope)]])
    assert upward @ np.asarray(state.q)[:2] == pytest.approx(0.3, abs=1e-15)
    assert downhill @ np.asarray(state.v)[:2] == pytest.approx(0.6, abs=1e-14)
    # The line carries the part of the weight across it, and friction slows the wheel.
    carried = [-2.0 * 9.81 * np.cos(slope), 2.0 * (9.81 * np.sin(slope) - along)]
    np.testing.assert_allclose(multipliers, carried, rtol=1e-12)


def _shortening(run, side):
    """How fast an absorber becomes shorter: from the chassis to the lower arm beside it."""
    outward = -0.36 if side == "left" else 0.36
    ends, rates = [], []
    for body, (x, y) in (("chassis", (outward, 0.05)), (f"{side}_lower", (0.1, 0.0))):
        names = [f"{body}_{what}" for what in ("x", "y", "angle")]
        at_x, at_y, angle = (np.asarray(run[name]) for name in names)
        x_dot, y_dot, turn = (np.asarray(run[f"{name}_dot"]) for name in names)
        c, s = np.cos(angle), np.sin(angle)
        ends.append(np.stack([at_x + c * x - s * y, at_y + s * x + c * y]))
        rates.append(np.stack([x_dot - turn * (s * x + c * y), y_dot + turn * (c * x - s * y)]))
    between = ends[1] - ends[0]
    return -np.sum(between * (rates[1] - rates[0]), axis=0) / np.linalg.norm(between, axis=0)


@pytest.mark.slow
def test_a_double_wishbone_without_oil_keeps_energy_and_constraints():
    axle = read_mechanism(EXAMPLES / "double_wishbone.toml")
    dry = {"left_absorber_damping": 0.0, "right_absorber_damping": 0.0}
    t, start = np.linspace(0.0, 0.5, 501), {"chassis_angle": 0.03, "chassis_y": 0.53}
    run = mbd.simulate(axle, t, start, parameters=dry)
    assert run.status.ok
    assert len(run.kept.t) == 501
    energy = np.asarray(mbd.energy(axle, run, dry))
    # Against what springs and weight exchange, not against their constant part.
    height = 500 * 9.81 * float(np.ptp(run["chassis_y"]))
    assert height > 1.0
    assert np.ptp(energy) <= 1e-6 * height
    assert float(run.position_residual.max()) <= 1e-14
    assert float(run.velocity_residual.max()) <= 1e-13
    # The absorbers take out what their forces work, and nothing is compiled again for that.
    damped = mbd.simulate(axle, t, start)
    left = np.asarray(mbd.energy(axle, damped))
    power = sum(3000.0 * _shortening(damped, side) ** 2 for side in ("left", "right"))
    taken = scipy.integrate.cumulative_simpson(power, x=t, initial=0)
    assert taken[-1] > 0.05 * height
    # Simpson's rule on a motion of 15 Hz in steps of 1 ms.
    np.testing.assert_allclose(left[0] - left, taken, rtol=0, atol=1e-4 * height)
    assert np.all(np.diff(left) <= 1e-6 * height)
