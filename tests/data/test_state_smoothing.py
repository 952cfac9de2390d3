"""Positions and velocities, smoothed together."""

import numpy as np
import pytest

from mbdnode.data.signal import smooth_states


def swings(rate, sigma, random, count=600):
    """Two runs with noise, at uneven times, and what they are without it."""
    runs, truth = [], []
    for phase in (0.0, 1.0):
        t = np.cumsum(random.uniform(0.008, 0.012, count))
        truth.append((np.sin(rate * t + phase), rate * np.cos(rate * t + phase)))
        runs.append((t, *(x + sigma * random.normal(size=t.size) for x in truth[-1])))
    return runs, truth


def error(found, truth, which):
    return np.std(
        np.concatenate([one[which] - other[which] for one, other in zip(found, truth, strict=True)])
    )


@pytest.mark.parametrize("rate", [0.3, 2.0, 12.0])
@pytest.mark.parametrize("sigma", [1e-3, 0.1])
def test_noise_shrinks_in_slow_and_fast_motion(rate, sigma):
    runs, truth = swings(rate, sigma, np.random.default_rng(1))
    found = smooth_states(runs, sigma, sigma)
    # A position is told by the velocities around it, over about as many rows as they have noise.
    assert error(found, truth, 0) < 0.3 * sigma
    # A fast motion with little noise loses less; 1,200 rows tell a deviation to a tenth.
    assert error(found, truth, 1) < 0.8 * sigma


def test_position_without_noise_is_kept_beside_a_noisy_velocity():
    runs, truth = swings(2.0, 0.1, np.random.default_rng(2))
    runs = [(t, z, s) for (t, _, s), (z, _) in zip(runs, truth, strict=True)]
    found = smooth_states(runs, 1e-9, 0.1)
    assert error(found, truth, 0) < 1e-8
    assert error(found, truth, 1) < 0.03


def test_run_too_short_for_the_window_of_the_longest_is_smoothed_less():
    runs, truth = swings(2.0, 0.1, np.random.default_rng(3))
    short = [tuple(x[:9] for x in runs[1])]
    found = smooth_states([runs[0], *short], 0.1, 0.1)
    assert error(found, [truth[0], [x[:9] for x in truth[1]]], 0) < 0.1


def test_runs_of_a_few_rows_stay_as_they_are():
    short = (np.array([0.0, 0.1]), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    ((place, rate),) = smooth_states([short], 0.1, 0.1)
    assert place == pytest.approx([1.0, 2.0])
    assert rate.tolist() == [3.0, 4.0]
