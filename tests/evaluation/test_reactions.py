"""Reactions along a trajectory, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import TIMES, Oscillator, Pendulum, TurningBlade, TwiceHeldPendulumAllowed

from mbdnode.evaluation import reactions
from mbdnode.simulation import simulate
from mbdnode.trajectory import State


@pytest.fixture(scope="module")
def swing():
    """Released from the side, so that the choice of coordinates changes on the way down."""
    start = State(jnp.array([1.5, 0.0]), jnp.zeros(2))
    return simulate(Pendulum(), TIMES, start, integrator="dopri8")


def test_rod_pulls_with_three_times_the_weight_component(swing):
    # Released at rest from the side, energy gives L w^2 = 2 g cos(theta): T = 3 m g cos(theta).
    found = reactions(Pendulum(), swing)
    cosine = -np.asarray(swing["y"]) / 1.5
    tension = 3 * 2.0 * 9.81 * cosine
    np.testing.assert_allclose(2 * 1.5 * found.multipliers[:, 0], tension, atol=1e-9)
    pull = -tension[:, None] * np.asarray(swing.q) / 1.5
    np.testing.assert_allclose(found.forces, pull, atol=1e-9)


def test_mass_times_acceleration_is_load_plus_reaction(swing):
    found = reactions(Pendulum(), swing)
    load = np.array([0.0, -2.0 * 9.81])
    np.testing.assert_allclose(
        2.0 * found.accelerations, load + np.asarray(found.forces), atol=1e-12
    )


def test_parameters_of_the_rollout_are_used():
    run = simulate(Pendulum(), TIMES, {"x": 0.0}, parameters={"m": 5.0})
    found = reactions(Pendulum(), run, {"m": 5.0})
    # At rest at the bottom the rod carries the weight.
    np.testing.assert_allclose(found.forces[0], [0.0, 5.0 * 9.81], atol=1e-12)


def test_blade_pushes_across_itself_only():
    force = np.linspace(0.0, 1.0, 41)
    run = simulate(TurningBlade(), TIMES, {"x": 0.5, "x_dot": 0.3}, inputs=force)
    found = reactions(TurningBlade(), run)
    phi = 0.7 * TIMES + np.asarray(run["theta"])
    along = np.cos(phi) * found.forces[:, 0] + np.sin(phi) * found.forces[:, 1]
    np.testing.assert_allclose(along, 0.0, atol=1e-13)
    np.testing.assert_allclose(found.forces[:, 2], 0.0, atol=1e-15)
    # The torque is the input's, sampled where the row is.
    np.testing.assert_allclose(0.5 * found.accelerations[:, 2], force, atol=1e-13)


def test_system_without_constraints_has_no_reactions():
    run = simulate(Oscillator(), TIMES, {"x": 1.0})
    found = reactions(Oscillator(), run)
    assert found.multipliers.shape == (41, 0)
    np.testing.assert_array_equal(found.forces, np.zeros((41, 1)))
    np.testing.assert_allclose(found.accelerations, -4 * run.q, atol=1e-14)


def test_redundant_constraints_share_the_load_with_the_least_norm():
    run = simulate(TwiceHeldPendulumAllowed(), TIMES, {"x": 0.9})
    found = reactions(TwiceHeldPendulumAllowed(), run)
    alone = reactions(Pendulum(), simulate(Pendulum(), TIMES, {"x": 0.9}))
    # Their sum on the coordinates is that of one constraint; none pulls against another.
    np.testing.assert_allclose(found.forces, alone.forces, atol=1e-9)
    rows = np.asarray(found.multipliers)
    jacobians = np.stack([2 * run.q, run.q / np.linalg.norm(run.q, axis=1, keepdims=True)], axis=1)
    pairs = zip(jacobians, -np.asarray(found.forces), strict=True)
    np.testing.assert_allclose(rows, [np.linalg.pinv(c.T, 1e-10) @ f for c, f in pairs], atol=1e-9)


def test_reactions_of_a_batch_are_refused_with_a_way_out():
    one = simulate(Pendulum(), TIMES, {"x": 0.9})
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), one)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\)"):
        reactions(Pendulum(), batch)
    again = jax.tree.map(lambda x: x[1], batch)
    assert reactions(Pendulum(), again).forces.shape == (41, 2)
