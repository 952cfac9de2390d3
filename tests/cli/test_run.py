"""`mbdnode run`: what it writes, what it repeats, what it refuses."""

import json
import signal
import sys
from contextlib import nullcontext
from unittest import mock

import pytest

from mbdnode import naming
from mbdnode.models import KINDS, MODELS, load

SMALL = ["--set", "width=8", "epochs=2"]
FILES = {
    "config.json",
    "metrics.json",
    "history.csv",
    "model.safetensors",
    "truth.csv",
    "prediction.csv",
    "figure.png",
    "mbdnode.json",
}
KEYS = {
    "case",
    "model",
    "recipe",
    "integrator",
    "seed",
    "mse",
    "mse_id",
    "mse_ood",
    "mse_sum",
    "train_seconds",
    "compile_seconds",
    "updates",
    "position_residual",
    "velocity_residual",
    "status",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from mbdnode.cli import main

    place = tmp_path_factory.mktemp("runs") / "damper"
    assert main(["run", "single-mass-spring-damper", *SMALL, "--out", str(place)]) == 0
    return place


def test_run_writes_its_folder(folder):
    assert {path.name for path in folder.iterdir()} == FILES
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics) >= KEYS
    assert metrics["updates"] == 2 * 300
    assert metrics["status"] == "completed 2 epochs"
    assert (folder / "history.csv").read_text().count("\n") == 3
    assert load(folder / "model.safetensors").settings.width == 8


def test_run_is_repeated_from_its_configuration_to_the_same_bits(folder, run, tmp_path):
    again = tmp_path / "again"
    code, *_ = run("run", "--config", folder / "config.json", "--out", again)
    assert code == 0
    for name in ("model.safetensors", "prediction.csv", "config.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.slow
def test_law_of_a_case_is_found_from_the_command_line(run, tmp_path):
    found = tmp_path / "law"
    code, *_ = run("run", "single-mass-spring-damper", "--recipe", "fast", "--out", found)
    assert code == 0
    told = json.loads((found / "metrics.json").read_text())
    assert told["model"] == "law"
    assert told["explained"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["single-pendulm"], "'single-pendulum'"),
        ([], "Name a case"),
        (["single-pendulum", "--model", "mbdnode"], "'mbd-node'"),
        (["single-pendulum", "--recipe", "papr"], "'paper'"),
        (["single-pendulum", "--integrator", "rk5"], "'rk4'"),
        (["single-pendulum", "--integrator", "lf2", "--set", "use_velocity=true"], "use_velocity"),
        (["single-pendulum", "--seed", "-1"], "negative"),
        (["single-pendulum", "--set", "epoch=3"], "'epochs'"),
        (["single-pendulum", "--set", "epochs=three"], "whole number"),
        (["single-pendulum", "--set", "epochs=0"], "at least 1"),
        (["single-pendulum", "--set", "learning_rate=-1"], "above zero"),
        (["single-pendulum", "--set", "activation=tan"], "'tanh'"),
        (["single-pendulum", "--set", "window=1000"], "Shorten the window"),
        (["single-pendulum", "--set", "width=100000000"], "Lower its width or layers"),
        (["single-pendulum", "--model", "lstm", "--set", "width=100000000"], "width or layers"),
        (["single-pendulum", "--set", "gradient=adjoint"], "dopri5"),
        (["slider-crank", "--set", "forces=added"], "forces='inputs'"),
        (["single-pendulum", "--set", "epochs"], "key=value"),
        (["single-pendulum", "--resume"], "nothing to resume"),
        (["--config", "nowhere.json"], "nowhere.json"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_written(run, tmp_path, arguments, message):
    out = tmp_path / "out"
    code, _, err = run("run", *arguments, "--out", out)
    assert code == 2
    assert message in err
    assert not out.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"case": 1}',
        b'{"case": "cart-pole", "settings": 3}',
        b'{"case": "cart-pole", "training": []}',
        b'{"case": "cart-pole", "seed": 1e400}',
    ],
    ids=lambda content: content[:40].decode(errors="replace"),
)
def test_damaged_configuration_is_the_users_to_repair(run, tmp_path, content):
    (tmp_path / "config.json").write_bytes(content)
    result = run("run", "--config", tmp_path / "config.json", "--out", tmp_path / "out")
    assert result.code == 2, result.err
    assert result.err.startswith("error: ")
    assert not (tmp_path / "out").exists()


def test_interrupted_training_exits_with_130_and_can_go_on(folder, run, tmp_path, monkeypatch):
    from mbdnode.reproduction import run as experiment

    def press_ctrl_c(row, total):
        if row["epoch"] == 0:
            signal.raise_signal(signal.SIGINT)

    def must_not_run(*arguments, **options):
        raise AssertionError("went on after Ctrl-C")

    command = sys.modules["mbdnode.cli.run"]
    monkeypatch.setattr(command, "counting_rows", lambda: nullcontext(press_ctrl_c))
    monkeypatch.setattr(experiment, "predict", must_not_run)
    out = tmp_path / "a b"
    result = run("run", "single-mass-spring-damper", *SMALL, "--out", out)
    assert result.code == 130
    assert f"mbdnode run --config '{out}/config.json' --out '{out}' --resume" in result.err
    assert {path.name for path in out.iterdir()} == {
        "config.json",
        "checkpoint.safetensors",
        "mbdnode.json",
    }
    monkeypatch.undo()
    again = run("run", "--config", out / "config.json", "--out", out, "--resume")
    assert again.code == 0
    assert {path.name for path in out.iterdir()} == FILES
    one, other = (place / "model.safetensors" for place in (folder, out))
    assert one.read_bytes() == other.read_bytes()


def test_folder_of_another_run_is_left_alone(folder, run):
    before = (folder / "metrics.json").read_bytes()
    code, _, err = run("run", "single-pendulum", *SMALL, "--out", folder)
    assert code == 2
    assert "another run" in err
    assert (folder / "metrics.json").read_bytes() == before


def test_finished_run_is_not_resumed(folder, run):
    code, _, err = run("run", "--config", folder / "config.json", "--out", folder, "--resume")
    assert code == 2
    assert "finished" in err


def test_options_beside_a_configuration_are_refused(folder, run, tmp_path):
    code, _, err = run(
        "run", "--config", folder / "config.json", "--seed", "3", "--out", tmp_path / "out"
    )
    assert code == 2
    assert "--seed" in err


MINE = """
import dataclasses
from mbdnode.models import FCNN
class Mine(FCNN):
    kind = "mine"
    paper = ()
def falling(update):
    return 1e-2 / (1 + update)
def make(count_in, count_out, seed):
    import equinox as eqx, jax
    return eqx.nn.MLP(count_in, count_out, 4, 1, key=jax.random.key(seed))
"""


@pytest.fixture
def my_models(tmp_path, monkeypatch):
    """A module of a user's own, in the working folder."""
    (tmp_path / "my_models.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(naming, "_OBJECTS", {})
    with mock.patch.dict(KINDS), mock.patch.dict(MODELS):
        yield tmp_path
    sys.modules.pop("my_models", None)


def test_model_and_schedule_of_ones_own_are_named_by_their_module(my_models, run):
    asked = ("--model", "my_models:Mine", "--set", "schedule=my_models:falling", "epochs=2")
    found = run("run", "single-mass-spring-damper", *asked, "width=4", "--out", my_models / "own")
    assert found.code == 0, found.err
    rates = [line.split(",")[2] for line in (my_models / "own/history.csv").read_text().split()]
    # Of the first update of each of two epochs of 301 states.
    assert [float(rate) for rate in rates[1:]] == pytest.approx([1e-2, 1e-2 / 302])
    config = json.loads((my_models / "own/config.json").read_text())
    assert (config["model"], config["training"]["schedule"]) == (asked[1], "my_models:falling")
    assert load(my_models / "own/model.safetensors").kind == "mine"
    found = run("run", "single-mass-spring-damper", "--model", "my_models:falling")
    assert found.code == 2
    assert "my_models:falling is no class of models" in found.err


def test_former_name_of_a_recipe_runs_and_is_stored_by_its_new_one(run, tmp_path):
    asked = ("refinement=1", "epochs=1", "updates=2", "width=2", "structure=free")
    place = tmp_path / "run"
    found = run("run", "single-mass-spring", "--recipe", "trained", "--set", *asked, "--out", place)
    assert found.code == 0, found.err
    config = json.loads((place / "config.json").read_text())
    assert config["recipe"] == "adam-lm"
    # As it was stored before.
    (place / "old.json").write_text(json.dumps({**config, "recipe": "trained"}))
    found = run("run", "--config", place / "old.json", "--out", tmp_path / "again")
    assert found.code == 0, found.err
    first, again = (load(path / "model.safetensors") for path in (place, tmp_path / "again"))
    assert (first.network.weights[0] == again.network.weights[0]).all()


def test_folder_with_code_of_ones_own_is_read_by_commands_that_import_it(my_models, run):
    case, own, out = "single-mass-spring-damper", my_models / "own", my_models / "run.csv"
    asked = ("--set", "network=my_models:make", "epochs=1", "--out", own)
    assert run("run", case, *asked).code == 0
    naming._OBJECTS.clear()  # As in another process.
    command = ("simulate", own, "--steps", "5", "--out", out)
    refused = run(*command)
    assert refused.code == 2
    assert "mbdnode --import my_models:make" in refused.err
    found = run("--import", "my_models:make", *command)
    assert found.code == 0, found.err
    assert len(out.read_text().splitlines()) == 7
    forecaster = my_models / "forecaster"
    asked = ("--model", "my_models:Mine", "--set", "epochs=1", "width=4", "--out", forecaster)
    assert run("run", case, *asked).code == 0
    KINDS.pop("mine"), MODELS.pop("my_models:Mine"), naming._OBJECTS.clear()
    command = ("simulate", forecaster, "--steps", "5", "--out", out)
    assert "mbdnode --import my_models:Mine" in run(*command).err
    assert (
        "a Mine, which goes on from a recorded" in run("--import", "my_models:Mine", *command).err
    )
