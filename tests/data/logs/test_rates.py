"""Noise and rates against motions that are known exactly."""

import numpy as np
import pytest
from scipy.signal import savgol_filter

from mbdnode.data.logs import estimate_rate, noise_level

LEVELS = (0.001, 0.01, 0.05)


def motion(t):
    """Two sines of 2 s and 0.74 s, and their exact derivative."""
    w, fast = np.pi, 2.7 * np.pi
    x = np.sin(w * t) + 0.3 * np.sin(fast * t + 1)
    return x, w * np.cos(w * t) + 0.3 * fast * np.cos(fast * t + 1)


def times(even, count=1001):
    t = np.linspace(0, 10, count)
    if even:
        return t
    return t + np.random.default_rng(5).uniform(-0.3, 0.3, count) * (t[1] - t[0])


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("level", LEVELS)
def test_noise_level_is_found(level, even):
    t = times(even)
    x, _ = motion(t)
    sigma = level * np.std(x)
    found = [
        noise_level(t, x + sigma * np.random.default_rng(seed).standard_normal(len(t)))
        for seed in range(20)
    ]
    # The median of 1,000 differences, some 10 of which overlap, is known to about 10 %.
    assert np.mean(found) == pytest.approx(sigma, rel=0.05)
    assert np.all(np.abs(np.array(found) / sigma - 1) < 0.3)


def test_a_computed_motion_has_no_noise():
    t = times(True)
    assert noise_level(t, motion(t)[0]) < 1e-12


def test_rounded_readings_have_the_noise_of_their_rounding():
    t = times(True)
    step = 0.01
    found = noise_level(t, np.round(motion(t)[0] / step) * step)
    assert found == pytest.approx(step / np.sqrt(12), rel=0.25)


def test_a_reading_that_stands_still_most_of_the_time_is_not_exact():
    t = times(True)
    assert noise_level(t, np.round(motion(t)[0])) > 0


def best_in_hindsight(t, noisy, truth):
    """The least error of all Savitzky-Golay filters of degree 2, 4 and 6, chosen by the truth."""
    return min(
        np.sqrt(np.mean((savgol_filter(noisy, 2 * h + 1, d, 1, t[1] - t[0]) - truth) ** 2))
        for d in (2, 4, 6)
        for h in range(d // 2 + 1, 80)
    )


@pytest.mark.parametrize("level", LEVELS)
def test_rate_is_nearly_as_good_as_the_best_filter_that_knows_the_truth(level):
    """No linear filter of this family can do better than the best in hindsight; we see no truth.

    The error of that filter falls with the noise as `level^(2p/(2p+3))` for its order p, so of
    0.1 %, 1 % and 5 % noise it makes about 0.15 %, 1 % and 4.5 % error of the rate here.
    """
    t = times(True)
    x, v = motion(t)
    noisy = x + level * np.std(x) * np.random.default_rng(0).standard_normal(len(t))
    found = estimate_rate(t, noisy)
    error = np.sqrt(np.mean((found.values - v) ** 2))
    assert error < 1.25 * best_in_hindsight(t, noisy, v)
    assert error / np.std(v) < {0.001: 0.003, 0.01: 0.015, 0.05: 0.06}[level]
    # A plain difference quotient turns noise of size s into 0.7 s / dt.
    plain = np.gradient(noisy, t)
    assert error < 0.2 * np.sqrt(np.mean((plain - v) ** 2))


@pytest.mark.parametrize("level", LEVELS)
def test_rate_from_uneven_times_has_the_error_that_it_states(level):
    t = times(False)
    x, v = motion(t)
    noisy = x + level * np.std(x) * np.random.default_rng(1).standard_normal(len(t))
    found = estimate_rate(t, noisy)
    inner = slice(2 * found.half_width, -2 * found.half_width)
    error = np.sqrt(np.mean((found.values - v)[inner] ** 2))
    assert found.error / 1.5 < error < 1.5 * found.error


@pytest.mark.parametrize("even", [True, False])
def test_rate_of_a_computed_motion_is_exact_to_many_digits(even):
    t = times(even, 2001)
    x, v = motion(t)
    assert np.max(np.abs(estimate_rate(t, x).values - v)) < 1e-7 * np.max(np.abs(v))


@pytest.mark.parametrize("count", [5, 6, 7, 8, 9, 12])
def test_rate_of_a_parabola_is_exact_for_few_rows(count):
    t = np.linspace(3.0, 4.0, count) ** 2
    found = estimate_rate(t, 1 + 2 * t - 0.5 * t**2)
    np.testing.assert_allclose(found.values, 2 - t, atol=1e-8)


def test_a_large_offset_costs_no_digits():
    t = times(True)
    x, v = motion(t)
    assert np.max(np.abs(estimate_rate(t, x + 1e6).values - v)) < 1e-4


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="at least 5 rows"):
        estimate_rate(np.arange(4.0), np.arange(4.0))
