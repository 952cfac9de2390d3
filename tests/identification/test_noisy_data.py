"""Measured motions: how noisy they are, and what can be learned from them nevertheless."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from motions import acceleration, missed_unseen, pendulum, recorded, stepped, with_noise
from scipy.integrate import quad
from scipy.special import beta

import mbdnode as mbd
from mbdnode.data.rows import estimate_noise, rows_of, runs_of
from mbdnode.identification import estimate_state, identify
from mbdnode.identification.regression.weak_form import make_windows
from mbdnode.identification.shooting import make_segments, refine_segments
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.function_library import Library

DT_S, STEPS = 0.01, 240


# Twice the range that is learned from.
CLEAN = stepped(pendulum, (1.0, 0.5), DT_S, 2 * STEPS)


def rows_from(states, *more):
    runs = [recorded(own, DT_S) for own in (states, *more)]
    return rows_of(SinglePendulum(), (0,), mbd.Dataset(runs))


@pytest.mark.parametrize("part", [0.001, 0.01, 0.05])
def test_level_of_noise_is_estimated_within_a_third(part):
    noise = estimate_noise(rows_from(with_noise(CLEAN, part, seed=3)))
    spread = np.std(CLEAN, axis=0)
    assert noise.z[0] == pytest.approx(part * spread[0], rel=0.3)
    assert noise.s[0] == pytest.approx(part * spread[1], rel=0.3)
    assert noise.relative == pytest.approx(part, rel=0.3)
    assert noise.matters


def test_each_run_has_its_own_ends():
    # One jump of the motion from run to run is no noise.
    noise = estimate_noise(rows_from(CLEAN[:100], CLEAN[300:], CLEAN[200:250]))
    assert not noise.matters


def test_computed_motion_is_clean():
    assert not estimate_noise(rows_from(CLEAN)).matters


def test_friction_that_sets_in_within_a_sample_is_no_noise():
    sudden = stepped(lambda q, v: pendulum(q, v) - np.tanh(v / 0.003), (1.0, 0.5), DT_S, STEPS)
    assert not estimate_noise(rows_from(sudden)).matters


def test_runs_that_are_too_short_to_tell_are_taken_as_clean():
    noisy = with_noise(CLEAN, 0.05)
    assert not estimate_noise(rows_from(noisy[:6], noisy[20:26])).matters


def _sine():
    t = np.arange(400) * DT_S
    rows = rows_from(np.stack([np.sin(t), np.cos(t)], axis=1))
    return t, rows, make_windows(rows)


def _test_function(t, window):
    begin, end = t[window[0]], t[window[-1]]
    return lambda x: (1 - ((2 * x - begin - end) / (end - begin)) ** 2) ** 6, begin, end


def test_integrals_of_the_weak_form_are_those_of_its_test_function():
    t, _, windows = _sine()
    assert len(windows) > 4
    half = (t[windows.index[:, -1]] - t[windows.index[:, 0]]) / 2
    # The integral of (1 - x^2)^6 over x from -1 to 1 is B(1/2, 7).
    area = windows.integral(np.ones(len(t) - 1))
    np.testing.assert_allclose(area, half * beta(0.5, 7), rtol=1e-10)
    phi, begin, end = _test_function(t, windows.index[3])
    expected = quad(lambda x: phi(x) * np.sin(x), begin, end, epsabs=1e-14)[0]
    assert windows.integral(np.sin(t))[3] == pytest.approx(expected, rel=1e-9)


def test_weak_form_integrates_rates_that_were_never_differentiated():
    t, _, windows = _sine()
    for values, rates in ((np.sin(t), np.cos(t)), (t**3, 3 * t**2), (np.exp(-t), -np.exp(-t))):
        np.testing.assert_allclose(
            windows.integral_of_rate(values), windows.integral(rates), rtol=1e-6, atol=1e-8
        )
    phi, begin, end = _test_function(t, windows.index[0])
    expected = quad(lambda x: phi(x) * np.cos(x), begin, end, epsabs=1e-14)[0]
    assert windows.integral_of_rate(np.sin(t))[0] == pytest.approx(expected, rel=1e-7)


def test_constant_has_no_rate_in_the_weak_form():
    t, _, windows = _sine()
    np.testing.assert_allclose(windows.integral_of_rate(np.full(len(t), 7.0)), 0.0, atol=1e-8)


def test_no_window_reaches_across_two_runs():
    rows = rows_from(CLEAN[:150], CLEAN[200:330])
    assert runs_of(rows) == [(0, 149), (149, 278)]
    index = make_windows(rows).index
    assert np.all((index[:, -1] < 149) | (index[:, 0] >= 149))
    assert np.any(index[:, -1] < 149)
    assert np.any(index[:, 0] >= 149)


@pytest.fixture(scope="module")
def noisy():
    return recorded(with_noise(CLEAN, 0.01, seed=1), DT_S)


@pytest.fixture(scope="module")
def learned(noisy):
    run = noisy.rows(0, STEPS)
    return {recipe: identify(SinglePendulum(), run, recipe) for recipe in ("fast", "best")}


def test_recipe_says_how_noisy_its_data_was(learned):
    assert learned["best"].diagnostics["noise"] == pytest.approx(0.01, rel=0.3)


# Parts of the motion's spread; the measurements themselves are off by 0.01.
@pytest.mark.parametrize(("recipe", "most"), [("fast", 0.02), ("best", 0.005)])
def test_noisy_pendulum_is_predicted_twice_as_far_as_it_was_measured(learned, recipe, most):
    model = learned[recipe].model
    start = {"theta": 1.0, "theta_dot": 0.5}
    run = mbd.simulate(model, np.arange(2 * STEPS + 1) * DT_S, start)
    missed = np.asarray(run.q)[:, 0] - CLEAN[:, 0]
    assert np.sqrt(np.mean(missed**2)) < most * np.std(CLEAN[:, 0])


def test_coefficients_from_noisy_data_are_nearly_those_of_the_law(learned):
    for theta, rate in ((1.0, 0.0), (-0.5, 3.0), (2.5, 0.0)):
        found = acceleration(learned["best"].model, theta, rate)
        assert found == pytest.approx(pendulum(theta, rate), abs=0.01 * 9.81)


@pytest.mark.parametrize("recipe", ["fast", "best"])
def test_what_lies_after_a_noisy_training_range_changes_nothing(noisy, learned, recipe):
    poisoned = eqx.tree_at(
        lambda r: (r.q, r.v),
        noisy,
        (noisy.q.at[STEPS + 1 :].set(jnp.nan), noisy.v.at[STEPS + 1 :].set(jnp.nan)),
    )
    again = identify(SinglePendulum(), poisoned.rows(0, STEPS), recipe).model
    assert eqx.tree_equal(again.network, learned[recipe].model.network)


LEVELS = (0.001, 0.01, 0.05)


# Hundreds of measurements average the noise out; what is left must be less than the noise of a
# single one. Half of it where rollouts are fitted, which have no bias from noisy states.
@pytest.mark.parametrize("part", LEVELS)
@pytest.mark.parametrize(("recipe", "most"), [("fast", 1.0), ("best", 0.5)])
def test_unseen_motion_is_predicted_within_the_noise(learned, recipe, most, part):
    run = recorded(with_noise(CLEAN, part, seed=1), DT_S).rows(0, STEPS)
    found = learned[recipe] if part == 0.01 else identify(SinglePendulum(), run, recipe)
    assert missed_unseen(found.model, DT_S, STEPS) < most * part


def test_estimated_state_is_nearer_than_the_measured_one(learned):
    spread, measured, estimated = np.std(CLEAN, axis=0), [], []
    for seed in range(8):
        states = with_noise(CLEAN, 0.01, seed=10 + seed)
        run = recorded(states[: STEPS + 1], DT_S)
        state = estimate_state(learned["best"].model, run)
        measured.append((states[STEPS] - CLEAN[STEPS]) / spread)
        estimated.append((np.array([state.q[0], state.v[0]]) - CLEAN[STEPS]) / spread)
    root = lambda x: np.sqrt(np.mean(np.square(x)))  # noqa: E731
    assert root(measured) == pytest.approx(0.01, rel=0.5)
    assert root(estimated) < 0.5 * root(measured)


def _rough_pendulum(rows):
    """A linear law that is nearly right, and the places of its weight and its damping."""
    model = Library.for_system(SinglePendulum(), degree=1, quadratic=False)
    sine = model.basis.terms.index((2,))
    weights = jnp.zeros_like(model.network.weights).at[0, sine].set(-9.0)
    free = np.array([sine, len(model.basis)])
    return eqx.tree_at(lambda m: m.network.weights, model, weights), free


def test_shooting_finds_the_law_and_the_starts_of_clean_windows():
    rows = rows_from(CLEAN[: STEPS + 1])
    model, free = _rough_pendulum(rows)
    segments, rk4 = make_segments(rows), get_integrator("rk4")
    assert segments is not None
    # Starts that are off too, by about a tenth.
    astray = eqx.tree_at(lambda s: s.initial, segments, segments.initial + 0.1)
    found, starts = refine_segments(model, astray, rk4, estimate_noise(rows), free)
    np.testing.assert_allclose(found.network.weights[0, free], [-9.81, -0.1], rtol=1e-6)
    np.testing.assert_allclose(starts, segments.initial, atol=1e-6)


def test_shooting_leaves_what_is_not_free():
    rows = rows_from(CLEAN[: STEPS + 1])
    model, free = _rough_pendulum(rows)
    segments, rk4 = make_segments(rows), get_integrator("rk4")
    assert segments is not None
    found, _ = refine_segments(model, segments, rk4, estimate_noise(rows), free[1:])
    assert float(found.network.weights[0, free[0]]) == -9.0
    assert float(found.network.weights[0, free[1]]) != 0.0
    assert np.sum(np.asarray(found.network.weights) != 0) == 2


def test_windows_of_shooting_lie_inside_single_runs():
    rows = rows_from(CLEAN[:260], CLEAN[50:400])
    segments = make_segments(rows)
    assert segments is not None
    t = np.asarray(segments.rows.t)
    assert segments.initial.shape[0] >= 2
    np.testing.assert_allclose(np.diff(t, axis=1), DT_S, rtol=1e-9)
    last = make_segments(rows, from_the_end=True)
    assert last is not None
    assert last.initial.shape[0] == 1
    assert float(last.rows.t[0, -1]) == float(rows.t[-1])
