"""Equations of motion in integral form: what holds on average over a window of samples.

Multiplied by a smooth function that vanishes at both ends of a window and integrated by parts,

    d/dt p + f = 0    becomes    sum (-phi' p + phi f) dt = 0,

so nothing has to be differentiated: neither noise nor a force that sets in within a few samples is
made larger.
"""

from dataclasses import dataclass

import numpy as np

from mbdnode.training.rows import Rows, runs_of

# The test function (1 - x^2)^POWER is flat enough at its ends for the sums to be exact integrals.
_POWER = 6
_SHORTEST, _LONGEST = 8, 80
# Windows in one period of the motion, and how many begin within one window.
_PER_PERIOD, _OVERLAP = 5, 4
# Numbers that are gathered at a time.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class WeakFormWindows:
    """Where windows lie, and the weights of their samples.

    **Arguments:**

    - `index`: `(windows, samples)`, rows of the data.
    - `value`, `slope`: of the test function, times the width of each sample's own interval.
    """

    index: np.ndarray
    value: np.ndarray
    slope: np.ndarray

    def __len__(self) -> int:
        return self.index.shape[0]

    def integral(self, values: np.ndarray) -> np.ndarray:
        """Of the test function times what was sampled, for each window."""
        return self._summed(self.value, values)

    def integral_of_rate(self, values: np.ndarray) -> np.ndarray:
        """Of the test function times the time derivative of what was sampled."""
        return -self._summed(self.slope, values)

    def _summed(self, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """A few windows at a time: they overlap, and together are several times the data."""
        numbers = self.index.shape[1] * max(1, values[:1].size)
        size = max(1, _AT_ONCE // numbers)
        sums = [
            np.einsum("wm,wm...->w...", weights[i : i + size], values[self.index[i : i + size]])
            for i in range(0, max(len(self), 1), size)
        ]
        return np.concatenate(sums)


def make_windows(rows: Rows, period: int | None = None) -> WeakFormWindows:
    """Windows of about a fifth of a period, overlapping, each inside one run.

    **Arguments:**

    - `rows`: the data, in order of run and time.
    - `period`: its samples, where the rows are a part of the data; their own if not given.

    **Returns:**

    The `WeakFormWindows`, as long as the longest run if that is shorter.
    """
    t, dt = np.asarray(rows.t), np.asarray(rows.dt)
    length = (period or samples_per_period(rows)) // _PER_PERIOD
    length = int(np.clip(length, _SHORTEST, _LONGEST))
    stride = max(1, length // _OVERLAP)
    starts = [
        first for begin, end in runs_of(rows) for first in range(begin, end - length + 1, stride)
    ]
    index = np.array(starts, int).reshape(-1, 1) + np.arange(length)[None, :]
    times = t[index]
    half = (times[:, -1:] - times[:, :1]) / 2
    x = (times - times[:, :1] - half) / np.where(half > 0, half, 1.0)
    value = (1 - x**2) ** _POWER
    slope = -2 * _POWER * x * (1 - x**2) ** (_POWER - 1) / np.where(half > 0, half, 1.0)
    # Trapezoids: half of the interval before a sample and half of the one after it.
    width = (dt[np.maximum(index - 1, 0)] + dt[index]) / 2
    return WeakFormWindows(index, value * width, slope * width)


def samples_per_period(rows: Rows) -> int:
    """Of the fastest coordinate, from the sizes of the motion and of its velocity."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    z, s, dt = (np.asarray(x)[:count] for x in (rows.z, rows.s, rows.dt))
    moved, speed = np.std(z, axis=0), np.std(s, axis=0)
    rate = np.max(np.where(moved > 0, speed / np.where(moved > 0, moved, 1.0), 0.0))
    return int(np.clip(2 * np.pi / (max(rate, 1e-12) * np.median(dt)), 2, 10_000))
