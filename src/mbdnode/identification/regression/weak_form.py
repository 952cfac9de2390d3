"""Equations of motion in integral form: what holds on average over a window of samples.

Multiplied by a smooth function that vanishes at both ends of a window and integrated by parts,

    d/dt p + f = 0    becomes    sum (-phi' p + phi f) dt = 0,

so nothing has to be differentiated: neither noise nor a force that sets in within a few samples is
made larger. Most of a motion is smooth enough for sums over the samples; what an input does that
jumps or bends at them is summed over the steps, by Simpson's rule.

Over a single step of data without noise, with `phi = 1`,

    p(t + dt) - p(t) + dt (f_begin + 4 f_middle + f_end)/6 = 0

(Simpson) is exact to the fourth order of the step, whatever the input did before: the positions and
velocities at both ends give the state in the middle to that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from scipy import sparse

from mbdnode.data.rows import Noise, Rows, runs_of
from mbdnode.data.signal import smooth_states

# The test function (1 - x^2)^POWER is flat enough at its ends for the sums to be exact integrals.
_POWER = 6
_SHORTEST, _LONGEST = 8, 80
# Of the mean step: by so much even ones may differ.
_EVEN = 1e-9
# Windows in one period of the motion, and how many begin within one window.
_PER_PERIOD, _OVERLAP = 5, 4


@dataclass(frozen=True)
class WeakFormWindows:
    """Where windows lie, and the weights of their samples.

    **Arguments:**

    - `index`: `(windows, samples)`, rows of the data.
    - `value`, `slope`: of the test function, times the width of each sample's own interval.
    - `steps`: the weights of Simpson's rule at the start, in the middle and at the end of the step
        that each sample begins, times its values there; zero for the last sample of a window.
    """

    index: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    steps: tuple[np.ndarray, np.ndarray, np.ndarray]

    def __len__(self) -> int:
        return self.index.shape[0]

    def integral(self, values: np.ndarray) -> np.ndarray:
        """Of the test function times what was sampled, for each window."""
        return self._summed(self.value, values)

    def integral_of_steps(self, nodes: Sequence[np.ndarray]) -> np.ndarray:
        """Of the test function times what has these values in three places of every step."""
        pairs = zip(self.steps, nodes, strict=True)
        return sum((self._summed(*pair) for pair in pairs), start=np.zeros(()))

    def integral_of_rate(self, values: np.ndarray) -> np.ndarray:
        """Of the test function times the time derivative of what was sampled."""
        return -self._summed(self.slope, values)

    def noise_gains(self) -> tuple[float, float]:
        """By how much an integral of a rate moves with noise of unit size, in what it is of.

        In the velocities, for momenta of measured ones; in the positions, for those of velocities
        that are derivatives of positions.
        """
        # In the middle of a window the test function is one, and its weight the width of a step.
        step = np.max(self.value, axis=1, keepdims=True)
        twice = np.gradient(self.slope, axis=1) / step
        of_rates, of_positions = (np.linalg.norm(x, axis=1) for x in (self.slope, twice))
        return float(np.median(of_rates)), float(np.median(of_positions))

    def _summed(self, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """By a sparse matrix: windows overlap, and together are several times the data."""
        count, samples = self.index.shape
        rows = np.arange(0, count * samples + 1, samples)
        shape = (count, len(values))
        matrix = sparse.csr_array((weights.ravel(), self.index.ravel(), rows), shape=shape)
        flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
        return (matrix @ flat).reshape(count, *values.shape[1:])


def make_windows(rows: Rows, period: int | None = None, times: int = 1) -> WeakFormWindows:
    """Windows of about a fifth of a period, overlapping, each inside one run.

    **Arguments:**

    - `period`: its samples, where the rows are a part of the data; their own if not given.

    **Returns:**

    The `WeakFormWindows`, as long as the longest run if that is shorter.
    """
    t, dt = np.asarray(rows.t), np.asarray(rows.dt)
    length = (period or samples_per_period(rows)) // _PER_PERIOD
    length = times * int(np.clip(length, _SHORTEST, _LONGEST))
    stride = max(1, length // _OVERLAP)
    starts = [
        first for begin, end in runs_of(rows) for first in range(begin, end - length + 1, stride)
    ]
    index = np.array(starts, int).reshape(-1, 1) + np.arange(length)[None, :]
    windows = _weighted(index[:1] if _are_alike(dt, index) else index, t, dt)
    weights = windows.value, windows.slope, *windows.steps
    value, slope, *steps = (np.broadcast_to(x, index.shape) for x in weights)
    return WeakFormWindows(index, value, slope, (steps[0], steps[1], steps[2]))


def _are_alike(dt: np.ndarray, index: np.ndarray) -> bool:
    """Whether all windows have the same even steps, but for round-off, and so the same weights."""
    if len(index) < 2:
        return False
    steps = dt[index[0, 0] : index[-1, -1] + 1]
    return bool(np.ptp(steps) <= _EVEN * np.mean(steps))


def _weighted(index: np.ndarray, t: np.ndarray, dt: np.ndarray) -> WeakFormWindows:
    samples = t[index]
    half = (samples[:, -1:] - samples[:, :1]) / 2
    x = (samples - samples[:, :1] - half) / np.where(half > 0, half, 1.0)
    value = _test_function(x, _POWER)
    slope = -2 * _POWER * x * _test_function(x, _POWER - 1) / np.where(half > 0, half, 1.0)
    # Trapezoids: half of the interval before a sample and half of the one after it.
    width = (dt[np.maximum(index - 1, 0)] + dt[index]) / 2
    steps = [np.zeros_like(x) for _ in range(3)]
    middle = _test_function((x[:, 1:] + x[:, :-1]) / 2, _POWER)
    places = value[:, :-1], middle, value[:, 1:]
    for weights, place, part in zip(steps, places, (1 / 6, 4 / 6, 1 / 6), strict=True):
        weights[:, :-1] = part * place * dt[index[:, :-1]]
    return WeakFormWindows(index, value * width, slope * width, (steps[0], steps[1], steps[2]))


def _test_function(x: np.ndarray, power: int) -> np.ndarray:
    """By products: NumPy's powers take ten times as long."""
    base = 1 - x * x
    found = base.copy()
    for _ in range(power - 1):
        found *= base
    return found


def independent_windows(rows: Rows, period: int, times: int = 1) -> float:
    """How many windows say something of their own; those that overlap share most of it."""
    return max(2.0, len(make_windows(rows, period, times)) / _OVERLAP)


def smoothed(rows: Rows, noise: Noise, measured: np.ndarray) -> Rows:
    """The rows with states that have lost most of their noise.

    A function of a noisy state is biased: the cosine of an angle by the factor `exp(-sigma^2/2)`,
    the square of a velocity by `sigma^2`, and products of columns by more. What an integral over a
    window averages out is the noise of its terms, not that bias, which shrinks with the noise of
    the states alone.

    The rows; as they were in coordinates whose rate was not measured. Where positions and
    velocities do not agree with each other (filtered rates) they are smoothed less, and stay within
    their noise of what was recorded.
    """
    spans, t = runs_of(rows), np.asarray(rows.t)
    z, s, z_next, s_next = (np.array(x) for x in (rows.z, rows.s, rows.z_next, rows.s_next))
    ends = t + np.asarray(rows.dt)
    for i in np.flatnonzero(measured):
        whole = lambda x, after, a, b: np.append(x[a:b], after[b - 1])  # noqa: E731
        runs = [
            (
                whole(t, ends, a, b),
                whole(z[:, i], z_next[:, i], a, b),
                whole(s[:, i], s_next[:, i], a, b),
            )
            for a, b in spans
        ]
        found = smooth_states(runs, float(noise.z[i]), float(noise.s[i]))
        for (a, b), (place, rate) in zip(spans, found, strict=True):
            z[a:b, i], z_next[a:b, i] = place[:-1], place[1:]
            s[a:b, i], s_next[a:b, i] = rate[:-1], rate[1:]
    states = tuple(jax.device_put(x) for x in (z, s, z_next, s_next))
    return eqx.tree_at(lambda r: (r.z, r.s, r.z_next, r.s_next), rows, states)


def middle_state(rows: Rows, *, noisy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities in the middle of every step.

    **Arguments:**

    - `noisy`: whether a difference of positions over one step is mostly noise.

    **Returns:**

    Of the cubic polynomial through both ends, to the fourth order of the step; for noisy data with
    the mean of the velocities, to the second.
    """
    z, s, z_next, s_next = (np.asarray(x) for x in (rows.z, rows.s, rows.z_next, rows.s_next))
    dt = np.asarray(rows.dt)[:, None]
    z_middle = (z + z_next) / 2 - dt * (s_next - s) / 8
    if noisy:
        return z_middle, (s + s_next) / 2
    return z_middle, 1.5 * (z_next - z) / dt - (s + s_next) / 4


def samples_per_period(rows: Rows) -> int:
    """Of the fastest coordinate, from the sizes of the motion and of its velocity."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    z, s, dt = (np.asarray(x)[:count] for x in (rows.z, rows.s, rows.dt))
    moved, speed = np.std(z, axis=0), np.std(s, axis=0)
    rate = np.max(np.where(moved > 0, speed / np.where(moved > 0, moved, 1.0), 0.0))
    return int(np.clip(2 * np.pi / (max(rate, 1e-12) * np.median(dt)), 2, 10_000))


def samples_per_swing(rows: Rows) -> int:
    """Of the fastest coordinate, from how soon its velocity is another.

    An angle that turns many times has a long period by its size, and a motion that is lost sight of
    within a fraction of it. The mean square change of a sine over a sixth of its period is its
    variance.
    """
    most = samples_per_period(rows)
    s, spans = np.asarray(rows.s), runs_of(rows)
    variance = np.var(np.concatenate([s[a:b] for a, b in spans]), axis=0)
    for lag in range(1, max(1, most // 6)):
        changes = [s[a + lag : b] - s[a : b - lag] for a, b in spans if b - a > lag]
        if changes and np.any(np.mean(np.concatenate(changes) ** 2, axis=0) > variance):
            return min(most, 6 * lag)
    return most
