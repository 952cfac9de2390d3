"""Outliers against motions whose clean values are known, and motions that have none."""

import numpy as np
import pytest

from mbdnode.data.signal import find_outliers

COUNT = 4000
K = np.arange(COUNT)
T = 0.01 * K


def noise(level, count=COUNT):
    return level * np.random.default_rng(0).normal(size=count)


SPIKES = {
    "one": ([500], [0.6]),
    "far apart": ([500, 900, 3990], [0.6, -0.9, 2.0]),
    "two together": ([500, 501], [0.6, 0.6]),
    "three together": ([500, 501, 502], [-0.6, -0.7, -0.6]),
    "near each other": ([500, 503], [0.6, -0.5]),
    "five rows apart": ([500, 505], [0.6, -0.5]),
    "first and last": ([0, COUNT - 1], [9.0, -9.0]),
}


@pytest.mark.parametrize("level", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("name", SPIKES)
def test_spikes_on_a_sine_are_found_and_nothing_else(name, level, uneven):
    rows, sizes = SPIKES[name]
    t = T + uneven * 0.004 * np.random.default_rng(1).uniform(-1, 1, COUNT)
    clean = np.sin(2 * t)
    values = clean + noise(level)
    values[rows] += sizes
    found = find_outliers(t, values)
    assert found.rows.tolist() == rows
    assert found.are_rare
    # A value between eight neighbors is about as noisy as they are, and at an end a few times; a
    # cubic leaves (2 * 0.01)**4 / 24 of the sine times a product of four distances of 1 to 8 rows.
    assert np.max(np.abs(found.expected - clean[rows])) < 8 * level + 5e-6


def stick_slip(dt):
    """A mass on a belt held by a spring, and its velocity: it sticks, and slips every 0.6 s."""
    x = v = pulled = 0.0
    stuck, rows = True, []
    for _ in range(1200):
        rows.append((x, v))
        for _ in range(50):
            pulled += 0.3 * dt / 50
            force = 50.0 * (pulled - x)
            if stuck and abs(force) < 4.0:
                continue
            stuck = False
            faster = v + (force - 2.0 * np.sign(v if v else force)) * dt / 50
            if v * faster < 0 and abs(force) < 4.0:
                v, stuck = 0.0, True
            else:
                v, x = faster, x + faster * dt / 50
    return np.array(rows).T


def lag(u, tau):
    """A first-order lag behind an input that is held between rows."""
    v = np.zeros(len(u))
    for i in range(len(u) - 1):
        v[i + 1] = u[i] + (v[i] - u[i]) * np.exp(-1 / tau)
    return v


SQUARE = np.sign(np.sin(2 * np.pi * K / 200 + 1e-9))
# A ball that bounces with no loss: parabolas that meet in a kink, and a velocity that jumps.
PHASE = (T + 0.1234) % 0.5
MOTIONS = {
    "white noise": noise(1.0, 100_000),
    "white noise on a sine": np.sin(0.01 * np.arange(100_000)) + noise(0.01, 100_000),
    **{f"an encoder in steps of {q}": q * np.round(np.sin(T) / q) for q in (0.001, 0.05, 0.5)},
    **{f"dither, steps of {q}": q * np.round((np.sin(T) + noise(0.01)) / q) for q in (0.01, 0.1)},
    "differences of an encoder": np.diff(np.floor(30 * np.sin(0.1 * T)), prepend=0.0) / 0.01,
    **{f"{p} rows a period": np.sin(2 * np.pi * K / p) for p in (3, 4, 5, 6, 7.3, 9, 13)},
    "6 rows a period, decaying": np.sin(np.pi * K / 3 + 0.2) * np.exp(-(K % 400) / 60),
    "6 rows a period and noise": np.sin(np.pi * K / 3 + 0.2) + noise(1e-3),
    "a chirp": np.sin(np.pi * K**2 / COUNT / 7),
    "a square wave": SQUARE,
    **{f"behind a square wave by {tau}": lag(SQUARE, tau) for tau in (0.3, 1.0, 3.0, 30.0)},
    **{f"noisy, behind by {tau}": lag(SQUARE, tau) + noise(1e-3) for tau in (0.3, 1.0, 3.0, 30.0)},
    "a position behind a square wave": np.cumsum(lag(SQUARE, 3.0)),
    "a saw tooth": (K % 57) * 1.0,
    "height of a bouncing ball": PHASE * (0.5 - PHASE) * 4.9,
    "velocity of a bouncing ball": 4.9 * (0.5 - 2 * PHASE),
    "a pulse of six rows": np.where(K % 211 < 6, np.sin(np.pi * (K % 211 + 0.5) / 6), 0.0),
    "standing still": np.zeros(COUNT),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_motions_without_outliers_have_none(name):
    values = MOTIONS[name]
    t = 0.01 * np.arange(len(values))
    assert find_outliers(t, values).rows.tolist() == []


@pytest.mark.parametrize("level", [0.0, 1e-4])
@pytest.mark.parametrize("dt", [0.01, 0.05, 0.2])
def test_stick_slip_has_no_outliers(dt, level):
    for values in stick_slip(dt):
        found = find_outliers(dt * np.arange(len(values)), values + noise(level, len(values)))
        assert found.rows.tolist() == []


def test_pulses_that_are_frequent_are_no_errors():
    values = np.where(K % 50 == 7, 1.0, 0.0) + noise(1e-3)
    assert not find_outliers(T, values).are_rare


def test_few_rows_are_not_tested():
    values = np.array([0.0, 0.1, 9.0, 0.3, 0.4, 0.5])
    assert len(find_outliers(np.arange(6.0), values).rows) == 0


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("level", [0.0, 1e-3])
def test_even_times_give_the_outliers_of_times_that_are_hardly_uneven(width, level):
    # Only at even times is a column looked through before its noise is known.
    count = 60
    t = 0.01 * np.arange(count)
    uneven = t + 1e-8 * np.random.default_rng(2).uniform(-1, 1, count)
    seen = 0
    for row in range(count - width + 1):
        for size in (0.02, 0.1, 0.7):
            values = np.sin(5 * t) + 40.0 + noise(level, count)
            values[row : row + width] += size
            even, other = find_outliers(t, values), find_outliers(uneven, values)
            assert even.rows.tolist() == other.rows.tolist()
            seen += len(even.rows) > 0
    assert seen > count


@pytest.mark.parametrize("rows", [24, 33, 100, 700])
def test_a_column_that_is_passed_over_has_no_outlier_when_its_noise_is_known(rows):
    # Uneven times, by too little to matter, are never passed over.
    rng = np.random.default_rng(rows)
    t = 0.01 * np.arange(rows)
    uneven = t + 1e-8 * rng.uniform(-1, 1, rows)
    phases, levels = rng.uniform(0, 6, (60, 1)), 10.0 ** rng.uniform(-4, -1, (60, 1))
    columns = np.sin(5 * t + phases) + levels * rng.standard_normal((60, rows))
    columns[::3, rows // 2] += rng.uniform(0.1, 3, 20)
    columns[1::9, 0] += 4.0
    columns[5] = 2.0
    found = [find_outliers(uneven, column).rows.tolist() for column in columns]
    assert [find_outliers(t, column).rows.tolist() for column in columns] == found
    assert sum(map(bool, found)) > 5
