"""The valid prediction time of models whose error is known in closed form."""

import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from mbdnode.evaluation import HeldOut, measure_horizon, predict, score
from mbdnode.models.function_library import Library
from mbdnode.multibody import AccelerationFunction, Coordinate, angle
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

OMEGA, OFF = 2.0, 0.01
X = Coordinate("x", unit="m")


def oscillator(omega):
    """A harmonic oscillator."""
    return AccelerationFunction(lambda t, q, v, u, mu: -(omega**2) * q, (X,))


def run_of(t, q, v, name):
    count, names = len(t), (name,)
    status = completed(jnp.asarray(float(t[-1])), jnp.asarray(count - 1), names)
    arrays = [jnp.asarray(x) for x in (t, q[:, None], v[:, None], np.zeros((count, 0)))]
    none = jnp.zeros(count)
    return Trajectory(*arrays, none, none, status, names, (f"{name}_dot",), ())


def swinging(seconds, rows=401):
    t = np.linspace(0.0, seconds, rows)
    return run_of(t, np.cos(OMEGA * t), -OMEGA * np.sin(OMEGA * t), "x")


BOTH = {"x": np.sqrt(0.5), "x_dot": OMEGA * np.sqrt(0.5)}


def test_frequency_error_shows_when_the_phases_have_parted():
    # With both columns in their deviations the error is the distance of two points on a circle,
    # 2 sin(d t / 2), for a difference d of the frequencies; up to the amplitude, which is off by
    # one part in a hundred as the frequency is.
    expected = 2 * np.arcsin(0.05) / (OMEGA * OFF)
    model = oscillator(OMEGA * (1 + OFF))
    found = measure_horizon(model, [("run", swinging(16.0), {})], None, BOTH, "rk4")
    assert found.valid_s == pytest.approx(expected, rel=0.05)
    assert not found.is_capped
    assert str(found) == f"{found.valid_s:.3g} s"


def test_speed_error_of_an_angle_crosses_a_tenth_of_a_radian():
    # The angle of a wheel that turns one part in a hundred too fast: exactly linear in time.
    t = np.linspace(0.0, 20.0, 401)
    wheel = run_of(t, 3.0 * t, np.full(401, 3.0), "theta")
    faster = AccelerationFunction(lambda t, q, v, u, mu: jnp.full_like(q, 0.02), (angle("theta"),))
    found = measure_horizon(faster, [("wheel", wheel, {})], None, {"theta": 1.0}, "rk4")
    # 0.01 t^2 = 0.1, between times that are 3 % apart.
    assert found.valid_s == pytest.approx(np.sqrt(10.0), rel=1e-3)


def test_model_without_error_is_valid_to_the_end_of_the_test_data_and_says_so():
    runs = [("long", swinging(8.0), {}), ("short", swinging(0.08, rows=9), {})]
    found = measure_horizon(oscillator(OMEGA), runs, None, BOTH, "rk4")
    # Half of the long run and more; a segment of nine rows does not cap it.
    assert found.is_capped
    assert 4.0 < found.valid_s < 8.0
    assert re.fullmatch(r">= [\d.]+ s \(end of test data\)", str(found))
    assert np.max(found.middle) < 1e-6


def test_model_that_is_wrong_at_once_has_none():
    model = AccelerationFunction(lambda t, q, v, u, mu: 1e6 + 0 * q, (X,))
    found = measure_horizon(model, [("run", swinging(8.0, rows=81), {})], None, BOTH, "rk4")
    assert found.valid_s is None
    assert str(found) == "none"


def test_model_that_blows_up_is_valid_until_then():
    # x'' = 4 x^3 reaches infinity; the median bears what is no number.
    model = AccelerationFunction(lambda t, q, v, u, mu: 4.0 * q**3, (X,))
    found = measure_horizon(model, [("run", swinging(8.0), {})], None, BOTH, "rk4")
    assert 0 < found.valid_s < 1
    assert found.middle[-1] == np.inf


def test_noise_of_the_first_row_does_not_shorten_it():
    clean, random = swinging(16.0), np.random.default_rng(1)
    noise = 0.03 * np.sqrt(0.5)
    t, x = np.asarray(clean.t), np.asarray(clean.q)[:, 0]
    noisy = run_of(t, x + random.normal(0.0, noise, len(t)), np.asarray(clean.v)[:, 0], "x")
    system = AccelerationFunction(lambda t, q, v, u, mu: 0 * q, (X,))
    blank = Library.for_system(system, degree=1, quadratic=False)
    weights = blank.network.weights.at[0, blank.basis.terms.index((1,))].set(-(OMEGA**2))
    law = eqx.tree_at(lambda m: m.network.weights, blank, weights)
    found = measure_horizon(law, [("run", noisy, {})], ("x",), {"x": np.sqrt(0.5)}, "rk4")
    # The law is exact: what is left is the noise, three parts in a hundred. Begun at the measured
    # state, with no rate, it would be off by far more than the limit.
    assert found.is_capped
    # The largest error up to a time, of noise alone: the same of random numbers.
    rows = np.round(found.ahead_s / (t[1] - t[0])).astype(int)
    size = np.abs(random.normal(0.0, 0.03, (400, rows[-1] + 5)))
    five = np.median(np.lib.stride_tricks.sliding_window_view(size, 5, axis=1), axis=2)
    largest = np.median(np.maximum.accumulate(five, axis=1), axis=0)[rows]
    assert np.median(found.middle) == pytest.approx(np.median(largest), rel=0.3)


def test_forecaster_and_nothing_scored_have_no_horizon():
    assert measure_horizon(object(), [("run", swinging(8.0), {})], None, BOTH, "rk4") is None
    assert measure_horizon(oscillator(1.0), [("run", swinging(8.0), {})], None, {}, "rk4") is None
    short = [("run", swinging(0.03, rows=4), {})]
    assert measure_horizon(oscillator(1.0), short, None, BOTH, "rk4") is None


def test_error_and_valid_prediction_time_tell_one_story():
    # The NRMSE of a prediction is the root mean square of the errors that the horizon shows.
    truth, model = swinging(16.0), oscillator(OMEGA * (1 + OFF))
    found = predict(model, truth, "rk4", {})
    run = HeldOut("run", truth, found, np.zeros(len(truth), bool), ("x", "x_dot"))
    scores = score([run], [X])
    horizon = measure_horizon(model, [("run", truth, {})], None, scores.scales, "rk4")
    assert scores.runs[0].left_s == pytest.approx(horizon.valid_s, rel=0.05)
    # The mean of (2 sin(d t / 2))^2 over 16 s, with the amplitude off by one part in a hundred.
    d = OMEGA * OFF
    mean = 2 * (1 - np.sin(16 * d) / (16 * d))
    assert scores.nrmse == pytest.approx(np.sqrt(mean), rel=0.05)
    assert brentq(lambda t: 2 * np.sin(d * t / 2) - 0.1, 1.0, 10.0) == pytest.approx(
        horizon.valid_s, rel=0.05
    )


def test_run_and_model_leave_the_limit_by_one_definition():
    # The phases part, meet again and part: an error that has exceeded the limit once is not valid
    # again, in a run as in the median, and the time of the run is one of those of the median.
    truth, model = swinging(60.0, rows=1501), oscillator(OMEGA * 1.2)
    found = predict(model, truth, "rk4", {})
    run = HeldOut("run", truth, found, np.zeros(len(truth), bool), ("x", "x_dot"))
    scores = score([run], [X])
    first = np.flatnonzero(scores.runs[0].errors > 0.1)[0]
    assert scores.runs[0].left_s == pytest.approx(float(truth.t[first]), abs=0.05)
    horizon = measure_horizon(model, [("run", truth, {})], None, scores.scales, "rk4")
    assert horizon.shortest_s <= scores.runs[0].left_s <= horizon.longest_s + 0.04
    assert horizon.shortest_s <= horizon.valid_s <= horizon.longest_s
    # The curve that is drawn crosses the limit there, to the 4 % between its points.
    crossing = horizon.ahead_s[np.argmax(horizon.middle > horizon.limit)]
    assert crossing == pytest.approx(horizon.valid_s, rel=0.08)
    # Every prediction is 30 s long at least; until then they are the same ones.
    assert np.all(np.diff(horizon.middle[horizon.ahead_s < 30.0]) >= 0)


def test_brief_swell_of_the_error_ends_validity_in_run_and_median_alike():
    # Six rows of eight hundred are off by half of the motion: no outlier, which is a row or two.
    truth = swinging(16.0, rows=801)
    x = np.array(truth.q)
    x[300:306] += 0.5
    measured = run_of(np.asarray(truth.t), x[:, 0], np.asarray(truth.v)[:, 0], "x")
    found = predict(oscillator(OMEGA), truth, "rk4", {})
    run = HeldOut("run", measured, found, np.zeros(len(truth), bool), ("x", "x_dot"))
    scores = score([run], [X])
    assert scores.runs[0].left_s == pytest.approx(6.0)


def test_spread_of_the_error_is_that_of_predictions_from_many_places():
    truth, model = swinging(16.0), oscillator(OMEGA * (1 + OFF))
    horizon = measure_horizon(model, [("run", truth, {})], None, BOTH, "rk4")
    pieces = horizon.pieces
    # Each is as long as half of the run, over which the phases part by d t / 2 and the amplitude by
    # one part in a hundred at most, wherever one begins.
    d = OMEGA * OFF
    usual = np.sqrt(2 * (1 - np.sin(8 * d) / (8 * d)))
    assert pieces.seconds == pytest.approx(8.0, rel=0.02)
    assert 0.8 * usual < pieces.low <= pieces.median <= pieces.high < 1.2 * usual
    assert pieces.pieces == horizon.predictions
    assert str(pieces).endswith(f"over {pieces.pieces} pieces of 8 s of the held-out data")
