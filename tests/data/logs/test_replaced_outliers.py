"""Outliers in logs: which values take their place, and what is said of them."""

import numpy as np
import pytest

from mbdnode.data.logs import read
from mbdnode.data.logs.columns import Columns
from mbdnode.data.logs.reading import Reader, find_pieces
from mbdnode.errors import UserError

ROLES = {"time": "t", "coordinates": ["theta"], "inputs": ["torque"]}
# The cubic through eight samples of a sine of 5 rad/s every 0.02 s is that close to it.
NEAR = 2e-4


def spoiled(swing, column, **changes):
    values = swing[column].copy()
    for row, value in changes.items():
        values[int(row[1:])] = value
    return {**swing, column: values}


def test_an_outlier_is_replaced_and_said_by_line_and_value(swing, write_csv):
    path = write_csv(spoiled(swing, "theta", _100=7.5, _300=-4.0))
    data = read(path, **ROLES)
    theta = np.asarray(data.trajectories[0]["theta"])
    assert np.max(np.abs(theta - swing["theta"])) < NEAR
    untouched = np.delete(np.arange(400), [100, 300])
    assert np.array_equal(theta[untouched], swing["theta"][untouched])
    (note,) = data.summary.of_kind("replaced")
    assert note.place == str(path)
    # Line 1 has the names.
    assert "2 outliers of 'theta'" in note.text
    assert "7.5 at line 102" in note.text
    assert "-4 at line 302" in note.text
    assert 'outliers="keep"' in note.text
    assert data.summary.account.kept == 400
    assert data.summary.account.adds_up
    assert len(data.trajectories) == 1


def test_outliers_are_kept_on_request_and_said_all_the_same(swing, write_csv):
    path = write_csv(spoiled(swing, "theta", _100=7.5))
    data = read(path, **ROLES, outliers="keep")
    assert float(data.trajectories[0]["theta"][100]) == 7.5
    assert any(
        "1 outlier of 'theta' kept: 7.5 at line 102" in w.text for w in data.summary.warnings
    )
    assert not data.summary.of_kind("replaced")


def test_an_outlier_of_a_measured_rate_is_replaced_and_its_coordinate_left(swing, write_csv):
    path = write_csv(spoiled(swing, "omega", _50=90.0))
    run = read(path, **ROLES, rates=["omega"]).trajectories[0]
    assert np.max(np.abs(np.asarray(run["omega"]) - swing["omega"])) < 1e-3
    assert np.array_equal(np.asarray(run["theta"]), swing["theta"])


def test_inputs_may_jump_for_a_single_row(swing, write_csv):
    path = write_csv(spoiled(swing, "torque", _100=50.0))
    data = read(path, **ROLES)
    assert float(data.trajectories[0]["torque"][100]) == 50.0
    assert not data.summary.of_kind("replaced")


def test_values_are_said_in_the_unit_of_the_file(swing, write_csv):
    columns = spoiled(swing, "theta", _100=2.0)
    path = write_csv({**columns, "theta [deg]": np.rad2deg(columns["theta"])})
    (note,) = read(path, **{**ROLES, "coordinates": ["theta [deg]"]}).summary.of_kind("replaced")
    assert "114.592 deg at line 102" in note.text


@pytest.mark.parametrize("size", [0.7, 3.0, np.pi, 5.5, 100.0])
@pytest.mark.parametrize("with_rate", [False, True])
def test_a_wrapped_angle_is_unwrapped_across_its_outliers(write_csv, size, with_rate):
    t = np.arange(800) * 0.01
    angle, rate = 5 * t + 0.5 * np.sin(3 * t), 5 + 1.5 * np.cos(3 * t)
    wrapped = angle % (2 * np.pi)
    for row in (120, 333, 334, 700):
        wrapped[row] += size
    path = write_csv({"t": t, "angle": wrapped, "rate": rate})
    extra = {"rates": ["rate"]} if with_rate else {}
    found = read(path, time="t", coordinates=["angle"], **extra)
    assert np.max(np.abs(np.asarray(found.trajectories[0]["angle"]) - angle)) < 1e-4
    assert "4 outliers of 'angle'" in found.summary.of_kind("replaced")[0].text


def test_an_angle_that_trembles_where_it_is_wrapped_has_no_outliers(write_csv):
    t = np.arange(800) * 0.01
    angle = 0.05 * np.sin(t) + 0.002 * np.random.default_rng(0).normal(size=800)
    found = read(write_csv({"t": t, "angle": angle % (2 * np.pi)}), time="t", coordinates=["angle"])
    values = np.asarray(found.trajectories[0]["angle"])
    assert np.max(np.abs(values - values[0] - (angle - angle[0]))) < 1e-9
    assert not found.summary.of_kind("replaced")


def test_every_file_is_named(swing, write_csv):
    paths = [write_csv(spoiled(swing, "theta", _100=7.5 + i), f"{i}.csv") for i in range(3)]
    said = str(read(paths, **ROLES).summary)
    for i, path in enumerate(paths):
        assert f"{7.5 + i:g} at line 102" in said
        assert str(path) in said


def test_a_log_in_parts_has_the_same_outliers(swing, write_csv):
    path = write_csv(spoiled(swing, "theta", _100=7.5, _300=-4.0))
    columns = Columns(**ROLES)
    reader = Reader(find_pieces(path, columns), columns, most_rows=150)
    theta = np.concatenate([table[:, 1] for table, _ in reader.segments()])
    assert np.max(np.abs(theta - swing["theta"])) < NEAR


def test_a_word_for_outliers_that_is_not_known_is_refused(swing, write_csv):
    with pytest.raises(UserError, match=r"Unknown value of outliers 'drop'.*replace.*keep"):
        read(write_csv(swing), **ROLES, outliers="drop")
