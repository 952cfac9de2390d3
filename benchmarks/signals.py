"""Noise, rates and smoothed states of noisy columns, beside two other smoothers.

    python -m benchmarks.signals

First the noise that is estimated from each column alone, beside what it is: white, rounded, coarse,
uneven, filtered. Then rates from positions alone, and positions and velocities that were both
measured, beside

- SciPy's smoothing spline with generalized cross-validation, whose times are in units of the step,
  since it finds no penalty otherwise;
- the smoother of Rauch, Tung and Striebel for a white jerk, whose intensity is the one under which
  the measurements are likeliest.

The truth is analytic. Writes `docs/results/signals.md`.
"""

import platform
import time
from pathlib import Path

import numpy as np
import scipy
from scipy.interpolate import make_smoothing_spline
from scipy.linalg import cho_solve_banded, cholesky_banded

from mbdnode.data.signal import estimate_rate, noise_level, smooth_states

PAGE = Path(__file__).parents[1] / "docs" / "results" / "signals.md"
PAGE_TEXT = """# Noise, rates and smoothing

`python -m benchmarks.signals` writes this page. One seed; {versions}.

## Is the noise of a column told right?

From the column alone, beside what was added to two sines of 0.5 and 1.3 Hz:

{noise}

The last is a miss: noise that neighbors share looks like motion, and less than half of it is seen.
From a column of positions alone nothing more is told. Of a velocity, its position tells more.

## Rates from positions alone

Local polynomials, whose degree and width the noise chooses (`estimate_rate`), beside

- a Rauch-Tung-Striebel smoother for a white jerk, with the intensity of the highest likelihood;
- SciPy's smoothing spline with generalized cross-validation.

Errors of the polynomials are in percent of the rate's standard deviation. In brackets those of the
smoother and of the spline, in units of ours. Noise is in percent of the position's standard
deviation, without its trend.

{rates}

{rates_said}

## Positions and velocities that were both measured

What is left of the noise of positions and of velocities, as a part of it. In brackets after the
Rauch-Tung-Striebel smoother. Ours smooths velocities by polynomials, and then what the positions
differ by from the integral of the velocities.

{states}

{states_said}

## Where it fails

- Noise that neighboring rows share.
- Fewer than ten rows a period: neither takes away much.
- A gap of many rows within a run: positions are integrated across it. Logs are cut at such gaps.
- Windows have at most 801 rows, so slow motions could be smoothed further.
- At uneven times weights are computed row by row, which takes about ten times as long.
"""
# Of the standard deviations of the positions, without a straight line, and of the velocities.
PARTS = (0.001, 0.01, 0.05)


def crank(rows_a_turn: float, ripple: float):
    """A crank at 50 rad/s, whose speed varies over each turn."""
    t = np.arange(1_000) * 2 * np.pi / 50 / rows_a_turn
    turned = 50 * t
    x = turned + ripple * np.sin(turned) + ripple / 4 * np.cos(2 * turned)
    return t, x, 50 * (1 + ripple * np.cos(turned) - ripple / 2 * np.sin(2 * turned))


def two_sines(t: np.ndarray):
    """0.5 and 1.35 Hz."""
    w, fast = np.pi, 2.7 * np.pi
    x = np.sin(w * t) + 0.3 * np.sin(fast * t + 1)
    return t, x, w * np.cos(w * t) + 0.3 * fast * np.cos(fast * t + 1)


def motions() -> dict:
    """Times, positions and rates, by name."""
    t, long = np.linspace(0, 10, 1_001), np.linspace(0, 10, 2_001)
    random = np.random.default_rng(0)
    jitter, anywhere = random.uniform(-0.003, 0.003, len(t)), np.sort(random.uniform(0, 10, len(t)))
    there = np.ones(len(t), bool)
    for first in (200, 430, 700):
        there[first : first + 40] = False
    return {
        "crank, 16 rows a turn": crank(16.1, 0.17),
        "crank, 34 rows a turn": crank(33.7, 0.17),
        "crank, 100 rows a turn": crank(100.0, 0.17),
        "chirp": (long, np.sin(np.pi * long**2), 2 * np.pi * long * np.cos(np.pi * long**2)),
        "two sines": two_sines(t),
        "two sines, steps vary by 30 %": two_sines(t + jitter),
        "two sines, random times": two_sines(anywhere),
        "two sines, three gaps of 0.4 s": two_sines(t[there]),
        "two sines, a tenth of the rows": two_sines(t[::10]),
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
        "rounded to steps of 0.02, no other noise": (t, rounded(motion(t)), step / np.sqrt(12)),
        "rounded, and white": (t, rounded(with_noise(t)), np.hypot(sigma, step / np.sqrt(12))),
        "at uneven times": (uneven, with_noise(uneven), sigma),
        "6 rows in a period of the faster sine": (six, with_noise(six), sigma),
        "4 rows in it": (four, with_noise(four), sigma),
        "filtered by a mean of 5 rows": (t, motion(t) + mean, sigma / np.sqrt(5)),
    }


def kalman_smoother(t, z, s, position_noise: float, rate_noise: float):
    """Positions and velocities of a white jerk, as the banded system that its smoother solves."""
    step = float(np.median(np.diff(t)))
    dt, z, s = np.diff(t) / step, z / position_noise, s * step / position_noise
    rate_weight = (position_noise / (rate_noise * step)) ** 2
    move = np.tile(np.eye(3), (len(dt), 1, 1))
    move[:, 0, 1] = move[:, 1, 2] = dt
    move[:, 0, 2] = dt**2 / 2
    powers = dt[:, None, None] ** np.array([[5, 4, 3], [4, 3, 2], [3, 2, 1]])
    inverse = np.array([[720.0, -360, 60], [-360, 192, -36], [60, -36, 9]]) / powers

    def solve(exponent: float):
        """The likeliest states, and -2 log likelihood of the data."""
        weight = inverse / 10.0**exponent
        beside = np.swapaxes(move, 1, 2) @ weight
        diagonal = np.zeros((len(z), 3, 3))
        diagonal[:-1] += beside @ move
        diagonal[1:] += weight
        diagonal += np.diag([1.0, rate_weight, 0.0])
        diagonal[0] += 1e-12 * np.eye(3)  # A vague origin, where velocities are not measured.
        banded = np.zeros((6, 3 * len(z)))
        for i in range(3):
            for j in range(3):
                if i <= j:
                    banded[5 + i - j, j::3] = diagonal[:, i, j]
                banded[2 + i - j, 3 + j :: 3] = -beside[:, i, j]
        right = np.stack([z, rate_weight * s, np.zeros(len(z))], axis=1)
        try:
            factor = cholesky_banded(banded)
        except np.linalg.LinAlgError:  # Where times nearly coincide.
            return np.full((len(z), 3), np.nan), np.inf
        x = cho_solve_banded((factor, False), right.ravel()).reshape(-1, 3)
        jumps = x[1:] - np.einsum("nij,nj->ni", move, x[:-1])
        squares = np.sum((x[:, 0] - z) ** 2) + rate_weight * np.sum((x[:, 1] - s) ** 2)
        squares += np.einsum("ni,nij,nj->", jumps, weight, jumps)
        size = 2 * np.sum(np.log(factor[5])) + 3 * (len(z) - 1) * np.log(10.0) * exponent
        return x, squares + size

    grid = np.arange(-9.0, 8.0, 2.0)
    near = grid[np.argmin([solve(exponent)[1] for exponent in grid])]
    finer = near + np.linspace(-1.5, 1.5, 7)
    best = finer[np.argmin([solve(exponent)[1] for exponent in finer])]
    x = solve(best)[0] * position_noise
    return x[:, 0], x[:, 1] / step


def rms(error: np.ndarray) -> float:
    """The root of the mean square; infinite for a smoother that fails."""
    return float(np.sqrt(np.mean(error**2))) if np.all(np.isfinite(error)) else np.inf


def digits(value: float) -> str:
    """Two of them."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}" if np.isfinite(value) else "fails"


def spread(t: np.ndarray, x: np.ndarray) -> float:
    """The standard deviation from a straight line."""
    return rms(x - np.polyval(np.polyfit(t, x, 1), t))


def noise_table() -> str:
    """Of every column: its noise, and the estimate."""
    lines = ["| column | noise | estimate / noise |", "|---|---|---|"]
    for name, (t, x, known) in noisy_columns().items():
        lines.append(f"| {name} | {known:.4f} | {noise_level(t, x) / known:.2f} |")
    return "\n".join(lines)


def rate_table() -> tuple[str, str]:
    """Of every motion and noise: the error of its rate, and those of others in units of it."""
    head = " | ".join(f"noise {part:.1%}" for part in PARTS)
    lines = [f"| motion | {head} |", "|---|---|---|---|"]
    ratios, stated, spent = [], [], np.zeros(3)
    for name, (t, x, truth) in motions().items():
        cells, step = [], float(np.median(np.diff(t)))
        for part in PARTS:
            sigma = part * spread(t, x)
            measured = x + sigma * np.random.default_rng(1).standard_normal(len(t))
            times = [time.process_time()]
            ours = estimate_rate(t, measured)
            times.append(time.process_time())
            level, none = noise_level(t, measured), np.zeros(len(t))
            kalman = kalman_smoother(t, measured, none, level, np.inf)[1]
            times.append(time.process_time())
            spline = make_smoothing_spline(t / step, measured).derivative()(t / step) / step
            spent += np.diff([*times, time.process_time()])
            error, *others = (rms(y - truth) for y in (ours.values, kalman, spline))
            ratios.append([other / error for other in others])
            stated.append(ours.typical_error / error)
            times_ours = ", ".join(map(digits, ratios[-1]))
            cells.append(f"{100 * error / np.std(truth):.2g} % ({times_ours})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    table = np.array(ratios)
    better, median, cost = np.sum(table > 1, axis=0), np.median(table, axis=0), 1e3 * spent
    said = (
        f"The polynomials are better than the Rauch-Tung-Striebel smoother in {better[0]} of "
        f"{len(table)} cases and than the spline in {better[1]}; the others' errors are "
        f"{median[0]:.1f} and {median[1]:.1f} times theirs in the median. The error that "
        f"`estimate_rate` states is {np.median(stated):.2f} of the true one in the median, "
        f"{min(stated):.2f} to {max(stated):.2f}. A column takes "
        f"{cost[0] / len(table):.0f}, {cost[1] / len(table):.0f} and "
        f"{cost[2] / len(table):.0f} ms of processor."
    )
    return "\n".join(lines), said


def state_table() -> tuple[str, str]:
    """Of every motion and noise: what is left of the noise, and what another smoother leaves."""
    head = " | ".join(f"noise {part:.1%}" for part in PARTS)
    lines = [f"| motion | {head} |", "|---|---|---|---|"]
    ratios, spent = [], np.zeros(2)
    for name, (t, x, truth) in motions().items():
        cells = []
        for part in PARTS:
            random = np.random.default_rng(1)
            truths = x, truth
            sizes = part * np.array([spread(t, x), np.std(truth)])
            z, s = (
                y + size * random.standard_normal(len(t))
                for y, size in zip(truths, sizes, strict=True)
            )
            times = [time.process_time()]
            ours = smooth_states([(t, z, s)], *sizes)[0]
            times.append(time.process_time())
            kalman = kalman_smoother(t, z, s, *sizes)
            spent += np.diff([*times, time.process_time()])
            left = [
                [rms(one - y) / size for one, y, size in zip(found, truths, sizes, strict=True)]
                for found in (ours, kalman)
            ]
            ratios.append(np.divide(left[1], left[0]))
            own, other = (", ".join(map(digits, pair)) for pair in left)
            cells.append(f"{own} ({other})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    table = np.array(ratios)
    better, median = np.sum(table > 1, axis=0), np.median(table, axis=0)
    said = (
        f"The smoother's errors are {median[0]:.2f} (positions) and {median[1]:.2f} (velocities) "
        f"times those of the polynomials in the median; the polynomials are better in {better[0]} "
        f"and {better[1]} of {len(table)} cases. A run takes {1e3 * spent[0] / len(table):.0f} and "
        f"{1e3 * spent[1] / len(table):.0f} ms of processor."
    )
    return "\n".join(lines), said


def main() -> None:
    """Measure, and write the page."""
    rates, rates_said = rate_table()
    states, states_said = state_table()
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    page = PAGE_TEXT.format(
        versions=f"{versions}, SciPy {scipy.__version__}, {platform.machine()}, shared cores",
        noise=noise_table(),
        rates=rates,
        rates_said=rates_said,
        states=states,
        states_said=states_said,
    )
    PAGE.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
