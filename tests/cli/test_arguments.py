import shlex

import pytest

from mbdnode.cli import arguments
from mbdnode.cli.arguments import parse_assignments, repeat_options, typed_command


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("simulate c --initial a=1", "simulate c --initial a=1"),
        ("simulate c --initial a=1 b=2", "simulate c --initial a=1 --initial b=2"),
        (
            "--initial a=1 b=-2 --set m=3 k=4 c",
            "--initial a=1 --initial b=-2 --set m=3 --set k=4 c",
        ),
        ("--initial=a=1 b=2 c", "--initial=a=1 --initial b=2 c"),
        ("--initial a=1 c b=2", "--initial a=1 c b=2"),
        ("--out a=1.csv b=2", "--out a=1.csv b=2"),
        ("--initial", "--initial"),
    ],
)
def test_values_after_one_option_are_given_to_it_one_by_one(typed, understood):
    assert repeat_options(typed.split()) == understood.split()


@pytest.mark.parametrize(
    ("typed", "option", "next_one"),
    [
        ("simulate c --initial --out x.csv", "--initial", "'--out'"),
        ("simulate c --set --initial a=1", "--set", "'--initial'"),
        ("fit a.csv --role -h", "--role", "'-h'"),
    ],
)
def test_option_in_place_of_a_value_is_refused(run, typed, option, next_one):
    result = run(*typed.split())
    assert result.code == 2
    assert result.err.startswith(f"error: {option} has no value: {next_one} follows it.")


def test_assignments_become_numbers():
    assert parse_assignments("--set", ["a=1", "b=-2.5e-3"]) == {"a": 1.0, "b": -2.5e-3}


@pytest.mark.parametrize(
    ("pairs", "parts"),
    [
        (["theta"], ("--initial", "'theta'", "name=value")),
        (["=3"], ("--initial", "'=3'", "name=value")),
        (["theta=fast"], ("theta=fast", "not a number", "theta=0.5")),
        (["theta="], ("theta=", "not a number")),
        (["theta=1", "theta=2"], ("'theta'", "twice")),
    ],
)
def test_what_is_not_an_assignment_is_refused(pairs, parts):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the parts are checked below)
        parse_assignments("--initial", pairs)
    assert all(part in str(caught.value) for part in parts)


def test_command_of_a_report_is_what_was_typed_but_for_resuming(monkeypatch):
    given = ["fit", "a b.csv", "--role", "time=t", "theta1=theta [deg]", "--resume", "--seed", "4"]
    monkeypatch.setattr(arguments, "TYPED", given)
    words = shlex.split(typed_command())
    assert words == ["mbdnode", *(word for word in given if word != "--resume")]
