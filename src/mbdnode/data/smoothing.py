"""Noisy columns of the data are smoothed before a network is trained on them.

A loss over single steps compares differences of neighboring states, in which noise is many times
larger than in the states: at a hundred samples a second, noise of one part in a hundred of the
velocity is as large as the acceleration itself. So every column that is noisy is replaced by local
polynomials (`mbdnode.data.signal`). What is only rounded is left as it is, to the last bit.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import CLEAN, estimate_noise, rows_of, single_trajectories
from mbdnode.data.signal import Window, choose_window, local_values
from mbdnode.trajectory import Dataset, Trajectory

# Positions and velocities of a run; each has as many columns as there are coordinates.
StateWindows = tuple[tuple[Window | None, ...], tuple[Window | None, ...]]


@dataclass(frozen=True)
class Smoother:
    """Smooths every dataset alike.

    **Arguments:**

    - `windows`: of each position and each velocity; None for those that are left as they are.
    - `noise`: that was found, as a part of the motion's spread.
    """

    windows: StateWindows
    noise: float

    @property
    def status(self) -> str:
        """What a user should know of it; nothing if nothing is smoothed."""
        if not any(window for group in self.windows for window in group):
            return ""
        return f"; the data was smoothed first, its noise is {self.noise:.1%} of the motion"

    def __call__(self, data: Dataset) -> Dataset:
        """The data with its noisy columns smoothed; as it is if there are none."""
        if not self.status:
            return data
        runs = [_smoothed(run, self.windows) for run in data.trajectories]
        return Dataset(runs, data.parameters, data.summary, data.recorded)


def choose_smoother(system: Any, data: Dataset) -> Smoother:
    """The smoother that the data asks for, which does nothing for data without noise."""
    count = data.trajectories[0].q.shape[-1]
    rows = rows_of(system, tuple(range(count)), data, accelerations=False)
    noise = estimate_noise(rows)
    if not noise.matters:
        return Smoother(((None,) * count, (None,) * count), 0.0)
    run, _ = max(single_trajectories(data), key=lambda pair: len(pair[0]))
    t = np.asarray(run.t)
    groups = []
    for values, levels, all_values in ((run.q, noise.z, rows.z), (run.v, noise.s, rows.s)):
        spreads = np.std(np.asarray(all_values), axis=0)
        columns = zip(np.asarray(values).T, levels, spreads, strict=True)
        groups.append(tuple(_window(t, x, float(a), float(b)) for x, a, b in columns))
    return Smoother((groups[0], groups[1]), noise.relative)


def _window(t: np.ndarray, values: np.ndarray, level: float, spread: float) -> Window | None:
    """For a column whose noise is worth it, and where a polynomial does better than the data."""
    if not level > CLEAN * spread:
        return None
    return choose_window(t, values, level)


def _smoothed(run: Trajectory, windows: StateWindows) -> Trajectory:
    t = np.asarray(run.t)
    rows = t.shape[-1]
    found = []
    for values, own in zip((run.q, run.v), windows, strict=True):
        table = np.array(values)
        flat = table.reshape(-1, rows, table.shape[-1])
        for place, times in enumerate(t.reshape(-1, rows)):
            for column, window in enumerate(own):
                flat[place, :, column] = local_values(times, flat[place, :, column], window)
        found.append(jnp.asarray(table))
    return eqx.tree_at(lambda r: (r.q, r.v), run, tuple(found))
