"""Noise, smoothing and derivatives against motions that are known exactly."""

import numpy as np
import pytest
from scipy.signal import savgol_filter

from mbdnode.data.signal import differentiate, estimate_rate, noise_level, noise_levels, quantum

LEVELS = (0.001, 0.01, 0.05)
ENCODER = 2 * np.pi / 4096


def motion(t):
    """Two sines of 2 s and 0.74 s, and their exact derivative."""
    w, fast = np.pi, 2.7 * np.pi
    x = np.sin(w * t) + 0.3 * np.sin(fast * t + 1)
    return x, w * np.cos(w * t) + 0.3 * fast * np.cos(fast * t + 1)


def crank(t, ripple=0.17):
    """A crank at 50 rad/s, whose speed varies over each turn; and its speed."""
    turned = 50 * t
    angle = turned + ripple * np.sin(turned) + ripple / 4 * np.cos(2 * turned)
    return angle, 50 * (1 + ripple * np.cos(turned) - ripple / 2 * np.sin(2 * turned))


def turning(rows_a_turn, count=1000):
    """Times at which a crank is sampled so many times a turn."""
    return np.arange(count) * 2 * np.pi / 50 / rows_a_turn


def times(even, count=1001):
    t = np.linspace(0, 10, count)
    if even:
        return t
    return t + np.random.default_rng(5).uniform(-0.3, 0.3, count) * (t[1] - t[0])


def noisy(x, sigma, seed=0):
    return x + sigma * np.random.default_rng(seed).standard_normal(len(x))


def rounded(x, step):
    return np.round(x / step) * step


# Noise.


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("level", [1e-9, 1e-6, *LEVELS, 0.5])
def test_noise_level_is_found(level, even):
    t = times(even)
    x, _ = motion(t)
    sigma = level * np.std(x)
    found = [noise_level(t, noisy(x, sigma, seed)) for seed in range(10)]
    # Of 1,000 differences about a quarter are independent: 4.5 % each, 1.5 % for the mean of ten.
    assert np.mean(found) == pytest.approx(sigma, rel=0.05)
    assert np.all(np.abs(np.array(found) / sigma - 1) < 0.2)


@pytest.mark.parametrize("even", [True, False])
def test_a_computed_motion_has_the_noise_of_round_off(even):
    t = times(even)
    # Sums of four numbers below two.
    assert noise_level(t, motion(t)[0]) < 8 * np.finfo(float).eps


@pytest.mark.parametrize("step", [1e-3, 1e-2, 0.1, 0.5])
def test_rounded_readings_have_the_noise_of_their_rounding(step):
    """From fifteen steps a row to one in twenty rows, where most high differences are zero."""
    t = times(True)
    x, _ = motion(t)
    found = noise_level(t, rounded(x, step))
    assert found == pytest.approx(step / np.sqrt(12), rel=0.25)
    # Ten digits in a file make zero differences of 1e-10.
    assert noise_level(t, np.round(rounded(x, step), 10)) == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize("rows_a_turn", [16.1, 33.7, 64.0, 500.3, 4096.0])
def test_an_encoder_has_the_noise_of_its_counts(rows_a_turn):
    """At 64 and 4096 rows a turn every row is the same count later, but for the ripple."""
    t = turning(rows_a_turn)
    for digits in (16, 10):
        found = noise_level(t, np.round(rounded(crank(t, 0.02)[0], ENCODER), digits))
        assert found == pytest.approx(ENCODER / np.sqrt(12), rel=0.35)


def test_rounding_to_less_than_the_noise_does_not_hide_the_noise():
    t = times(True)
    found = noise_level(t, rounded(noisy(motion(t)[0], 0.03), 0.02))
    assert found == pytest.approx(np.hypot(0.03, 0.02 / np.sqrt(12)), rel=0.15)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_polynomial_in_whole_steps_is_not_taken_for_a_rounded_one(power):
    x = 0.01 * np.arange(200.0) ** power
    assert noise_level(np.arange(200.0), x) < 1e-12 * x[-1]


def test_what_stands_still_first_has_no_more_noise_than_when_it_moves():
    t = times(True)
    x = np.where(t < 6, 0.0, 1 - np.cos(2 * (t - 6)))
    assert noise_level(t, x) < 1e-12
    assert noise_level(t, np.zeros(len(t))) == 0.0


def test_a_few_sudden_changes_are_no_noise():
    t = times(True)
    x = noisy(motion(t)[0], 0.01) + np.cumsum(np.isin(np.arange(len(t)), [200, 450, 700]))
    assert noise_level(t, x) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize(("rows_a_period", "most"), [(5, 1e-3), (6.3, 3e-5), (8.1, 1e-6)])
def test_coarse_sampling_is_hardly_taken_for_noise(rows_a_period, most):
    """Differences of order 20 leave `(2 sin(pi / n))^20 / sqrt(C(40, 20))` of n rows a period."""
    t = np.arange(500.0)
    x = np.sin(2 * np.pi * t / rows_a_period)
    assert noise_level(t, x) < most
    # Of 500 differences, one eighth is independent: 9 %.
    assert noise_level(t, noisy(x, 0.01)) == pytest.approx(0.01, rel=0.2)


def test_too_few_rows_do_not_tell_and_many_short_pieces_do():
    assert np.isnan(noise_level(np.arange(11.0), np.arange(11.0)))
    t = np.arange(14.0)
    table = [
        np.stack([noisy(np.sin(t / 5), 0.01, seed), noisy(t, 0.2, 100 + seed)], axis=1)
        for seed in range(60)
    ]
    found = noise_levels([(t, x) for x in table])
    np.testing.assert_allclose(found, [0.01, 0.2], rtol=0.15)


def test_the_step_of_a_rounded_column_is_found():
    t = turning(33.7)
    found = quantum([rounded(crank(t)[0], ENCODER) + 3.7])
    assert found == pytest.approx(ENCODER, rel=1e-9)
    assert quantum([noisy(crank(t)[0], 1e-3)]) == 0.0
    assert quantum([np.zeros(20)]) == 0.0


# Rates.


def best_in_hindsight(t, x, truth):
    """The least error of all Savitzky-Golay filters of degree 2 to 8, chosen by the truth."""
    return min(
        np.sqrt(np.mean((savgol_filter(x, 2 * h + 1, d, 1, t[1] - t[0]) - truth) ** 2))
        for d in (2, 4, 6, 8)
        for h in [*range(d // 2, 30), *range(30, 80, 5)]
    )


@pytest.mark.parametrize("level", LEVELS)
def test_rate_is_nearly_as_good_as_the_best_filter_that_knows_the_truth(level):
    """No linear filter of this family can do better than the best in hindsight; we see no truth.

    The error of that filter falls with the noise as `level^(2p/(2p+3))` for its order p, so of
    0.1 %, 1 % and 5 % noise it makes about 0.15 %, 1 % and 4.5 % error of the rate here.
    """
    t = times(True)
    x, v = motion(t)
    measured = noisy(x, level * np.std(x))
    error = np.sqrt(np.mean((estimate_rate(t, measured).values - v) ** 2))
    assert error < 1.25 * best_in_hindsight(t, measured, v)
    assert error / np.std(v) < {0.001: 0.003, 0.01: 0.015, 0.05: 0.06}[level]
    # A plain difference quotient turns noise of size s into 0.7 s / dt.
    plain = np.gradient(measured, t)
    assert error < 0.2 * np.sqrt(np.mean((plain - v) ** 2))


@pytest.mark.parametrize("level", LEVELS)
def test_rate_at_random_times_is_nearly_as_good_as_at_even_ones(level):
    errors = []
    for t in (times(True), np.sort(np.random.default_rng(5).uniform(0, 10, 1001))):
        x, v = motion(t)
        found = estimate_rate(t, noisy(x, level * np.std(x))).values
        errors.append(np.sqrt(np.mean((found - v) ** 2)))
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.parametrize("level", LEVELS)
def test_rate_from_uneven_times_has_the_error_that_it_states(level):
    t = times(False)
    x, v = motion(t)
    found = estimate_rate(t, noisy(x, level * np.std(x), 1))
    inner = slice(2 * found.half_width, -2 * found.half_width)
    error = np.sqrt(np.mean((found.values - v)[inner] ** 2))
    assert found.typical_error / 1.5 < error < 1.5 * found.typical_error


def check_honest(t, x, truth):
    """The true error is within three stated ones in nearly all rows, and not far below them."""
    found = estimate_rate(t, x)
    error = np.abs(found.values - truth)
    # Noise of a normal distribution would be within in 99.7 %; neighboring errors are alike.
    assert np.mean(error <= 3 * found.error) >= 0.95
    size = np.sqrt(np.mean(error**2))
    assert found.typical_error < 3 * size
    assert size < 1.6 * best_in_hindsight(t, x, truth)
    return found


# A ripple of 0.17 at 50 rad/s is one of 6.7 rad/s (rms) in the speed. Ten turns are 161 rows at
# 16.1 rows a turn.
@pytest.mark.parametrize("ripple", [0.17, 0.02])
@pytest.mark.parametrize("sigma", [0.0, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("rows_a_turn", [12.6, 16.1, 33.7, 100.0])
def test_a_fast_crank_has_the_speed_that_is_stated(rows_a_turn, sigma, ripple):
    t = turning(rows_a_turn)
    x, v = crank(t, ripple)
    found = check_honest(t, noisy(x, sigma), v)
    # A polynomial of degree eight can follow two turns.
    assert 2 * found.half_width <= max(10, 2 * rows_a_turn)


@pytest.mark.parametrize("counts", [360, 4096, 65536])
@pytest.mark.parametrize("rows_a_turn", [16.1, 33.7, 100.0])
def test_a_fast_crank_with_an_encoder_has_the_speed_that_is_stated(rows_a_turn, counts):
    t = turning(rows_a_turn)
    x, v = crank(t)
    check_honest(t, np.round(rounded(x, 2 * np.pi / counts), 10), v)


def test_a_ripple_below_the_noise_is_not_averaged_away():
    """Half as large as the noise, it stands out of the spectrum all the same."""
    t = turning(16.1)
    x, v = crank(t, 0.02)
    found = check_honest(t, noisy(x, 0.04), v)
    assert 2 * found.half_width + 1 < 33


@pytest.mark.parametrize("sigma", [0.0, 1e-3, 1e-2, 0.1])
def test_a_chirp_has_the_rate_that_is_stated(sigma):
    """From standstill to 10 periods a second, 20 rows a period."""
    t = np.linspace(0, 10, 2001)
    check_honest(t, noisy(np.sin(np.pi * t**2), sigma), 2 * np.pi * t * np.cos(np.pi * t**2))


@pytest.mark.parametrize("sigma", [0.0, 1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("rows_a_period", [6.3, 8.3, 20.0])
def test_a_fast_oscillation_has_the_rate_that_is_stated(rows_a_period, sigma):
    t = np.arange(800) * 0.01
    w = 2 * np.pi / (rows_a_period * 0.01)
    check_honest(t, noisy(np.sin(w * t), sigma), w * np.cos(w * t))


@pytest.mark.parametrize("step", [1e-3, 1e-2])
def test_a_slow_motion_in_whole_steps_has_the_rate_that_is_stated(step):
    """Two to twenty rows stand on one step, and all have the same error."""
    t = times(True)
    x, v = 0.05 * t + 0.01 * np.sin(t), 0.05 + 0.01 * np.cos(t)
    found = estimate_rate(t, rounded(x, step))
    assert np.mean(np.abs(found.values - v) <= 3 * found.error) >= 0.95
    assert found.typical_error < 0.05 * np.max(v)


def test_a_steady_motion_is_averaged_over_all_of_it():
    t = times(True)
    found = estimate_rate(t, noisy(3 * t, 0.1))
    assert np.all(np.abs(found.values - 3) <= 3 * found.error)
    assert found.typical_error < 0.02


@pytest.mark.parametrize("even", [True, False])
def test_rate_of_a_computed_motion_is_exact_to_many_digits(even):
    t = times(even, 2001)
    x, v = motion(t)
    assert np.max(np.abs(estimate_rate(t, x).values - v)) < 1e-9 * np.max(np.abs(v))


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9, 12])
def test_rate_of_a_parabola_is_exact_for_few_rows(count):
    t = np.linspace(3.0, 4.0, count) ** 2
    found = estimate_rate(t, 1 + 2 * t - 0.5 * t**2)
    np.testing.assert_allclose(found.values, 2 - t, atol=1e-8)


def test_a_large_offset_costs_no_digits():
    t = times(True)
    x, v = motion(t)
    assert np.max(np.abs(estimate_rate(t, x + 1e6).values - v)) < 1e-4


@pytest.mark.parametrize("count", [5, 12, 40])
@pytest.mark.parametrize("kind", ["nothing", "noise", "a step", "whole steps", "large", "tiny"])
def test_any_column_has_a_finite_rate(kind, count):
    """On even times, on times that nearly coincide, and far from time zero."""
    random, rows = np.random.default_rng(0), np.arange(count)
    x = {
        "nothing": np.full(count, 1e8),
        "noise": random.standard_normal(count),
        "a step": (rows > count // 2).astype(float),
        "whole steps": np.cumsum(random.integers(-1, 2, count)).astype(float),
        "large": 1e100 * np.sin(rows),
        "tiny": 1e-300 * np.sin(rows),
    }[kind]
    close = np.sort(np.concatenate([0.1 * rows[:-2], [0.1 + 1e-13, 0.2 + 1e-12]]))
    for t in (0.01 * rows, close, 1.7e9 + 0.01 * rows):
        found = estimate_rate(t, x)
        assert np.all(np.isfinite(found.values))
        assert np.all(found.error >= 0)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 5 rows"):
        estimate_rate(np.arange(4.0), np.arange(4.0))


# Derivatives of data without noise.


def test_polynomials_of_the_sixth_degree_are_exact_on_uneven_times():
    t = np.sort(np.random.default_rng(0).uniform(-1, 1, 20))
    powers = np.arange(7)
    values = t[:, None] ** powers
    exact = powers * t[:, None] ** np.maximum(powers - 1, 0)
    # Conditioning of seven uneven points.
    np.testing.assert_allclose(differentiate(t, values), exact, atol=1e-9)


@pytest.mark.parametrize("stencil", [3, 5, 7])
def test_error_falls_with_the_order_of_the_stencil(stencil):
    errors = []
    for count in (101, 201):
        t = np.linspace(0, 2, count)
        found = differentiate(t, np.sin(3 * t)[:, None], stencil)[:, 0]
        errors.append(np.max(np.abs(found - 3 * np.cos(3 * t))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(stencil - 1, abs=0.3)


def test_a_large_constant_costs_no_digits():
    t = np.linspace(0, 1, 50)
    wave = np.sin(t)[:, None]
    np.testing.assert_allclose(differentiate(t, wave + 1e6), differentiate(t, wave), atol=1e-7)


def test_times_that_are_nearly_even_cost_no_digits():
    t = np.linspace(0, 2, 201) + 1e-9 * np.random.default_rng(0).uniform(-1, 1, 201)
    # An even grid in their place would be wrong by 1e-7 of a slope of ten.
    np.testing.assert_allclose(differentiate(t, 10 * t[:, None])[:, 0], 10.0, rtol=1e-10)


def test_only_the_given_rows_are_used():
    t = np.linspace(0, 1, 60)
    values = np.sin(5 * t)[:, None]
    poisoned = values.copy()
    poisoned[40:] = np.nan
    assert np.array_equal(differentiate(t[:40], poisoned[:40]), differentiate(t[:40], values[:40]))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_few_samples_give_the_slope_of_the_polynomial_through_them(count):
    t = np.array([0.0, 2.0, 2.5, 4.0, 4.5, 6.0])[:count]
    np.testing.assert_allclose(
        differentiate(t, t[:, None] ** (count - 1))[:, 0],
        (count - 1) * t ** (count - 2),
        rtol=1e-11,
        atol=1e-9,
    )


def test_one_sample_is_refused():
    with pytest.raises(ValueError, match="at least two"):
        differentiate(np.array([0.0]), np.array([[1.0]]))
