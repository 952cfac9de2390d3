"""The paper's cases: the text's numbers, and trajectories against SciPy on other equations."""

import math

import numpy as np
import pytest
from problems import PROBLEMS, solve_slider_crank

import mbdnode as mbd
from mbdnode.reproduction.cases import CASES, CONTROL_TASKS, check_control_task, get_case

PI = math.pi


def test_the_cases_come_in_the_order_of_the_paper():
    assert list(CASES) == [
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
    assert all(case.name == name for name, case in CASES.items())


@pytest.mark.parametrize(
    ("name", "integrator", "dt_s", "steps", "train_steps", "initial"),
    [
        ("single-mass-spring", "analytic", 0.01, 3000, 300, {"x": 1}),
        ("single-mass-spring-damper", "rk4", 0.01, 400, 300, {"x": 1}),
        ("triple-mass-spring-damper", "rk4", 0.01, 400, 300, {"x1": 1, "x2": 2, "x3": 3}),
        ("single-pendulum", "mp2", 0.01, 400, 300, {"theta_dot": PI}),
        ("double-pendulum", "rk4", 0.01, 400, 300, {"theta1": 3 * PI / 7, "theta2": 3 * PI / 4}),
        (
            "double-pendulum:released-low",
            "rk4",
            4 / 399,
            399,
            299,
            {"theta1": PI / 2, "theta2": PI / 4},
        ),
        ("cart-pole", "mp2", 0.005, 500, 400, {"theta": PI / 6, "x": 1}),
        ("slider-crank", "rk4", 0.01, 10_000, 0, {"theta1": 1, "theta1_dot": 1}),
    ],
)
def test_a_case_has_the_numbers_of_the_text(name, integrator, dt_s, steps, train_steps, initial):
    case = get_case(name)
    assert (case.integrator, case.dt_s, case.steps) == (integrator, dt_s, steps)
    assert case.train_steps == train_steps
    assert {key: value for key, value in case.initial.items() if value} == initial
    times = case.times()
    assert len(times) == steps + 1
    np.testing.assert_allclose(times[-1], steps * dt_s, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("single-mass-spring", {"m": 10, "k": 50}),
        ("single-mass-spring-damper", {"m": 10, "k": 50, "d": 2}),
        (
            "triple-mass-spring-damper",
            {"m1": 100, "m2": 10, "m3": 1}
            | dict.fromkeys(["k1", "k2", "k3"], 50)
            | dict.fromkeys(["d1", "d2", "d3"], 2)
            | {"physical_wall_damper": 0},
        ),
        ("single-pendulum", {"m": 1, "L": 1, "c": 0.1, "g": 9.81}),
        ("double-pendulum", {"m1": 1, "m2": 1, "l1": 1, "l2": 1, "g": 9.81}),
        ("double-pendulum:released-low", {"m1": 1, "m2": 1, "l1": 1, "l2": 1, "g": 9.8}),
        ("cart-pole", {"M": 1, "m": 1, "l": 0.5, "g": 9.81}),
        (
            "slider-crank",
            {"m1": 3, "I1": 4, "m2": 6, "I2": 32, "m3": 1, "I3": 1, "l": 2, "r": 4},
        ),
    ],
)
def test_a_case_has_the_parameters_of_the_text(name, values):
    case = get_case(name)
    defaults = {p.name: p.default for p in case.mechanism.parameters}
    assert {**defaults, **case.parameters} == values


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_case_moves_as_scipy_says(name):
    case = get_case(name)
    ours = mbd.simulate(
        case.mechanism,
        case.times(),
        case.initial,
        parameters=case.parameters,
        integrator="dopri8",
    )
    assert ours.status.ok
    reference = PROBLEMS[name].solve()
    found = np.concatenate([ours.q, ours.v], axis=1)
    # Both solvers are some decades better than this; a wrong equation is many decades worse.
    assert np.max(np.abs(found - reference)) <= 1e-9 * np.max(np.abs(reference))


def test_the_slider_crank_moves_as_scipy_says_under_random_forcing():
    case, steps = get_case("slider-crank"), 1000
    inputs = case.make_inputs(steps)
    assert inputs is not None
    ours = mbd.simulate(
        case.mechanism, case.times(steps), case.initial, inputs=inputs, integrator="dopri8"
    )
    assert ours.status.ok
    reference = solve_slider_crank(inputs)
    found = np.concatenate([ours.q, ours.v], axis=1)
    assert np.max(np.abs(found - reference)) <= 1e-9 * np.max(np.abs(reference))


def test_random_inputs_are_uniform_in_the_range_of_the_text_and_repeatable():
    case = get_case("slider-crank")
    inputs = case.make_inputs(20_000, seed=3)
    assert inputs is not None
    assert inputs.shape == (20_000, 2)
    assert np.all(np.abs(inputs) <= 10)
    # Standard errors: 0.041 for the mean, 0.019 for the deviation, of a uniform sample this large.
    np.testing.assert_allclose(inputs.mean(axis=0), 0, atol=0.2)
    np.testing.assert_allclose(inputs.std(axis=0), 10 / math.sqrt(3), atol=0.1)
    np.testing.assert_array_equal(inputs, case.make_inputs(20_000, seed=3))
    assert not np.array_equal(inputs, case.make_inputs(20_000, seed=4))


def test_cases_without_inputs_ask_for_none():
    assert get_case("cart-pole").make_inputs(10) is None


def test_times_take_another_step_or_number_of_steps():
    case = get_case("cart-pole")
    np.testing.assert_allclose(case.times(steps=2, dt_s=0.5), [0.0, 0.5, 1.0])
    assert len(case.times(steps=7)) == 8


def test_an_unknown_case_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"'slidercrank'\. Did you mean 'slider-crank'"):
        get_case("slidercrank")


def test_case_is_listed_under_its_own_name():
    assert [case.name for case in CASES.values()] == list(CASES)
    for name, (_, case) in CONTROL_TASKS.items():
        assert case is CASES[check_control_task(name)]
