"""Positions and velocities together, smoothed: each says what the other is.

The smoothed velocities are integrated. What a position differs from that integral by,

    d(t) = z(t) - p(t),    p' = s,

hardly changes but for the noise of both, so it can be smoothed over windows that are far wider than
the motion would allow, and a position loses most of its noise without a fast motion being cut
short.
"""

from collections.abc import Sequence

import numpy as np

from mbdnode.data.signal.differentiation import choose_window
from mbdnode.data.signal.polynomials import differentiate, local_values

# Times, positions and velocities of one coordinate in one run.
Run = tuple[np.ndarray, np.ndarray, np.ndarray]


def smooth_states(
    runs: Sequence[Run], position_noise: float, rate_noise: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positions and velocities of one coordinate, of each run, with most of their noise removed."""
    rates = _smooth([(t, s) for t, _, s in runs], rate_noise)
    moved = [_integral(t, s) for (t, _, _), s in zip(runs, rates, strict=True)]
    apart = [(t, z - p) for (t, z, _), p in zip(runs, moved, strict=True)]
    places = zip(moved, _smooth(apart, position_noise), strict=True)
    return [(p + d, s) for (p, d), s in zip(places, rates, strict=True)]


def _smooth(runs: list[tuple[np.ndarray, np.ndarray]], noise: float) -> list[np.ndarray]:
    """All runs with the window that the longest one asks for."""
    window = choose_window(*max(runs, key=lambda run: len(run[0])), noise)
    return [local_values(t, x, window) for t, x in runs]


def _integral(t: np.ndarray, s: np.ndarray) -> np.ndarray:
    """From the first time on, of the cubics through values and slopes at both ends of each step."""
    dt, slopes = np.diff(t), differentiate(t, s[:, None])[:, 0]
    steps = dt * (s[1:] + s[:-1]) / 2 - dt**2 * np.diff(slopes) / 12
    return np.concatenate([[0.0], np.cumsum(steps)])
