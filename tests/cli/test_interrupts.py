"""Ctrl-C: exit code 130, soon, wherever it lands."""

import signal
import subprocess
import sys
import time

import pytest

# What is interrupted; it says when it is ready.
BUSY = """
import sys, time, hashlib, signal
from mbdnode.cli.interrupts import leaving_at_once

signal.signal(signal.SIGINT, signal.default_int_handler)
def in_c():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # Minutes, without the interpreter's lock.

def noting():
    noted = []
    before = signal.signal(signal.SIGINT, lambda *_: noted.append(1))
    print("ready", flush=True)
    while not noted:
        time.sleep(0.01)
    signal.signal(signal.SIGINT, before)
    print("kept", flush=True)

def deaf():
    signal.signal(signal.SIGINT, lambda *_: None)
    print("ready", flush=True)
    time.sleep(60)

with leaving_at_once({grace!r}, "Go on like this.\\n"):
    {what}()
print("went on", flush=True)
"""


# Loses an interrupt while JAX is being imported, as its own modules can.
LOSING = """
import signal, sys
from mbdnode.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)

class Loser:
    def find_spec(self, name, path=None, target=None):
        if name == "jax":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("lost", flush=True)
                sys.exit(1)

sys.meta_path.insert(0, Loser())
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "words",
    [
        "simulate cart-pole --out run.csv",
        "run cart-pole",
        "mpc cart-pole --out new",
        "reproduce --out new",
        "gallery",
        "mechanism crank.toml",
        "mechanism worn.toml",  # Values along a joint load JAX when the file is checked.
        "fit log.csv --role time=t coordinates=x --out new",
        "predict fit --like log.csv --out run.csv",
    ],
)
def test_interrupt_is_heard_while_jax_is_being_imported(tmp_path, words):
    (tmp_path / "log.csv").write_text("t,x\n0,0\n1,1\n")
    crank = "[bodies.crank]\ncenter = [0.5, 0.0]\n"
    (tmp_path / "crank.toml").write_text(crank)
    hinge = 'type = "revolute"\nbodies = ["ground", "crank"]\npoints = [[0, 0], [-0.5, 0]]\n'
    worn = 'joint = "hinge"\nlimit = [1.0, 2.0, 1.0]\nover = [0.0, 6.0]\n'
    (tmp_path / "worn.toml").write_text(f"{crank}[joints.hinge]\n{hinge}[friction.worn]\n{worn}")
    (tmp_path / "fit").mkdir()
    (tmp_path / "fit" / "config.json").touch()
    command = [sys.executable, "-c", LOSING, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "log.csv",
        "crank.toml",
        "worn.toml",
        "fit",
    }


def press(what, grace, times=1):
    script = BUSY.format(what=what, grace=grace)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        for _ in range(times):
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, out, err, time.monotonic() - began


def test_interrupt_is_heard_while_no_line_of_python_is_reached():
    code, out, err, seconds = press("in_c", 0.0)
    assert code == 130
    assert "Go on like this.\ninterrupted" in err
    assert seconds < 5
    assert out == ""


def test_code_that_answers_in_time_goes_on():
    code, out, _, _ = press("noting", 20.0)
    assert (code, out) == (0, "kept\nwent on\n")


@pytest.mark.parametrize(("grace", "times"), [(0.5, 1), (None, 2), (20.0, 2)])
def test_code_that_does_not_answer_is_left_after_the_grace_or_at_the_second_time(grace, times):
    code, _, err, seconds = press("deaf", grace, times)
    assert code == 130
    assert "interrupted" in err
    assert seconds < 10
