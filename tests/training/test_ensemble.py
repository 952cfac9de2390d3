"""`fit` with members gives what it gives for each seed, in one compiled program."""

import dataclasses
import os
import signal
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Oscillator, Pendulum

from mbdnode.data import AbstractStream, StepStream
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models import FCNN, MBDNODE
from mbdnode.recipes import training_config
from mbdnode.training import Checkpoint, TrainingConfig, fit, fit_ensemble, train
from mbdnode.trajectory import Dataset

FIT = sys.modules["mbdnode.training.fit"]  # The room has a function of that name.
QUICK = TrainingConfig(
    integrator="fe1", epochs=4, batch_size=5, shuffle=True, precision="float64", learning_rate=1e-2
)


def weights(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model.network)])


def alone(data, config, seed, system=None, **settings):
    model = MBDNODE.for_system(system or SinglePendulum(), width=4, seed=seed, **settings)
    return fit(model, data, config, seed=seed)


@pytest.mark.parametrize("small_bytes", [0, 2**20])
def test_member_is_what_its_seed_gives_alone(small_bytes, swing, monkeypatch):
    monkeypatch.setattr(train, "_SMALL_BYTES", small_bytes)
    given = MBDNODE.for_system(SinglePendulum(), width=4, seed=99)
    before = weights(given)
    result = fit(given, swing, QUICK, members=3, seed=5)
    singles = [alone(swing, QUICK, seed) for seed in (5, 6, 7)]
    for member, single in zip(result.model, singles, strict=True):
        np.testing.assert_allclose(weights(member), weights(single.model), rtol=1e-11, atol=1e-13)
    assert np.max(np.abs(weights(singles[0].model) - weights(singles[1].model))) > 0.1
    losses = np.array([[row["loss"] for row in single.history] for single in singles])
    found = [row["loss"] for row in result.history]
    np.testing.assert_allclose(found, losses.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(result.diagnostics["losses"], losses[:, -1], rtol=1e-10)
    assert result.diagnostics["seeds"] == [5, 6, 7]
    assert result.updates == 3 * singles[0].updates
    assert (result.outcome, result.status) == ("completed", "completed 4 epochs of 3 members")
    np.testing.assert_array_equal(weights(given), before)


def test_nothing_is_traced_again_after_the_first_epoch_nor_for_more_members(swing):
    data = swing.__class__(
        **{**vars(swing), "coordinates": ("x",), "rates": ("x_dot",), "inputs": ("u",)}
    )
    model = MBDNODE.for_system(Oscillator(), width=4, forces="added")
    before, traces = Oscillator.traces[0], []
    note = lambda row, total: traces.append(Oscillator.traces[0])  # noqa: E731
    fit(model, data, QUICK, members=20, report=note)
    assert len(traces) == 4
    assert len(set(traces)) == 1
    # Each member by itself would trace the force at least once.
    assert 0 < traces[0] - before < 20


def test_member_that_diverges_is_left_out_and_named(swing, pendulum_model, monkeypatch):
    drawn = FIT._drawn

    def with_one_too_steep(model, seeds):
        models = drawn(model, seeds)
        models[1] = jax.tree.map(lambda x: 1e200 * x, models[1])
        return models

    monkeypatch.setattr(FIT, "_drawn", with_one_too_steep)
    result = fit(pendulum_model, swing, QUICK, members=3, seed=5)
    assert result.outcome == "completed"
    assert "4 epochs of 2 members; seed 6 diverged at update 0 (epoch 0)" in result.status
    assert result.diagnostics["seeds"] == [5, 7]
    for member, seed in zip(result.model, (5, 7), strict=True):
        single = weights(alone(swing, QUICK, seed).model)
        np.testing.assert_allclose(weights(member), single, rtol=1e-11, atol=1e-13)


def test_when_all_diverge_their_last_good_weights_are_there(swing, pendulum_model):
    config = dataclasses.replace(QUICK, learning_rate=1e200)
    result = fit(pendulum_model, swing, config, members=2)
    assert result.outcome == "diverged"
    assert "at update 1 (epoch 0)" in result.status
    assert "learning rate" in result.status
    assert result.history == []
    assert len(result.model) == 2
    for member in result.model:
        assert np.all(np.isfinite(weights(member)))


def test_members_stop_each_for_itself_when_patience_is_over(swing, pendulum_model):
    config = dataclasses.replace(QUICK, epochs=40, learning_rate=0.2, patience=2)
    result = fit(pendulum_model, swing, config, members=3)
    singles = [alone(swing, config, seed) for seed in range(3)]
    lengths = [len(single.history) for single in singles]
    assert len(set(lengths)) > 1
    assert max(lengths) < 40
    assert len(result.history) == max(lengths)
    assert result.outcome == "stopped"
    for member, single in zip(result.model, singles, strict=True):
        np.testing.assert_allclose(weights(member), weights(single.model), rtol=1e-9, atol=1e-11)


def test_interrupt_ends_all_after_the_running_epoch(swing, pendulum_model):
    def press(row, total):
        if row["epoch"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    result = fit(pendulum_model, swing, QUICK, members=3, report=press)
    assert result.outcome == "interrupted"
    assert "2 of 4 epochs" in result.status
    assert len(result.history) == 2
    assert len(result.model) == 3


def test_members_are_refined_as_alone(swing, pendulum_model):
    config = dataclasses.replace(QUICK, epochs=2, refinement=3)
    result = fit(pendulum_model, swing, config, members=2)
    singles = [alone(swing, config, seed) for seed in range(2)]
    for member, single in zip(result.model, singles, strict=True):
        np.testing.assert_allclose(weights(member), weights(single.model), rtol=1e-7, atol=1e-9)
    assert [row["epoch"] for row in result.history] == [0, 1, 2, 3, 4]
    losses = [[row["loss"] for row in single.history] for single in singles]
    found = [row["loss"] for row in result.history]
    np.testing.assert_allclose(found, np.mean(losses, axis=0), rtol=1e-7)
    assert found[4] < 0.5 * found[1]
    assert result.updates == sum(single.updates for single in singles)
    assert result.status == "completed 2 epochs of 2 members; refined 3 to 3 times"


class Alternating(AbstractStream):
    """Two sets of data by turns."""

    def __init__(self, run):
        self.chunks = (Dataset(run.rows(0, 5)), Dataset(run.rows(5, 10)))

    def chunk(self, number):
        return self.chunks[number % 2]


def test_members_learn_from_a_stream_as_alone(swing, pendulum_model):
    result = fit(pendulum_model, Alternating(swing), QUICK, members=2)
    for seed, member in enumerate(result.model):
        single = weights(alone(Alternating(swing), QUICK, seed).model)
        np.testing.assert_allclose(weights(member), single, rtol=1e-11, atol=1e-13)


def test_recipe_without_epochs_refines_members_on_a_stream_of_draws_as_alone():
    system = SinglePendulum()
    names = (*system.coordinate_names, *system.rate_names, *system.input_names)
    ranges = dict.fromkeys(names, (-1.0, 1.0))
    stream = StepStream(system, ranges, 20, 0.05)
    free = dataclasses.replace(
        training_config("adam-lm"), integrator="fe1", refinement=1, validation=0.0
    )
    result = fit(MBDNODE.for_system(system, width=4), stream, free, members=2)
    assert result.outcome == "completed"
    for seed, member in enumerate(result.model):
        single = weights(alone(stream, free, seed).model)
        np.testing.assert_allclose(weights(member), single, rtol=1e-9, atol=1e-11)


def test_each_member_of_an_augmented_lagrangian_has_its_own_multipliers(swing):
    # A steady turn on the rod of 1.5 m: any motion that keeps the constraint will do.
    angle = jnp.asarray(swing.t[:6])
    run = dataclasses.replace(
        swing.rows(0, 5),
        q=1.5 * jnp.stack([jnp.sin(angle), -jnp.cos(angle)], axis=1),
        v=1.5 * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1),
        u=jnp.zeros((6, 0)),
        coordinates=("x", "y"),
        rates=("x_dot", "y_dot"),
        inputs=(),
    )
    config = dataclasses.replace(QUICK, penalty=3.0)
    model = MBDNODE.for_system(Pendulum(), width=4, constraints="augmented")
    result = fit(model, run, config, members=2)
    for seed, member in enumerate(result.model):
        single = alone(run, config, seed, Pendulum(), constraints="augmented")
        np.testing.assert_allclose(weights(member), weights(single.model), rtol=1e-10, atol=1e-12)


def test_other_kinds_learn_as_alone(swing):
    still = dataclasses.replace(swing, u=jnp.zeros_like(swing.u))
    config = dataclasses.replace(QUICK, integrator="rk4", precision="float32")
    result = fit(FCNN.for_system(SinglePendulum(), width=3), still, config, members=2)
    for seed, member in enumerate(result.model):
        own = FCNN.for_system(SinglePendulum(), width=3, seed=seed)
        single = fit(own, still, config, seed=seed).model
        np.testing.assert_array_equal(member.spread, single.spread)
        np.testing.assert_allclose(weights(member), weights(single), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_an_ensemble_of_seeds_is_refused(swing, pendulum_model):
    with pytest.raises(ValueError, match=r"'fast' finds a law.*recipe 'paper'"):
        fit(pendulum_model, swing, "fast", members=2)
    with pytest.raises(ValueError, match=r"members is 1; .*Leave it out"):
        fit(pendulum_model, swing, QUICK, members=1)
    with pytest.raises(ValueError, match="seed is -1"):
        fit(pendulum_model, swing, QUICK, members=2, seed=-1)
    with pytest.raises(TypeError, match="SinglePendulum; it trains a model"):
        fit(SinglePendulum(), swing, QUICK, members=2)
    other = MBDNODE.for_system(Oscillator(), width=4)
    with pytest.raises(ValueError, match="but the data has theta"):
        fit(other, swing, QUICK, members=2)


def test_former_name_gives_the_same_and_says_so(swing, pendulum_model):
    with pytest.warns(DeprecationWarning, match="members=8"):
        found = fit_ensemble(pendulum_model, swing, QUICK, members=2)
    expected = fit(pendulum_model, swing, QUICK, members=2)
    np.testing.assert_array_equal(weights(found.model[1]), weights(expected.model[1]))


def test_members_go_on_from_a_checkpoint_to_the_same_bits(swing, pendulum_model, tmp_path):
    # Members that stop at different epochs: what each has reached must come back.
    config = dataclasses.replace(QUICK, epochs=12, patience=1, learning_rate=0.1)
    stop = lambda row, total: row["epoch"] == 2 and os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    kept = Checkpoint(tmp_path / "members.safetensors")
    part = fit(pendulum_model, swing, config, members=3, checkpoint=kept, report=stop)
    assert part.outcome == "interrupted"
    again = dataclasses.replace(kept, resume=True)
    rest = fit(pendulum_model, swing, config, members=3, checkpoint=again)
    whole = fit(pendulum_model, swing, config, members=3)
    assert len({len(row["losses"]) - row["losses"].count(None) for row in whole.history}) > 1
    for a, b in zip(rest.model, whole.model, strict=True):
        np.testing.assert_array_equal(weights(a), weights(b))
    assert rest.diagnostics == whole.diagnostics
    assert rest.status == whole.status
