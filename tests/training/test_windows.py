"""Windows: where they are cut, what they hold, and the order in which they are taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import SinglePendulum
from mbdnode.training import TrainingConfig
from mbdnode.training.prepare import cut
from mbdnode.training.train import batches
from mbdnode.trajectory import Dataset


def made(swing, rows, offset=0.0):
    """A trajectory of so many rows whose columns tell the row, to see where each one went."""
    number = jnp.arange(float(rows))
    piece = jax.tree.map(lambda x: jnp.zeros((rows, *x.shape[1:])) if x.ndim else x, swing)
    values = (number * 0.1, number[:, None] + offset, -number[:, None], 10 * number[:, None])
    names = ("t", "q", "v", "u")
    return piece.__class__(**{**vars(piece), **dict(zip(names, values, strict=True))})


def first_rows(windows):
    return np.asarray(windows.q[:, 0, 0]).tolist()


@pytest.mark.parametrize(
    ("steps", "window", "starts"),
    [
        (10, 1, list(range(10))),
        (10, 5, [0, 5]),
        (10, 4, [0, 4, 6]),
        (10, 3, [0, 3, 6, 7]),
        (10, 6, [0, 4]),
        (10, 10, [0]),
        (10, None, [0]),
        (1, 1, [0]),
    ],
)
def test_windows_start_where_the_last_ended_and_the_last_ends_at_the_end(
    swing, steps, window, starts
):
    windows = cut(SinglePendulum(), Dataset(made(swing, steps + 1)), window)
    assert first_rows(windows) == starts
    length = (window or steps) + 1
    for piece, start in zip(np.asarray(windows.q[:, :, 0]), starts, strict=True):
        assert np.array_equal(piece, np.arange(start, start + length))
    assert np.array_equal(windows.v, -windows.q)
    assert np.array_equal(windows.u, 10 * windows.q)
    assert np.array_equal(windows.t, 0.1 * windows.q[:, :, 0])
    assert len(windows) == len(starts)


def test_trajectories_follow_one_another(swing):
    data = Dataset([made(swing, 5), made(swing, 4, offset=100.0)])
    assert first_rows(cut(SinglePendulum(), data, 2)) == [0, 2, 100, 101]


def test_batch_is_cut_run_by_run(swing):
    runs = [made(swing, 5), made(swing, 5, offset=100.0)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *runs)
    windows = cut(SinglePendulum(), Dataset(batch, {"L": jnp.array([1.0, 2.0]), "m": 3.0}), 2)
    assert first_rows(windows) == [0, 2, 100, 102]
    assert np.array_equal(windows.mu["L"], [1, 1, 2, 2])
    assert np.array_equal(windows.mu["m"], [3, 3, 3, 3])
    assert np.array_equal(windows.mu["c"], [0.1] * 4)


def test_each_trajectory_has_its_own_parameters(swing):
    data = Dataset([made(swing, 3), made(swing, 2)], [{"L": 0.5}, {}])
    assert np.array_equal(cut(SinglePendulum(), data, 1).mu["L"], [0.5, 0.5, 1.0])


def test_steps_are_measured_before_times_are_rounded(swing):
    late = made(swing, 3)
    late = late.__class__(**{**vars(late), "t": 1e5 + jnp.arange(3.0) * 0.01})
    windows = cut(SinglePendulum(), Dataset(late), 1)
    # Times of 1e5 s are multiples of 1.5e-11 s; in float32 they would be multiples of 0.008 s.
    np.testing.assert_allclose(windows.dt, 0.01, atol=3e-11)


@pytest.mark.parametrize(
    ("data", "window", "message"),
    [
        (lambda s: Dataset(made(s, 4)), 4, "window is 4 steps.*shortest trajectory has 3"),
        (lambda s: Dataset([made(s, 9), made(s, 3)]), 5, "window is 5.*shortest trajectory has 2"),
        (lambda s: Dataset([made(s, 9), made(s, 3)]), None, r"\[2, 8\] steps.*Set a window"),
        (lambda s: Dataset(made(s, 4), {"l": 1.0}), 1, "parameter 'l'.*Did you mean 'L'"),
        (lambda s: Dataset(made(s, 4), {"L": [1.0, 2.0]}), 1, r"'L' has shape \(2,\).*1 runs"),
        (lambda s: Dataset(made(s, 4), {"L": -1.0}), 1, "'L'"),
        (lambda s: Dataset(made(s, 4), {"L": [-1.0]}), 1, "'L'"),
        (lambda s: Dataset(made(s, 4), {"L": [np.nan]}), 1, "'L'"),
    ],
)
def test_what_cannot_be_cut_is_refused(swing, data, window, message):
    with pytest.raises(ValueError, match=message):
        cut(SinglePendulum(), data(swing), window)


def test_dataset_refuses_what_cannot_be_learned_from(swing, crank):
    with pytest.raises(ValueError, match="at least one"):
        Dataset([])
    with pytest.raises(ValueError, match="Trajectory 1 has columns"):
        Dataset([swing, crank])
    broken = swing.__class__(**{**vars(swing), "v": swing.v.at[3].set(jnp.nan)})
    with pytest.raises(ValueError, match=r"Trajectory 1.*not finite.*kept"):
        Dataset([swing, broken])
    with pytest.raises(ValueError, match="3 sets of parameters for 2"):
        Dataset([swing, swing], [{}, {}, {}])
    twice = jax.tree.map(lambda x: jnp.stack([x, x])[None], swing)
    with pytest.raises(ValueError, match=r"shape \(1, 2\).*one axis"):
        Dataset(twice)


def config(**changes):
    return TrainingConfig(epochs=1, **changes)


def test_paper_takes_every_window_by_itself_in_time_order():
    assert batches(4, config(), 0, 7).tolist() == [[0], [1], [2], [3]]


def test_last_batch_is_filled_up_with_nothing():
    assert batches(5, config(batch_size=2), 0, 0).tolist() == [[0, 1], [2, 3], [4, -1]]
    assert batches(4, config(batch_size=2), 0, 0).tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("size", [None, 5, 99])
def test_full_batch_is_one_update(size):
    assert batches(5, config(batch_size=size), 0, 0).tolist() == [[0, 1, 2, 3, 4]]


def test_shuffling_depends_on_seed_and_epoch_alone():
    order = lambda seed, epoch, **c: batches(  # noqa: E731
        50, config(shuffle=True, **c), seed, epoch
    )
    assert np.array_equal(np.sort(order(1, 2), axis=0)[:, 0], np.arange(50))
    assert np.array_equal(order(1, 2), order(1, 2))
    assert np.array_equal(order(1, 2), order(1, 2, learning_rate=0.5, batch_size=1))
    assert not np.array_equal(order(1, 2), order(1, 3))
    assert not np.array_equal(order(1, 2), order(2, 2))
    # Seed and epoch are told apart, and do not add up.
    assert not np.array_equal(order(1, 2), order(2, 1))
