"""A log means the same to a prediction in whichever way it is given.

The models are not trained: what is compared are two predictions of one model, which agree to the
bit if starts, times, inputs and parameters do.
"""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.config import from_dict
from mbdnode.data.logs import Columns
from mbdnode.multibody import RecordedSystem
from mbdnode.simulation import training_domain
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.folder import StoredFit
from mbdnode.workflow.predict import predict_from, predict_like

T = np.arange(40) * 0.05
TORQUE = 1e3 * np.sin(2 * T)  # In mN.
START = {"x": 0.0, "x_dot": 1.0}
SYSTEM = RecordedSystem(
    coordinates=(mbd.length("x"),),
    inputs=(mbd.Input("tau", "N"), mbd.Input("other", "N")),
    parameters=(mbd.Parameter("m", 1.0), mbd.Parameter("k", 1.0)),
)
MODEL = mbd.MBDNODE.for_system(SYSTEM, width=3, use_parameters=("m",))
SEEN = mbd.simulate(MODEL, T, START)


def stored(**columns):
    """A fit to logs with these columns."""
    config = FitConfig(logs=("a.csv",), columns=Columns(**columns))
    return StoredFit(config, MODEL, training_domain(MODEL, [SEEN]), {})


def write(path, **columns):
    table = np.column_stack(list(columns.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    return str(path)


def same(one, other):
    return np.array_equal(one.t, other.t) and np.array_equal(one.table, other.table)


@pytest.mark.parametrize(
    ("settings", "newtons"),
    [
        ({}, 1.0),
        ({"units": {"tau": "mN"}}, 1e-3),
        ({"units": {"x": "mm", "tau": "kN"}}, 1e3),
        ({"parameters": {"m": 2.0}}, 1.0),
        ({"parameters": {"m": "mass"}, "gaps": "split"}, 1.0),
    ],
)
def test_inputs_of_a_log_drive_the_same_motion_as_the_log(tmp_path, settings, newtons):
    columns = {"t": T, "x": 0 * T, "v": 1 + 0 * T, "tau": TORQUE, "mass": 3 + 0 * T}
    log = write(tmp_path / "a.csv", **columns)
    fit = stored(time="t", coordinates=["x"], rates=["v"], inputs=["tau"], **settings)
    like, _ = predict_like(fit, log)
    found = predict_from(fit, START, log, steps=None, dt_s=None)
    np.testing.assert_allclose(found["tau"], newtons * TORQUE, rtol=1e-12)
    assert same(like, found)
    del columns["x"], columns["v"]
    alone = write(tmp_path / "inputs.csv", **columns)
    assert same(like, predict_from(fit, START, alone, steps=None, dt_s=None))


@pytest.mark.parametrize("how", ["held", "linear"])
def test_inputs_with_their_own_times_are_brought_to_those_of_the_states(tmp_path, how):
    times, torque = np.array([-0.1, 0.4, 1.1, 2.6]), np.array([1.0, 2.0, -3.0, 5.0])
    path = tmp_path / "a.npz"
    np.savez(path, t=T, x=0 * T, v=1 + 0 * T, tu=times, tau=1e3 * torque)
    roles = {"time": "t", "coordinates": ["x"], "rates": ["v"], "inputs": ["tau"]}
    roles |= {"input_time": "tu", "interpolation": how, "units": {"tau": "mN"}}
    like, _ = predict_like(stored(**roles), str(path))
    found = predict_from(stored(**roles), START, str(path), steps=None, dt_s=None)
    expected = np.interp(T, times, torque)
    if how == "held":
        expected = torque[np.searchsorted(times, T, side="right") - 1]
    np.testing.assert_allclose(found["tau"], expected, rtol=1e-12)
    assert same(like, found)


@pytest.mark.parametrize("how", ["held", "linear"])
def test_file_of_inputs_is_read_as_those_of_the_fit(tmp_path, how):
    states = write(tmp_path / "a.csv", t=T, x=0 * T, v=1 + 0 * T)
    for name in ("a", "b"):
        (tmp_path / f"inputs_{name}").mkdir()
    own = write(tmp_path / "inputs_a" / "a.csv", t=T[::3], tau=TORQUE[::3])
    write(tmp_path / "inputs_b" / "b.csv", t=T[::3], tau=0 * TORQUE[::3])
    fit = stored(
        time="t",
        coordinates=["x"],
        rates=["v"],
        inputs=["tau"],
        input_files=[str(tmp_path / "inputs_*" / "*.csv")],
        interpolation=how,
        units={"tau": "mN"},
    )
    like, _ = predict_like(fit, states)  # Of two files the one of the log's own name.
    found = predict_from(fit, START, own, steps=None, dt_s=0.05)
    assert same(like, found)
    assert same(like, predict_like(fit, states, inputs=own)[0])
    short = predict_from(fit, START, own, steps=10, dt_s=0.05)
    assert np.array_equal(short.table, np.asarray(found.table)[:11])
    with pytest.raises(ValueError, match="Give its time step with dt_s"):
        predict_from(fit, START, own, steps=None, dt_s=None)
    with pytest.raises(ValueError, match=r"39 steps of 0.05 s. Give fewer steps"):
        predict_from(fit, START, own, steps=50, dt_s=0.05)
    other = write(tmp_path / "c.csv", t=T, x=0 * T, v=1 + 0 * T)
    with pytest.raises(ValueError, match=r"0 of them are called like .*c.csv.*by inputs"):
        predict_like(fit, other)


def test_parameters_can_be_set(tmp_path):
    fit = stored(time="t", coordinates=["x"], inputs=["tau"], parameters={"m": 2.0})
    runs = [
        predict_from(fit, START, None, steps=5, dt_s=0.1, parameters=values)
        for values in (None, {"m": 2.0}, {"m": 4.0})
    ]
    assert same(runs[0], runs[1])
    expected = mbd.simulate(MODEL, np.arange(6) * 0.1, START, parameters={"m": 4.0})
    assert np.array_equal(runs[2].q, expected.q)
    assert not np.array_equal(runs[2].q, runs[0].q)
    log = write(tmp_path / "a.csv", t=T, x=0 * T, tau=TORQUE)
    like, _ = predict_like(fit, log, parameters={"m": 4.0})
    assert not np.array_equal(like.q, predict_like(fit, log)[0].q)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [({"k": 2.0}, "would change nothing.*depends on: m"), ({"mass": 2.0}, "'mass'.*Known: m, k")],
)
def test_parameter_without_effect_is_refused(parameters, says):
    with pytest.raises(ValueError, match=says):
        predict_from(stored(time="t"), START, None, steps=5, dt_s=0.1, parameters=parameters)


def test_times_cannot_come_from_two_places(tmp_path):
    log = write(tmp_path / "a.csv", t=T, tau=TORQUE)
    fit = stored(time="t", coordinates=["x"], inputs=["tau"])
    with pytest.raises(ValueError, match="gives the times, so leave dt_s"):
        predict_from(fit, START, log, steps=None, dt_s=0.1)
    with pytest.raises(ValueError, match=r"Leave inputs \(--inputs\) out"):
        predict_like(fit, log, inputs=log)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"time": 3}, "time is 3"),
        ({"tiem": "t"}, "Did you mean 'time'"),
        ({"inputs": 5}, "inputs is 5"),
        ({"coordinates": {"x": ["x"]}}, "coordinates.*x"),
    ],
)
def test_roles_of_a_damaged_configuration_are_refused(columns, says):
    with pytest.raises(ValueError, match=says):
        from_dict(FitConfig, {"logs": ["a.csv"], "columns": columns})


def test_state_beyond_all_numbers_is_outside_without_a_warning():
    fit = stored(time="t")
    run = predict_from(fit, {"x": 1e308, "x_dot": 1e308}, None, steps=3, dt_s=0.1)
    assert np.all(run.outside)
