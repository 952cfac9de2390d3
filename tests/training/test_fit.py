"""What `fit` promises besides its numbers: same bits, clean endings, nothing touched or leaked."""

import dataclasses
import os
import signal
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import LinearRows, Oscillator

from mbdnode.data import AbstractStream
from mbdnode.mechanisms import CartPole, SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE
from mbdnode.models.network import ACTIVATIONS
from mbdnode.multibody import consistent_state
from mbdnode.training import TrainingConfig, fit
from mbdnode.training.prepare import cut, with_scaling
from mbdnode.trajectory import Dataset

# One configuration for all that do not ask for another, so that it is compiled once.
QUICK = TrainingConfig(integrator="fe1", epochs=4, batch_size=5, shuffle=True)


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model)]


def test_same_seed_gives_the_same_bits(swing, pendulum_model):
    first, again = (fit(pendulum_model, swing, QUICK, seed=1) for _ in range(2))
    other = fit(pendulum_model, swing, QUICK, seed=2)
    assert bits(first.model) == bits(again.model)
    losses = lambda result: [row["loss"] for row in result.history]  # noqa: E731
    assert losses(first) == losses(again)
    assert bits(first.model) != bits(other.model)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_given_model_is_left_as_it_was(precision, swing, pendulum_model):
    before = bits(pendulum_model)
    result = fit(pendulum_model, swing, dataclasses.replace(QUICK, precision=precision))
    assert bits(pendulum_model) == before
    assert bits(result.model) != before
    assert result.outcome == "completed"
    assert result.updates == 8


def test_report_sees_every_epoch_as_it_ends(swing, pendulum_model):
    seen = []
    result = fit(pendulum_model, swing, QUICK, report=lambda row, total: seen.append((row, total)))
    assert [row["epoch"] for row, _ in seen] == [0, 1, 2, 3]
    assert [row for row, _ in seen] == result.history
    assert {total for _, total in seen} == {4}
    assert result.train_seconds == pytest.approx(sum(row["seconds"] for row in result.history))


def test_training_lowers_the_loss(swing, pendulum_model):
    config = dataclasses.replace(QUICK, epochs=60, learning_rate=1e-2, decay=0.97)
    losses = [row["loss"] for row in fit(pendulum_model, swing, config).history]
    assert losses[-1] < 0.5 * losses[0]


def test_nothing_is_traced_again_after_the_first_epoch(swing):
    inputs, traces = swing.u, []
    data = swing.__class__(
        **{**vars(swing), "coordinates": ("x",), "rates": ("x_dot",), "inputs": ("u",)}
    )
    assert inputs.shape[1] == 1
    model = MBDNODE.for_system(Oscillator(), width=4, forces="added")
    fit(model, data, QUICK, report=lambda row, total: traces.append(Oscillator.traces[0]))
    assert traces[0] > 0
    assert len(set(traces)) == 1


def test_loss_that_is_not_finite_stops_with_the_update_and_the_last_good_weights(
    swing, pendulum_model
):
    config = TrainingConfig(integrator="fe1", epochs=3)
    # 1e30 is a number, but its square is none in float32; the seventh window ends there.
    wild = eqx.tree_at(lambda run: run.q, swing, swing.q.at[7].set(1e30))
    result = fit(pendulum_model, wild, config)
    assert result.outcome == "diverged"
    assert "at update 6 (epoch 0)" in result.status
    assert "learning rate" in result.status
    assert result.updates == 6
    assert result.history == []
    tame = fit(pendulum_model, swing.rows(0, 6), dataclasses.replace(config, epochs=1))
    for found, expected in zip(
        jax.tree.leaves(result.model), jax.tree.leaves(tame.model), strict=True
    ):
        # The same six updates, compiled for ten rows and for six.
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_slope_that_is_not_finite_stops_even_if_the_loss_is(swing, monkeypatch):
    # A finite value with an infinite slope at zero, which is where no bias puts the first row.
    monkeypatch.setitem(ACTIVATIONS, "sin", lambda x: jnp.sqrt(jnp.abs(x)))
    still = jax.tree.map(lambda x: x.at[0].set(0.0) if x.ndim > 1 else x, swing)
    model = MBDNODE.for_system(SinglePendulum(), width=4, activation="sin")
    biases = jax.tree.map(jnp.zeros_like, model.network.biases)
    model = eqx.tree_at(lambda m: m.network.biases, model, biases)
    result = fit(model, still, TrainingConfig(integrator="fe1", epochs=2))
    assert result.outcome == "diverged"
    assert "at update 0 (epoch 0)" in result.status
    assert result.updates == 0
    for found, first in zip(
        jax.tree.leaves(result.model.network), jax.tree.leaves(model.network), strict=True
    ):
        assert np.array_equal(found, np.asarray(first, np.float32))


def test_patience_ends_training_when_the_loss_no_longer_falls(swing, pendulum_model):
    # The second epoch already overshoots, and no later one comes back.
    config = TrainingConfig(
        integrator="fe1", epochs=50, batch_size=None, learning_rate=3.0, decay=1.0, patience=3
    )
    result = fit(pendulum_model, swing, config)
    losses = [row["loss"] for row in result.history]
    assert result.outcome == "stopped"
    assert len(losses) < 50
    assert min(losses[-3:]) >= min(losses[:-3])
    assert all(min(losses[:n][-3:]) < min(losses[:n][:-3]) for n in range(4, len(losses)))
    assert f"{len(losses)} of 50 epochs" in result.status


def test_training_works_outside_of_the_main_thread(swing, pendulum_model):
    results = []
    worker = threading.Thread(target=lambda: results.append(fit(pendulum_model, swing, QUICK)))
    worker.start()
    worker.join()
    assert bits(results[0].model) == bits(fit(pendulum_model, swing, QUICK).model)


def test_interrupt_ends_training_after_the_running_epoch(swing, pendulum_model):
    def press(row, total):
        if row["epoch"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = fit(pendulum_model, swing, QUICK, report=press)
    assert result.outcome == "interrupted"
    assert "2 of 4 epochs" in result.status
    assert len(result.history) == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_second_interrupt_acts_at_once(swing, pendulum_model):
    def press(row, total):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(pendulum_model, swing, QUICK, report=press)


def test_scaling_is_mean_and_spread_of_features_and_accelerations(swing):
    model = MBDNODE.for_system(SinglePendulum(), width=4, scaling=True, divisor=(2.0,))
    found = with_scaling(model, cut(model, Dataset(swing), None))
    columns = np.concatenate([swing.q, swing.v, swing.u], axis=1)
    slopes = 2.0 * np.diff(np.asarray(swing.v[:, 0])) / 0.04
    np.testing.assert_allclose(found.center, columns.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.spread, columns.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.out_center, [slopes.mean()], rtol=1e-10)
    np.testing.assert_allclose(found.out_spread, [slopes.std()], rtol=1e-10)


def test_column_that_never_changes_is_only_shifted(swing):
    still = eqx.tree_at(lambda run: run.u, swing, jnp.full_like(swing.u, 0.1))
    model = MBDNODE.for_system(SinglePendulum(), width=4, scaling=True)
    found = with_scaling(model, cut(model, Dataset(still), 1))
    assert found.center[2] == pytest.approx(0.1)
    assert found.spread[2] == 1.0


def test_scaled_model_keeps_its_scaling_and_unscaled_has_none(swing, pendulum_model):
    model = MBDNODE.for_system(SinglePendulum(), width=4, scaling=True)
    trained = fit(model, swing, QUICK).model
    assert not np.array_equal(trained.center, model.center)
    expected = with_scaling(model, cut(model, Dataset(swing), 1))
    np.testing.assert_allclose(trained.center, expected.center, rtol=1e-6)
    plain = fit(pendulum_model, swing, QUICK).model
    assert np.array_equal(plain.center, np.zeros(3))
    assert np.array_equal(plain.spread, np.ones(3))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_numbers_of_the_mechanism_itself_are_not_trained(precision, swing):
    rows = LinearRows(jnp.array([[1.0, 2.0, 0.1, 1.0], [0.0, 1.0, 1.0, -1.0]]))
    model = MBDNODE.for_system(rows, width=4)
    state = consistent_state(rows, {"a": 0.1, "b": 0.2})
    names = {"coordinates": rows.coordinate_names, "rates": rows.rate_names, "inputs": ()}
    arrays = {"q": jnp.tile(state.q, (11, 1)), "v": jnp.zeros((11, 4)), "u": jnp.zeros((11, 0))}
    data = swing.__class__(**{**vars(swing), **names, **arrays})
    config = dataclasses.replace(QUICK, loss="full", precision=precision)
    trained = fit(model, data, config).model
    assert trained.body.matrix.dtype == jnp.float64
    assert np.array_equal(trained.body.matrix, rows.matrix)
    assert bits(trained.network) != bits(model.network)


def test_augmented_multipliers_change_what_is_learned(crank):
    config = TrainingConfig(integrator="fe1", epochs=3, batch_size=None)
    make = lambda kind: MBDNODE.for_system(SliderCrank(), width=4, constraints=kind)  # noqa: E731
    soft, raised = (fit(make(kind), crank, config) for kind in ("penalty", "augmented"))
    losses = [[row["loss"] for row in result.history] for result in (soft, raised)]
    # Multipliers start at zero, and are raised after the first epoch.
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-6)
    assert losses[0][1] != pytest.approx(losses[1][1], rel=1e-3)


def test_augmented_lagrangian_cannot_learn_from_a_stream(crank):
    class Crank(AbstractStream):
        def chunk(self, number):
            return Dataset(crank)

    model = MBDNODE.for_system(SliderCrank(), width=4, constraints="augmented")
    with pytest.raises(ValueError, match="multipliers for every step"):
        fit(model, Crank(), TrainingConfig(epochs=1))


@pytest.mark.parametrize(
    ("make", "config", "message"),
    [
        (lambda: MBDNODE.for_system(CartPole(), width=4), {}, "theta, x, u.*theta, F"),
        (lambda: MBDNODE.for_system(SingleMassSpring(), width=4), {}, "x.*theta, F"),
        (
            lambda: MBDNODE.for_system(SinglePendulum(), width=4),
            {"integrator": "lf2"},
            "use_velocity",
        ),
        (lambda: MBDNODE.for_system(SinglePendulum(), width=4), {"integrator": "rk5"}, "'rk5'"),
        (lambda: MBDNODE.for_system(SinglePendulum(), width=4), {"window": 11}, "window is 11"),
        (
            lambda: MBDNODE.for_system(SinglePendulum(), width=4),
            {"gradient": "adjoint"},
            "'dopri5'",
        ),
        (
            lambda: MBDNODE.for_system(SinglePendulum(), width=4),
            {"integrator": "dopri8"},
            "1e-13.*float32.*float64",
        ),
    ],
)
def test_model_and_recipe_must_fit_the_data(make, config, message, swing):
    with pytest.raises(ValueError, match=message):
        fit(make(), swing, TrainingConfig(**config))


def test_unknown_recipe_and_things_that_are_no_model_are_refused(swing, pendulum_model):
    with pytest.raises(ValueError, match=r"recipe 'papr'.*Did you mean 'paper'"):
        fit(pendulum_model, swing, "papr")
    with pytest.raises((TypeError, ValueError), match="MBDNODE"):
        fit(SinglePendulum(), swing)


BAD = {
    "epochs": (0, 2.5, "3", True, None),
    "batch_size": (0, 1.0, True),
    "window": (0, -1, 2.0),
    "patience": (0, 1.5),
    "learning_rate": (0.0, -1.0, float("nan"), float("inf"), "fast"),
    "decay": (0.0, float("nan")),
    "penalty": (0.0, float("inf")),
    "loss": ("ful",),
    "gradient": ("adjont",),
    "precision": ("float16", "double"),
    "shuffle": ("yes", 1),
    "integrator": (3,),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_setting_of_training_is_refused_by_name(name, value):
    # As without the tests' own type checks, which would come first.
    made = object.__new__(TrainingConfig)
    for field in dataclasses.fields(TrainingConfig):
        object.__setattr__(made, field.name, field.default)
    object.__setattr__(made, name, value)
    with pytest.raises(ValueError, match=name):
        made.__post_init__()
