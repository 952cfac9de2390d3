import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet
import pytest

# The closed form of this case compiles nothing, so the tests that need any case use it.
QUICK = "single-mass-spring"


def read(path):
    header = path.read_text().splitlines()[0].split(",")
    return dict(zip(header, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))


def test_case_is_written_as_it_is(run, tmp_path):
    result = run("simulate", QUICK, "--out", tmp_path / "run.csv")
    assert result.code == 0
    data = read(tmp_path / "run.csv")
    assert list(data) == ["t", "x", "x_dot"]
    assert len(data["t"]) == 3_001
    # x = cos(w t) with w^2 = k/m = 5; a few units in the last place of w t, which reaches 67.
    w = np.sqrt(5.0)
    np.testing.assert_allclose(data["x"], np.cos(w * data["t"]), atol=1e-13)
    np.testing.assert_allclose(data["x_dot"], -w * np.sin(w * data["t"]), atol=1e-13)


def test_summary_says_what_was_written(run, tmp_path):
    result = run("simulate", QUICK, "--steps", 50, "--out", tmp_path / "run.csv")
    assert result.err == ""
    assert "51 rows" in result.out
    assert str(tmp_path / "run.csv") in result.out
    assert "0 to 0.5 s" in result.out
    assert "completed" in result.out
    assert "energy drift" in result.out
    assert "residual" not in result.out  # it has no constraints


def test_step_that_is_too_long_is_told(run, tmp_path):
    request = (
        "simulate",
        QUICK,
        "--steps",
        100,
        "--integrator",
        "rk4",
        "--out",
        tmp_path / "a.csv",
    )
    # By its closed form, RK4 at 1 s loses a fourth of the amplitude in every two steps.
    result = run(*request, "--dt", 1)
    assert result.code == 0
    assert "completed at t = 100 s (step 100); the step is too long: error about" in result.out
    assert "too long" not in run(*request, "--dt", 0.05).out


def test_requests_change_the_run(run, tmp_path):
    result = run(
        *("simulate", QUICK, "--steps", 40, "--dt", 0.025, "--integrator", "LF2"),
        *("--initial", "x=0", "x_dot=-2", "--set", "m=2", "k=8", "--out", tmp_path / "run.csv"),
    )
    assert result.code == 0
    data = read(tmp_path / "run.csv")
    np.testing.assert_allclose(data["t"], 0.025 * np.arange(41), rtol=1e-15)
    # Drift, kick, drift from x = 0 is x_n = v/w cos(b) sin(2 b n) with sin(b) = w h/2, in exact
    # arithmetic; with w = 2 that is 4e-4 away from the true motion.
    b = np.arcsin(2 * 0.025 / 2)
    np.testing.assert_allclose(data["x"], -np.cos(b) * np.sin(2 * b * np.arange(41)), atol=1e-14)


def test_parquet_holds_the_same_numbers_as_csv(run, tmp_path):
    for name in ("run.csv", "run.parquet"):
        assert run("simulate", QUICK, "--steps", 9, "--out", tmp_path / name).code == 0
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    for name, values in read(tmp_path / "run.csv").items():
        np.testing.assert_array_equal(table[name].to_numpy(), values)


@pytest.fixture(scope="module")
def crank_files(tmp_path_factory):
    from mbdnode.cli import main

    folder = tmp_path_factory.mktemp("crank")
    common = ["simulate", "slider-crank", "--steps", "20"]
    for name, seed in (("a", []), ("b", ["--seed", "0"]), ("c", ["--seed", "1"])):
        assert main([*common, *seed, "--out", str(folder / f"{name}.csv")]) == 0
    return {name: read(folder / f"{name}.csv") for name in "abc"}


def test_constrained_case_has_coordinates_velocities_and_inputs(crank_files):
    bodies = [f"{c}{i}" for i in (1, 2, 3) for c in ("x", "y", "theta")]
    assert list(crank_files["a"]) == ["t", *bodies, *(f"{b}_dot" for b in bodies), "F", "T"]


def test_seed_decides_the_random_inputs(crank_files):
    for name in ("F", "T", "theta1"):
        np.testing.assert_array_equal(crank_files["a"][name], crank_files["b"][name])
        assert np.any(crank_files["a"][name] != crank_files["c"][name])


# x3 = 2 cos(theta1) + 4 cos(theta2) with sin(theta2) = -sin(theta1)/2: at x3 = 6 the mechanism is
# stretched, at x3 = 5 the law of cosines gives cos(theta1) = (4 + 25 - 16)/(2 2 5) = 13/20.
def test_other_coordinates_replace_the_cases_own(run, tmp_path):
    out = tmp_path / "run.csv"
    result = run("simulate", "slider-crank", "--steps", 20, "--initial", "x3=5", "--out", out)
    assert result.code == 0, result.err
    assert "position residual" in result.out
    data = read(out)
    assert data["x3"][0] == pytest.approx(5.0, abs=1e-12)
    assert np.cos(data["theta1"][0]) == pytest.approx(13 / 20, abs=1e-12)
    assert data["theta1_dot"][0] == 1.0  # the case's own, which contradicts nothing


def test_other_velocities_replace_the_cases_own(run, tmp_path):
    out = tmp_path / "run.csv"
    result = run("simulate", "slider-crank", "--steps", 20, "--initial", "x1_dot=0.3", "--out", out)
    assert result.code == 0, result.err
    data = read(out)
    assert data["theta1"][0] == 1.0
    # x1 = cos(theta1), so x1' = -sin(theta1) theta1'.
    assert data["theta1_dot"][0] == pytest.approx(-0.3 / np.sin(1.0), abs=1e-12)


def test_inputs_of_a_log_drive_a_case_and_those_left_out_are_zero(run, tmp_path):
    t = np.arange(21) * 0.01
    log, out = tmp_path / "torque.csv", tmp_path / "run.csv"
    table = np.column_stack([t, np.sin(t), np.cos(t)])
    np.savetxt(log, table, delimiter=",", header="t,T,motor", comments="", fmt="%.17g")
    for role, column in (("inputs=T", 1), ("T=T", 1), ("T=motor", 2)):
        figure = tmp_path / "run.svg"
        command = ("simulate", "slider-crank", "--inputs", log, "--role", role, "--out", out)
        result = run(*command, "--plot", figure)
        assert (result.code, result.err) == (0, "")
        data = read(out)
        np.testing.assert_array_equal(data["T"], table[:, column])
        assert not np.any(data["F"])
        assert figure.read_text().startswith("<?xml")
    result = run("simulate", "slider-crank", "--inputs", log, "--out", out)
    assert result.code == 2
    assert "for inputs: 'F'" in result.err
    result = run(*command, "--steps", 3)
    assert result.code == 2
    assert "gives the times, so leave" in result.err


def test_a_mechanism_in_python_moves_as_the_case_does(run, tmp_path):
    name, start = "mbdnode.mechanisms:SliderCrank", ("--initial", "theta1=1", "theta1_dot=1")
    files = [tmp_path / "case.csv", tmp_path / "python.csv"]
    still = tmp_path / "still.csv"
    still.write_text("t,F,T\n" + "".join(f"{0.01 * row},0,0\n" for row in range(21)))
    assert run("simulate", "slider-crank", "--inputs", still, "--out", files[0]).code == 0
    assert run("simulate", name, *start, "--steps", 20, "--out", files[1]).code == 0
    one, other = map(read, files)
    for column in one:
        np.testing.assert_allclose(one[column], other[column], atol=1e-14)


def test_rollout_that_ends_early_keeps_the_good_rows(run, tmp_path):
    out = tmp_path / "run.csv"
    result = run(
        *("simulate", "double-pendulum", "--steps", 60, "--integrator", "fe1", "--dt", 3),
        *("--out", out),
    )
    assert result.code == 1
    assert (
        "error: the rollout could not follow the motion, since the step is too long" in result.err
    )
    data = np.column_stack(list(read(out).values()))
    assert 1 <= len(data) < 61
    assert np.all(np.isfinite(data))
    assert f"{len(data)} rows" in result.out


def test_interrupt_while_writing_leaves_no_file(run, tmp_path, monkeypatch):
    import pyarrow.csv

    def interrupt(*arguments):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(pyarrow.csv, "write_csv", interrupt)
    assert run("simulate", QUICK, "--steps", 9, "--out", tmp_path / "run.csv").code == 130
    assert list(tmp_path.iterdir()) == []


# In a process of its own: a program that is compiled already would not call what takes its place.
INTERRUPTED = """
import importlib, signal, sys
from mbdnode.cli import main

module = importlib.import_module("mbdnode.simulation.simulate")
module.rollout = lambda *arguments, **options: signal.raise_signal(signal.SIGINT)
code = main(sys.argv[1:])
print("the process went on")
"""


def test_interrupt_while_computing_ends_the_process_at_once(tmp_path):
    request = ["simulate", "cart-pole", "--steps", "9", "--out", str(tmp_path / "run.csv")]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *request], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# Where the interrupt lands is a matter of luck; wherever it does, the end must be the same.
@pytest.mark.parametrize("after_s", [2.0, 4.0])
def test_interrupted_process_says_so_and_leaves_nothing(tmp_path, after_s):
    script = "import sys; from mbdnode.cli import main; sys.exit(main(sys.argv[1:]))"
    request = ["simulate", "slider-crank", "--steps", "10000000", "--out", str(tmp_path / "r.csv")]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *request], stderr=subprocess.PIPE, text=True
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
