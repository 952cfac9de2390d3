"""Two seconds without a word are broken, and what moves or prints is left alone."""

import io
import subprocess
import sys
import time

import jax

from mbdnode.cli import waiting_notice
from mbdnode.cli.waiting_notice import (
    AGAIN_S,
    QUIET_S,
    WaitingNotice,
    drawing,
    notice_when_waiting,
    summarized,
)


def test_a_word_comes_after_the_quiet_time_and_then_more_rarely():
    quiet = WaitingNotice()
    start = quiet.heard
    assert quiet.word(start + 0.9 * QUIET_S) is None
    assert quiet.word(start + 1.1 * QUIET_S)
    assert quiet.word(start + 1.1 * QUIET_S + 0.9 * AGAIN_S) is None
    assert quiet.word(start + 1.2 * QUIET_S + AGAIN_S)
    quiet.note()
    assert quiet.word(quiet.heard + 1.1 * QUIET_S)


def test_the_word_is_compiling_while_jax_was_just_heard_to():
    quiet = WaitingNotice()
    quiet.heard -= 10
    quiet._hear("/jax/core/compile/jaxpr_trace_duration", 1.0)
    assert quiet.word(time.monotonic()) == "compiling ..."
    quiet.heard -= 100
    quiet.compiled -= 100
    jax.devices()  # JAX has started, so it is not being loaded.
    assert quiet.word(time.monotonic()) == "compiling or computing ..."


def test_the_word_is_loading_until_jax_has_started():
    script = """
import time
from mbdnode.cli.waiting_notice import WaitingNotice
quiet = WaitingNotice()
print(quiet.activity(time.monotonic() + 10))
import jax
print(quiet.activity(time.monotonic() + 10))
jax.devices()
print(quiet.activity(time.monotonic() + 10))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    words = ["loading ...", "loading ...", "compiling or computing ..."]
    assert done.stdout.splitlines() == words, done.stderr


def test_a_silent_command_says_something_within_two_seconds(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(waiting_notice, "NOTICE", WaitingNotice())
    with notice_when_waiting():
        time.sleep(QUIET_S + 1.0)
    assert "..." in shown.getvalue()
    shown.truncate(0)
    with notice_when_waiting(), drawing():
        time.sleep(QUIET_S + 0.5)
    assert shown.getvalue().strip("\0") == ""


def test_lines_of_runs_that_others_carry_out_are_followed_by_a_summary_and_only_after_long(
    monkeypatch,
):
    quiet = WaitingNotice()
    monkeypatch.setattr(waiting_notice, "NOTICE", quiet)
    with summarized(lambda: "1 finished, 2 running ..."):
        quiet.note()
        assert quiet.word(quiet.heard + 5 * QUIET_S) is None
        assert quiet.word(quiet.heard + 1.1 * AGAIN_S) == "1 finished, 2 running ..."
    assert "running" not in (quiet.word(quiet.heard + 1.1 * QUIET_S) or "")
