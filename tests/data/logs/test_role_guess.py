"""Likely roles: shown, and never used unasked."""

import numpy as np
import pytest

from mbdnode.data.logs import as_columns, guess_roles, open_logs, read


def guess(path):
    return guess_roles(open_logs(path)[0])


T = np.arange(300) * 0.02
SINE, COSINE = np.sin(2 * T), 2 * np.cos(2 * T)


@pytest.mark.parametrize(
    ("coordinate", "rate"),
    [
        ("theta", "theta_dot"),
        ("theta", "omega"),
        ("theta [deg]", "omega (rpm)"),
        ("phi1", "dphi1"),
        ("x", "v_x"),
        ("pos", "vel"),
        ("foo", "bar"),
    ],
)
def test_a_coordinate_and_its_rate_are_found_by_name_or_by_value(write_csv, coordinate, rate):
    scale = {"theta [deg]": 180 / np.pi, "omega (rpm)": 60 / (2 * np.pi)}
    path = write_csv(
        {
            "time": T,
            rate: scale.get(rate, 1.0) * COSINE,
            coordinate: scale.get(coordinate, 1.0) * SINE,
            "motor torque": np.sign(SINE),
        }
    )
    found = guess(path)
    assert found.time == "time"
    assert found.coordinates == (coordinate,)
    assert dict(found.rates) == {coordinate: rate}
    assert found.inputs == ("motor torque",)


@pytest.mark.parametrize("name", ["arm angle [deg]", "encoder [deg]", "carriage [mm]"])
def test_a_name_of_two_words_or_a_unit_is_enough_for_a_coordinate(write_csv, name):
    path = write_csv({"time [s]": T, name: 30 * SINE, "drive [V]": np.sign(SINE)})
    found = guess(path)
    assert found.coordinates == (name,)
    assert found.inputs == ("drive [V]",)


def test_unit_of_motion_says_more_than_a_name_that_sounds_like_a_drive(write_csv):
    path = write_csv(
        {"t": T, "motor_angle [rad]": SINE, "link_angle [rad]": SINE**2, "motor [mNm]": COSINE**3}
    )
    found = guess(path)
    assert found.coordinates == ("motor_angle [rad]", "link_angle [rad]")
    assert found.inputs == ("motor [mNm]",)


@pytest.mark.parametrize("name", ["displacement [mm]", "distance [m]", "deflection [mm]"])
def test_word_that_begins_with_d_is_no_rate(write_csv, name):
    found = guess(write_csv({"t": T, name: SINE, "force [N]": np.sign(SINE)}))
    assert found.coordinates == (name,)
    assert not found.rates


def test_length_is_not_the_rate_of_another(write_csv):
    path = write_csv(
        {"t": T, "travel [mm]": SINE, "level [mm]": COSINE, "control_arm [deg]": SINE**2}
    )
    found = guess(path)
    assert found.coordinates == ("travel [mm]", "level [mm]", "control_arm [deg]")
    assert not found.rates
    assert not found.inputs


def test_what_a_controller_wanted_is_no_coordinate(write_csv):
    path = write_csv({"t": T, "position": SINE, "position reference [m]": COSINE})
    assert guess(path).coordinates == ("position",)


def test_the_derivative_of_a_rate_is_no_rate(write_csv):
    found = guess(write_csv({"t": T, "x": SINE, "v": COSINE, "a": -4 * SINE}))
    assert found.coordinates == ("x",)
    assert dict(found.rates) == {"x": "v"}


def test_a_clock_without_a_name_is_found_by_its_even_steps_and_a_count_is_not(write_csv):
    path = write_csv({"n": np.arange(300.0), "foo": T, "x": SINE, "v": COSINE})
    assert guess(path).time == "foo"


def test_a_coordinate_without_a_rate_and_a_run_column_and_a_parameter(write_csv):
    runs = np.repeat([1.0, 2.0, 3.0], 100)
    path = write_csv({"t": T, "trial": runs, "theta": SINE, "u": COSINE, "mass": np.ones(300)})
    found = guess(path)
    assert (found.run, found.coordinates, dict(found.rates)) == ("trial", ("theta",), {})
    assert (found.inputs, found.parameters) == (("u",), ("mass",))


def test_nothing_is_found_in_noise(write_csv):
    random = np.random.default_rng(0)
    found = guess(write_csv({"a1": random.normal(size=99), "b1": random.normal(size=99)}))
    assert not found.is_complete


def test_reading_without_roles_shows_the_guess_as_the_call_to_make(write_csv):
    path = write_csv({"t": T, "theta": SINE, "omega": COSINE})
    with pytest.raises(ValueError, match="never guessed silently") as caught:
        read(path)
    given = str(caught.value).partition("give it: ")[2].partition("; or ")[0]
    assert given == 'time="t", coordinates=["theta"], rates=["omega"]'
    data = eval(f"read(path, {given})", {"read": read, "path": path})
    np.testing.assert_array_equal(data.trajectories[0]["omega"], COSINE)


def test_a_guess_is_written_to_a_file_of_roles_and_read_from_it(write_csv, tmp_path):
    path = write_csv({"t": T, 'th"eta [deg]': SINE, "x": T**2, "x_dot": 2 * T, "F": COSINE})
    found = guess(path)
    found.columns.write(tmp_path / "columns.toml")
    assert as_columns(tmp_path / "columns.toml") == found.columns
    with pytest.raises(ValueError, match="exists already"):
        found.columns.write(tmp_path / "columns.toml")
    assert read(path, tmp_path / "columns.toml").trajectories[0].inputs == ("F",)
    assert found.columns.to_toml().startswith('time = "t"\n')


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("time = 3", "A column is called 3"),
        ("tiem = 't'", "Did you mean 'time'"),
        ("coordinates = 'theta'", "give a list of columns"),
        ("coordinates = ['x']\nrates = [1]", "A column is called 1"),
        ("units = ['deg']", "give them by column"),
        ("longest_step_s = true", "must be more than 0"),
        ("time = ", "is not TOML"),
        ("parameters = { m = true }", "give a column or a number"),
        ("a." * 20_000 + "b = 1", "50 levels deep"),
    ],
)
def test_a_file_of_roles_with_a_mistake_is_refused(untyped, tmp_path, text, part):
    path = tmp_path / "columns.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=part) as caught:
        as_columns(path)
    assert str(path) in str(caught.value)
