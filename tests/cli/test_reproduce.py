"""`mbdnode reproduce`: what it prints, its exit codes, what it refuses."""

import json

import pytest

from mbdnode.cli import output
from mbdnode.reproduction import dispatch, plan

CASE = "single-mass-spring-damper"


@pytest.fixture
def one_epoch(monkeypatch):
    """Quick runs of a single epoch."""
    monkeypatch.setattr(plan, "QUICK_PART", 1e-3)


def test_second_call_does_no_work(run, one_epoch, tmp_path):
    arguments = ("reproduce", "--quick", "--recipe", "paper", "--cases", CASE, "--out", tmp_path)
    first = run(*arguments)
    assert first.code == 0
    assert f"[1 of 1] {CASE}-mbd-node-rk4-paper-0: finished" in first.err
    (line,) = [line for line in first.out.splitlines() if line.startswith(CASE)]
    row = json.loads((tmp_path / "results.json").read_text())[0]
    assert row["quick"] is True
    # The paper's error of this system, and ours to two digits.
    assert line.split()[1:6] == ["mbd-node", "(free)", "rk4", "paper", "8.6e-4"]
    assert float(line.split()[6]) == pytest.approx(row["mse"], rel=0.06)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    second = run(*arguments)
    assert second.code == 0
    assert "Nothing to do" in second.out
    assert line in second.out
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stamps


@pytest.mark.parametrize(
    ("stage", "told"),
    [("candidate", "candidate 9, at most 61 more"), ("epoch", "epoch 9 of 70")],
)
def test_progress_says_what_is_counted_and_what_may_be_left(stage, told, monkeypatch, capsys):
    monkeypatch.setattr(output, "_RUN_QUIET_S", 0.0)
    with output.runs_progress(["law"]) as watch:
        watch(dispatch.RunEvent("law", "running", "here"))
        watch(dispatch.RunEvent("law", "running", "here", 9, 70, stage))
    assert f"[0 of 1] law: running, {told} (here)\n" in capsys.readouterr().err


def test_failed_run_is_told_without_a_traceback(run, one_epoch, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("no room for the samples")

    monkeypatch.setattr(dispatch, "run_in_folder", fail)
    arguments = ("reproduce", "--quick", "--recipe", "paper", "--cases", CASE, "--out", tmp_path)
    code, out, err = run(*arguments)
    assert code == 1
    assert "MemoryError: no room for the samples" in err
    assert "Traceback" not in out + err
    (line,) = [line for line in out.splitlines() if line.startswith(CASE)]
    assert line.split()[5] == "failed"
    error = tmp_path / "runs" / f"{CASE}-mbd-node-rk4-paper-0" / "error.txt"
    assert "Traceback" in error.read_text()
    monkeypatch.undo()
    monkeypatch.setattr(plan, "QUICK_PART", 1e-3)

    again = run(*arguments, "--resume")
    assert again.code == 0
    assert not error.exists()


def test_interrupt_says_how_to_go_on(run, one_epoch, tmp_path, monkeypatch):
    def press_ctrl_c(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(dispatch, "run_in_folder", press_ctrl_c)
    code, out, err = run("reproduce", "--quick", "--cases", CASE, "--out", tmp_path)
    assert code == 130
    assert f"mbdnode reproduce --cases {CASE} --quick --resume --out {tmp_path}" in err
    assert "Traceback" not in out + err
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cases", "cart-pol"], "'cart-pole'"),
        (["--cases", ","], "names nothing"),
        (["--models", "mbdnode"], "'mbd-node'"),
        (["--recipe", "papr"], "'paper'"),
        (["--seeds", "0"], "at least 1"),
        (["--seeds", "two"], "--seeds"),
        (["--jobs", "0"], "at least 1"),
        (["--jobs", "2", "--cluster", "tcp://127.0.0.1:9"], "give one of the two"),
        (["--quick", "--cluster", "tcp://127.0.0.1:9"], "No Dask scheduler answers"),
        (["--cases", "slider-crank", "--models", "lstm"], "Nothing to run"),
        (["--cases", "cart-pole", "--models", "mbd-node", "--samples", "9"], "change nothing"),
        (["--quick", "--resume"], "nothing to resume"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_written(run, tmp_path, arguments, message):
    out = tmp_path / "out"
    code, _, err = run("reproduce", *arguments, "--out", out)
    assert code == 2
    assert message in err
    assert not out.exists()
