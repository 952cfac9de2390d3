"""Two seconds without a word are broken, and what moves or prints is left alone."""

import io
import os
import re
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode import waiting_notice
from mbdnode.mechanisms import SingleMassSpring
from mbdnode.waiting_notice import (
    LONGEST_S,
    QUIET_S,
    WaitingNotice,
    counts_rows,
    counts_steps,
    doing,
    say,
)


@pytest.fixture
def notice(monkeypatch):
    """One of our own, which computes and has done so for long."""
    made = WaitingNotice()
    monkeypatch.setattr(waiting_notice, "NOTICE", made)
    monkeypatch.setattr(made.compilations, "under_way", lambda now: False)
    return made


def said_at(notice, seconds, step=0.1):
    """At which times something would be said, of so many seconds without output."""
    start = notice.heard
    times = np.arange(0.0, seconds, step)
    return [float(t) for t in times if notice.word(start + t)]


def test_the_first_word_comes_within_two_seconds_and_then_they_grow_rarer(notice):
    times = said_at(notice, 200.0)
    assert times[0] < 2.0
    gaps = np.diff(times)
    assert np.all(np.diff(gaps) > -0.15)  # Looks are a tenth of a second apart.
    assert abs(gaps[-1] - LONGEST_S) < 0.15
    assert len(times) < 12


def test_lines_of_progress_make_words_no_more_frequent(notice, capsys):
    said_at(notice, 100.0)
    say("epoch 3 of 400")
    assert said_at(notice, 10.0) == []


def test_another_activity_is_named_within_two_seconds(notice, monkeypatch):
    start = notice.heard
    said_at(notice, 20.0)
    monkeypatch.setattr(notice.compilations, "under_way", lambda now: True)
    words = [notice.word(start + 20.0 + t) for t in np.arange(0.0, 2.0, 0.1)]
    named = [word for word in words if word]
    assert len(named) == 1
    assert named[0].startswith("compiling ...")


def test_activities_that_take_turns_do_not_fill_a_log(notice, monkeypatch):
    start, said = notice.heard, 0
    for place, t in enumerate(np.arange(0.0, 120.0, 0.2)):
        monkeypatch.setattr(notice.compilations, "under_way", lambda now, p=place: p // 15 % 2 == 0)
        said += notice.word(start + t) is not None
    assert said < 20


def test_the_word_says_for_how_long(notice):
    assert notice.activity(notice.heard + 7.0) == "computing ... 7 s"


def test_the_word_is_loading_until_jax_is_there():
    script = """
import time
from mbdnode.waiting_notice import WaitingNotice
def word():
    return WaitingNotice().activity(time.monotonic())
print(word())
import jax
print(word())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    words = ["loading ...", "computing ..."]
    assert done.stdout.splitlines() == words, done.stderr


class SlowToCompile:
    """A function whose trace takes its time."""

    def __call__(self, x):
        time.sleep(QUIET_S + 1.0)
        return x + 1.0


def test_what_jax_compiles_is_told_from_what_it_computes():
    heard = []
    with mbd.progress(heard.append):
        jax.jit(SlowToCompile())(np.ones(3)).block_until_ready()
        time.sleep(QUIET_S + 1.0)
    assert [text.split(" ...")[0] for text in heard] == ["compiling", "computing"]


def test_a_large_program_is_told_to_be_compiling():
    def large(x):
        began = time.monotonic()
        while time.monotonic() - began < QUIET_S + 1.0:
            x = jnp.linalg.solve(jnp.eye(2) + x[0], jnp.sin(x))
        return x

    heard = []
    with mbd.progress(heard.append):
        jax.jit(large).lower(np.ones(2))
    assert heard
    assert all(text.startswith("compiling ...") for text in heard)


def test_the_thread_ends_with_the_block():
    threads, write = threading.active_count(), sys.stderr.write

    @mbd.progress()
    def fail():
        assert threading.active_count() == threads + 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert threading.active_count() == threads
    assert sys.stderr.write == write


def test_of_nested_blocks_the_innermost_decides():
    outer, inner = [], []
    with mbd.progress(outer.append):
        with mbd.progress(enabled=False):
            time.sleep(QUIET_S + 0.5)
        assert outer == []
        with mbd.progress(inner.append):
            time.sleep(QUIET_S + 0.5)
        assert outer == []
        assert len(inner) == 1
        time.sleep(QUIET_S + 0.5)
    assert len(outer) == 1


def test_nothing_runs_where_nothing_is_asked_for():
    threads = threading.active_count()
    with mbd.progress(enabled=False):
        assert threading.active_count() == threads


def test_a_silent_block_says_something_unless_one_in_it_is_not_to_speak(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    with mbd.progress():
        time.sleep(QUIET_S + 0.5)
    assert "..." in shown.getvalue()
    shown.truncate(0)
    with mbd.progress(), mbd.progress(enabled=False):
        time.sleep(QUIET_S + 0.5)
    assert shown.getvalue().strip("\0") == ""


class Terminal(io.StringIO):
    """Keeps all that was drawn."""

    def isatty(self):
        return True


def screen(text):
    """What a terminal shows in the end: a return goes to the line's begin."""
    lines = []
    for line in text.split("\n"):
        lines.append(re.sub(r"\x1b\[\?25[lh]", "", line).split("\r\x1b[2K")[-1].rstrip("\r"))
    return lines


def test_in_a_terminal_the_line_counts_seconds_and_is_gone_before_others_print(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with mbd.progress():
        time.sleep(QUIET_S + 2.5)
        drawn = terminal.getvalue()
        assert drawn.count("\r\x1b[2K") >= 3
        assert "\n" not in drawn
        sys.stderr.write("a result\n")
    assert screen(terminal.getvalue()) == ["a result", ""]


def test_a_line_that_others_have_not_ended_is_not_erased(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with mbd.progress():
        sys.stderr.write("reading")
        time.sleep(QUIET_S + 0.5)
    assert screen(terminal.getvalue())[0] == "reading"


def test_epochs_are_counted_where_no_report_is_given():
    data = mbd.simulate(SingleMassSpring(), np.linspace(0.0, 1.0, 41), {"x": 1.0})
    given, heard = [], []

    @counts_rows
    def slow_fit(*, report=None):
        for epoch in range(2):
            if report is not None:
                report({"epoch": epoch, "loss": 0.5, "learning_rate": 1e-3}, 400)
            time.sleep((epoch + 1) * QUIET_S + 0.5)

    with mbd.progress(heard.append):
        slow_fit()
    assert heard[0] == "epoch 1 of 400, loss 5.000e-01, rate 1.00e-03"
    assert heard[-1].startswith("epoch 2 of 400")
    with mbd.progress(heard.append):
        model = mbd.MBDNODE.for_system(SingleMassSpring(), width=4)
        config = mbd.TrainingConfig(epochs=2, refinement=0)
        mbd.fit(model, data, config, report=lambda row, total: given.append(total))
    assert given == [2, 2]
    assert not waiting_notice.NOTICE._counts


def test_steps_are_counted_and_a_count_that_stands_says_what_goes_on():
    heard = []

    @counts_steps
    def loop(*, report=None):
        assert report is not None
        report(3, 100)
        time.sleep(3 * QUIET_S + 1.0)

    with mbd.progress(heard.append):
        loop()
    assert heard[0] == "step 3 of 100"
    assert heard[1].startswith("step 3 of 100; ")


def test_runs_are_counted_and_what_others_do_is_not_guessed(notice):
    summary = "1 finished, 2 running"
    for elsewhere in (True, False):
        with notice.counting(elsewhere=elsewhere) as count:
            notice.begin()
            count(summary)
            words = [notice.word(notice.heard + t) for t in (1.1 * QUIET_S, 4 * QUIET_S)]
        assert words[0] == summary
        assert words[1] == summary if elsewhere else words[1].startswith(f"{summary}; computing")
    assert "running" not in (notice.word(notice.heard + 1.1 * QUIET_S) or "")


def test_a_line_of_progress_is_printed(capsys):
    say("epoch 3 of 400")
    assert capsys.readouterr().err == "epoch 3 of 400\n"


def test_commands_break_their_silence():
    script = """
import sys, time
import mbdnode.cli.app as app
app.make_app = lambda: lambda *a, **k: time.sleep(3.0)
sys.argv = ["mbdnode", "cases"]
sys.exit(app.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ}
    )
    assert done.stderr.startswith("loading ..."), done.stderr


def test_what_is_being_done_is_named_while_it_says_nothing_itself():
    heard = []
    with mbd.progress(heard.append), doing("fitting the parameters"), doing("refining them"):
        time.sleep(QUIET_S + 1.0)
    assert heard[0].startswith("refining them: ")
    assert heard[0].split(": ")[1].startswith(("loading", "computing", "compiling"))
