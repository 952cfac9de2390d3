import shlex
from pathlib import Path

import numpy as np
import pytest

from mbdnode.cli.arguments import repeat_options, with_roles
from mbdnode.data.logs import as_columns
from mbdnode.data.logs.reading import Reader, find_pieces


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
    assert "gap of 0.31 s" in " ".join(result.out.split())
    assert 'Pass gaps="split" to cut' in " ".join(result.out.split())
    assert "gaps=split" not in result.out  # What is typed has it in the file.
    assert as_columns(file).given() == {
        "time": "t [ms]",
        "coordinates": ("theta [deg]",),
        "rates": ("omega (rpm)",),
        "inputs": ("torque",),
        "gaps": "split",
    }
    assert run("inspect", log).out.count(" gaps=split ") == 1  # What to type.


def test_outliers_are_named_with_what_fit_would_do(run, tmp_path):
    t = np.arange(300) * 0.01
    theta = np.sin(3 * t)
    theta[120] = 4.5
    path = tmp_path / "run.csv"
    np.savetxt(path, np.column_stack([t, theta]), delimiter=",", header="t,theta", comments="")
    shown = " ".join(run("inspect", path).out.split())
    assert "replace 1 outlier of 'theta' by what the neighbors say: 4.5 at line 122" in shown
    assert 'outliers="keep" leaves them' in shown


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


T = np.arange(60) * 0.1
X, V = np.sin(T), np.cos(T)


def written(path, columns, rows=slice(None)):
    table = np.column_stack(list(columns.values()))[rows]
    lines = [";".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in table]
    path.write_text("\n".join([";".join(columns), *lines]) + "\n")
    return path


HOLES = np.where(np.arange(60) % 20 == 7, np.nan, X)
LOGS = {
    "whole": ({"t": T, "x": X, "x_dot": V}, True),
    "no rates": ({"t": T, "x": X}, True),
    "gap": ({"t": np.where(T > 3, T + 5, T), "x": X}, True),
    "time goes back": ({"t": T % 3, "x": X}, True),
    "missing values": ({"t": T, "x": HOLES}, True),
    "comma in a name": ({"t": T, "x, of the cart": X, "theta": X}, True),
    "no time": ({"a": np.tan(5 * T), "x": X}, False),
    "no coordinate": ({"t": T, "a": np.tan(5 * T)}, False),
    "unclear unit": ({"t": T, "x [MM]": X}, False),
    "two of one name": ({"t": T, "theta": X, "Theta": V}, True),
    "few rows": ({"t": T[:9], "x": X[:9]}, False),
}


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("write", [True, False])
def test_command_that_is_printed_is_not_refused(run, tmp_path, monkeypatch, name, write):
    monkeypatch.chdir(tmp_path)
    columns, usable = LOGS[name]
    written(tmp_path / "a log.csv", columns)
    options = ["--write", "columns.toml"] if write else []
    out = run("inspect", "a log.csv", *options).out
    commands = [line.strip() for line in out.splitlines() if "mbdnode fit" in line]
    assert bool(commands) == usable
    assert ("fit would refuse" in out) == (not usable)
    for command in commands:
        check_command(command)


def check_command(command):
    """What `fit` does with a command before anything is trained."""
    words = repeat_options(shlex.split(command)[2:])
    given = {option: [] for option in ("--role", "--columns", "--out")}
    logs = [words.pop(0)]
    while not words[0].startswith("--"):
        logs.append(words.pop(0))
    for option, value in zip(words[::2], words[1::2], strict=True):
        given[option].append(value)
    columns = next(map(Path, given["--columns"]), None)
    if columns is not None and not columns.exists():
        assert "columns.toml" in str(columns)  # The user is told to write it.
        return
    roles = with_roles(as_columns(columns), given["--role"])
    reader = Reader(find_pieces(logs, roles), roles)
    assert sum(len(table) for table, _ in reader.segments()) > 20
    assert not Path(given["--out"][0]).exists()


def test_files_that_cannot_be_read_are_not_in_the_command(run, tmp_path):
    written(tmp_path / "a.csv", {"t": T, "x": X})
    written(tmp_path / "b.csv", {"t": T, "x": X})
    (tmp_path / "c.csv").write_bytes(bytes(range(32)) * 9)
    out = run("inspect", str(tmp_path / "*.csv")).out
    (command,) = [line.strip() for line in out.splitlines() if "mbdnode fit" in line]
    assert "a.csv" in command
    assert "c.csv" not in command
    check_command(command)


def test_logs_with_different_columns_get_no_command(run, tmp_path):
    written(tmp_path / "a.csv", {"t": T, "x": X})
    written(tmp_path / "b.csv", {"t": T, "y": X})
    out = run("inspect", str(tmp_path / "*.csv")).out
    assert "mbdnode fit" not in out
    assert "Unknown column" in out


def test_one_row_is_too_few_and_no_roles_are_written(run, tmp_path):
    (tmp_path / "a.csv").write_text("t [s],angle [deg]\n0,61.2\n")
    result = run("inspect", tmp_path / "a.csv", "--write", tmp_path / "roles.toml")
    assert result.code == 2
    assert "There is 1 row in all" in result.err
    assert "at least 20. Record more" in result.err
    assert not (tmp_path / "roles.toml").exists()
    assert "There is 1 row in all" in " ".join(run("inspect", tmp_path / "a.csv").out.split())


def test_a_log_whose_time_runs_backwards_is_turned_round_by_inspect_as_by_read(run, tmp_path):
    t = np.arange(100)[::-1] * 0.02
    table = np.column_stack([t, np.sin(t)])
    path, file = tmp_path / "a.csv", tmp_path / "roles.toml"
    np.savetxt(path, table, delimiter=",", header="t [s],theta", comments="", fmt="%.9f")
    out = " ".join(run("inspect", path, "--write", file).out.split())
    assert "t [s] runs backwards all through: the rows are turned round" in out
    assert "median step 0.02 s" in out
    assert "mbdnode fit" in out
    reader = Reader(find_pieces(path, as_columns(file)), as_columns(file))
    (segment,) = [segment for segment, _ in reader.segments()]
    assert np.max(np.abs(segment[:, 1] - np.sin(segment[:, 0]))) < 1e-8
    assert segment[0, 0] == 0.0


def test_a_column_with_words_among_its_numbers_is_not_advised(run, tmp_path):
    rows = [f"{0.02 * i:.2f},{'oops' if i == 8 else i}" for i in range(50)]
    (tmp_path / "a.csv").write_text("t [s],angle [deg]\n" + "\n".join(rows) + "\n")
    out = " ".join(run("inspect", tmp_path / "a.csv").out.split())
    assert "'oops'" in out
    assert "angle [deg] cannot be read. Fix what stands there" in out
    assert "coordinates = [" not in out


def test_columns_of_one_heading_are_told_apart_by_their_places(run, tmp_path):
    t = np.arange(100) * 0.02
    path, file = tmp_path / "a.csv", tmp_path / "roles.toml"
    table = np.column_stack([t, np.sin(t)])
    np.savetxt(path, table, delimiter=",", header="t [s],t [s]", comments="")
    out = " ".join(run("inspect", path, "--write", file).out.split())
    assert as_columns(file).given() == {"time": "column1"}
    assert "t [s] is above several columns" in out
    assert 'coordinates = ["column2"]' in out
