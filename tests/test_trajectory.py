"""The container that crosses every border: columns, shapes, cuts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import TIMES, TurningBlade

from mbdnode.simulation import simulate
from mbdnode.trajectory import check_times


@pytest.fixture(scope="module")
def run():
    return simulate(TurningBlade(), TIMES, {"x": 0.5}, inputs=np.arange(41.0))


def test_columns_are_time_coordinates_velocities_inputs(run):
    expected = ("t", "x", "y", "theta", "x_dot", "y_dot", "theta_dot", "torque")
    assert run.columns == expected
    assert run.table.shape == (41, 8)
    for index, name in enumerate(expected):
        np.testing.assert_array_equal(run[name], run.table[:, index])
    np.testing.assert_array_equal(run["theta"], run.q[:, 2])
    np.testing.assert_array_equal(run["y_dot"], run.v[:, 1])
    np.testing.assert_array_equal(run["torque"], np.arange(41.0))


def test_unknown_column_is_refused_with_those_there_are(run):
    with pytest.raises(KeyError, match=r"'z'.*x, y, theta"):
        run["z"]


def test_whole_run_is_kept_when_it_completes(run):
    assert len(run) == 41
    np.testing.assert_array_equal(run.kept.table, run.table)
    np.testing.assert_array_equal(run.final.q, run.q[-1])


def test_batch_has_a_leading_axis_and_refuses_what_is_for_one(run):
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), run)
    assert batch.table.shape == (2, 41, 8)
    assert batch["theta"].shape == (2, 41)
    assert len(batch) == 41
    for cut in (lambda: batch.kept, lambda: batch.final):
        with pytest.raises(ValueError, match=r"single trajectory.*shape \(2,\)"):
            cut()


def test_good_times_pass():
    check_times([0, 1, 2])
    check_times(np.array([-1.0, 0.5]))
    check_times(jnp.array([0.0, 1e-9]))
