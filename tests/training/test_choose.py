"""A network and its end are chosen on a part of the training data that it has not seen."""

import dataclasses
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.errors import UserError
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models import MBDNODE
from mbdnode.training import Checkpoint, TrainingConfig, choose, fit
from mbdnode.training.choose import split
from mbdnode.trajectory import Dataset

CONFIG = TrainingConfig(
    integrator="fe1",
    epochs=1,
    updates=2,
    batch_size=16,
    scaled_loss=True,
    refinement=3,
    validation=0.2,
    precision="float64",
)


def euler(like, steps):
    """A pendulum by Euler steps in NumPy, which a network of its sine and speed follows exactly."""
    states = [np.array([1.0, 0.0])]
    for _ in range(steps):
        angle, rate = states[-1]
        slope = np.array([rate, -9.81 * np.sin(angle) - 0.1 * rate])
        states.append(states[-1] + 0.02 * slope)
    q, v = np.split(np.stack(states), 2, axis=1)
    t, none = np.arange(steps + 1) * 0.02, jnp.zeros(steps + 1)
    given = {"t": t, "q": q, "v": v, "u": np.zeros((steps + 1, 1))}
    given = {name: jnp.asarray(values) for name, values in given.items()}
    return dataclasses.replace(like, **given, position_residual=none, velocity_residual=none)


@pytest.fixture(scope="module")
def run(swing):
    return euler(swing, 40)


@pytest.fixture(scope="module")
def candidates():
    """Without and with sine and affine part; only the second can follow."""
    make = lambda **own: MBDNODE.for_system(SinglePendulum(), width=2, scaling=True, **own)  # noqa: E731
    return [make(), make(affine=True, angle_features=True)]


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model)]


def test_last_part_of_every_run_is_held_back(run):
    data = Dataset([run, euler(run, 20)], [{"m": 1.0}, {"m": 2.0}])
    kept, held = split(data, 0.25)
    assert [len(one) - 1 for one in kept.trajectories] == [30, 15]
    assert [len(one) - 1 for one in held.trajectories] == [10, 5]
    np.testing.assert_array_equal(held.trajectories[0].q, run.q[30:])
    assert kept.parameters == held.parameters == data.parameters


def test_single_steps_are_held_back_whole(run):
    steps = [run.rows(i, i + 1) for i in range(10)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *steps)
    kept, held = split(Dataset(batch, {"m": np.arange(10.0)}), 0.2)
    assert [part.trajectories[0].t.shape for part in (kept, held)] == [(8, 2), (2, 2)]
    np.testing.assert_array_equal(held.parameters[0]["m"], [8.0, 9.0])
    kept, held = split(Dataset(steps), 0.2)
    assert (len(kept.trajectories), len(held.trajectories)) == (8, 2)
    with pytest.raises(ValueError, match=r"1 run\(s\) of at most 1 steps.*validation=0"):
        split(Dataset(steps[0]), 0.2)


@pytest.mark.slow
def test_chosen_network_is_trained_as_it_would_be_alone(run, candidates, tmp_path):
    keep, told = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0), []
    found = fit(
        candidates, run, CONFIG, checkpoint=keep, report=lambda row, n: told.append((row, n))
    )
    assert found.status.startswith("chose free by validation NRMSE (free ")
    assert found.diagnostics["validation_nrmse"] < 1e-6
    refined = sum(row["learning_rate"] == 0 for row in found.history)
    plain = dataclasses.replace(CONFIG, validation=0.0, refinement=refined)
    assert bits(found.model) == bits(fit(candidates[1], run, plain).model)
    # Both candidates and the training that follows are counted as one.
    assert [row["epoch"] for row, _ in told] == list(range(len(told)))
    assert told[0][1] == 3 * (CONFIG.epochs + CONFIG.refinement)
    # What was chosen is noted: nothing is compared again.
    seen = []
    again = dataclasses.replace(keep, resume=True)
    report = lambda row, n: seen.append(row)  # noqa: E731
    assert bits(fit(candidates, run, CONFIG, checkpoint=again, report=report).model) == bits(
        found.model
    )
    assert seen == []


def test_nothing_that_is_held_back_trains_a_candidate(run, candidates):
    """Another end of the run changes what the candidate is told it missed, and nothing before."""
    other = dataclasses.replace(run, q=run.q.at[33:].add(0.5), v=run.v.at[33:].add(-2.0))
    told, errors = [], []
    for one in (run, other):
        losses = []
        report = lambda row, n: losses.append(row["loss"])  # noqa: B023, E731
        errors.append(choose.choose(candidates[1:], Dataset(one), CONFIG, 0, report).errors[0])
        told.append(losses)
    assert told[0] == told[1]
    assert errors[0] < 1e-6 < errors[1]


def test_nothing_is_tried_after_a_candidate_that_is_good(run, candidates):
    found = choose.choose(candidates[::-1], Dataset(run), CONFIG, 0, lambda row, n: None)
    assert (found.candidate, len(found.errors)) == (0, 1)
    assert found.describe(["this", "that"]).startswith("chose this by validation NRMSE (this ")


def test_ctrl_c_while_networks_are_compared_trains_nothing(run, candidates):
    def press(row, total):
        if row["epoch"] == 0:
            signal.raise_signal(signal.SIGINT)

    found = fit(candidates, run, CONFIG, report=press)
    assert (found.outcome, found.updates) == ("interrupted", 0)
    assert bits(found.model) == bits(candidates[0])


def test_ctrl_c_in_the_last_iteration_of_a_comparison_is_heard(run, candidates):
    rows = []
    choose.choose(candidates[1:], Dataset(run), CONFIG, 0, lambda row, n: rows.append(row))
    last, told = len(rows), []

    def press(row, total):
        told.append(row)
        if len(told) == last:
            signal.raise_signal(signal.SIGINT)

    found = fit([candidates[1], candidates[0]], run, CONFIG, report=press)
    assert (found.outcome, found.updates, len(told)) == ("interrupted", 0, last)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_candidate_that_was_done_is_not_trained_again(run, candidates, tmp_path):
    """Killed while the second one is trained: the first one's errors are there."""
    keep = Checkpoint(tmp_path / "c.safetensors", resume=True)
    each = CONFIG.epochs + min(CONFIG.refinement, 20)

    class Killed(Exception):
        pass

    def kill(row, total):
        if row["epoch"] > each:
            raise Killed

    whole = fit(candidates, run, CONFIG)
    with pytest.raises(Killed):
        fit(candidates, run, CONFIG, checkpoint=keep, report=kill)
    assert [path.name for path in tmp_path.iterdir()] == ["c-candidate-0.safetensors"]
    seen = []
    again = fit(candidates, run, CONFIG, checkpoint=keep, report=lambda row, n: seen.append(row))
    assert bits(again.model) == bits(whole.model)
    assert len(seen) < 3 * each
    # Those of other data are not taken for these.
    (tmp_path / "c.safetensors").unlink()
    other = dataclasses.replace(run, q=run.q.at[3].add(0.5))
    with pytest.raises(ValueError, match="belongs to another run: data differ"):
        fit(candidates, other, CONFIG, checkpoint=keep)


def test_choice_without_a_validation_split_is_refused(run, candidates):
    with pytest.raises(ValueError, match=r"2 models, but validation is 0"):
        fit(candidates, run, dataclasses.replace(CONFIG, validation=0.0))
    with pytest.raises(ValueError, match=r"validation is 1\.5"):
        dataclasses.replace(CONFIG, validation=1.5)
    with pytest.raises(ValueError, match=r"members of an ensemble.*validation=0"):
        fit(candidates[0], run, CONFIG, members=8)


@pytest.fixture(scope="module")
def scheduler(dask_processes):
    with dask_processes() as processes:
        processes.add_worker()
        processes.add_worker()
        yield processes


def dying_once(path):
    """As `train_and_predict`, but the first worker that is asked dies."""

    def deadly(*given):
        import os
        import signal

        from mbdnode.training.choose import train_and_predict

        if not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return train_and_predict(*given)

    return deadly


def test_networks_that_workers_train_give_the_bits_of_one_process(
    run, candidates, scheduler, tmp_path, monkeypatch
):
    here = fit(candidates, Dataset(run), CONFIG)
    died = tmp_path / "died"
    monkeypatch.setattr(choose, "train_and_predict", dying_once(died))
    there = fit(candidates, Dataset(run), CONFIG, cluster=scheduler.address)
    assert died.exists()
    assert bits(there.model) == bits(here.model)
    # The status has the errors of both networks.
    assert there.status == here.status
    untimed = [{**one.diagnostics, "selection_seconds": None} for one in (here, there)]
    assert untimed[0] == untimed[1]


def test_one_network_is_not_sent_to_a_cluster(run, candidates):
    with pytest.raises(UserError, match="there is one model"):
        fit(candidates[1], Dataset(run), CONFIG, cluster="tcp://127.0.0.1:1")


def test_candidate_whose_loss_does_not_fall_stops_as_in_a_training_of_its_own(run, candidates):
    still = dataclasses.replace(
        CONFIG, epochs=6, refinement=0, patience=1, schedule=lambda update: 0.0
    )
    rows = []
    choose.choose(candidates[:1], Dataset(run), still, 0, lambda row, total: rows.append(row))
    alone = fit(candidates[0], run, dataclasses.replace(still, validation=0.0))
    assert [row["epoch"] for row in rows] == [row["epoch"] for row in alone.history] == [0, 1]
