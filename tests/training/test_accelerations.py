"""Training by accelerations (FNODE): the targets against closed forms, and what comes of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import as_trajectory

import mbdnode as mbd
from mbdnode.data.signal import differentiate, spectral_rate
from mbdnode.data.signal.spectral import _fourier_rate
from mbdnode.evaluation import predict
from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE
from mbdnode.models.paper_settings import configured
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.run import check, simulate_truth, training_data
from mbdnode.training import TrainingConfig
from mbdnode.training.fnode import AccelerationObjective, targets_of
from mbdnode.training.loss import objective_of
from mbdnode.trajectory import Dataset

T = np.arange(301) * 0.01


def worst(found, true, rows=slice(None)):
    return float(np.max(np.abs(found[:, 0] - true)[rows]))


def test_a_sinusoid_over_whole_periods_is_differentiated_to_the_leakage_of_its_ends():
    w = 2 * np.pi  # Three periods.
    found = spectral_rate(T, np.sin(w * T)[:, None])
    # The second derivative is zero at both ends, so the mirror image has no kink there.
    assert worst(found, w * np.cos(w * T)) < 1e-7 * w


def test_motion_that_is_not_periodic_leaks_at_the_ends_and_little_inside():
    values = np.exp(-0.4 * T) * np.cos(4 * T) + T
    true = np.exp(-0.4 * T) * (-0.4 * np.cos(4 * T) - 4 * np.sin(4 * T)) + 1
    by_fourier = _fourier_rate(0.01, values[:, None])
    found = spectral_rate(T, values[:, None])
    at_ends = np.r_[0:31, 270:301]
    assert worst(by_fourier, true, at_ends) > 1e-2
    assert worst(found, true, at_ends) < 1e-8
    # The jump of `v''` (16 at most) leaves a tail of its Fourier series that falls as `dt / j^2`.
    assert worst(found, true, slice(31, 270)) < 16 * 0.01 / (np.pi * 31**2)


def test_straight_line_has_the_rate_of_a_line():
    np.testing.assert_allclose(spectral_rate(T, 3 * T[:, None] - 1), 3.0, rtol=1e-10)


def pendulum_swing(rows=301, dt=0.01):
    """A small swing in closed form: `theta = a sin(w t)`, which is no solution but a motion."""
    t = np.arange(rows) * dt
    states = np.stack([np.sin(3 * t), 3 * np.cos(3 * t)], axis=1)
    return as_trajectory(SinglePendulum(), t, states, np.zeros((rows, 1)))


def test_targets_of_steps_are_those_of_the_state_halfway():
    run = pendulum_swing()
    targets, spectral = targets_of(
        MBDNODE.for_system(SinglePendulum(), width=4), Dataset(run), "differences"
    )
    assert spectral == 0
    # Second order: a''' dt^2 / 24 = 81 * 1e-4 / 24 of the difference.
    np.testing.assert_allclose(targets.a[:, 0], -9 * np.sin(3 * targets.t), atol=3.4e-4)


def test_inputs_that_change_are_not_spread_over_the_run(swing):
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    targets, spectral = targets_of(model, Dataset(swing), "spectral")
    np.testing.assert_array_equal(targets.u[:, 0], swing.u[:-1, 0])
    assert spectral == 0
    slopes = np.diff(np.asarray(swing.v)[:, 0]) / 0.04
    np.testing.assert_allclose(targets.a[:, 0], slopes, rtol=1e-12)


def test_analytic_targets_are_the_pendulum_equation():
    run = pendulum_swing()
    model = MBDNODE.for_system(SinglePendulum(), width=4, use_parameters=("L",))
    targets, _ = targets_of(model, Dataset(run, {"L": 2.0}), "analytic")
    mu = mbd.multibody.resolve_parameters(SinglePendulum())
    g, c, m = (float(mu[name]) for name in "gcm")
    q, v = (np.asarray(x)[:-1, 0] for x in (run.q, run.v))
    expected = -g / 2.0 * np.sin(q) - c / (2.0 * m) * v
    np.testing.assert_allclose(targets.a[:, 0], expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(targets.mu["L"], np.full(300, 2.0))


def test_analytic_targets_of_the_crank_are_those_of_its_minimal_coordinate(crank):
    model = MBDNODE.for_system(SliderCrank(), width=4)
    analytic, _ = targets_of(model, Dataset(crank), "analytic")
    steps, _ = targets_of(model, Dataset(crank), "differences")
    # Over a step of 0.01 s the acceleration changes by about w da/dtheta dt.
    np.testing.assert_allclose(analytic.a, steps.a, atol=2e-2)
    assert analytic.a.shape == (10, 1)


def test_loss_is_the_squared_error_of_the_acceleration(swing, pendulum_model):
    config = TrainingConfig(loss="acceleration", scaled_loss=True)
    model, objective = AccelerationObjective.prepare(pendulum_model, Dataset(swing), config)
    at = jax.tree.map(lambda x: x[1], objective.examples)
    q, v, u = (np.asarray(x) for x in (swing.q, swing.v, swing.u))
    slopes = np.diff(v[:, 0]) / 0.04
    halfway = jnp.asarray([(q[1, 0] + q[2, 0]) / 2, (v[1, 0] + v[2, 0]) / 2, u[1, 0]])
    expected = ((float(model.network(halfway)[0]) - slopes[1]) / np.std(slopes)) ** 2
    assert float(objective.loss(model, at, jnp.zeros(0))) == pytest.approx(expected, rel=1e-12)


def test_nothing_after_the_training_range_changes_a_target():
    config = configure("single-pendulum", recipe="fnode")
    case, model = get_case("single-pendulum"), check(config)
    truth = simulate_truth(case, 0)
    after = np.arange(len(truth)) > case.train_steps
    other = replace(truth, v=truth.v + 7.0 * jnp.asarray(after, float)[:, None])
    one, two = (
        targets_of(model, training_data(case, run, config), "spectral") for run in (truth, other)
    )
    assert one[1] == two[1] == 1.0
    np.testing.assert_array_equal(one[0].a, two[0].a)
    # Across the border the rate just before it would be another.
    across = differentiate(np.asarray(other.t), np.asarray(other.v))[case.train_steps]
    assert abs(across[0] - float(one[0].a[-1, 0])) > 100


def test_recipe_predicts_the_pendulum_without_integrating_in_training():
    case = get_case("single-pendulum")
    truth = simulate_truth(case, 0)
    model = MBDNODE.for_system(case.mechanism, width=32)
    config = TrainingConfig(loss="acceleration", epochs=60, batch_size=4, shuffle=True)
    found = mbd.fit(model, truth.rows(0, case.train_steps + 1), config)
    assert found.diagnostics == {"spectral_targets": 1.0}
    run = predict(found.model, truth, "rk4", case.parameters)
    error = np.mean((np.asarray(run.q) - np.asarray(truth.q)) ** 2)
    assert error < 1e-2 * np.mean(np.asarray(truth.q) ** 2)


@pytest.mark.parametrize("structure", ["free", "mechanical", "lagrangian"])
@pytest.mark.parametrize("system", [SinglePendulum(), SliderCrank()], ids=["pendulum", "crank"])
def test_every_structure_learns_from_accelerations(structure, system, swing, crank):
    data = Dataset(swing if isinstance(system, SinglePendulum) else crank)
    model = MBDNODE.for_system(system, width=8, structure=structure)
    config = TrainingConfig(
        loss="acceleration", epochs=30, scaled_loss=True, refinement=5, precision="float64"
    )
    found = mbd.fit(model, data, config)
    # Ten random inputs a few units of the motion apart; the layers are small.
    assert found.history[-1]["loss"] < 0.3 * found.history[0]["loss"]


def test_first_order_model_learns_its_velocities_too(swing):
    model = MBDNODE.for_system(SinglePendulum(), width=8, order="first")
    found = mbd.fit(
        model, swing, TrainingConfig(loss="acceleration", epochs=60, learning_rate=1e-2)
    )
    assert found.history[-1]["loss"] < 0.1 * found.history[0]["loss"]


def test_correction_of_a_mechanism_learns_from_accelerations(swing):
    model = MBDNODE.for_system(SinglePendulum(), width=8, correction_of=SinglePendulum())
    found = mbd.fit(model, swing, TrainingConfig(loss="acceleration", epochs=5))
    assert found.outcome == "completed"


def test_noisy_data_is_smoothed_before_it_is_differentiated():
    noise = np.random.default_rng(0).normal(size=(301, 2)) * 0.01
    run = pendulum_swing()
    noisy = replace(run, q=run.q + noise[:, :1], v=run.v + 3 * noise[:, 1:])
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    found = mbd.fit(model, noisy, TrainingConfig(loss="acceleration", epochs=1))
    assert "smoothed" in found.status


def test_settings_are_those_of_the_published_runs():
    model = MBDNODE.for_system(get_case("double-pendulum").mechanism)
    config, _ = configured("fnode", model)
    assert (config.epochs, config.learning_rate, config.decay) == (450, 3e-3, 0.98)
    assert (config.weight_decay, config.batch_size, config.shuffle) == (5e-4, 1, True)
    asked = configure("double-pendulum", recipe="fnode")
    assert asked.training == replace(config, integrator=asked.training.integrator)
    assert objective_of(model, None, config) is AccelerationObjective


def test_soft_constraints_and_validation_are_refused(swing):
    soft = MBDNODE.for_system(SliderCrank(), width=4, constraints="penalty")
    with pytest.raises(mbd.UserError, match="predicts none"):
        mbd.fit(soft, swing, TrainingConfig(loss="acceleration"))
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    with pytest.raises(mbd.UserError, match=r"validation is 0\.2"):
        mbd.fit(model, swing, TrainingConfig(loss="acceleration", validation=0.2))
    with pytest.raises(mbd.UserError, match="targets is 'differences'"):
        mbd.fit(model, swing, TrainingConfig(targets="differences"))
