"""Positions and velocities, smoothed together."""

import numpy as np
import pytest

from mbdnode.data.signal import smooth_states
from mbdnode.data.signal.state_smoothing import _solve


def test_states_are_those_of_a_dense_least_squares_problem():
    random = np.random.default_rng(0)
    dt, ratio, intensity = random.uniform(0.5, 1.5, 11), 0.7, 0.02
    z, s = random.normal(size=12), random.normal(size=12)
    rows, right = [], []
    for k in range(12):
        for part, value, size in ((0, z[k], 1.0), (1, s[k], ratio)):
            row = np.zeros(36)
            row[3 * k + part] = 1 / size
            rows.append(row)
            right.append(value / size)
    for k, h in enumerate(dt):
        # The covariance of what white jerk makes of a state, from its definition as an integral.
        grid = (np.arange(4_000) + 0.5) * h / 4_000
        reached = np.stack([grid**2 / 2, grid, np.ones_like(grid)])
        half = np.linalg.cholesky(intensity * (reached @ reached.T) * h / 4_000)
        step = np.array([[1, h, h**2 / 2], [0, 1, h], [0, 0, 1]])
        block = np.zeros((3, 36))
        block[:, 3 * k : 3 * k + 3], block[:, 3 * k + 3 : 3 * k + 6] = -step, np.eye(3)
        rows += list(np.linalg.solve(half, block))
        right += [0.0] * 3
    dense = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0].reshape(12, 3)
    # The midpoint rule has an error of 1e-7.
    assert _solve(dt, z, s, ratio, intensity)[0] == pytest.approx(dense, abs=1e-5)


@pytest.mark.parametrize("rate", [0.3, 2.0, 12.0])
@pytest.mark.parametrize("sigma", [1e-3, 0.1])
def test_noise_shrinks_in_slow_and_fast_motion(rate, sigma):
    random, runs, truth = np.random.default_rng(1), [], []
    for phase in (0.0, 1.0):
        t = np.cumsum(random.uniform(0.008, 0.012, 600))  # Uneven times.
        truth.append((np.sin(rate * t + phase), rate * np.cos(rate * t + phase)))
        runs.append((t, *(x + sigma * random.normal(size=t.size) for x in truth[-1])))
    found = smooth_states(runs, sigma, sigma)
    left = [
        np.std(np.concatenate([one[k] - other[k] for one, other in zip(found, truth, strict=True)]))
        for k in (0, 1)
    ]
    # A position is told by the velocities around it, over about as many rows as they have noise.
    assert left[0] < 0.3 * sigma
    # A fast motion with little noise is left as it is; 1,200 rows tell a deviation to a tenth.
    assert left[1] < 1.1 * sigma


def test_positions_alone_give_rates():
    t = np.arange(800) * 0.01
    z = np.sin(3 * t) + 0.01 * np.random.default_rng(2).normal(size=t.size)
    ((place, rate),) = smooth_states([(t, z, np.full(t.size, np.nan))], 0.01, np.inf)
    assert np.std(place - np.sin(3 * t)) < 0.005
    # A difference of neighbors would be off by 0.01 * sqrt(2) / 0.02 = 0.7.
    assert np.std(rate - 3 * np.cos(3 * t)) < 0.1


def test_short_runs_stay_as_they_are():
    short = (np.array([0.0, 0.1]), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    ((place, rate),) = smooth_states([short], 0.1, 0.1)
    assert place.tolist() == [1.0, 2.0]
    assert rate.tolist() == [3.0, 4.0]
