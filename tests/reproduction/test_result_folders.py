"""Runs in this process, and the folders that they leave."""

import json
import os
import signal
from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

from mbdnode.data.files import read_json
from mbdnode.data.folders import MARKER, open_folder
from mbdnode.data.logs import read
from mbdnode.models import load
from mbdnode.reproduction.dispatch import place_folder, run_here
from mbdnode.reproduction.folder import is_finished
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

FILES = {"metrics.json": b"{}", "config.json": b"{}", "truth.csv": b"t\n0\n"}


def test_run_that_raises_is_a_row_and_the_next_one_is_carried_out(tiny_run, tmp_path):
    bad, good = tiny_run("bad", window="100000"), tiny_run("good")
    signs = []
    rows = run_here([bad, good], tmp_path, signs.append)
    assert rows["bad"]["outcome"] == "failed"
    assert rows["bad"]["mse"] is None
    assert rows["bad"]["status"].startswith("The window is 100000 steps")
    assert "Traceback" in (tmp_path / "bad" / "error.txt").read_text()
    assert not is_finished(tmp_path / "bad", bad.config)
    assert rows["good"]["outcome"] == "completed"
    assert is_finished(tmp_path / "good", good.config)
    told = [(s.run, s.state) for s in signs if s.state != "running" or not s.done]
    assert told == [(n, s) for n, end in (("bad", "failed"), ("good", "finished"))
                    for s in ("running", end)]  # fmt: skip
    assert [s.done for s in signs if s.run == "good" and s.done] == [1, 2, 3]
    assert {s.where for s in signs} == {f"process {os.getpid()}"}


def test_structure_that_a_run_chose_is_in_its_files_and_it_is_the_same_run(tiny_run, tmp_path):
    run = tiny_run(affine="true")
    run = replace(run, config=replace(run.config, structures=("lagrangian",)))
    (row,) = run_here([run], tmp_path, lambda sign: None).values()
    folder = tmp_path / run.name
    assert run.config.settings.structure == "free"
    assert read_json(folder / "config.json")["settings"]["structure"] == "lagrangian"
    assert row["structure"] == "lagrangian"
    assert is_finished(folder, run.config)
    assert not is_finished(folder, replace(run.config, structures=("mechanical",)))
    # By hand: the last layer's weights are zero, and all else is as it was trained.
    model = load(folder / "model.safetensors")
    weights = model.network.weights
    zeroed = eqx.tree_at(lambda m: m.network.weights, model, (*weights[:-1], 0 * weights[-1]))
    truth = read(folder / "truth.csv").trajectories[0]
    how = {"integrator": run.config.training.integrator}
    alone = simulate(zeroed, truth.t, State(truth.q[0], truth.v[0]), **how)
    squares = np.concatenate([alone.q - truth.q, alone.v - truth.v], axis=1) ** 2
    assert row["mse_without_layers"] == pytest.approx(np.mean(squares), rel=1e-6)
    assert row["mse_without_layers"] != row["mse"]


def test_interrupted_run_goes_on_to_the_same_weights(tiny_run, tmp_path):
    run = tiny_run(epochs="5")
    run_here([run], tmp_path / "whole", lambda sign: None)

    def press_ctrl_c(sign):
        if sign.done == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_here([run], tmp_path / "parts", press_ctrl_c)
    assert not is_finished(tmp_path / "parts" / run.name, run.config)
    epochs = []
    run_here([run], tmp_path / "parts", lambda sign: epochs.append(sign.done))
    assert [epoch for epoch in epochs if epoch] == [3, 4, 5]
    one, other = (tmp_path / way / run.name / "model.safetensors" for way in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


def test_interrupt_before_training_stops_after_the_first_epoch(tiny_run, tmp_path):
    epochs = []

    def press_ctrl_c(sign):
        epochs.append(sign.done)
        if not sign.done:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_here([tiny_run("first"), tiny_run("second")], tmp_path, press_ctrl_c)
    assert epochs == [0, 1]
    assert not (tmp_path / "second").exists()


def test_folder_takes_the_place_of_an_unfinished_one(tmp_path):
    folder = tmp_path / "run"
    open_folder(folder, "run", ["error.txt"])
    (folder / "error.txt").write_text("what went wrong before")
    place_folder(folder, FILES)
    held = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert json.loads(held.pop(MARKER))["kind"] == "run"
    assert held == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folder_that_cannot_be_written_whole_does_not_appear(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        place_folder(tmp_path / "run", FILES)
    assert list(tmp_path.iterdir()) == []
