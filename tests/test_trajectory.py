"""The container that crosses every border: columns, shapes, cuts, frames."""

import dataclasses
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from toys import TIMES, TurningBlade

from mbdnode.simulation import simulate
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import Dataset, Trajectory, check_times


@pytest.fixture(scope="module")
def run():
    # A frame has no place for the estimate of the integrator's error.
    inputs = np.arange(41.0)
    return simulate(TurningBlade(), TIMES, {"x": 0.5}, inputs=inputs, check_step=False)


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


def test_array_of_a_run_holds_its_columns_in_order(run):
    array = np.asarray(run)
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.column_stack([run[name] for name in run.columns]))
    assert np.asarray(run, np.float32).dtype == np.float32
    # It is the caller's own.
    array[:] = 0.0
    assert float(run["torque"][-1]) == 40.0
    with pytest.raises(ValueError, match="copied"):
        np.array(run, copy=False)


def test_frame_has_the_columns_of_a_file(run):
    frame = run.to_frame()
    assert tuple(frame.columns) == run.columns
    assert set(map(str, frame.dtypes)) == {"float64"}
    np.testing.assert_array_equal(frame.to_numpy(), run.table)


def same(found, expected):
    assert (found.columns, found.rates) == (expected.columns, expected.rates)
    np.testing.assert_array_equal(found.table, expected.table)
    assert str(found.status) == str(expected.status)


def test_run_comes_back_from_its_frame_bit_for_bit(run):
    same(Trajectory.from_frame(run.to_frame()), run)


def test_names_tell_the_columns_of_a_frame_that_has_been_in_a_file(run, tmp_path):
    run.to_frame().to_parquet(tmp_path / "run.parquet")
    frame = pd.read_parquet(tmp_path / "run.parquet")
    frame.attrs = {}
    with pytest.raises(ValueError, match=r"coordinates=\[\.\.\.\]"):
        Trajectory.from_frame(frame)
    names = {"coordinates": ["x", "y", "theta"], "inputs": "torque"}
    same(Trajectory.from_frame(frame, **names), run)


def test_names_of_other_people_are_taken():
    frame = pd.DataFrame({"time": [0, 1, 2], "phi": [0.0, 0.5, 1.0], "omega": [0.5, 0.5, 0.5]})
    found = Trajectory.from_frame(frame, time="time", coordinates=["phi"], rates=["omega"])
    assert found.columns == ("t", "phi", "omega")
    np.testing.assert_array_equal(found.t, [0.0, 1.0, 2.0])


def test_marks_of_the_domain_go_with_the_frame(run):
    marked = dataclasses.replace(run, outside=jnp.arange(41) > 30)
    frame = marked.to_frame()
    assert frame["outside"].dtype == bool
    np.testing.assert_array_equal(Trajectory.from_frame(frame).outside, marked.outside)
    assert Trajectory.from_frame(run.to_frame()).outside is None


def test_rows_after_a_failure_are_not_in_the_frame(run):
    code, step = jnp.asarray(Outcome.NOT_FINITE.value), jnp.asarray(19)
    status = Status(code, step, run.t[19], jnp.asarray(0), run.coordinates)
    lost = dataclasses.replace(run, q=run.q.at[20:].set(jnp.nan), status=status)
    frame = lost.to_frame()
    np.testing.assert_array_equal(frame.to_numpy(), run.table[:20])


@pytest.mark.parametrize(
    ("change", "names", "says"),
    [
        (lambda f: f.drop(columns="y_dot"), {}, r"'y_dot'.*Did you mean 'x_dot'|'y_dot'"),
        (lambda f: f.assign(y=f.y.where(f.t < 0.5)), {}, r"'y' is nan in row.*dropna"),
        (lambda f: f.assign(y="north"), {}, r"'y' holds (str|object)"),
        (lambda f: f.assign(t=pd.to_datetime(f.t, unit="s")), {}, r"'t' holds datetime.*seconds"),
        (lambda f: f.iloc[::-1], {}, "increase"),
        (lambda f: f, {"coordinates": ["x", "x"]}, "'x' is named twice"),
        (lambda f: f, {"coordinates": ["x"], "rates": []}, "0 rates for 1 coordinate"),
        (lambda f: pd.concat([f, f[["y"]]], axis=1), {}, "'y' is there 2 times"),
    ],
)
def test_frame_that_is_no_trajectory_is_refused(run, change, names, says):
    with pytest.raises(ValueError, match=says):
        Trajectory.from_frame(change(run.to_frame()), **names)


def test_what_is_no_frame_is_refused():
    with pytest.raises(TypeError, match=r"pandas DataFrame.*list"):
        Trajectory.from_frame([1.0, 2.0])


def test_batch_has_no_frame(run):
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), run)
    with pytest.raises(ValueError, match="single trajectory"):
        batch.to_frame()
    assert np.asarray(batch).shape == (2, 41, 8)


def test_missing_pandas_is_said_with_the_way_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'mbdnode\[frames\]'"):
        run.to_frame()


def test_parameters_of_a_frame_are_a_row_for_each_run(run):
    frame = pd.DataFrame({"k": [1.0, 2.0], "m": [3.0, 4.0]})
    assert Dataset([run, run], frame).parameters == ({"k": 1.0, "m": 3.0}, {"k": 2.0, "m": 4.0})
    assert Dataset([run, run], pd.Series({"k": 5.0})).parameters == ({"k": 5.0},) * 2
    with pytest.raises(ValueError, match="3 sets of parameters for 2 trajectories"):
        Dataset([run, run], pd.DataFrame({"k": [1.0, 2.0, 3.0]}))


@pytest.mark.parametrize("data", [3, None, [2], pd.DataFrame({"t": [0.0, 1.0]})])
def test_data_that_is_no_trajectory_is_refused(data):
    with pytest.raises(ValueError, match=r"Entry 0 of the data is .*must be a Trajectory"):
        Dataset(data)


def test_parameters_without_names_are_refused(run):
    for parameters in (3, "k", [1.0]):
        with pytest.raises(ValueError, match=r"Parameters are .*give values by name"):
            Dataset(run, parameters)
