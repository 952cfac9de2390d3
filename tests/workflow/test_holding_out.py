"""What is held out of a fit is not trained on: the same figures whoever is named beside it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from scipy.integrate import solve_ivp

from mbdnode.cli import main
from mbdnode.data.logs import Columns, LogStream
from mbdnode.data.logs import stream as stream_module
from mbdnode.evaluation import HeldOut
from mbdnode.formatting import percent
from mbdnode.trajectory import Trajectory
from mbdnode.workflow import read_logs as large
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import fit_and_score, read_and_check
from mbdnode.workflow.fitted import Fitted
from mbdnode.workflow.folder import make_report_data

ROLES = Columns("t", ["x"], ["v"])


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
    return {name: value for name, value in metrics.items() if not name.endswith("_seconds")}


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
    assert "s (end of test data); median of 24 predictions, which stay within 10 %" in said
    assert "held-out NRMSE: median" in said
    told = re.search(r"  time +(\S+) s: preparing (\S+) s, learning (\S+) s, scoring", said)
    assert float(told[1]) >= float(told[3])
    assert "beyond the limit" not in said
    # The page says it as well: the whole time, with its parts, its own among them.
    page = (tmp_path / "with" / "report.html").read_text()
    assert re.search(
        r"\d s: preparing .* s, learning .* s, scoring .* s, drawing this report", page
    )
    pieces = without["nrmse_of_pieces"]
    assert 0 < pieces["low"] <= pieces["median"] <= pieces["high"] < 1e-6
    assert "held-out NRMSE: median" in without["status"]


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
    columns = replace(ROLES, inputs=["F"], input_files=paths)
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
        tuple(logs), ROLES, recipe="adam-lm", structure="free", holdout_logs=(logs[2],)
    )
    fitted = fit_and_score(read_and_check(config))
    assert fitted.without_layers < 1e-3
    assert "structure free" in fitted.network_summary
    assert "the affine part says nearly all" in fitted.network_summary
    assert ("network", fitted.network_summary) in make_report_data(fitted, "").facts
    assert fitted.metrics()["nrmse_without_layers"] == fitted.without_layers


def test_motor_that_winds_is_scored_by_its_travel(tmp_path, capsys):
    # theta'' = 50 T - 0.2 theta' under a torque that turns it by a hundred radians and more.
    t, random = 0.01 * np.arange(1201), np.random.default_rng(0)
    torque = lambda s, k: 0.06 + 0.03 * np.sin((1.0 + 0.4 * k) * s + k)  # noqa: E731
    logs = []
    for k in range(3):
        made = solve_ivp(
            lambda s, y, k=k: [y[1], 50 * torque(s, k) - 0.2 * y[1]],
            (0.0, 12.0),
            [20.0 * k, 1.0],
            t_eval=t,
            rtol=1e-10,
            atol=1e-10,
        )
        # Of one the encoder wraps, which is no motion.
        theta = made.y[0] + random.normal(0.0, 0.01, len(t))
        theta = (theta + np.pi) % (2 * np.pi) - np.pi if k == 1 else theta
        logs.append(tmp_path / f"motor{k}.csv")
        table = np.column_stack([t, theta, torque(t, k)])
        np.savetxt(logs[-1], table, delimiter=",", header="t,theta,T", comments="", fmt="%.9g")
    roles = ["--role", "time=t", "coordinates=theta", "inputs=T", "angles=theta"]
    out = tmp_path / "fit"
    assert call("fit", *logs, *roles, "--model", "law", "--holdout", logs[1], "--out", out) == 0
    metrics = json.loads((out / "metrics.json").read_text())
    truth, found = (
        np.genfromtxt(out / f"held-out-0-{name}.csv", delimiter=",", names=True)["theta"]
        for name in ("truth", "prediction")
    )
    assert np.ptp(truth) > 80
    rmse = np.sqrt(np.mean((found - truth) ** 2))
    assert metrics["columns"]["theta"]["rmse"] == pytest.approx(rmse)
    assert metrics["nrmse"] == pytest.approx(rmse / np.std(truth))
    # The law is of the right form; what is left comes from the noise in its coefficients.
    assert metrics["nrmse"] < 0.01
    assert "do not predict farther" not in metrics["status"]
    assert f"(theta {rmse:.2g} rad = {percent(metrics['nrmse'])})" in capsys.readouterr().out


def test_column_that_contradicts_its_position_is_shown_and_not_scored(tmp_path, capsys):
    # Velocities that a filter made 10 % too small, beside positions with some noise.
    t, random = 0.02 * np.arange(700), np.random.default_rng(0)
    logs = [tmp_path / f"run{k}.csv" for k in range(3)]
    for k, log in enumerate(logs):
        size = 1.0 + 0.2 * k
        x = size * np.cos(3 * t) + random.normal(0.0, 0.003, len(t))
        table = np.column_stack([t, x, -2.7 * size * np.sin(3 * t)])
        np.savetxt(log, table, delimiter=",", header="t,x,v", comments="", fmt="%.9g")
    out, roles = tmp_path / "fit", ["--role", "time=t", "coordinates=x", "rates=v"]
    assert call("fit", *logs, *roles, "--model", "law", "--holdout", logs[2], "--out", out) == 0
    said = capsys.readouterr().out
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["columns"]["x_dot"]["contradicts_its_position"]
    assert metrics["columns"]["x_dot"]["nrmse"] is None
    assert metrics["nrmse"] == pytest.approx(metrics["columns"]["x"]["nrmse"])
    assert metrics["nrmse"] < 0.02
    assert metrics["valid_prediction_time_is_capped"]
    told = "x_dot not scored: it contradicts its position"
    assert told in said
    assert "as recorded, x_dot contradicts its position, so it is not scored" in metrics["status"]
    assert told in (out / "report.html").read_text()
    assert call("predict", out, "--like", logs[2], "--out", tmp_path / "p.csv") == 0
    assert told in capsys.readouterr().out


def test_errors_that_grow_are_not_correlated_by_more_than_one():
    # Of errors in proportion to the ones before, by any factor, the correlation is one.
    names = {"time": "t", "coordinates": ["x"], "rates": ["x_dot"]}
    frame = pandas.DataFrame({"t": np.arange(12.0), "x": 2.0 ** np.arange(12), "x_dot": 0.0})
    truth = Trajectory.from_frame(frame, **names)
    still = Trajectory.from_frame(frame.assign(x=0.0), **names)
    run = HeldOut("run", truth, still, np.zeros(12), ("x",))
    fitted = SimpleNamespace(held_out=[run], scores=SimpleNamespace(scales={"x": 3.0}))
    assert Fitted.residual_correlation.fget(fitted) == pytest.approx(1.0)
