"""What is told of a fit that is under way, in lines and in a terminal."""

import io
import itertools
import re
import sys
import time

import pytest

from mbdnode import waiting_notice
from mbdnode.cli import output
from mbdnode.progress_text import TrainingRows
from mbdnode.reproduction.dispatch import RunEvent


@pytest.fixture
def told():
    """Reports a row and gives what is told of it, by a clock of our own."""
    seconds, rows = itertools.count(0.0, 10.0), TrainingRows()

    def row(epoch, total, rate=1e-3, **more):
        given = {"epoch": epoch, "loss": 0.5, "learning_rate": rate, **more}
        return [text for text in rows.hear(given, total, next(seconds)) if text]

    return row


def test_first_epoch_says_nothing_of_the_time_left(told):
    # It took the compilation.
    assert "left" not in told(0, 10)[0]
    # Ten seconds an epoch, and eight to go.
    assert told(1, 10)[0].endswith("at most 80 s left")


def test_each_training_has_a_time_of_its_own(told):
    for epoch in range(9):
        told(epoch, 10)
    assert "left" not in told(0, 10)[0]
    assert told(1, 10)[0].endswith("at most 80 s left")


def test_iterations_of_a_refinement_are_timed_apart_from_epochs(told):
    told(0, 10)
    told(1, 10)
    assert "left" not in told(2, 10, rate=0.0)[0]
    assert told(3, 10, rate=0.0)[0].endswith("at most 60 s left")


def test_search_for_a_law_leaves_no_time_to_what_follows(told):
    for place in range(20):
        told(place, 26, rate=0.0, stage="candidate")
    assert "left" not in told(0, 210)[0]


def test_what_is_tried_next_is_told_once_with_the_reason(told):
    named = {"model": "law plus network", "why": "validation NRMSE so far law (26 %)"}
    first = told(0, 10, **named)
    assert first[0] == "trying a law plus network: validation NRMSE so far law (26 %)"
    assert first[1].startswith("law plus network, epoch 1 of 10")
    assert len(told(1, 10, **named)) == 1


def test_a_chosen_model_is_not_called_a_trial(told):
    tried = {"model": "network", "why": "validation NRMSE so far law (26 %)"}
    told(0, 10, **tried)
    chosen = {**tried, "chosen": True, "why": "on all of the training data"}
    assert told(0, 10, **chosen)[0] == "training the chosen network: on all of the training data"
    assert len(told(1, 10, **chosen)) == 1


def test_a_refinement_has_no_learning_rate_and_no_epochs(told):
    assert told(0, 10)[0] == "epoch 1 of 10, loss 5.000e-01, rate 1.00e-03"
    assert told(8, 10, rate=0.0)[0] == "refinement, step 9 of 10, loss 5.000e-01"


def test_one_that_is_left_is_no_plural(told):
    assert told(-1, 1, rate=0.0, stage="refinement")[0].startswith("1 refinement to go")
    assert told(-1, 3, rate=0.0, stage="refinement")[0].startswith("3 refinements to go")


def test_what_counts_several_trainings_as_one_counts_no_epochs(told):
    said = told(14, 140, part="comparing structures")[0]
    assert said.startswith("comparing structures, step 15 of 140, loss")


class Terminal(io.StringIO):
    """What was drawn, without what moves the cursor and colors."""

    def isatty(self):
        return True

    def shown(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


def made_terminal(monkeypatch):
    """In place of standard error, which pytest sets anew between a fixture and its test."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_search_in_a_terminal_promises_no_number_of_candidates(monkeypatch):
    terminal = made_terminal(monkeypatch)
    with waiting_notice.progress(), waiting_notice.counting_rows() as report:
        report({"stage": "candidate", "epoch": 1, "loss": 6e-8, "learning_rate": 0.0}, 30)
        time.sleep(0.5)
    shown = terminal.shown()
    assert "candidate 2, at most 28 more, min validation NRMSE 6.0e-08" in shown
    assert "/30" not in shown
    assert "nan" not in shown


def test_epochs_are_told_alike_in_a_terminal_and_in_lines(monkeypatch):
    row = {"epoch": 2, "loss": 0.5, "learning_rate": 1e-3}
    terminal, lines = made_terminal(monkeypatch), []
    for to in (None, lines.append):
        with waiting_notice.progress(to), waiting_notice.counting_rows() as report:
            report(row, 400)
            time.sleep(0.5 if to is None else waiting_notice.QUIET_S + 0.5)
    assert "epoch 3 of 400, loss 5.000e-01, rate 1.00e-03" in terminal.shown()
    assert lines == ["epoch 3 of 400, loss 5.000e-01, rate 1.00e-03"]


def test_what_is_tried_is_a_line_of_its_own_that_stays(monkeypatch, capsys):
    row = {"epoch": 2, "loss": 0.5, "learning_rate": 1e-3, "model": "law", "why": "few data"}
    with waiting_notice.counting_rows() as report:
        report(row, 400)
    assert capsys.readouterr().err == "trying a law: few data\n"


def test_count_that_does_not_move_says_what_goes_on(monkeypatch):
    terminal = made_terminal(monkeypatch)
    monkeypatch.setattr(waiting_notice, "QUIET_S", 0.1)
    monkeypatch.setattr(waiting_notice.NOTICE, "activity", lambda now: "compiling ...")
    with waiting_notice.progress(), waiting_notice.counting_steps("controlling") as report:
        report(3, 100)
        time.sleep(0.8)
    assert "controlling, step 3 of 100; compiling ..." in terminal.shown()


def test_finished_search_has_as_many_candidates_as_were_tried():
    line = output._RunState(RunEvent("a run", "waiting"))
    line.hear(RunEvent("a run", "running", done=2, total=74, stage="candidate"))
    line.hear(RunEvent("a run", "finished"))
    assert line.progress == "candidate 2"
