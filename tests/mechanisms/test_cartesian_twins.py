"""The same mechanism in minimal and in Cartesian coordinates moves in the same way.

The Cartesian forms pass configurations in which no fixed choice of coordinates would do, so they
test the coordinate partition as much as themselves.
"""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import (
    CartPole,
    CartPoleCartesian,
    DoublePendulum,
    DoublePendulumCartesian,
    SinglePendulum,
    SinglePendulumCartesian,
)

TIMES = np.linspace(0.0, 3.0, 301)


def both(minimal, cartesian, start, cartesian_start, parameters, guess=None, inputs=None):
    """The two trajectories, and the check that the Cartesian one keeps its constraints."""
    options = {"inputs": inputs, "parameters": parameters, "integrator": "dopri8"}
    first = mbd.simulate(minimal, TIMES, start, **options)
    state = mbd.consistent_state(cartesian, cartesian_start, guess=guess, parameters=parameters)
    second = mbd.simulate(cartesian, TIMES, state, **options)
    assert first.status.ok
    assert second.status.ok
    assert float(second.position_residual.max()) <= 1e-12
    assert float(second.velocity_residual.max()) <= 1e-12
    return first, second


def swing(angle, rate, length=1.0):
    """Position and velocity of a bob, `angle` from the downward vertical, `y` upwards."""
    angle, rate = np.asarray(angle), np.asarray(rate)
    s, c = length * np.sin(angle), length * np.cos(angle)
    return np.stack([s, -c]), np.stack([c, s]) * rate


def assert_agree(found, expected):
    """To 1e-10, relative to the largest value."""
    assert np.max(np.abs(np.asarray(found) - expected)) <= 1e-10 * np.max(np.abs(expected))


@pytest.mark.slow
def test_single_pendulum_that_turns_over_agrees_in_both_coordinates():
    force = np.random.default_rng(0).normal(0.0, 5.0, len(TIMES) - 1)
    minimal, cartesian = both(
        SinglePendulum(),
        SinglePendulumCartesian(),
        {"theta": 0.0, "theta_dot": 10.0},
        {"x": 0.0, "x_dot": 8.0},
        {"m": 1.3, "L": 0.8, "c": 0.3},
        inputs=force,
    )
    assert float(np.max(minimal["theta"])) > 2 * np.pi
    position, velocity = swing(minimal["theta"], minimal["theta_dot"], 0.8)
    assert_agree(cartesian.q, position.T)
    assert_agree(cartesian.v, velocity.T)


@pytest.mark.slow
def test_double_pendulum_agrees_in_both_coordinates():
    first, second = 3 * np.pi / 7, 3 * np.pi / 4
    upper, lower = swing(first, 0.0, 1.2)[0], swing(second, 0.0, 0.7)[0]
    minimal, cartesian = both(
        DoublePendulum(),
        DoublePendulumCartesian(),
        {"theta1": first, "theta2": second},
        {"x1": upper[0], "x2": upper[0] + lower[0]},
        {"m1": 2.0, "m2": 0.6, "l1": 1.2, "l2": 0.7},
        guess={"y1": upper[1], "y2": upper[1] + lower[1]},
    )
    upper = swing(minimal["theta1"], minimal["theta1_dot"], 1.2)
    lower = swing(minimal["theta2"], minimal["theta2_dot"], 0.7)
    for found, (top, rest) in zip(
        (cartesian.q, cartesian.v), zip(upper, lower, strict=True), strict=True
    ):
        assert_agree(found, np.concatenate([top, top + rest]).T)


@pytest.mark.slow
def test_cart_pole_agrees_in_both_coordinates():
    push = np.random.default_rng(1).uniform(-10.0, 10.0, len(TIMES) - 1)
    minimal, cartesian = both(
        CartPole(),
        CartPoleCartesian(),
        {"theta": np.pi / 6, "x": 1.0},
        {"x": 1.0, "x_pole": 1.0 + 0.8 * np.sin(np.pi / 6)},
        {"M": 2.0, "m": 0.5, "l": 0.8},
        inputs=push,
    )
    # The angle is from the upward vertical, so that the pole is a bob at pi - theta.
    position, velocity = swing(np.pi - minimal["theta"], -minimal["theta_dot"], 0.8)
    x, x_dot = minimal["x"], minimal["x_dot"]
    assert_agree(cartesian.q, np.stack([x, x + position[0], position[1]], axis=1))
    assert_agree(cartesian.v, np.stack([x_dot, x_dot + velocity[0], velocity[1]], axis=1))
