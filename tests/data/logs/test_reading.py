"""What happens to rows: every one has a fate, and the summary says which."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import mbdnode as mbd
from mbdnode.data.logs import LogStream, read
from mbdnode.errors import UserError

ROLES = {"time": "t", "coordinates": ["theta"], "rates": ["omega"]}


def texts(data, kind):
    return " | ".join(note.text for note in data.summary.of_kind(kind))


def fates(data):
    account = data.summary.account
    assert account.adds_up
    return {k: v for k, v in vars(account).items() if v}


def test_units_in_headings_are_converted_and_said(swing, write_csv):
    path = write_csv(
        {
            "time_ms": 1e3 * swing["t"],
            "theta [deg]": np.rad2deg(swing["theta"]),
            "omega (rpm)": swing["omega"] * 60 / (2 * np.pi),
            "x_mm": 1e3 * swing["theta"],
            "force / kN": swing["torque"] / 1e3,
        }
    )
    data = read(
        path,
        time="time",
        coordinates=["theta", "x_mm"],
        rates=["omega", None],
        inputs=["force"],
    )
    run = data.trajectories[0]
    assert run.columns == ("t", "theta", "x", "omega", "x_dot", "force")
    for column, name in (("theta", "theta"), ("x", "theta"), ("omega", "omega"), ("t", "t")):
        np.testing.assert_allclose(run[column], swing[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run["force"], swing["torque"], rtol=1e-12)
    assert texts(data, "converted").count("times") == 5


def test_a_unit_that_the_heading_lacks_can_be_given_and_an_unknown_one_is_said(swing, write_csv):
    columns = {**swing, "theta": np.rad2deg(swing["theta"]), "torque [blarg]": swing["torque"]}
    path = write_csv(columns)
    data = read(path, **ROLES, inputs=["torque [blarg]"], units={"theta": "deg"})
    np.testing.assert_allclose(data.trajectories[0]["theta"], swing["theta"], rtol=1e-12)
    assert "'blarg'" in data.summary.warnings[0].text
    with pytest.raises(ValueError, match="'furlong' is not known"):
        read(path, **ROLES, units={"theta": "furlong"})


def test_a_rate_in_another_unit_is_noticed(swing, write_csv):
    path = write_csv({**swing, "omega": np.rad2deg(swing["omega"])})
    assert "'omega' is 57.3 times the derivative of 'theta'" in texts(
        read(path, **ROLES), "warning"
    )


def test_of_many_runs_some_rates_are_looked_at_from_the_first_to_the_last(tmp_path):
    """What is wrong with a column is so in all runs of a file, and to look takes long."""
    t, runs = np.arange(40) * 0.05, 34
    table = {
        "t": np.tile(t, runs),
        "theta": np.tile(np.sin(t), runs),
        "omega": np.tile(np.rad2deg(np.cos(t)), runs),
        "run": np.repeat(np.arange(runs), len(t)),
    }
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    data = read(tmp_path / "log.parquet", **ROLES, run="run")
    assert [len(run) for run in data.trajectories] == [40] * runs
    told = [note.place.rpartition(" ")[2] for note in data.summary.warnings]
    assert told == [*map(str, range(17)), "32"]


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.string(), pa.dictionary])
def test_run_without_a_label_is_refused_whatever_labels_are(tmp_path, kind):
    column = pa.array([1, 1, 1, None, 2, 2])
    if kind is pa.dictionary:
        column = column.cast(pa.string()).dictionary_encode()
    else:
        column = column.cast(kind)
    table = pa.table({"t": [0.0, 1, 2, 3, 0, 1], "theta": [0.0, 1, 2, 3, 4, 5], "run": column})
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet")
    roles = {"time": "t", "coordinates": ["theta"], "run": "run"}
    with pytest.raises(ValueError, match=r"tells runs apart, has no value at row 4 of"):
        read(tmp_path / "log.parquet", **roles)
    with pytest.raises(ValueError, match=r"tells runs apart, has no value at row 4 of"):
        mbd.LogStream(tmp_path / "log.parquet", **roles, window=1)


@pytest.mark.parametrize("unit", ["rad", "deg"])
@pytest.mark.parametrize("with_rate", [True, False])
def test_a_wrapped_angle_is_joined(write_csv, unit, with_rate):
    t = np.arange(300) * 0.05
    angle, rate = 3 * t + 0.3 * np.sin(t), 3 + 0.3 * np.cos(t)
    turn = 2 * np.pi if unit == "rad" else 360.0
    scale = turn / (2 * np.pi)
    wrapped = (scale * angle + turn / 2) % turn - turn / 2
    path = write_csv({"t": t, f"phi [{unit}]": wrapped, "phi_dot": rate})
    data = read(path, time="t", coordinates=["phi"], rates=["phi_dot"] if with_rate else None)
    np.testing.assert_allclose(data.trajectories[0].q[:, 0], angle, atol=1e-10)
    assert f"joined at {int(np.sum(np.abs(np.diff(wrapped)) > turn / 2))} places" in texts(
        data, "unwrapped"
    )


def test_an_angle_that_turns_by_more_than_half_a_turn_a_step_is_joined_by_its_rate(write_csv):
    t = np.arange(100) * 0.1
    angle, rate = 45 * t + t**2, 45 + 2 * t  # 0.7 turns a step
    path = write_csv({"t": t, "theta": angle % (2 * np.pi), "omega": rate})
    data = read(path, **ROLES)
    np.testing.assert_allclose(data.trajectories[0].q[:, 0], angle, atol=1e-9)


def test_a_length_that_jumps_is_not_taken_for_an_angle(write_csv):
    t = np.arange(50) * 0.1
    path = write_csv({"t": t, "x [m]": (6 * t) % 6.28, "v": np.full(50, 6.0)})
    data = read(path, time="t", coordinates=["x"], rates=["v"])
    np.testing.assert_array_equal(data.trajectories[0].q[:, 0], (6 * t) % 6.28)


def test_gaps_are_refused_or_cut_as_the_user_says(swing, write_csv):
    keep = np.r_[0:100, 130:250, 252:400]
    path = write_csv({name: values[keep] for name, values in swing.items()})
    with pytest.raises(ValueError, match=r"gap of 0.62 s after t = 1.98 s, at line 102 of"):
        read(path, **ROLES)
    data = read(path, **ROLES, gaps="split")
    assert [len(run) for run in data.trajectories] == [100, 268]
    assert fates(data) == {"read": 368, "kept": 368}
    assert "1 gap longer than 0.1 s" in texts(data, "cut")
    assert "1 step of more than 1.5 times the median" in texts(data, "read")
    whole = read(path, **ROLES, longest_step_s=1.0)
    assert [len(run) for run in whole.trajectories] == [368]


def test_missing_values_are_refused_or_cut_and_counted(swing, write_csv):
    theta = swing["theta"].copy()
    theta[[10, 11, 200]] = np.nan
    path = write_csv({**swing, "theta": ["" if np.isnan(x) else repr(float(x)) for x in theta]})
    with pytest.raises(ValueError, match=r"'theta' has no value at line 12 of .* 3 of 400 rows"):
        read(path, **ROLES)
    data = read(path, **ROLES, gaps="split")
    assert fates(data) == {"read": 400, "kept": 397, "missing": 3}
    assert len(data.trajectories) == 1
    assert "3 in 'theta'" in texts(data, "cut")


def test_repeated_times_are_merged_into_their_mean(write_csv):
    t = np.array([0.0, 1, 1, 1, 2, 3, 4])
    x = np.array([0.0, 1, 2, 6, 4, 5, 6])
    data = read(write_csv({"t": t, "x": x, "v": x}), time="t", coordinates=["x"], rates=["v"])
    np.testing.assert_array_equal(data.trajectories[0].q[:, 0], [0, 3, 4, 5, 6])
    assert fates(data) == {"read": 7, "kept": 5, "repeated": 2}


def test_time_that_goes_back_is_refused_cut_or_told_apart_by_a_run_column(swing, write_csv):
    half = {k: np.r_[v[:200], v[:50]] for k, v in swing.items()}
    path = write_csv({**half, "trial": np.r_[np.zeros(200), np.ones(50)]})
    with pytest.raises(ValueError, match=r"goes back from 3.98 s to 0 s at line 202 of"):
        read(path, **ROLES)
    for options in ({"gaps": "split"}, {"run": "trial"}):
        data = read(path, **ROLES, **options)
        assert [len(run) for run in data.trajectories] == [200, 50]
        assert fates(data) == {"read": 250, "kept": 250}


def test_rows_of_interleaved_runs_find_their_run(swing, write_csv):
    double = {k: np.repeat(v, 2) for k, v in swing.items()}
    path = write_csv({**double, "id": ["left", "right"] * 400})
    data = read(path, **ROLES, run="id")
    assert [run.place.rpartition(" ")[2] for run in data.summary.runs] == ["left", "right"]
    for run in data.trajectories:
        np.testing.assert_array_equal(run["theta"], swing["theta"])


def test_a_log_that_runs_backwards_is_turned_round(swing, write_csv):
    data = read(write_csv({k: v[::-1] for k, v in swing.items()}), **ROLES)
    np.testing.assert_array_equal(data.trajectories[0]["theta"], swing["theta"])
    assert "backwards" in texts(data, "warning")


def test_parameters_come_from_columns_or_numbers_and_must_not_change(swing, write_csv):
    size = len(swing["t"])
    path = write_csv({**swing, "mass [kg]": np.full(size, 2.5)}, "a.csv")
    write_csv({**swing, "mass [kg]": ["3.5"] + [""] * (size - 1)}, "b.csv")
    data = read(str(path.parent / "*.csv"), **ROLES, parameters={"m": "mass", "l": 0.3})
    assert data.parameters == ({"m": 2.5, "l": 0.3}, {"m": 3.5, "l": 0.3})
    assert read(path, **ROLES, parameters=["mass [kg]"]).parameters == ({"mass": 2.5},)
    with pytest.raises(ValueError, match=r"'t2' changes from 0 to 0.02 at line 3"):
        read(write_csv({**swing, "t2": swing["t"]}), **ROLES, parameters=["t2"])


@pytest.mark.parametrize("how", ["held", "linear"])
@pytest.mark.parametrize("place", ["file", "column"])
def test_inputs_of_other_times_are_held_or_interpolated(swing, write_csv, tmp_path, how, place):
    times = np.array([0.5, 1.0, 3.0, 6.0])
    force = np.array([1.0, 2.0, -4.0, 5.0])
    if place == "file":
        path, own = write_csv(swing), write_csv({"t": times, "F [kN]": force / 1e3}, "inputs.csv")
        extra = {"input_files": own}
    else:
        path, extra = tmp_path / "log.npz", {"input_time": "tu"}
        np.savez(path, **swing, tu=times, F=force)
    data = read(path, **ROLES, inputs=["F"], **extra, interpolation=how)
    run = data.trajectories[0]
    t = np.asarray(run.t)
    expected = np.interp(t, times, force)
    if how == "held":
        expected = force[[int(np.sum(times <= moment)) - 1 for moment in t]]
    np.testing.assert_allclose(run["F"], expected, rtol=1e-12)
    assert t[0] == 0.5
    assert fates(data) == {"read": 400, "kept": len(t), "without_input": 400 - len(t)}
    assert how[:4] in texts(data, "inputs") or "interpolated" in texts(data, "inputs")


def test_positions_cannot_be_had_from_rates(swing, write_csv):
    path = write_csv({"t": swing["t"], "omega [rad/s]": swing["omega"]})
    for roles in ({"rates": ["omega"]}, {"coordinates": ["theta"], "rates": ["omega"]}):
        with pytest.raises(ValueError, match="cannot be had from rates"):
            read(path, time="t", **roles)


def test_a_dataset_of_logs_can_be_fitted(swing, write_csv):
    class Swing(mbd.AbstractMechanism):
        coordinates = (mbd.angle("theta"),)

        def mass_matrix(self, q, mu):
            return [1.0]

        def force(self, t, q, v, u, mu):
            return [0.0]

    data = read(write_csv(swing), **ROLES)
    model = mbd.MBDNODE.for_system(Swing(), width=4)
    fitted = mbd.fit(model, data, mbd.TrainingConfig(epochs=1))
    assert fitted.outcome == "completed"
    assert data.summary.account.kept == 400


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"time": "tt"}, "Did you mean 't'"),
        ({"coordinates": "theta"}, "give a list of columns"),
        ({"rates": ["omega", "omega"]}, "2 rates for 1 coordinates"),
        ({"rates": ["theta"]}, "in coordinates and rates"),
        ({"gaps": "ignore"}, "Known: refuse, split"),
        ({"interpolation": "cubic"}, "Known: held, linear"),
        ({"angles": ["phi"]}, "Unknown coordinate in angles"),
        ({"rates": {"phi": "omega"}}, "Unknown coordinate in rates"),
        ({"longest_step_s": 0.0}, "more than 0"),
        ({"input_time": "t"}, "Name them with inputs="),
        ({"interpolation": "linear"}, "have the states' times"),
        ({"units": {"thta": "deg"}}, "Did you mean 'theta'"),
        ({"coordinates": ["remark"]}, "holds words"),
        ({"inputs": {"theta_dot": "torque"}}, "the rate of 'theta' and the input.*other_name"),
        ({"inputs": {"t": "torque"}}, "the time and the input"),
        ({"coordinates": {"": "theta"}}, "has no name"),
        ({"coordinates": {"theta": ""}}, "none of a column"),
        ({"coordinates": ["theta", "theta_dot"], "rates": None}, "and the coordinate"),
    ],
)
def test_a_request_that_cannot_be_met_says_what_to_change(untyped, swing, write_csv, change, part):
    path = write_csv({**swing, "remark": ["fine"] * 400, "theta_dot": swing["omega"]})
    with pytest.raises(ValueError, match=part):
        read(path, **{**ROLES, **change})


def test_two_columns_of_one_name_are_told_apart_by_place(swing, write_csv):
    path = write_csv(swing, heading="t,theta,theta,torque")
    with pytest.raises(ValueError, match="column2 or column3"):
        read(path, time="t", coordinates=["theta"])
    data = read(path, time="t", coordinates={"theta": "column2"}, rates={"theta": "column3"})
    np.testing.assert_array_equal(data.trajectories[0].v[:, 0], swing["omega"])


def test_the_summary_reads_as_text(swing, write_csv):
    write_csv(swing, "a.csv")
    path = write_csv(swing, "b.csv")
    shown = str(read(str(path.parent / "*.csv"), time="t", coordinates=["theta"]).summary)
    assert shown.startswith("2 runs, 2 trajectories: 800 rows read, 800 kept\n")
    assert shown.count("estimated: the rate of 'theta'") == 1
    assert "a.csv; same in 1 more" in shown


def test_a_unit_that_is_no_position_is_refused_for_a_coordinate(swing, write_csv):
    path = write_csv(swing)
    with pytest.raises(
        UserError, match=r"'theta'.*'kg' is neither one of length nor of angle.*deg"
    ):
        read(path, time="t", coordinates=["theta"], units={"theta": "kg"})
    run = read(path, time="t", coordinates=["theta"], units={"theta": "1"}).trajectories[0]
    assert np.array_equal(np.asarray(run["theta"]), swing["theta"])


def test_a_name_that_is_not_there_is_answered_with_those_that_are(swing, write_csv):
    with pytest.raises(
        UserError, match=r"'nope'\. Known: t, theta, omega, torque\. Name one of these"
    ):
        read(write_csv(swing), time="t", coordinates=["nope"])


def test_a_line_that_does_not_end_is_refused_for_its_length(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t [s]," + "a" * 200_000 + "\n0,1\n1,2\n")
    with pytest.raises(UserError, match=r"line of more than 131,072 bytes.*Shorten its headings"):
        read(path, time="t", coordinates=["a"])


def test_units_are_known_by_name_after_conversion(swing, write_csv):
    columns = {"t": swing["t"], "x [mm]": swing["theta"], "angle [deg]": swing["omega"]}
    columns |= {"F [kN]": swing["torque"], "n": swing["torque"], "load [g0]": np.ones(400)}
    roles = {"time": "t", "coordinates": ["x [mm]", "angle [deg]"], "parameters": ["load [g0]"]}
    path = write_csv(columns)
    found = read(path, **roles, inputs=["F [kN]", "n"]).summary
    assert dict(found.units) == {"x": "m", "angle": "rad", "F": "N", "load": "m/s^2"}
    stream = LogStream(path, **roles, inputs=["F [kN]", "n"], window=50, chunk_rows=200)
    assert stream.summary.units == found.units
    # The same for inputs with times of their own.
    other = write_csv({"t": swing["t"], "F [kN]": swing["torque"]}, "inputs.csv")
    found = read(path, **roles, inputs=["F [kN]"], input_files=other).summary
    assert dict(found.units)["F"] == "N"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": 3}, r"A path is text.* this one is 3"),
        ({"paths": [None]}, r"A path is text.* this one is None"),
        ({"time": 3}, r"A column is called 3; give its heading as text"),
        ({"coordinates": 3}, r"coordinates is 3; give a list of columns"),
        ({"coordinates": {"theta": 2}}, r"A column is called 2; "),
        ({"rates": 1.5}, r"rates is 1\.5; give a list"),
        ({"inputs": {"u": 2}}, r"A column is called 2; "),
        ({"run": ["theta"]}, r"A column is called \['theta'\]"),
        ({"units": "deg"}, r"units is 'deg'; give them by column"),
        ({"units": {"theta": 3}}, r"The unit of 'theta' is 3; give it as text"),
        ({"angles": 3}, r"angles is 3; give a list"),
        ({"longest_step_s": "long"}, r"longest_step_s is 'long'; it must be more than 0 seconds"),
        ({"gaps": 3}, r"Unknown value of gaps 3\."),
    ],
)
def test_roles_of_the_wrong_type_are_refused_in_a_sentence(
    untyped, options, message, write_csv, swing
):
    given = {"paths": write_csv(swing), "time": "t", "coordinates": ["theta"], **options}
    with pytest.raises(UserError, match=message):
        read(given.pop("paths"), **given)
