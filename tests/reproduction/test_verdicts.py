"""Verdicts follow the numbers: a factor of three either way, and failures count."""

import math

import pytest

from mbdnode.formatting import as_printed
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.verdicts import (
    judge_printed,
    judge_unprinted,
    median_of_all,
    printed_error,
    printed_time,
)

PRINTED = Reference("mbd-node", "rk4", 1e-3, "a table")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1e-3], "reproduced"),
        ([2.9e-3], "reproduced"),
        ([3.1e-3], "worse"),
        ([3.4e-4], "reproduced"),
        ([3.2e-4], "better"),
        ([0.0], "better"),
        ([1e-5, 1e-3, 1e-1], "reproduced"),
        ([1e-5, 1e-1, 1e-1], "worse"),
        ([], "failed"),
        ([None], "failed"),
        ([math.nan, 1e-3], "failed"),
        ([1e-3, 1e-3, None], "reproduced"),
        ([1e-3, None, None], "failed"),
    ],
)
def test_kind_follows_the_median_of_the_seeds(values, kind):
    assert judge_printed(values, PRINTED).kind == kind


def test_worse_number_changes_the_verdict_and_its_sentence():
    assert judge_printed([1e-3], PRINTED).sentence == "1 times the printed value"
    assert judge_printed([2e-1], PRINTED).sentence == "200 times the printed value"
    assert judge_printed([2e-5], PRINTED).sentence == "50 times smaller than printed"


def test_factor_beyond_all_measure_is_a_power_of_ten():
    assert judge_printed([1e-12], PRINTED).sentence == "1.0e9 times smaller than printed"
    assert judge_printed([1.23e1], PRINTED).sentence == "12,000 times the printed value"


def test_round_off_is_no_factor():
    # Which of two sums of rounding errors is the smaller says nothing about a method.
    for median in (0.0, 2.5e-30, 9e-25):
        verdict = judge_printed([median], PRINTED)
        assert (verdict.kind, verdict.sentence) == ("better", "round-off: below 1e-24")
    assert judge_printed([2e-24], PRINTED).sentence == "5.0e20 times smaller than printed"


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ([0.099], "accurate"),
        ([0.101], "inaccurate"),
        ([0.01, 0.02, 3.0], "accurate"),
        ([0.01, None, None], "failed"),
        ([], "failed"),
    ],
)
def test_study_without_a_printed_number_is_judged_by_its_own_error(errors, kind):
    assert judge_unprinted(errors).kind == kind


def test_sentence_of_a_study_says_its_error():
    assert judge_unprinted([0.0123]).sentence == "NRMSE 1.2 %; the paper prints no number"
    assert judge_unprinted([1e-13]).sentence.startswith("round-off;")


def test_what_cannot_be_compared_says_why_unless_it_failed():
    odd = Reference("mbd-node", "rk4", 1e-3, "a table", incomparable="Another start.")
    verdict = judge_printed([1e-3], odd)
    assert (verdict.kind, verdict.sentence) == ("not comparable", "Another start.")
    assert judge_printed([None], odd).kind == "failed"


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_printed_number_must_be_above_zero_and_finite(value):
    with pytest.raises(ValueError, match="above zero and finite"):
        Reference("mbd-node", "rk4", value, "a table")


def test_median_counts_failures_as_worse_than_any_number():
    assert median_of_all([3.0, 1.0, None]) == 3.0
    assert median_of_all([3.0, None]) is None
    assert median_of_all([]) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.3e-6, "1.3e-6"), (2.2, "2.2e0"), (12345.0, "1.2e4"), (0.0, "0.0e0"), (math.inf, "-")],
)
def test_numbers_are_written_as_the_paper_prints_them(value, text):
    assert as_printed(value) == text


def test_another_recipe_answers_the_first_error_of_its_model():
    first = Reference("mbd-node", "lf2", 1.3e-6, "here")
    second = Reference("mbd-node", "rk4", 9.2e-1, "there")
    both = (first, second)
    for recipe in ("paper", "paper-shuffled"):
        assert printed_error(both, "mbd-node", "rk4", recipe) is second
    assert printed_error(both, "mbd-node", "rk4", "adam-lm") is first
    assert printed_error(both, "lstm", "-", "paper") is None


def test_law_answers_the_papers_own_method():
    printed = Reference("mbd-node", "lf2", 1.3e-6, "here"), Reference("lnn", "rk4", 9.1e-6, "here")
    assert printed_error(printed, "law", "rk4", "best") is printed[0]


def test_time_stands_beside_that_of_the_same_integrator_or_of_the_error_that_is_answered():
    error = Reference("mbd-node", "lf2", 1.3e-6, "here")
    times = [
        Reference("mbd-node", name, seconds, "there", "train_seconds")
        for name, seconds in (("ys4", 900.0), ("lf2", 500.0))
    ]
    every = (error, *times)
    assert printed_time(every, "mbd-node", "ys4", "paper") is times[0]
    assert printed_time(every, "law", "rk4", "best") is times[1]
    assert printed_time(every, "mbd-node", "rk4", "paper") is None
