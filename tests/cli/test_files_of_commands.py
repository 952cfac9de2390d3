"""Where commands read and write: nothing is written where it is read, and paths end in sentences."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.data.files import check_apart, replace_file
from mbdnode.data.folders import MARKER, replace_folder
from mbdnode.data.logs.columns_file import load_columns
from mbdnode.errors import UserError
from mbdnode.workflow import fit_logs, read_folder

ROLES = "--role time=t coordinates=x rates=x_dot"
COLUMNS = {"time": "t", "coordinates": ["x"], "rates": ["x_dot"]}
CRANK = "[bodies.crank]\ncenter = [0.5, 0.0]\nmass = 1.0\ninertia = 0.1\n"


def write_log(path, names="t,x,x_dot"):
    """An oscillator of 3 rad/s."""
    t = np.arange(0, 6, 0.02)
    table = np.column_stack([t, np.cos(3 * t), -3 * np.sin(3 * t)])
    np.savetxt(path, table, delimiter=",", header=names, comments="", encoding="utf-8")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a fit, made once."""
    place = tmp_path_factory.mktemp("fitted")
    write_log(place / "run.csv")
    fit_logs(place / "run.csv", place / "fit", columns=COLUMNS)
    return place / "fit"


@pytest.fixture
def place(tmp_path, fitted, monkeypatch):
    """Where commands are typed: logs, a mechanism, a fit, and links to them."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(fitted, "fit")
    for name in ("run.csv", "inputs.csv"):
        write_log(name)
    Path("crank.toml").write_text(CRANK)
    Path("roles.toml").write_text('time = "t"\ncoordinates = ["x"]\n')
    Path("sub").mkdir()
    Path("link.csv").symlink_to("run.csv")
    os.link("run.csv", "hard.csv")
    Path("crank.html").symlink_to("crank.toml")
    Path("crank.js").symlink_to("crank.toml")
    Path("same").symlink_to("fit", target_is_directory=True)
    # A folder of drawings whose trajectory leads elsewhere.
    replace_folder(Path("drawn"), "mechanism", lambda part: (part / "trajectory.csv").touch())
    Path("drawn/trajectory.csv").unlink()
    Path("drawn/trajectory.csv").symlink_to("../crank.toml")
    # A result that holds what is read.
    replace_folder(Path("run"), "run", lambda part: (part / "mine.json").write_text("{}"))
    return tmp_path


def held(place):
    """The content of all files, by path."""
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "words",
    [
        *(f"predict fit --like run.csv --out {out}" for out in ("run.csv", "link.csv", "hard.csv")),
        "predict fit --like link.csv --out sub/../run.csv",
        "predict fit --like run.csv --out fit/new.csv",
        "predict fit --like run.csv --out same/new.csv",
        "predict fit --initial x=1 --inputs inputs.csv --out inputs.csv",
        f"fit fit/held-out-0-truth.csv {ROLES} --out fit",
        f"fit fit/held-out-*.csv {ROLES} --out same",
        f"fit run.csv --holdout fit/held-out-0-truth.csv {ROLES} --out fit",
        f"fit run.csv {ROLES} inputs=u input_files=fit/held-out-0-truth.csv --out fit",
        "export fit --to c --out fit/code",
        "export crank.toml --out crank.js",
        "play crank.toml --out crank.html",
        "play fit --out fit/page.html",
        "mechanism crank.toml --steps 3 --out drawn",
        "mpc cart-pole --model fit --out fit/mpc",
        "run --config run/mine.json --out run",
        "inspect run.csv --write run.csv",
        "inspect run.csv --write hard.csv",
    ],
)
def test_no_command_writes_where_it_reads(place, run, words):
    before = held(place)
    result = run(*words.split())
    assert result.code == 2
    assert result.err.startswith("error: '")
    assert "must stay as it is" in result.err or "exists already" in result.err
    assert held(place) == before


def test_fit_in_python_does_not_replace_what_it_reads(place):
    before = held(place)
    for logs, more in (
        ("fit/held-out-0-truth.csv", {}),
        ("run.csv", {"holdout": "fit/held-out-0-truth.csv"}),
        ("run.csv", {"mechanism": "fit/mechanism.toml"}),
    ):
        Path("fit/mechanism.toml").write_text(CRANK)
        marker = (place / "fit" / MARKER).read_text().replace('"files": [', '"files": ["mech*",')
        Path("fit", MARKER).write_text(marker)
        with pytest.raises(UserError, match="which is read and must stay as it is"):
            fit_logs(logs, "same", columns=COLUMNS, **more)
        Path("fit/mechanism.toml").unlink()
        Path("fit", MARKER).write_bytes(before[str(place / "fit" / MARKER)])
    assert held(place) == before


def test_logs_beside_the_folder_of_their_fit_are_apart(place):
    write_log("sub/run.csv")
    check_apart("sub/fit", "sub/run.csv", "sub/*.csv", None, "", "nowhere.csv", "crank:Crank")
    check_apart("new.csv", "*.csv", "fit")


@pytest.mark.parametrize(
    "words",
    [
        "simulate single-pendulum --steps 3 --out LONG.csv",
        "simulate single-pendulum --steps 3 --out sub/LONG/new.csv",
        f"fit LONG.csv {ROLES} --out new",
        f"fit run.csv {ROLES} --out LONG",
        f"fit run.csv {ROLES} --out sub/new/LONG/new",
        f"fit run.csv {ROLES} --mechanism LONG.toml --out new",
        "fit run.csv --columns LONG.toml --out new",
        "inspect LONG.csv",
        "inspect run.csv --write LONG.toml",
        "predict LONG --like run.csv --out new.csv",
        "predict fit --like LONG.csv --out new.csv",
        "predict fit --like run.csv --out LONG.csv",
        "export LONG --to c --out new",
        "export sub/LONG --to c --out new",
        "export single-pendulum --to c --out LONG",
        "play LONG --out new.html",
        "mechanism LONG.toml",
        "mpc cart-pole --model LONG --out new",
        "run --config LONG.json",
        "run cart-pole --out LONG",
        "reproduce --out LONG",
        "gallery --out LONG",
    ],
)
@pytest.mark.parametrize("length", [300, 246])
def test_a_name_that_is_too_long_is_refused_in_a_sentence(place, run, words, length):
    before = held(place)
    result = run(*words.replace("LONG", "x" * length).split())
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("error: ")
    assert "The system refused" not in result.err
    if "--out LONG" in words or length == 300:
        assert "too long" in result.err or "cannot be the name of an exported" in result.err
    assert held(place) == before


@pytest.mark.parametrize("name", ["x" * 300, "nul\0nul"])
def test_names_that_no_file_can_have_are_refused_in_python(place, name):
    motion = mbd.simulate(mbd.mechanisms.SinglePendulum(), np.arange(3) * 0.01, {"theta": 0.5})
    model = mbd.MBDNODE.for_system(mbd.mechanisms.SinglePendulum(), width=3)
    for call in (
        lambda: mbd.read(f"{name}.csv"),
        lambda: mbd.write(motion, f"{name}.csv"),
        lambda: mbd.save(model, f"{name}.safetensors"),
        lambda: mbd.load(f"{name}.safetensors"),
        lambda: mbd.export(model, f"{name}.js", name="word"),
        lambda: load_columns(f"{name}.toml"),
        lambda: fit_logs("run.csv", name, columns=COLUMNS),
        lambda: fit_logs(f"{name}.csv", "new", columns=COLUMNS),
        lambda: read_folder(Path(name)),
    ):
        with pytest.raises(UserError, match=r"too long|NUL|null byte"):
            call()


@pytest.mark.parametrize(
    "words",
    [
        *(f"simulate single-pendulum --steps 3 --out {out}" for out in ("p.csv", "d.csv", "b.csv")),
        *(f"fit {log} {ROLES} --out new" for log in ("p.csv", "d.csv", "b.csv", "run.csv/x.csv")),
        *(f"fit run.csv {ROLES} --out {out}" for out in ("p.csv", "run.csv", "run.csv/new")),
        *(f"predict {folder} --like run.csv --out new.csv" for folder in ("run.csv", "b.csv")),
        "predict fit --like run.csv --out run.csv/new.csv",
        *(f"inspect run.csv --write {out}" for out in ("p.csv", "d.csv", "b.csv", "run.csv/x")),
        "mechanism d.csv",
        "run --config p.csv",
    ],
)
def test_pipes_directories_and_broken_links_are_refused_in_a_sentence(place, run, words):
    os.mkfifo("p.csv")
    Path("d.csv").mkdir()
    Path("b.csv").symlink_to("nowhere/b.csv")
    before = held(place)
    result = run(*words.split())
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("error: ")
    assert held(place) == before


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(place):
    os.mkfifo("pipe.safetensors")
    Path("link.safetensors").symlink_to("pipe.safetensors")
    model = mbd.MBDNODE.for_system(mbd.mechanisms.SinglePendulum(), width=3)
    for name in ("pipe.safetensors", "link.safetensors"):
        with pytest.raises(OSError, match="is not a regular file"):
            mbd.save(model, name)
    assert Path("pipe.safetensors").is_fifo()


def test_a_trajectory_is_written_through_a_link_of_another_ending(place):
    Path("linked.csv").symlink_to("data.txt")
    motion = mbd.simulate(mbd.mechanisms.SinglePendulum(), np.arange(3) * 0.01, {"theta": 0.5})
    mbd.write(motion, "linked.csv")
    assert Path("data.txt").read_text().startswith("t,theta,")


def test_a_prediction_repeats_what_the_report_says_of_the_fit(place, run):
    words = read_folder(Path("fit")).verdict
    assert words.startswith("On ")
    assert words in Path("fit/report.html").read_text(encoding="utf-8")
    result = run(*"predict fit --like run.csv --out new.csv".split())
    assert result.code == 0
    assert words in result.out
    result = run(*"predict fit --initial x=1 --steps 3 --dt 0.02 --out new.csv".split())
    assert words in result.out
