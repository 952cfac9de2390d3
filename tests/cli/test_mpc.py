"""`mbdnode mpc`: what it writes, what it says, what it refuses."""

import csv
import json

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms.cart_pole import CartPole

SHORT = ["--steps", "30"]
FILES = {
    "trajectory.csv",
    "decisions.csv",
    "control.json",
    "figure.png",
    "motion.gif",
    "mbdnode.json",
}


def test_loop_with_the_equations_of_motion_is_written(run, tmp_path):
    result = run("mpc", "cart-pole", *SHORT, "--out", tmp_path / "loop")
    assert result.code == 0
    assert {path.name for path in (tmp_path / "loop").iterdir()} == FILES
    assert "did not settle below 0.001 within 0.6 s" in result.out
    summary = json.loads((tmp_path / "loop" / "control.json").read_text())
    assert summary["steps"] == 30
    assert summary["decision_median_s"] <= summary["decision_p99_s"]
    with (tmp_path / "loop" / "decisions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 30
    assert {row["status"] for row in rows} == {"solved"}


def test_options_change_the_controller(run, tmp_path):
    options = ["--horizon", "20", "--dt", "0.05", "--relinearize", "each", "--terminal", "none"]
    assert run("mpc", "cart-pole", "--steps", "3", *options, "--out", tmp_path).code == 0
    summary = json.loads((tmp_path / "control.json").read_text())
    assert (summary["horizon"], summary["dt_s"], summary["relinearize"]) == (20, 0.05, "each")


@pytest.fixture
def learned(tmp_path):
    """The folder of a run, as far as the command reads it: an untrained network."""
    folder = tmp_path / "run"
    folder.mkdir()
    model = mbd.MBDNODE.for_system(CartPole(), width=4, angle_features=True)
    mbd.save(model, folder / "model.safetensors")
    return folder


def test_learned_model_is_compared_with_the_truth(run, learned, tmp_path):
    # An untrained network does not stand still at the target, nor need it be stabilizable.
    options = ["--model", learned, "--steps", "5", "--terminal", "none", "--relinearize", "each"]
    result = run("mpc", "cart-pole", *options, "--out", tmp_path / "loop")
    assert result.code == 0
    assert {path.name for path in (tmp_path / "loop").iterdir()} == FILES | {"truth.csv"}
    beside = json.loads((tmp_path / "loop" / "control.json").read_text())["against_truth"]
    exact = mbd.linearize(CartPole(), [0.0] * 4)
    found = mbd.linearize(mbd.load(learned / "model.safetensors"), [0.0] * 4)
    assert beside["jacobian_error_A"] == pytest.approx(
        float(((found.A - exact.A) ** 2).sum() ** 0.5 / (exact.A**2).sum() ** 0.5), rel=1e-6
    )
    truth = mbd.read(tmp_path / "loop" / "truth.csv").trajectories[0]
    loop = mbd.read(tmp_path / "loop" / "trajectory.csv").trajectories[0]
    assert float(truth.u[0, 0]) != float(loop.u[0, 0])
    assert "against the truth" in result.out
    squares = [
        sum(float((np.asarray(run[name])[:-1] ** 2).sum()) for name in run.columns[1:])
        for run in (loop, truth)
    ]
    assert beside["cost_with_truth"] == pytest.approx(squares[1], rel=1e-9)
    assert f"{100 * (squares[0] / squares[1] - 1):+.2g} % of that" in result.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cart-poll"], "cart-poll"),
        (["cart-pole", "--model", "nowhere"], "no model.safetensors"),
        (["cart-pole", "--horizon", "0"], "horizon is 0"),
        (["cart-pole", "--steps", "0"], "steps is 0"),
        (["cart-pole", "--dt", "-1"], "dt is -1"),
        (["cart-pole", "--relinearize", "twice"], "twice"),
        (["cart-pole", "--terminal", "lqr"], "riccati or none"),
        (["slider-crank", "--relinearize", "once"], "The target moves"),
    ],
)
def test_impossible_request_is_refused_and_nothing_is_written(arguments, says, run, tmp_path):
    result = run("mpc", *arguments, "--out", tmp_path / "loop")
    assert result.code == 2
    assert says in result.err
    assert not (tmp_path / "loop").exists()


def test_model_of_another_system_is_refused_with_both_named(run, tmp_path):
    model = mbd.MBDNODE.for_system(CartPole(), width=4)
    (tmp_path / "learned").mkdir()
    mbd.save(model, tmp_path / "learned" / "model.safetensors")
    for config in ({}, {"case": "cart-pole"}):
        (tmp_path / "learned" / "config.json").write_text(json.dumps(config))
        result = run(
            "mpc", "slider-crank", "--model", tmp_path / "learned", "--out", tmp_path / "l"
        )
        assert result.code == 2
        assert f"{', '.join(CartPole().coordinate_names)};" in result.err
        assert "theta1" in result.err
        assert "mbdnode run slider-crank" in result.err
        assert not (tmp_path / "l").exists()


def test_out_that_is_a_file_is_refused(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = run("mpc", "cart-pole", "--out", tmp_path / "file")
    assert result.code == 2
    assert (tmp_path / "file").read_text() == "mine"
