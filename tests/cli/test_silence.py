"""Two seconds without a word are broken, and what moves or prints is left alone."""

import io
import sys
import time

from mbdnode.cli import silence
from mbdnode.cli.silence import AGAIN_S, QUIET_S, Silence, broken_silence, drawing


def test_a_word_comes_after_the_quiet_time_and_then_more_rarely():
    quiet = Silence()
    start = quiet.heard
    assert quiet.word(start + 0.9 * QUIET_S) is None
    assert quiet.word(start + 1.1 * QUIET_S)
    assert quiet.word(start + 1.1 * QUIET_S + 0.9 * AGAIN_S) is None
    assert quiet.word(start + 1.2 * QUIET_S + AGAIN_S)
    quiet.note()
    assert quiet.word(quiet.heard + 1.1 * QUIET_S)


def test_the_word_is_compiling_while_jax_was_just_heard_to():
    quiet = Silence()
    quiet.heard -= 10
    quiet._hear("/jax/core/compile/jaxpr_trace_duration", 1.0)
    assert quiet.word(time.monotonic()) == "compiling ..."
    quiet.heard -= 100
    quiet.compiled -= 100
    assert quiet.word(time.monotonic()) == "compiling or computing ..."


def test_a_silent_command_says_something_within_two_seconds(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(silence, "SILENCE", Silence())
    with broken_silence():
        time.sleep(QUIET_S + 1.0)
    assert "..." in shown.getvalue()
    shown.truncate(0)
    with broken_silence(), drawing():
        time.sleep(QUIET_S + 0.5)
    assert shown.getvalue().strip("\0") == ""
