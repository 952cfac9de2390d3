"""What is held out of a fit is not trained on: the same figures whoever is named beside it."""

import json
from pathlib import Path

import numpy as np
import pytest

from mbdnode.cli import main
from mbdnode.data.logs import LogStream
from mbdnode.data.logs import stream as stream_module
from mbdnode.workflow import large_logs as large
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import fit_and_score, read_and_check
from mbdnode.workflow.folder import make_story

ROLES = {"time": "t", "coordinates": ["x"], "rates": ["v"]}
# Seconds, and the day that a page was made.
PASSING = ("train_seconds", "compile_seconds")


def write_log(path, rows, amplitude=1.0, run=None):
    """A mass on a spring, known in closed form: x'' = -4 x."""
    t = 0.02 * np.arange(rows)
    table = [t, amplitude * np.cos(2 * t), -2 * amplitude * np.sin(2 * t)]
    names = "t,x,v"
    if run is not None:
        table, names = [*table, run], names + ",trial"
    columns = np.column_stack(table)
    np.savetxt(path, columns, delimiter=",", header=names, comments="", fmt="%.17g")
    return str(path)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spring")
    return [write_log(folder / f"run{k}.csv", 120, 1.0 + k) for k in range(3)]


def call(*arguments):
    return main([str(argument) for argument in arguments])


def fit(out, *logs):
    roles = ["--role", "time=t", "coordinates=x", "rates=v"]
    assert (
        call("fit", *logs, *roles, "--holdout", logs[0].replace("run0", "run2"), "--out", out) == 0
    )
    metrics = json.loads((out / "metrics.json").read_text())
    return {name: value for name, value in metrics.items() if name not in PASSING}


def test_held_out_file_among_the_logs_changes_not_one_bit(logs, tmp_path, capsys):
    """Also: a fit with nothing but its defaults succeeds, and says how good it is."""
    without = fit(tmp_path / "without", *logs[:2])
    with_it = fit(tmp_path / "with", *logs)
    assert without == with_it
    assert without["training_rows"] == 240
    for name in ("model.safetensors", "held-out-0-prediction.csv"):
        both = [(tmp_path / folder / name).read_bytes() for folder in ("without", "with")]
        assert both[0] == both[1]
    # The law is linear, and so is the default recipe's first form.
    assert without["nrmse"] < 1e-6
    assert without["valid_prediction_time_is_capped"] is True
    said = capsys.readouterr().out
    assert "held-out error     NRMSE" in said
    assert "s, as far as was measured; median error within 10 %" in said
    assert "beyond the limit" not in said


def test_copy_of_a_held_out_log_is_not_trained_on(logs, tmp_path):
    copy = tmp_path / "copy.csv"
    copy.write_bytes(Path(logs[2]).read_bytes())
    config = FitConfig((*logs[:2], str(copy)), ROLES, holdout_logs=(logs[2],))
    prepared = read_and_check(config)
    assert prepared.rows == 240
    assert any("the same as a held-out run" in note for note in prepared.notes)


@pytest.mark.parametrize("named", ["run{}.csv", "inputs{}.csv"], ids=["by name", "by order"])
@pytest.mark.parametrize("among", [True, False])
def test_each_side_has_the_inputs_of_its_own_logs(named, among, logs, tmp_path):
    paths = []
    for k in (1, 2):
        paths.append(str(tmp_path / named.format(k)))
        table = np.column_stack([0.02 * np.arange(120), np.full(120, float(k))])
        np.savetxt(paths[-1], table, delimiter=",", header="t,F", comments="")
    columns = {**ROLES, "inputs": ["F"], "input_files": paths}
    trained = (logs[1], logs[2]) if among else (logs[1],)
    prepared = read_and_check(FitConfig(trained, columns, holdout_logs=(logs[2],)))
    (run,), ((_, held, _),) = prepared.data.training.trajectories, prepared.data.held_out
    assert set(np.asarray(run["F"]).tolist()) == {1.0}
    assert set(np.asarray(held["F"]).tolist()) == {2.0}


def test_status_of_a_useless_model_says_so(logs):
    """A pendulum's law on a spring that is not there: a network that was not trained."""
    config = FitConfig(tuple(logs), ROLES, recipe="paper", epochs=1, holdout_logs=(logs[2],))
    fitted = fit_and_score(read_and_check(config))
    assert fitted.scores.nrmse is None or fitted.scores.nrmse > 0.1
    # And that predictions leave the training data, where they do.
    assert len(fitted.doubts()) == 1 + (fitted.outside > 0.1)
    assert ("outside the training data" in fitted.status) == (fitted.outside > 0.1)
    assert fitted.status.startswith(fitted.fit.status)
    assert fitted.metrics()["status"] == fitted.status
    assert "held-out" in fitted.status


@pytest.fixture
def small_limits(monkeypatch):
    """Logs of some kilobytes are large, and windows are short."""
    monkeypatch.setattr(large, "_LARGE_BYTES", 1000)
    monkeypatch.setattr(stream_module, "_WINDOW", 20)
    monkeypatch.setattr(large, "_CHUNK_ROWS", 100)


def trained_rows(prepared):
    """The times and positions of every row that training can see."""
    stream = prepared.stream
    assert isinstance(stream, LogStream)
    chunks = [stream.chunk(number).trajectories[0] for number in range(stream.count)]
    pairs = [np.stack([c.t, c.q[..., 0]], -1).reshape(-1, 2) for c in chunks]
    return {tuple(row) for row in np.concatenate(pairs).tolist()}


def held_rows(prepared):
    runs = [run for _, run, _ in prepared.data.held_out]
    pairs = [np.stack([run.t, run.q[:, 0]], -1) for run in runs]
    return {tuple(row) for row in np.concatenate(pairs).tolist()}


def test_of_one_large_log_the_end_is_held_out_after_a_gap_of_a_window(small_limits, tmp_path):
    log = write_log(tmp_path / "long.csv", 1000)
    prepared = read_and_check(FitConfig((log,), ROLES, holdout=0.3))
    seen, held = trained_rows(prepared), held_rows(prepared)
    latest, first = max(t for t, _ in seen), min(t for t, _ in held)
    assert first - latest >= 20 * 0.02
    assert prepared.rows == 21 * (len(seen) // 20)
    # What is next to each other is predicted as one run.
    assert max(len(run) for _, run, _ in prepared.data.held_out) > 100


def test_large_log_that_makes_one_chunk_does_not_judge_by_what_it_trained_on(
    small_limits, monkeypatch, tmp_path
):
    monkeypatch.setattr(large, "_CHUNK_ROWS", 100_000)
    prepared = read_and_check(
        FitConfig((write_log(tmp_path / "long.csv", 300),), ROLES, holdout=0.3)
    )
    assert prepared.stream.count == 1
    assert not trained_rows(prepared) & held_rows(prepared)


def test_of_several_large_logs_whole_runs_are_held_out(small_limits, tmp_path):
    logs = [write_log(tmp_path / f"{k}.csv", 150, 1.0 + k) for k in range(4)]
    prepared = read_and_check(FitConfig(tuple(logs), ROLES, holdout=0.25, seed=1))
    amplitudes = [
        {round(np.hypot(x, 0.0), 9) for t, x in rows if t == 0.0}
        for rows in (trained_rows(prepared), held_rows(prepared))
    ]
    assert [len(one) for one in amplitudes] == [3, 1]
    assert not amplitudes[0] & amplitudes[1]


def test_what_is_found_in_large_logs_is_called_a_law(small_limits, tmp_path):
    logs = [write_log(tmp_path / f"{k}.csv", 150, 1.0 + k) for k in range(4)]
    with read_and_check(FitConfig(tuple(logs), ROLES, holdout=0.25)) as prepared:
        assert fit_and_score(prepared).model_name == "law"


def test_held_out_file_beside_large_logs_is_not_trained_on(small_limits, tmp_path):
    logs = [write_log(tmp_path / f"{k}.csv", 150, 1.0 + k) for k in range(3)]
    (tmp_path / "copy.csv").write_bytes(Path(logs[2]).read_bytes())
    named = (*logs, str(tmp_path / "copy.csv"))
    prepared = read_and_check(FitConfig(named, ROLES, holdout_logs=(logs[2],)))
    assert {x for t, x in trained_rows(prepared) if t == 0.0} == {1.0, 2.0}
    assert {x for t, x in held_rows(prepared) if t == 0.0} == {3.0}


def test_model_of_logs_that_do_not_fit_in_memory_is_the_law(small_limits, tmp_path):
    logs = [write_log(tmp_path / f"{k}.csv", 200, 1.0 + k) for k in range(3)]
    fitted = fit_and_score(read_and_check(FitConfig(tuple(logs), ROLES, holdout=0.3)))
    assert fitted.scores.nrmse < 1e-6
    assert fitted.prepared.stream.count > 1


def test_large_log_that_is_too_short_to_split_is_refused(small_limits, tmp_path):
    log = write_log(tmp_path / "short.csv", 100)
    with pytest.raises(ValueError, match="windows of 20 steps"):
        read_and_check(FitConfig((log,), ROLES, holdout=0.4))
    with pytest.raises(ValueError, match="with a gap of 20"):
        read_and_check(FitConfig((log,), ROLES, holdout=0.1))


def test_network_whose_affine_part_says_all_is_told(logs):
    # The law of the spring is affine in what the network reads.
    config = FitConfig(
        tuple(logs), ROLES, recipe="trained", structure="free", holdout_logs=(logs[2],)
    )
    fitted = fit_and_score(read_and_check(config))
    assert fitted.without_layers < 1e-3
    assert "structure free" in fitted.told_network
    assert "the affine part says nearly all" in fitted.told_network
    assert ("network", fitted.told_network) in make_story(fitted, "").facts
    assert fitted.metrics()["nrmse_without_layers"] == fitted.without_layers
