"""Noise and rates of noisy columns.

First the noise that is estimated from each column alone, beside what it is: white, rounded, coarse,
uneven, filtered. Then rates, beside those of SciPy's smoothing spline with generalized
cross-validation. The truth is the analytic derivative. Times are in units of the step for the
spline, which finds no penalty otherwise.
"""

import time

import numpy as np
from scipy.interpolate import make_smoothing_spline

from mbdnode.data.signal import estimate_rate, noise_level


def crank(rows_a_turn: float, ripple: float):
    """A crank at 50 rad/s, whose speed varies over each turn."""
    t = np.arange(1_000) * 2 * np.pi / 50 / rows_a_turn
    turned = 50 * t
    x = turned + ripple * np.sin(turned) + ripple / 4 * np.cos(2 * turned)
    return t, x, 50 * (1 + ripple * np.cos(turned) - ripple / 2 * np.sin(2 * turned))


def motions() -> dict:
    """Times, positions and rates, by name."""
    t, long = np.linspace(0, 10, 1_001), np.linspace(0, 10, 2_001)
    jitter = np.random.default_rng(0).uniform(-0.003, 0.003, len(t))
    w, fast = np.pi, 2.7 * np.pi
    sines = lambda t: (  # noqa: E731
        t,
        np.sin(w * t) + 0.3 * np.sin(fast * t + 1),
        w * np.cos(w * t) + 0.3 * fast * np.cos(fast * t + 1),
    )
    return {
        "crank, 16 rows a turn": crank(16.1, 0.17),
        "crank, 34 rows a turn": crank(33.7, 0.17),
        "crank, 100 rows a turn": crank(100.0, 0.17),
        "chirp": (long, np.sin(np.pi * long**2), 2 * np.pi * long * np.cos(np.pi * long**2)),
        "two sines": sines(t),
        "two sines, uneven": sines(t + jitter),
        "8 rows a period": (t, np.sin(76 * t), 76 * np.cos(76 * t)),
        "slow": (t, 0.5 * t + 0.1 * np.sin(t), 0.5 + 0.1 * np.cos(t)),
        "decay": (
            t,
            np.exp(-t) * np.sin(6 * t),
            np.exp(-t) * (6 * np.cos(6 * t) - np.sin(6 * t)),
        ),
    }


def noisy_columns(sigma: float = 0.01, step: float = 0.02) -> dict:
    """Times, values and the standard deviation of what was added to a motion, by name."""
    random, t = np.random.default_rng(0), np.linspace(0, 10, 1_001)
    motion = lambda t: np.sin(3 * t) + 0.3 * np.sin(8 * t + 1)  # noqa: E731
    with_noise = lambda t: motion(t) + sigma * random.standard_normal(len(t))  # noqa: E731
    rounded = lambda x: np.round(x / step) * step  # noqa: E731
    uneven = np.sort(random.uniform(0, 10, len(t)))
    mean = np.convolve(sigma * random.standard_normal(len(t) + 4), np.ones(5) / 5, "valid")
    six, four = (np.arange(0, 40, 2 * np.pi / 8 / rows) for rows in (6, 4))
    return {
        "white": (t, with_noise(t), sigma),
        "rounded, no other noise": (t, rounded(motion(t)), step / np.sqrt(12)),
        "rounded, and white": (t, rounded(with_noise(t)), np.hypot(sigma, step / np.sqrt(12))),
        "uneven times": (uneven, with_noise(uneven), sigma),
        "6 rows a period": (six, with_noise(six), sigma),
        "4 rows a period": (four, with_noise(four), sigma),
        "filtered, mean of 5 rows": (t, motion(t) + mean, sigma / np.sqrt(5)),
    }


def main() -> None:
    """Estimates of noise, then errors and times of both, for every motion and noise."""
    print(f"{'column':24} {'noise':>8} {'estimate':>9} {'ratio':>9}")
    for name, (t, x, known) in noisy_columns().items():
        found = noise_level(t, x)
        print(f"{name:24} {known:8.4f} {found:9.4f} {found / known:9.2f}")
    print()
    ratios, spent = [], np.zeros(2)
    print(f"{'motion':24} {'noise':>8} {'ours':>9} {'stated':>9} {'spline':>9}")
    for name, (t, x, truth) in motions().items():
        step = t[1] - t[0]
        for sigma in (0.0, 1e-4, 1e-3, 1e-2, 0.05):
            measured = x + sigma * np.random.default_rng(1).standard_normal(len(t))
            begin = time.perf_counter()
            ours = estimate_rate(t, measured)
            middle = time.perf_counter()
            spline = make_smoothing_spline(t / step, measured).derivative()(t / step) / step
            spent += middle - begin, time.perf_counter() - middle
            error, other = (np.sqrt(np.mean((y - truth) ** 2)) for y in (ours.values, spline))
            ratios.append(other / error)
            stated = ours.typical_error
            print(f"{name:24} {sigma:8.0e} {error:9.1e} {stated:9.1e} {other:9.1e}")
    better = sum(ratio > 1 for ratio in ratios)
    print(
        f"better in {better} of {len(ratios)}, the spline's error is {np.median(ratios):.1f} times "
        f"ours (median); {1e3 * spent[0] / len(ratios):.0f} and "
        f"{1e3 * spent[1] / len(ratios):.0f} ms a column"
    )


if __name__ == "__main__":
    main()
