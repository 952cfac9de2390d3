"""How noisy measurements are, from the measurements alone.

High differences tell, as they do for the columns of a log (`mbdnode.data.logs.noise`), here of
stretches of all runs together. Under inputs that change within a few samples the motion is not
smooth. But over each step, while the input is held, positions and velocities must fit together.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from mbdnode.data.logs.noise import MEDIAN, differences
from mbdnode.training.closed_form.rows import Rows
from mbdnode.training.closed_form.weak import runs_of

_ORDERS = (6, 8, 10)
# Rows of a stretch that can tell.
_SHORTEST = 2 * _ORDERS[0]
# Rows that are looked at, about.
_ENOUGH = 100_000
# Below this part of the motion, noise is what rounding and an integrator leave; and below this
# one, what is left of a motion over one step.
CLEAN, _CLEAN_STEPS = 5e-6, 1e-4


@dataclass(frozen=True)
class Noise:
    """The size of the noise of every position and velocity.

    **Arguments:**

    - `z`, `s`: one value for each coordinate, never zero.
    - `relative`: the greatest of them, as a part of the motion's own spread; zero where it is too
        small to tell from the motion.
    """

    z: np.ndarray
    s: np.ndarray
    relative: float

    @property
    def matters(self) -> bool:
        """Whether the data is measured rather than computed."""
        return self.relative > CLEAN


def estimate_noise(rows: Rows) -> Noise:
    """The noise of the data.

    **Arguments:**

    - `rows`: in order of run and time.

    **Returns:**

    The `Noise`; none of it where every run is too short to tell.
    """
    z, s = np.asarray(rows.z), np.asarray(rows.s)
    if all(last - first <= _SHORTEST for first, last in runs_of(rows)):
        return Noise(np.full(z.shape[1], 1e-12), np.full(z.shape[1], 1e-12), 0.0)
    spread = [np.where(np.std(x, axis=0) > 0, np.std(x, axis=0), 1.0) for x in (z, s)]
    sizes, clean = _of_smooth_motion(rows), CLEAN
    if sizes is None:
        sizes, clean = _of_single_steps(rows), _CLEAN_STEPS
    relative = max(float(np.max(a / b)) for a, b in zip(sizes, spread, strict=True))
    floors = [np.maximum(a, 1e-12 * b) for a, b in zip(sizes, spread, strict=True)]
    return Noise(floors[0], floors[1], relative if relative > clean else 0.0)


def _of_smooth_motion(rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """From high differences; None if no stretch of the data is long enough under one input."""
    t, u = np.asarray(rows.t), np.asarray(rows.u)
    stretches = []
    for first, last in runs_of(rows):
        changes = np.flatnonzero(np.any(np.diff(u[first:last], axis=0) != 0, axis=1)) + first + 1
        edges = [first, *changes, last]
        stretches += [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    stretches = [(a, b) for a, b in stretches if b - a > _SHORTEST]
    if not stretches:
        return None
    stretches = _few(stretches)
    z, s = (
        np.min([_size(t, np.asarray(x), stretches, order) for order in _ORDERS], axis=0)
        for x in (rows.z, rows.s)
    )
    return z, s


def _size(t: np.ndarray, values: np.ndarray, stretches, order: int) -> np.ndarray:
    """The typical size of all stretches' differences."""
    found = [differences(t[a:b], values[a:b], order) for a, b in stretches if b - a > order]
    if not found:
        return np.full(values.shape[1], np.inf)
    return np.median(np.abs(np.concatenate(found)), axis=0) / MEDIAN


def _few(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many of them as can tell, drawn evenly; more say the same."""
    most = max(1, _ENOUGH // max(b - a for a, b in stretches))
    if len(stretches) <= most:
        return stretches
    return [stretches[i] for i in np.linspace(0, len(stretches) - 1, most).astype(int)]


def _of_single_steps(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """From positions that do not follow from the velocities at both ends of a step."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    z, z_next, s, s_next, dt = (
        np.asarray(x)[:count] for x in (rows.z, rows.z_next, rows.s, rows.s_next, rows.dt)
    )
    away = z_next - z - dt[:, None] * (s + s_next) / 2
    size = np.median(np.abs(away), axis=0) / (MEDIAN * np.sqrt(2))
    part = size / np.where(np.std(z, axis=0) > 0, np.std(z, axis=0), 1.0)
    return size, part * np.std(s, axis=0)
