"""What is told of a fit that is under way, where there is no terminal."""

import itertools

import pytest

from mbdnode.cli import output


@pytest.fixture
def told(monkeypatch, capsys):
    """Reports a row and gives the lines that were told of it, by a clock of our own."""
    seconds = itertools.count(0.0, 10.0)
    monkeypatch.setattr(output.time, "perf_counter", lambda: next(seconds))
    report = output._training_lines()

    def row(epoch, total, rate=1e-3, **more):
        report({"epoch": epoch, "loss": 0.5, "learning_rate": rate, **more}, total)
        return capsys.readouterr().err.splitlines()

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
