"""Where commands read and write: not at one place, and never at a part of one."""

import html
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
from mbdnode.data.files import check_apart
from mbdnode.data.folders import MARKER, replace_folder
from mbdnode.data.logs import as_columns
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
        "predict fit --like run.csv --out missing/../run.csv",
        "predict fit --like run.csv --out fit/new.csv",
        "predict fit --like run.csv --out same/new.csv",
        "simulate fit --initial x=1 --inputs inputs.csv --out inputs.csv",
        f"fit fit/held-out-0-truth.csv {ROLES} --out fit",
        f"fit fit/held-out-*.csv {ROLES} --out same",
        f"fit fit/held-out-*.csv {ROLES} --out missing/../fit",
        f"fit run.csv --holdout fit/held-out-0-truth.csv {ROLES} --out fit",
        f"fit run.csv {ROLES} inputs=u input_files=fit/held-out-0-truth.csv --out fit",
        "export fit --to c --out fit/code",
        "export crank.toml --out crank.js",
        "play crank.toml --out crank.html",
        "play fit --out fit/page.html",
        "mechanism crank.toml --out drawn",
        "simulate fit --steps 3 --out fit/new.csv",
        "simulate cart-pole --steps 3 --inputs inputs.csv --out inputs.csv",
        "simulate cart-pole --steps 3 --inputs inputs.csv --out missing/../inputs.csv",
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
        lambda: as_columns(f"{name}.toml"),
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
        with pytest.raises(UserError, match="is not a regular file"):
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
    assert words in html.unescape(Path("fit/report.html").read_text(encoding="utf-8"))
    result = run("predict", "fit", "--like", "run.csv", "--out", "new.csv")
    assert result.code == 0
    assert words in result.out
    result = run(
        *("simulate", "fit", "--initial", "x=1", "--steps", 3, "--dt", 0.02),
        *("--out", "new.csv"),
    )
    assert words in result.out


@pytest.mark.parametrize("full_from", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "words",
    [
        "simulate single-pendulum --steps 3 --out new.csv",
        "predict fit --like run.csv --out new.csv",
        "export single-pendulum --to c --out deep/er/code",
        f"fit run.csv {ROLES} --out deep/er/new",
        "run single-mass-spring --recipe fast --set samples=50 --out deep/er/new",
    ],
)
def test_a_full_disk_leaves_all_as_it_was_or_says_how_to_go_on(
    place, run, monkeypatch, words, full_from
):
    written, sync = [], os.fsync

    def full(handle):
        written.append(handle)
        if len(written) > full_from:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    before = {str(path) for path in place.rglob("*")}
    result = run(*words.split())
    if result.code == 0:  # It writes fewer files than that.
        return
    assert result.code == 2
    assert "No space left on device" in result.err
    assert "othing was changed" not in result.err
    left = {str(path) for path in place.rglob("*")} - before
    assert not [path for path in left if path.endswith(".part")]
    if left:
        assert "--resume" in result.err
        assert all("deep" in path for path in left)
        monkeypatch.setattr(os, "fsync", sync)
        assert run(*words.split(), "--resume").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_folder_is_written_leaves_no_part_of_it(place, number):
    # The signal comes within JAX or the writing of the files; neither may leave anything.
    script = f"""
import os, signal, sys
from mbdnode.cli import main
sync, times = os.fsync, []
def slow(handle):
    times.append(handle)
    if len(times) == 1:
        os.kill(os.getpid(), {int(number)})
    sync(handle)
os.fsync = slow
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["mbdnode", *"export single-pendulum --to c --out deep/code".split()]
sys.exit(main())
"""
    before = {str(path) for path in place.rglob("*")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 128 + number, done.stderr
    assert "interrupted" in done.stderr
    assert {str(path) for path in place.rglob("*")} - before <= {str(place / "deep")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_a_training_says_how_to_go_on(place, number):
    words = "run single-mass-spring-damper --recipe paper --out deep/new"
    process = subprocess.Popen(
        [sys.executable, "-m", "mbdnode", *words.split()], stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 120
        while not Path("deep/new/checkpoint.safetensors").is_file() and time.monotonic() < until:
            time.sleep(0.2)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 128 + number, said
    assert "--resume" in said
    assert "interrupted" in said
    assert not list(Path("deep").rglob("*.part"))


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_job_that_ignores_interrupts_can_still_be_terminated(place):
    script = """
import signal, sys, time
from mbdnode.cli import interrupts
signal.signal(signal.SIGINT, signal.SIG_IGN)
interrupts.hear_termination()
with interrupts.leaving_at_once():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode != 0
