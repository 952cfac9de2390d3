"""A model with hard constraints keeps them whatever its network says."""

import jax.numpy as jnp
import numpy as np
import pytest
from problems import slider_crank_state
from toys import TwiceHeldPendulumAllowed

from mbdnode.mechanisms import (
    CartPoleCartesian,
    DoublePendulumCartesian,
    FourBar,
    KnifeEdgeSleigh,
    RollingDisk,
    SinglePendulumCartesian,
    SliderCrank,
)
from mbdnode.models import MBDNODE
from mbdnode.multibody import consistent_state
from mbdnode.recipes import TrainingConfig
from mbdnode.simulation import simulate
from mbdnode.training import fit
from mbdnode.trajectory import Dataset, State

TIMES = np.arange(201) * 0.01
INPUTS = np.random.default_rng(0).uniform(-10, 10, (200, 2))


@pytest.fixture(scope="module")
def crank_run():
    """An untrained network turns the slider-crank, at random."""
    model = MBDNODE.for_system(SliderCrank(), width=8, seed=4)
    return simulate(model, TIMES, {"theta1": 1.0, "theta1_dot": 1.0}, inputs=INPUTS)


def test_untrained_slider_crank_keeps_its_eight_constraints(crank_run):
    assert bool(crank_run.status.ok)
    assert np.ptp(crank_run["theta1"]) > 1.0
    # Coordinates up to 6 m and velocities of a few m/s, to a few units in the last place.
    assert np.max(crank_run.position_residual) < 1e-14
    assert np.max(crank_run.velocity_residual) < 1e-13


def test_dependent_coordinates_are_those_of_the_rod_kinematics(crank_run):
    minimal = np.stack([crank_run["theta1"], crank_run["theta1_dot"]], axis=1)
    found = np.concatenate([crank_run.q, crank_run.v], axis=1)
    np.testing.assert_allclose(found, slider_crank_state(minimal), atol=1e-12)


def test_untrained_double_pendulum_keeps_its_rods():
    pendulum = DoublePendulumCartesian()
    start = consistent_state(pendulum, {"x1": 0.3, "x2": 0.5, "x1_dot": 0.2, "x2_dot": -0.3})
    run = simulate(MBDNODE.for_system(pendulum, width=8), TIMES[:51], start)
    assert bool(run.status.ok)
    x1, y1, x2, y2 = (np.asarray(run[name]) for name in ("x1", "y1", "x2", "y2"))
    assert np.ptp(x2) > 0.01
    # Both rods are one meter long.
    np.testing.assert_allclose(np.hypot(x1, y1), 1.0, atol=1e-14)
    np.testing.assert_allclose(np.hypot(x2 - x1, y2 - y1), 1.0, atol=1e-14)
    assert np.max(run.velocity_residual) < 1e-13


@pytest.mark.parametrize(
    "system", [FourBar(), SinglePendulumCartesian(), DoublePendulumCartesian(), CartPoleCartesian()]
)
def test_start_by_name_is_that_of_the_mechanism(system):
    expected = consistent_state(system, {})
    found = consistent_state(MBDNODE.for_system(system, width=4), {})
    assert np.array_equal(found.q, expected.q)


def test_redundant_constraints_that_the_mechanism_allows_are_dropped():
    model = MBDNODE.for_system(TwiceHeldPendulumAllowed(), width=4)
    run = simulate(model, TIMES[:3], State(jnp.array([0.0, -1.5]), jnp.array([1.0, 0.0])))
    assert bool(run.status.ok)
    np.testing.assert_allclose(np.hypot(run["x"], run["y"]), 1.5, atol=1e-14)


def test_blade_that_turns_never_slides_across_in_10_000_steps():
    model = MBDNODE.for_system(KnifeEdgeSleigh(), width=8, angle_features=True)
    # The heading turns by 20 revolutions, past every angle at which x or y says nothing.
    start = consistent_state(model, {"x_dot": 1.0, "theta_dot": 12.0})
    run = simulate(model, np.arange(10_001) * 0.001, start, check_step=False)
    assert run.status.ok
    theta, x, y = (np.asarray(run[name]) for name in ("theta", "x_dot", "y_dot"))
    assert np.ptp(theta) > 20.0
    assert np.max(np.abs(x * np.sin(theta) - y * np.cos(theta))) < 1e-12
    assert np.max(run.velocity_residual) < 1e-12


@pytest.mark.slow
def test_trained_sleigh_follows_its_closed_form_and_never_slides_across():
    sleigh, t = KnifeEdgeSleigh(), np.arange(101) * 0.02

    def start(heading, speed, spin):
        along = {"x_dot": speed * np.cos(heading), "y_dot": speed * np.sin(heading)}
        return {"theta": heading, "theta_dot": spin, **along}

    starts = [(0.3, 0.5, 2.0), (-2.0, -0.7, -2.5), (2.5, 0.9, 3.0), (-0.8, 0.2, -3.0)]
    data = Dataset([simulate(sleigh, t, start(*values)) for values in starts])
    model = MBDNODE.for_system(sleigh, width=16, hidden_layers=1, angle_features=True, scaling=True)
    config = TrainingConfig(epochs=0, refinement=30, scaled_loss=True, precision="float64")
    learned = fit(model, data, config).model
    first = consistent_state(sleigh, start(0.4, 0.8, 2.5))
    exact = simulate(sleigh, t, first, integrator="analytic")
    found = simulate(learned, t, first)
    assert np.max(np.abs(found.q - exact.q)) < 0.05 * np.ptp(exact["y"])
    longer = simulate(learned, np.arange(10_001) * 0.001, first, check_step=False)
    assert longer.status.ok
    assert np.max(longer.velocity_residual) < 1e-12


def test_rolling_disk_that_a_network_drives_does_not_slip_in_10_000_steps():
    model = MBDNODE.for_system(RollingDisk(), width=8, angle_features=True, seed=1)
    start = consistent_state(model, {"lean": 0.2, "heading_dot": 1.0, "roll_dot": 8.0})
    run = simulate(model, np.arange(10_001) * 0.001, start, check_step=False)
    assert run.status.ok
    heading, lean = np.asarray(run["heading"]), np.asarray(run["lean"])
    turning, leaning, rolling = (np.asarray(run[f"{n}_dot"]) for n in ("heading", "lean", "roll"))
    along = 0.5 * (rolling + turning * np.sin(lean))
    across = 0.5 * leaning * np.cos(lean)
    slip = np.asarray(run["x_dot"]) - along * np.cos(heading) - across * np.sin(heading)
    assert np.ptp(heading) > 2 * np.pi
    assert np.max(np.abs(slip)) < 1e-12
    assert np.max(run.velocity_residual) < 1e-12


@pytest.mark.slow
def test_coordinates_that_reach_their_dead_point_end_the_rollout_with_a_status():
    # x of a pendulum says nothing of its motion where the rod is level; the network pushes on.
    pendulum = SinglePendulumCartesian()
    model = MBDNODE.for_system(pendulum, width=4)
    assert model.independent == ("x",)
    start = consistent_state(pendulum, {"x": 0.5, "x_dot": 2.0})
    run = simulate(model, TIMES[:101], start)
    assert not bool(run.status.ok)
    kept = run.kept
    np.testing.assert_allclose(np.hypot(kept["x"], kept["y"]), 1.0, atol=1e-14)
