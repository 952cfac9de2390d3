"""Whole states from logs of some coordinates, against motions that are known in all of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import as_trajectory
from problems import solve_slider_crank
from toys import Pendulum

import mbdnode as mbd
from mbdnode.data.logs import Columns
from mbdnode.data.logs import stream as stream_module
from mbdnode.data.logs.runs import Names, make_trajectory
from mbdnode.trajectory import Dataset
from mbdnode.workflow import read_logs
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import read_and_check
from mbdnode.workflow.unrecorded_coordinates import complete_runs, completion_of

CRANK = mbd.mechanisms.SliderCrank()
T = np.linspace(0.0, 1.0, 41)


def recorded(run, coordinates, inputs=()):
    """The columns that a log would have, as `read` gives them."""
    q = np.stack([np.asarray(run[name]) for name in coordinates], axis=1)
    v = np.stack([np.asarray(run[f"{name}_dot"]) for name in coordinates], axis=1)
    u = np.stack([np.asarray(run[name]) for name in inputs], axis=1) if inputs else q[:, :0]
    rates = tuple(f"{name}_dot" for name in coordinates)
    names = Names(tuple(coordinates), rates, tuple(inputs))
    return make_trajectory(np.column_stack([np.asarray(run.t), q, v, u]), names)


def cranked(angle, rate, torque):
    """The slider-crank under a torque on its crank."""
    load = np.column_stack([np.zeros(41), torque])
    return as_trajectory(CRANK, T, solve_slider_crank(load[:-1], (angle, rate), T[1]), load)


def swung(*reaches):
    """Rods of these lengths, one at the end of the other, each turning steadily at its own rate."""
    angles = np.stack([0.5 + (1 + i) * T for i in range(len(reaches))])
    rates = np.arange(1.0, 1 + len(reaches))[:, None]
    arms = np.array(reaches)[:, None] * np.stack([np.sin(angles), -np.cos(angles)])
    speeds = np.array(reaches)[:, None] * np.stack([np.cos(angles), np.sin(angles)]) * rates
    q, v = (np.cumsum(x, axis=1).transpose(2, 1, 0).reshape(41, -1) for x in (arms, speeds))
    return np.concatenate([q, v], axis=1)


@pytest.fixture(scope="module")
def turning():
    return cranked(1.0, 2.0, np.sin(T))


def test_crank_angle_alone_gives_all_nine_coordinates(turning):
    data, notes = complete_runs(CRANK, Dataset(recorded(turning, ["theta1"], ["T"])))
    (run,) = data.trajectories
    assert np.asarray(run.q) == pytest.approx(np.asarray(turning.q), abs=1e-12)
    assert np.asarray(run.v) == pytest.approx(np.asarray(turning.v), abs=1e-12)
    assert np.max(run.position_residual) < 1e-13
    assert run.inputs == ("F", "T")
    assert np.all(np.asarray(run["F"]) == 0.0)
    assert any("F not recorded" in note for note in notes)
    assert any("completed: 8 coordinates" in note for note in notes)


def test_more_coordinates_than_degrees_of_freedom_are_compared(turning):
    log = recorded(turning, ["x3", "theta1"])
    _, notes = complete_runs(CRANK, Dataset(log))
    (note,) = [note for note in notes if note.startswith("checked")]
    assert "x3" in note
    assert float(note.split("is ")[1].split(" ")[0]) < 1e-12


def test_coordinates_that_say_nothing_are_passed_over(turning):
    # The slider's y never changes, and its angle neither; the crank's y tells of the motion.
    early = turning.rows(0, 10)
    data, notes = complete_runs(CRANK, Dataset(recorded(early, ["y3", "theta3", "y1"])))
    assert np.asarray(data.trajectories[0].q) == pytest.approx(np.asarray(early.q), abs=1e-10)
    assert any("completed: 8 coordinates from y1" in note for note in notes)


def test_any_sufficient_set_of_coordinates_will_do():
    swing = mbd.mechanisms.DoublePendulumCartesian()
    run = as_trajectory(swing, T, swung(1.0, 1.0), np.zeros((41, 0)))
    names = swing.coordinate_names
    # The first two are both of the first mass, which has one degree of freedom.
    data, notes = complete_runs(swing, Dataset(recorded(run, names[:3])))
    assert np.asarray(data.trajectories[0].q) == pytest.approx(np.asarray(run.q), abs=1e-10)
    assert any(note.startswith("completed") for note in notes)


def test_set_that_fails_later_is_given_up_for_another():
    # At the dead point, in the middle of the run, x3 does not tell where the crank is.
    run = cranked(-0.5, 1.0, np.zeros(41))
    data, notes = complete_runs(CRANK, Dataset(recorded(run, ["x3", "y1"])))
    assert np.asarray(data.trajectories[0].q) == pytest.approx(np.asarray(run.q), abs=1e-10)
    assert any("from y1" in note for note in notes)


def test_coordinates_that_determine_nothing_are_refused(turning):
    with pytest.raises(ValueError, match=r"\(y3, theta3\) do not determine"):
        complete_runs(CRANK, Dataset(recorded(turning, ["y3", "theta3"])))


def test_runs_of_different_lengths_are_completed_alike(turning):
    runs = [turning, turning.rows(0, 25)]
    data, _ = complete_runs(CRANK, Dataset([recorded(run, ["theta1"]) for run in runs]))
    assert [len(run) for run in data.trajectories] == [41, 26]
    for made, run in zip(data.trajectories, runs, strict=True):
        assert np.asarray(made.q) == pytest.approx(np.asarray(run.q), abs=1e-12)


def test_columns_come_in_the_systems_order():
    cart = mbd.mechanisms.CartPole()
    states = np.stack([np.cos(T), T, -np.sin(T), np.ones(41)], axis=1)
    run = as_trajectory(cart, T, states, np.zeros((41, 1)))
    data, _ = complete_runs(cart, Dataset(recorded(run, ["x", "theta"], ["u"])))
    assert np.array_equal(data.trajectories[0].q, run.q)


def test_too_few_coordinates_are_refused():
    swing = mbd.mechanisms.DoublePendulumCartesian()
    run = as_trajectory(swing, T, swung(1.0, 1.0), np.zeros((41, 0)))
    with pytest.raises(ValueError, match=r"2 degree\(s\) of freedom"):
        complete_runs(swing, Dataset(recorded(run, [swing.coordinate_names[0]])))


def test_runs_of_any_length_are_completed_alike(turning):
    # More than are completed together beside the long one, which is not the first.
    runs = [*(turning.rows(k, k + 3) for k in range(6)), turning]
    whole, _ = complete_runs(CRANK, Dataset([recorded(run, ["theta1"]) for run in runs]))
    for run, truth in zip(whole.trajectories, runs, strict=True):
        assert np.asarray(run.q) == pytest.approx(np.asarray(truth.q), abs=1e-10)
        assert np.asarray(run.v) == pytest.approx(np.asarray(truth.v), abs=1e-10)


def test_missing_coordinate_of_a_free_system_is_refused():
    cart = mbd.mechanisms.CartPole()
    run = as_trajectory(cart, T, np.zeros((41, 4)), np.zeros((41, 1)))
    with pytest.raises(ValueError, match="no column for x"):
        complete_runs(cart, Dataset(recorded(run, ["theta"])))


def test_unknown_column_is_refused_with_the_nearest_name(turning):
    log = recorded(turning, ["theta1"])
    renamed = type(log)(**{**vars(log), "coordinates": ("theta4",), "rates": ("theta4_dot",)})
    with pytest.raises(ValueError, match="theta4"):
        complete_runs(CRANK, Dataset(renamed))


def test_row_where_the_constraints_cannot_be_closed_is_named():
    pendulum = Pendulum()
    run = as_trajectory(pendulum, T, swung(1.5), np.zeros((41, 0)))
    log = recorded(run, ["x"])
    beyond = log.q.at[20].set(9.0)
    with pytest.raises(ValueError, match="Row 20 of 41"):
        complete_runs(pendulum, Dataset(eqx.tree_at(lambda r: r.q, log, beyond)))


@pytest.fixture
def large_log(turning, tmp_path, monkeypatch):
    """The crank's angle and torque alone, in a log that is read in windows of ten steps."""
    monkeypatch.setattr(read_logs, "_LARGE_BYTES", 1000)
    monkeypatch.setattr(stream_module, "_WINDOW", 10)
    monkeypatch.setattr(read_logs, "_CHUNK_ROWS", 22)
    columns = {"t": turning.t, "omega": turning["theta1_dot"], "angle": turning["theta1"]}
    table = np.column_stack([*columns.values(), turning["T"]])
    path = tmp_path / "crank.csv"
    header = ",".join([*columns, "torque"])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")
    return str(path)


def test_logs_that_are_read_in_parts_are_completed_window_by_window(turning, large_log):
    roles = Columns("t", {"theta1": "angle"}, {"theta1": "omega"}, {"T": "torque"})
    prepared = read_and_check(FitConfig((large_log,), roles, "slider-crank", holdout=0.0))
    stream = prepared.stream
    assert stream.count == 2
    seen = set()
    for number in range(stream.count):
        chunk = stream.chunk(number)
        run = chunk.trajectories[0]
        assert (run.coordinates, run.inputs) == (CRANK.coordinate_names, CRANK.input_names)
        assert chunk.recorded == ("theta1", "theta1_dot")
        rows = np.rint(np.asarray(run.t) / float(T[1])).astype(int)
        seen |= set(rows.ravel().tolist())
        # Newton's method ends at round-off, from wherever a window begins.
        assert np.asarray(run.q) == pytest.approx(np.asarray(turning.q)[rows], abs=1e-10)
        assert np.asarray(run.v) == pytest.approx(np.asarray(turning.v)[rows], abs=1e-10)
    assert seen == set(range(41))

    def squares(data, count):
        return (np.asarray(np.sum(np.asarray(data.trajectories[0]["x3"])[:count] ** 2)),)

    (total,) = stream.factors(squares)
    x3 = np.asarray(turning["x3"])
    every = [x3[first : first + 11] for first in (0, 10, 20, 30)]
    assert float(total) == pytest.approx(np.sum(np.square(every)), rel=1e-10)


def test_windows_that_cannot_be_closed_are_refused_with_their_time(turning):
    whole, sample = Dataset(turning), Dataset(recorded(turning, ["x3"], ["T"]))
    change = completion_of(CRANK, sample, Dataset(turning, recorded=("x3", "x3_dot")))
    (run,) = sample.trajectories
    far = eqx.tree_at(lambda r: r.q, run, run.q + 10.0)
    batch = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[None]), far)
    with pytest.raises(mbd.UserError, match=r"t = 0 s\) has x3 = .*cannot be closed"):
        change(Dataset(batch, whole.parameters[0]))
