import numpy as np
import pytest

from mbdnode.cli.app import app
from mbdnode.cli.inspect import inspect
from mbdnode.data.logs.columns_file import load_columns

if not any(command.callback is inspect for command in app.registered_commands):
    app.command()(inspect)


@pytest.fixture
def log(tmp_path):
    t = np.arange(300) * 0.01
    noise = np.random.default_rng(0).normal(0, 2.0, 300)
    theta = (200 * t + 30 * np.sin(3 * t) + noise) % 360
    keep = np.r_[0:100, 130:300]
    rows = np.column_stack([1e3 * t, theta, (200 + 90 * np.cos(3 * t)) / 6, np.sin(t)])[keep]
    path = tmp_path / "run.csv"
    heading = "t [ms];theta [deg];omega (rpm);torque"
    np.savetxt(path, rows, delimiter=";", header=heading, comments="", fmt="%.6f")
    return path


@pytest.mark.parametrize("columns", [80, 120])
def test_a_log_is_described_within_the_terminal(run, log, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    result = run("inspect", log)
    assert result.code == 0
    shown = result.out
    for part in ("270 rows", "median step 0.01 s", "1 longer than 5 steps", "semicolon"):
        assert part in shown
    row = next(line for line in shown.splitlines() if line.startswith("theta [deg]"))
    assert "coordinate?" in row
    assert "wrapped" in shown
    paths = (str(log), "mbdnode fit")
    tables = [line for line in shown.splitlines() if not any(path in line for path in paths)]
    assert max(map(len, tables)) <= columns


def test_noise_is_shown_as_a_part_of_the_spread(run, tmp_path):
    t = np.arange(2000) * 0.01
    x = np.sin(t) + 0.01 * np.std(np.sin(t)) * np.random.default_rng(0).standard_normal(2000)
    np.savetxt(tmp_path / "a.txt", np.column_stack([t, x]), header="t x", comments="% ")
    line = next(s for s in run("inspect", tmp_path / "a.txt").out.splitlines() if s[:2] == "x ")
    found = float(line.partition(" %")[0].split()[-1])
    assert found == pytest.approx(1.0, abs=0.15)


def test_what_to_type_is_said_and_the_roles_can_be_written(run, log, tmp_path):
    file = tmp_path / "roles.toml"
    result = run("inspect", log, "--write", file)
    assert f"mbdnode fit {log} --columns {file} --out" in result.out
    assert 'add gaps = "split"' in " ".join(result.out.split())
    assert load_columns(file) == {
        "time": "t [ms]",
        "coordinates": ["theta [deg]"],
        "rates": ["omega (rpm)"],
        "inputs": ["torque"],
    }


def test_one_bad_file_does_not_hide_the_others(run, log, tmp_path):
    (tmp_path / "bad.csv").write_bytes(bytes(range(32)) * 9)
    result = run("inspect", str(tmp_path / "*.csv"))
    assert result.code == 2
    assert "is not a text file" in " ".join(result.out.split())
    assert "270 rows" in result.out
    assert "1 that cannot be read" in result.out


def test_a_file_that_is_not_there_is_an_error_of_one_line(run, tmp_path):
    result = run("inspect", tmp_path / "none.csv")
    assert result.code == 2
    assert result.err.startswith("error: There is no file")
