"""Measured motions are smoothed before a network is trained on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import missed_unseen, pendulum, recorded, stepped, with_noise

import mbdnode as mbd
from mbdnode.data.smoothing import choose_smoother
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models import MBDNODE
from mbdnode.training import TrainingConfig, fit

DT_S, STEPS = 0.01, 240
LEVELS = (0.001, 0.01, 0.05)
slow = pytest.mark.slow


def swings(part):
    """Four motions, each with noise of this part of its own spread."""
    starts = ((1.0, 0.5), (0.4, 0.0), (0.7, 0.0), (1.3, 0.0))
    clean = [stepped(pendulum, start, DT_S, STEPS) for start in starts]
    noisy = [with_noise(states, part, seed=10 + i) for i, states in enumerate(clean)]
    return clean, mbd.Dataset([recorded(states, DT_S) for states in noisy])


SMALL = TrainingConfig(
    epochs=300,
    batch_size=32,
    shuffle=True,
    scaled_loss=True,
    learning_rate=1e-2,
    decay=0.985,
)


# A network this small misses the motion by up to a hundredth without any noise. The noise adds its
# own part: accelerations are differences, in which the smoothed states' errors grow again.
@pytest.mark.parametrize("part", [0.0, 0.01, *(pytest.param(x, marks=slow) for x in (0.001, 0.05))])
def test_small_network_predicts_an_unseen_motion_nearly_within_the_noise(part):
    model = MBDNODE.for_system(SinglePendulum(), width=32, scaling=True)
    found = fit(model, swings(part)[1], SMALL)
    assert missed_unseen(found.model, DT_S, STEPS) < 0.01 + part
    assert ("the data was smoothed first" in found.status) == (part > 0)


@pytest.mark.parametrize("part", LEVELS)
def test_smoothed_states_are_twice_as_near_to_the_motion(part):
    clean, data = swings(part)
    smooth = choose_smoother(SinglePendulum(), data)
    off = []
    for own in (data, smooth(data)):
        states = [np.concatenate([run.q, run.v], axis=1) for run in own.trajectories]
        away = [(x - y) / np.std(y, axis=0) for x, y in zip(states, clean, strict=True)]
        off.append(np.sqrt(np.mean(np.square(away), axis=(0, 1))))
    assert np.all(off[1] < 0.5 * off[0])
    assert f"{smooth.noise:.1%}" in smooth.status


def test_computed_data_is_not_touched_by_smoothing():
    _, data = swings(0.0)
    smooth = choose_smoother(SinglePendulum(), data)
    assert smooth(data) is data
    assert smooth.status == ""


def test_computed_motion_under_inputs_that_jump_is_not_smoothed():
    pushes = np.random.default_rng(0).normal(0.0, 5.0, (STEPS + 1, 1))
    t = np.arange(STEPS + 1) * DT_S
    run = mbd.simulate(SinglePendulum(), t, {"theta": 1.0}, inputs=pushes)
    data = mbd.Dataset(run)
    assert choose_smoother(SinglePendulum(), data)(data) is data


def test_runs_of_a_batch_are_smoothed_like_single_ones():
    _, data = swings(0.01)
    smooth = choose_smoother(SinglePendulum(), data)
    batch = jax.tree.map(lambda *x: jnp.stack(x), *data.trajectories)
    together = smooth(mbd.Dataset(batch)).trajectories[0]
    for i, run in enumerate(smooth(data).trajectories):
        np.testing.assert_array_equal(together.q[i], run.q)
        np.testing.assert_array_equal(together.v[i], run.v)
