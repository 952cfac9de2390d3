import json

import pytest

from mbdnode.cli.cases import describe_case
from mbdnode.reproduction.cases import CASES, LISTED

BOUNDS = ("above", "at_least", "at_most")
NAMES = [
    "single-mass-spring",
    "single-mass-spring-damper",
    "triple-mass-spring-damper",
    "single-pendulum",
    "single-pendulum:lengths",
    "double-pendulum",
    "double-pendulum:released-low",
    "cart-pole",
    "cart-pole:controlled",
    "slider-crank",
    "slider-crank:friction",
    "vehicle",
]


@pytest.fixture
def listed(run):
    result = run("cases", "--json")
    assert result.code == 0
    return {case["name"]: case for case in json.loads(result.out)}


def test_every_case_is_listed_in_the_papers_order(listed):
    assert list(listed) == NAMES


def test_json_has_the_same_fields_for_every_case(listed):
    text, number = str, (int, float)
    for case in listed.values():
        assert list(case) == [
            *("name", "title", "mechanism", "coordinates", "rates", "degrees_of_freedom"),
            *(
                "inputs",
                "parameters",
                "initial",
                "dt_s",
                "steps",
                "train_steps",
                "integrator",
                "source",
            ),
        ]
        for coordinate, rate in zip(case["coordinates"], case["rates"], strict=True):
            assert set(coordinate) == {"name", "unit", "is_angle"}
            assert coordinate["is_angle"] == (coordinate["unit"] == "rad")
            assert rate == {"name": f"{coordinate['name']}_dot", "unit": f"{coordinate['unit']}/s"}
        for parameter in case["parameters"]:
            assert set(parameter) == {*("name", "default", "unit", "meaning"), *BOUNDS}
            assert isinstance(parameter["default"], number)
        assert all(set(entry) == {"name", "unit"} for entry in case["inputs"])
        states = {entry["name"] for entry in (*case["coordinates"], *case["rates"])}
        assert set(case["initial"]) <= states
        assert 0 <= case["train_steps"] < case["steps"]
        assert case["dt_s"] > 0
        assert all(isinstance(case[key], text) for key in ("title", "integrator", "source"))


def test_json_says_what_the_paper_says(listed):
    crank = listed["slider-crank"]
    assert (crank["dt_s"], crank["steps"]) == (0.01, 10_000)
    assert [entry["name"] for entry in crank["inputs"]] == ["F", "T"]
    masses = {p["name"]: p["default"] for p in crank["parameters"] if p["name"].startswith("m")}
    assert masses == {"m1": 3.0, "m2": 6.0, "m3": 1.0}


def test_parameters_of_a_variant_are_its_own(listed):
    gravity = {
        name: next(p["default"] for p in listed[name]["parameters"] if p["name"] == "g")
        for name in ("double-pendulum", "double-pendulum:released-low")
    }
    assert gravity == {"double-pendulum": 9.81, "double-pendulum:released-low": 9.8}


@pytest.mark.parametrize("columns", ["80", "100", "200"])
def test_table_shows_every_name_whole(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    shown = run("cases").out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert [line.split()[0] for line in lines if line.split()[0] in NAMES] == NAMES
    assert all(word in shown for word in ("SliderCrank", "theta3", "10,000", "analytic", "dt [s]"))


@pytest.mark.parametrize("name", NAMES)
def test_the_list_says_what_the_case_says(name):
    row, said = LISTED[name], describe_case(CASES[name])
    for key in ("mechanism", "degrees_of_freedom", "dt_s", "steps", "train_steps", "integrator"):
        assert getattr(row, key) == said[key]
    for key in ("coordinates", "inputs"):
        assert getattr(row, key).split() == [each["name"] for each in said[key]]
