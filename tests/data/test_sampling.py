"""Samples of the slider-crank against its one equation of motion, written in NumPy."""

import jax
import numpy as np
import pytest
from problems import slider_crank, slider_crank_state

from mbdnode.data import StepStream, sample_accelerations
from mbdnode.mechanisms import SingleMassSpring, SliderCrank
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

BOUNDS = {
    "theta1": (0.0, 2 * np.pi),
    "theta1_dot": (-4.0, 4.0),
    "F": (-10.0, 10.0),
    "T": (-10.0, 10.0),
}
CRANK, OMEGA = 2, 2
COUNT = 20


@pytest.fixture(scope="module")
def samples():
    (block,) = sample_accelerations(SliderCrank(), BOUNDS, COUNT, seed=3)
    return block


def test_draws_fill_their_ranges(samples):
    for column, name in ((samples.q[:, CRANK], "theta1"), (samples.v[:, OMEGA], "theta1_dot")):
        low, high = BOUNDS[name]
        assert np.all((column >= low) & (column <= high))
        assert np.ptp(column) > (high - low) / 2
    assert np.all(np.abs(samples.u) <= 10)
    assert np.all(np.ptp(samples.u, axis=0) > 10)


def test_drawn_states_meet_the_rod_kinematics(samples):
    minimal = np.stack([samples.q[:, CRANK], samples.v[:, OMEGA]], axis=1)
    found = np.concatenate([samples.q, samples.v], axis=1)
    # Lengths of a few meters and velocities of up to ten, at round-off.
    np.testing.assert_allclose(found, slider_crank_state(minimal), atol=1e-13)


def test_accelerations_solve_the_crank_equation(samples):
    for q, v, (force, torque), a in zip(samples.q, samples.v, samples.u, samples.a, strict=True):
        expected = slider_crank(force, torque)(0.0, np.array([q[CRANK], v[OMEGA]]))[1]
        assert a[CRANK] == pytest.approx(expected, rel=1e-11, abs=1e-12)


def test_dependent_accelerations_are_the_change_of_the_velocities(samples):
    width = 1e-5
    minimal = np.stack([samples.q[:, CRANK], samples.v[:, OMEGA]], axis=1)
    slope = np.stack([samples.v[:, OMEGA], samples.a[:, CRANK]], axis=1)
    ahead, behind = (slider_crank_state(minimal + s * width * slope) for s in (1, -1))
    # Central differences over 1e-5 s leave 1e-9 of motions with rates of up to ten a second.
    np.testing.assert_allclose(samples.a, (ahead - behind)[:, 9:] / (2 * width), atol=1e-6)


def test_draws_do_not_depend_on_the_blocks(samples):
    blocks = list(sample_accelerations(SliderCrank(), BOUNDS, COUNT, seed=3, block=8))
    assert [len(block) for block in blocks] == [8, 8, 4]
    joined = jax.tree.map(lambda *x: np.concatenate(x), *blocks)
    assert np.array_equal(joined.u, samples.u)
    assert np.array_equal(joined.q[:, CRANK], samples.q[:, CRANK])
    # Compiled for another size, the same operations may round otherwise.
    np.testing.assert_allclose(joined.a, samples.a, rtol=1e-11, atol=1e-12)


def test_another_seed_draws_others(samples):
    (other,) = sample_accelerations(SliderCrank(), BOUNDS, COUNT, seed=4)
    assert not np.any(np.isin(other.u, samples.u))


def test_every_draw_stays_on_the_branch_of_the_guess():
    guess = {"theta2": np.pi, "x2": -1.0, "x3": -2.0}
    (left,) = sample_accelerations(SliderCrank(), BOUNDS, COUNT, seed=3, guess=guess)
    theta1, theta2, x3 = left.q[:, CRANK], left.q[:, 5], left.q[:, 6]
    assert np.all(np.cos(theta2) < 0)
    expected = 2 * np.cos(theta1) - 4 * np.sqrt(1 - np.sin(theta1) ** 2 / 4)
    np.testing.assert_allclose(x3, expected, atol=1e-13)


def test_configurations_that_cannot_be_reached_are_refused():
    # A crank of 2 m on a rod of 1 m only swings by 30 degrees.
    short = {"r": 1.0}
    with pytest.raises(ValueError, match=r"cannot be moved.*theta1 = .*Narrow"):
        list(sample_accelerations(SliderCrank(), BOUNDS, COUNT, parameters=short))


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (
            {k: v for k, v in BOUNDS.items() if k != "F"},
            "No range for 'F'.*theta1, theta1_dot, F, T",
        ),
        ({k: v for k, v in BOUNDS.items() if k != "theta1_dot"}, "No range for 'theta1_dot'"),
        ({**BOUNDS, "theta2": (0.0, 1.0)}, "'theta2'"),
        ({**BOUNDS, "thetal": (0.0, 1.0)}, "'thetal'.*Did you mean 'theta1'"),
        ({**BOUNDS, "F": (1.0, -1.0)}, r"range of 'F' is \(1.0, -1.0\).*min first"),
        ({**BOUNDS, "F": (1.0, 1.0)}, "range of 'F'"),
        ({**BOUNDS, "T": (0.0, np.inf)}, "range of 'T'.*finite"),
        ({**BOUNDS, "T": (np.nan, 1.0)}, "range of 'T'.*finite"),
    ],
)
def test_bad_ranges_are_refused_before_anything_is_drawn(ranges, message):
    with pytest.raises(ValueError, match=message):
        sample_accelerations(SliderCrank(), ranges, COUNT)


@pytest.mark.parametrize("sizes", [{"count": 0}, {"count": 5, "block": 0}])
def test_nothing_to_draw_is_refused(sizes):
    with pytest.raises(ValueError, match="at least 1"):
        sample_accelerations(SliderCrank(), BOUNDS, **sizes)


@pytest.mark.slow
def test_sampled_steps_are_those_of_simulate_one_by_one():
    steps = StepStream(SliderCrank(), BOUNDS, 3, 0.02, seed=3).chunk(0).trajectories[0]
    assert steps.q.shape == (3, 2, 9)
    assert bool(np.all(steps.status.ok))
    for number in range(3):
        one = jax.tree.map(lambda x: x[number], steps)  # noqa: B023
        again = simulate(SliderCrank(), [0.0, 0.02], State(one.q[0], one.v[0]), inputs=one.u[:1])
        # The same step, compiled for one and for three.
        np.testing.assert_allclose(one.q, again.q, atol=1e-13)
        np.testing.assert_allclose(one.v, again.v, atol=1e-12)
        assert np.array_equal(one.u[0], again.u[0])


def test_sampled_steps_of_a_spring_are_its_closed_form():
    ranges = {"x": (-1.0, 1.0), "x_dot": (-3.0, 3.0)}
    steps = StepStream(SingleMassSpring(), ranges, 5, 0.1).chunk(0).trajectories[0]
    x, v, w = steps.q[:, 0, 0], steps.v[:, 0, 0], np.sqrt(5.0)
    assert steps.u.shape == (5, 2, 0)
    # One step of order four with w h = 0.22 is off by (w h)^5/120.
    exact = x * np.cos(w * 0.1) + v / w * np.sin(w * 0.1)
    np.testing.assert_allclose(steps.q[:, 1, 0], exact, atol=2e-5)
    assert not np.array_equal(steps.q[:, 1, 0], exact)


def test_chunks_differ_and_come_back_the_same_by_number():
    ranges = {"x": (-1.0, 1.0), "x_dot": (-3.0, 3.0)}
    stream = StepStream(SingleMassSpring(), ranges, 5, 0.1, seed=1)
    first, second = (np.asarray(stream.chunk(n).trajectories[0].q) for n in (0, 1))
    again = StepStream(SingleMassSpring(), ranges, 5, 0.1, seed=1).chunk(1).trajectories[0].q
    assert np.array_equal(second, again)
    assert not np.any(np.isin(first, second))


def test_empty_chunk_is_refused():
    with pytest.raises(ValueError, match="at least one step"):
        StepStream(SingleMassSpring(), {"x": (-1.0, 1.0), "x_dot": (-3.0, 3.0)}, 0, 0.1)
