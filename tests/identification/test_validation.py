"""What recipes are told by: segments of several lengths, and only what was recorded."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.data.rows import Noise, recorded_rates, rows_of
from mbdnode.identification.identify import describe_segments
from mbdnode.identification.law_search import Choice
from mbdnode.identification.law_selection import Attempt, LawSelection
from mbdnode.identification.problem import Candidate, Problem
from mbdnode.identification.validation import make_validation, noise_in, validation_error
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import DoublePendulum
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.multibody import AccelerationFunction

SWING = DoublePendulum()
CLEAN = Noise(np.full(2, 1e-12), np.full(2, 1e-12), 0.0)
RK4 = get_integrator("rk4")
PROBLEM = Problem(SWING, RK4, False, 0, CLEAN)


@pytest.fixture(scope="module")
def chaos():
    """A double pendulum that turns over for twenty seconds; the last eight are to be predicted."""
    t = np.arange(2001) * 0.01
    run = mbd.simulate(SWING, t, {"theta1": 2.5, "theta2": 2.0})
    every = np.ones(2, bool)
    return make_validation(
        [(rows(run, 0, 1200), rows(run, 1200, 2000))], None, rows(run), every, every
    )


def rows(run, first=0, last=None):
    part = run.rows(first, len(run) - 1 if last is None else last)
    return rows_of(SWING, (0, 1), mbd.Dataset(part), accelerations=False)


@pytest.fixture(scope="module")
def laws():
    """A law that stops, and the right one with a torque beside it that is not there."""
    stopping = Library.for_system(SWING, degree=1, quadratic=False)
    # The last two columns are the velocities.
    damping = stopping.network.weights.at[:, -2:].set(-1.0 * np.eye(2))
    right = Library.for_system(SWING, degree=1, quadratic=False, known="mechanism")
    torque = right.network.weights.at[:, 0].set(0.02)
    return tuple(
        eqx.tree_at(lambda m: m.network.weights, law, weights)
        for law, weights in ((stopping, damping), (right, torque))
    )


def selection_of(split, *laws):
    selection = LawSelection(split)
    for law in laws:
        candidate = Candidate("linear", "law", lambda r: None)
        selection.attempts.append(Attempt(candidate, validation_error(PROBLEM, law, split), law))
    return selection


def test_right_law_of_a_chaotic_motion_is_preferred_to_a_simple_wrong_one(chaos, laws):
    selection = selection_of(chaos, *laws)
    wrong, right = selection.errors(PROBLEM, 0)
    # Over eight seconds both have lost sight of it, and the simpler one would be taken.
    assert right > 0.5
    assert wrong < 3 * right
    assert selection.choose(PROBLEM, 3e-4, 3.0).model is laws[1]


def test_right_law_of_a_chaotic_motion_is_not_called_none(chaos, laws):
    selection = selection_of(chaos, *laws)
    told = describe_segments(selection.segments(PROBLEM, selection.attempts[1], 0.0))
    assert "no law" not in told
    assert "predicts this motion well for about" in told
    assert "over 8 s" in told


def test_law_that_explains_no_segment_is_said_to_be_none(chaos, laws):
    selection = selection_of(chaos, *laws)
    assert describe_segments(selection.segments(PROBLEM, selection.attempts[0], 0.0)).endswith(
        "no law was found that predicts this motion well"
    )


def test_segments_are_parts_of_the_end_each_after_what_came_before_it(chaos):
    assert chaos.levels == 4
    lengths = [chaos.segments(level).lengths() for level in range(4)]
    assert [set(one) for one in lengths] == [{800}, {200}, {50}, {12}]
    assert [len(one) for one in lengths] == [1, 4, 16, 32]
    assert chaos.segments(1).seconds == pytest.approx(2.0)
    quarter = chaos.segments(1)
    # The window before a segment ends where the segment begins.
    assert np.asarray(quarter.windows.z_next)[:, -1] == pytest.approx(
        np.asarray(quarter.after.z)[:, 0]
    )


def test_estimated_rates_have_no_part_in_the_error():
    x = AccelerationFunction(lambda t, q, v, u, mu: -q, (mbd.length("x"), mbd.length("y")))
    run = mbd.simulate(x, np.arange(101) * 0.05, {"x": 1.0, "y": 0.5})
    names = x.coordinate_names
    for recorded, expected in (
        (None, [True, True]),
        ((*names, *x.rate_names), [True, True]),
        (names, [False, False]),
        ((*names, x.rate_names[1]), [False, True]),
        # What was not recorded follows from what was.
        ((names[0], x.rate_names[0]), [True, True]),
        ((names[0],), [False, False]),
    ):
        data = mbd.Dataset(run, recorded=recorded)
        assert recorded_rates(x, (0, 1), data).tolist() == expected
    whole = rows_of(x, (0, 1), mbd.Dataset(run), accelerations=False)
    some = make_validation(
        [(whole, whole)], None, whole, np.zeros(2, bool), np.array([False, True])
    )
    assert np.isfinite(some.scales).tolist() == [True, True, False, True]


def test_wrong_law_that_predicts_short_pieces_is_not_called_within_the_noise():
    """Small swings of a pendulum: a mass that is 1 below and negative above does nearly as well."""
    pendulum = AccelerationFunction(lambda t, q, v, u, mu: -9.81 * jnp.sin(q), (mbd.angle("q"),))
    run = mbd.simulate(pendulum, np.arange(201) * 0.02, {"q": 0.25})
    part = lambda a, b: rows_of(  # noqa: E731
        pendulum, (0,), mbd.Dataset(run.rows(a, b)), accelerations=False
    )
    whole, angle = part(0, 200), np.ones(1, bool)
    split = make_validation([(part(0, 160), part(160, 200))], None, whole, angle, angle)
    noise = Noise(np.array([0.01]), np.array([0.03]), 0.06)
    problem = Problem(pendulum, RK4, False, 0, noise)
    blank = LearnedMechanism.for_system(pendulum, mass_degree=1, potential_degree=1)
    attempts = []
    for mass in ((0.2, 0.8), (1.0, 0.0)):
        values = np.zeros(blank.network.values.size)
        # One, cosine and sine for the mass; cosine and sine for the potential.
        values[:2], values[3] = mass, -9.81
        law = eqx.tree_at(lambda m: m.network.values, blank, jnp.asarray(values))
        candidate = Candidate("lagrangian", "law", lambda r: None, terms=3)
        attempts.append(Attempt(candidate, validation_error(problem, law, split), law))
    floor = noise_in(split, noise)
    assert all(one.error < 1.2 * floor for one in attempts)
    selection = LawSelection(split)
    selection.attempts += attempts[:1]
    for right in (None, attempts[1]):
        selection.attempts += [] if right is None else [right]
        chosen = selection.choose(problem, 1.2 * floor, 1.2, whole)
        definite = selection.definite(problem, chosen, whole)
        choice = Choice(chosen.model, (), chosen, (), noise, floor, "", 0.0, definite)
        # Alone it is taken, and not trusted; beside the right one it is not taken.
        assert chosen is (right or attempts[0])
        assert choice.explained is (right is not None)
