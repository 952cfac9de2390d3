"""A fit that is killed goes on where it was, and ends with the bits that it would have had."""

import contextlib
import importlib
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mbdnode.cli import main
from mbdnode.data.files import replace_file
from mbdnode.errors import UserError
from mbdnode.identification import Identified, law_search
from mbdnode.identification.search_checkpoint import SearchCheckpoint
from mbdnode.workflow import fit_logs
from mbdnode.workflow import folder as fits

# The package's name for it is the command itself.
cli_fit = importlib.import_module("mbdnode.cli.fit")
# A process that is killed, as by `kill -9`, when it has told of three candidates.
KILLED = """
import os, signal, sys
import jax
jax.config.update("jax_enable_x64", True)
from mbdnode.workflow import fit_logs

told = []
def report(row, total):
    told.append(row)
    if len(told) == 3:
        os.kill(os.getpid(), signal.SIGKILL)

columns = {"time": "t", "coordinates": ["theta"], "rates": ["omega"]}
fit_logs(sys.argv[1] + "/run*.csv", sys.argv[2], columns=columns, model="law", report=report)
"""
COLUMNS = {"time": "t", "coordinates": ["theta"], "rates": ["omega"]}
ROLES = ["--role", "time=t", "coordinates=theta", "rates=omega", "--model", "law"]


@pytest.fixture(autouse=True)
def blank_page(monkeypatch):
    """Drawing is not what is tested here, and takes long."""
    write = lambda story, path: replace_file(path, lambda file: file.write(b"a page"))  # noqa: E731
    monkeypatch.setattr(fits, "write_fit_page", write)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A pendulum with a friction that no mechanism of the catalog of forms has."""
    folder, t = tmp_path_factory.mktemp("logs"), np.arange(0.0, 6.0, 0.04)
    slope = lambda t, y: [y[1], -np.sin(y[0]) - 0.3 * y[1] * np.cosh(y[0])]  # noqa: E731
    for number in range(3):
        start = [1.5 + 0.4 * number, 0.0]
        run = solve_ivp(slope, (0.0, 6.0), start, t_eval=t, rtol=1e-10, atol=1e-12)
        table = np.column_stack([t, run.y.T])
        header = {"delimiter": ",", "header": "t,theta,omega", "comments": "", "fmt": "%.17g"}
        np.savetxt(folder / f"run{number}.csv", table, **header)
    return folder


def fit(logs, out, **changed):
    given = {"columns": COLUMNS, "model": "law"} | changed
    return fit_logs(str(logs / "run*.csv"), out, **given)


@pytest.fixture(scope="module")
def whole(logs, tmp_path_factory):
    """What a fit gives that nobody disturbs."""
    out = tmp_path_factory.mktemp("whole") / "fit"
    fit(logs, out)
    return _results(out)


def _results(out):
    """The bytes of all that does not tell times."""
    names = ["config.json", "model.safetensors", "domain.npz", "history.csv"]
    held = sorted(path.name for path in out.glob("held-out-*.csv"))
    found = {name: (out / name).read_bytes() for name in (*names, *held)}
    metrics = json.loads((out / "metrics.json").read_text())
    return found, {k: x for k, x in metrics.items() if not k.endswith("_seconds")}


@pytest.fixture(scope="module")
def killed(logs, tmp_path_factory):
    """The folder of a fit that was killed after its third candidate."""
    out = tmp_path_factory.mktemp("killed") / "fit"
    done = subprocess.run([sys.executable, "-c", KILLED, str(logs), str(out)], timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert {path.name for path in out.iterdir()} == {"mbdnode.json", "unfinished"}
    return out


def test_killed_fit_cannot_be_predicted_from(killed, logs, tmp_path, capsys):
    words = ["predict", killed, "--like", logs / "run0.csv", "--out", tmp_path / "p.csv"]
    assert main([str(word) for word in words]) == 2
    assert "not the folder of a finished fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"seed": 1}, r"its settings \(seed\)"), ({"holdout": 0.4}, r"its settings \(holdout\)")],
)
def test_other_settings_are_refused_before_anything_is_read(killed, logs, changed, message):
    with pytest.raises(UserError, match=message):
        fit(logs, killed, resume=True, **changed)
    assert (killed / "unfinished" / "identity.json").is_file()


def test_other_logs_are_refused(killed, logs):
    log = logs / "run1.csv"
    before = log.read_text()
    log.write_text(before.replace("1.8999999999999999", "1.9000000000000004", 1))
    assert log.read_text() != before
    try:
        with pytest.raises(UserError, match="what its logs hold changed"):
            fit(logs, killed, resume=True)
    finally:
        log.write_text(before)


def test_interrupted_command_says_how_to_go_on(killed, logs):
    """It goes on with what was killed, and is interrupted in its turn."""
    words = ["fit", logs / "run*.csv", *ROLES, "--out", killed, "--resume"]
    script = "import sys; from mbdnode.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(3_000):  # Until one more candidate is done.
            if process.poll() is not None or list(killed.glob("unfinished/*/candidate-3.*")):
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command with --resume goes on from there" in " ".join(said.split())
    assert {path.name for path in killed.iterdir()} == {"mbdnode.json", "unfinished"}


def test_killed_fit_goes_on_to_the_same_bits_without_computing_what_was_done(
    killed, logs, whole, monkeypatch
):
    measured, measure = [], law_search.validation_error
    monkeypatch.setattr(
        law_search, "validation_error", lambda *given: measured.append(1) or measure(*given)
    )
    found = fit(logs, killed, resume=True).fit
    assert isinstance(found, Identified)
    assert len(measured) <= len(found.candidates) - 3
    assert _results(killed) == whole
    assert not (killed / "unfinished").exists()
    with pytest.raises(UserError, match="holds a finished fit, so there is nothing to resume"):
        fit(logs, killed, resume=True)


@pytest.mark.parametrize(
    ("recipe", "written"),
    [
        # Interrupted while structures are compared, with nothing learned; and after an epoch.
        (["adam-lm"], {"mbdnode.json", "unfinished"}),
        (["paper", "--epochs", "3"], {"model.safetensors", "mbdnode.json", "unfinished"}),
    ],
)
def test_interrupted_training_writes_what_was_learned_and_says_how_to_go_on(
    logs, tmp_path, monkeypatch, capsys, recipe, written
):
    @contextlib.contextmanager
    def interrupting():
        yield lambda row, total: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cli_fit, "counting_rows", interrupting)
    words = ["fit", logs / "run*.csv", *ROLES[:-2], "--model", "mbd-node", "--recipe", *recipe]
    assert main([str(word) for word in (*words, "--out", tmp_path / "fit")]) == 130
    said = capsys.readouterr().err
    assert "the same command with --resume goes on from there" in said
    found = {path.name for path in (tmp_path / "fit").iterdir()}
    assert written <= found
    assert ("model.safetensors" in found) == ("model.safetensors" in written)


def test_nothing_to_resume_is_refused(logs, tmp_path):
    with pytest.raises(UserError, match="holds no fit that was begun"):
        fit(logs, tmp_path / "new", resume=True)
    assert not (tmp_path / "new").exists()


def test_refused_fit_leaves_nothing(logs, tmp_path, monkeypatch):
    def refuse(*given, **options):
        raise UserError("No candidate could be rolled out.")

    monkeypatch.setattr(law_search.LawSelection, "choose", refuse)
    monkeypatch.setattr(law_search, "families", lambda problem, rows: iter(()))
    with pytest.raises(UserError, match="No candidate"):
        fit(logs, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_torn_line_of_the_journal_costs_that_result_alone(tmp_path):
    SearchCheckpoint(tmp_path).value("a", lambda: [0.1, float("inf")])
    with open(tmp_path / "values.jsonl", "a") as file:
        file.write('{"name": "b", "value": 3.1')
    again = SearchCheckpoint(tmp_path)
    assert again.value("a", lambda: pytest.fail("computed again")) == [0.1, float("inf")]
    assert again.value("b", lambda: 4.0) == 4.0
    assert SearchCheckpoint(tmp_path).value("b", lambda: pytest.fail("computed again")) == 4.0


def test_arrays_come_back_to_the_bit_and_none_as_none(tmp_path):
    values = np.random.default_rng(0).standard_normal((3, 2))
    SearchCheckpoint(tmp_path).arrays("a", lambda: {"x": values, "n": np.asarray(3)})
    SearchCheckpoint(tmp_path).arrays("b", lambda: None)
    again = SearchCheckpoint(tmp_path)
    found = again.arrays("a", lambda: pytest.fail("computed again"))
    assert found["x"].tobytes() == values.tobytes()
    assert found["n"] == 3
    assert again.arrays("b", lambda: pytest.fail("computed again")) is None
