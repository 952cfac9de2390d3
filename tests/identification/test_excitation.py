"""Inputs that follow the state, against machines whose inputs are known to or not to."""

import numpy as np
import pytest
import scipy.integrate
from motions import as_trajectory

import mbdnode as mbd
from mbdnode.identification.excitation import describe_excitation, inputs_that_follow
from mbdnode.mechanisms import SinglePendulum

T = np.linspace(0.0, 4.0, 401)


def falling(feedback, noise, seed):
    """An inverted pendulum under a torque `feedback(t, angle, rate)`, as it would be recorded."""
    random = np.random.default_rng(seed)
    start = random.uniform(-0.3, 0.3, 2)

    def right(t, y):
        return [y[1], 9.0 * np.sin(y[0]) - 0.2 * y[1] + 4.0 * feedback(t, *y)]

    found = scipy.integrate.solve_ivp(right, (0, T[-1]), start, t_eval=T, rtol=1e-10, atol=1e-12)
    angle, rate = found.y
    u = np.array([feedback(t, a, w) for t, a, w in zip(T, angle, rate, strict=True)])
    states = np.stack([angle, rate], axis=1) + random.normal(0.0, noise, (len(T), 2))
    return as_trajectory(SinglePendulum(), T, states, u[:, None])


def controlled(t, angle, rate):
    return -6.0 * angle - 1.2 * rate


def disturbed(t, angle, rate):
    return controlled(t, angle, rate) + 0.5 * np.sign(np.sin(7.0 * t) + np.sin(4.3 * t))


@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize(("feedback", "follows"), [(controlled, True), (disturbed, False)])
def test_torque_of_a_controller_follows_the_state(feedback, follows, noise):
    data = mbd.Dataset([falling(feedback, noise, seed) for seed in range(3)])
    assert inputs_that_follow(SinglePendulum(), data) == (("F",) if follows else ())


def test_two_controllers_are_told_apart():
    # With another gain in one of the runs, input and state act differently.
    weaker = lambda t, angle, rate: -4.0 * angle - 3.0 * rate  # noqa: E731
    runs = [falling(controlled, 1e-3, 0), falling(weaker, 1e-3, 1)]
    assert inputs_that_follow(SinglePendulum(), mbd.Dataset(runs)) == ()


def test_input_that_never_changes_does_not_follow():
    data = mbd.Dataset([falling(lambda t, a, w: 0.0, 1e-3, 0)])
    assert inputs_that_follow(SinglePendulum(), data) == ()


def test_sentence_names_the_inputs_and_the_way_out():
    assert describe_excitation(()) == ""
    assert "torque is a combination of the state" in describe_excitation(("torque",))
    assert "steps or noise" in describe_excitation(("a", "b"))
