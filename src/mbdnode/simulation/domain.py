"""Where the training data lies, and whether a state is still near it.

A model knows what it has seen. The distance of a state and its inputs to the nearest of the
training data, in columns scaled to unit variance, says how far it is from that; angles count by
sine and cosine, so that a turn more is no distance. The threshold comes from the data itself: cut
into stretches, it is the distance to all other stretches that 99 of 100 rows do not exceed. A new
run is then outside where it is farther from the data than the data is from itself. Rows that lie
alone, such as the first ones of each run before it settles, must not widen that for all others: it
is no more than three times the distance that nine of ten rows do not exceed.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from mbdnode.multibody import AbstractNamed
from mbdnode.trajectory import Trajectory, require_trajectory

# So many points say where the data lies; more would only say it again.
_MOST_POINTS = 5_000
_STRETCHES, _QUANTILE = 20, 0.99
_MOST_ROWS, _BEYOND = 0.9, 3.0


class Domain(eqx.Module):
    """The part of state and input space that training has seen.

    **Arguments:**

    - `points`: scaled rows of the training data.
    - `center`, `std`: what scales them.
    - `threshold`: a greater distance to the nearest point is outside.
    - `positions`, `velocities`: which coordinates count, by index.
    - `angles`: whether each of those positions is an angle.
    """

    points: np.ndarray
    center: np.ndarray
    std: np.ndarray
    threshold: float
    positions: tuple[int, ...] = eqx.field(static=True)
    velocities: tuple[int, ...] = eqx.field(static=True)
    angles: tuple[bool, ...] = eqx.field(static=True)

    def distance(self, run: Trajectory) -> np.ndarray:
        """The distance of every row to the nearest of the data, in standard deviations.

        **Arguments:**

        - `run`: a single trajectory, of the same coordinates and inputs.

        **Returns:**

        A number for each row; not a number after a failure.
        """
        require_trajectory(run, "distance")
        rows = features(run, self.positions, self.velocities, self.angles)
        with np.errstate(over="ignore", invalid="ignore"):  # Of a rollout that diverges.
            scaled = (rows - self.center) / self.std
        good = np.all(np.isfinite(scaled), axis=1)
        result = np.full(len(scaled), np.nan)
        if np.any(good):
            result[good] = _nearest(self.points, scaled[good])
        return result

    def outside(self, run: Trajectory) -> np.ndarray:
        """For every row, whether it is outside the training data, or no number."""
        return ~(self.distance(run) <= self.threshold)


def training_domain(model: AbstractNamed, runs: Sequence[Trajectory]) -> Domain:
    """Where some data lies, as a model sees it.

    **Arguments:**

    - `model`: which coordinates count: those that it advances.
    - `runs`: the training data, single trajectories.

    **Returns:**

    A `Domain`.
    """
    minimal = tuple(getattr(model, "minimal", range(len(model.coordinates))))
    angles = tuple(model.coordinates[i].is_angle for i in minimal)
    for run in runs:
        require_trajectory(run, "training_domain")
    parts = [features(run, minimal, minimal, angles) for run in runs]
    rows = np.concatenate(parts)
    center, std = np.mean(rows, axis=0), np.std(rows, axis=0)
    # A column that never changes has no deviation: any change of it is then one of its own size.
    still = std <= 1e-12 * np.maximum(1.0, np.abs(center))
    std = np.where(still, np.maximum(1.0, np.abs(center)), std)
    scaled = (rows - center) / std
    kept = np.unique(np.linspace(0, len(scaled) - 1, min(len(scaled), _MOST_POINTS)).astype(int))
    runs_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    farthest, usual = np.quantile(_apart(scaled[kept], runs_of[kept]), (_QUANTILE, _MOST_ROWS))
    threshold = float(min(farthest, _BEYOND * usual) if usual > 0 else farthest)
    return Domain(scaled[kept], center, std, max(threshold, 1e-9), minimal, minimal, angles)


def _apart(points: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """The distance of every point to those of other stretches: runs, or parts of a few runs."""
    names = np.unique(runs)
    if len(names) >= _STRETCHES:
        stretch = np.searchsorted(names, runs) * _STRETCHES // len(names)
    else:
        stretch = np.arange(len(points)) * _STRETCHES // len(points)
    result = np.zeros(len(points))
    for number in np.unique(stretch):
        mine = stretch == number
        if not np.all(mine):
            result[mine] = _nearest(points[~mine], points[mine])
    return result


def _nearest(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The distance of every row to the nearest point."""
    from scipy.spatial import KDTree  # Slow to load, for those who ask.

    return KDTree(points).query(rows)[0]


def features(
    run: Any, positions: tuple[int, ...], velocities: tuple[int, ...], angles: tuple[bool, ...]
) -> np.ndarray:
    """What places a row: sine and cosine of angles, other positions, velocities, inputs."""
    q, v, u = (np.asarray(x) for x in (run.q, run.v, run.u))
    parts = []
    for index, is_angle in zip(positions, angles, strict=True):
        parts += [np.sin(q[:, index]), np.cos(q[:, index])] if is_angle else [q[:, index]]
    parts += [v[:, index] for index in velocities]
    return np.column_stack([*parts, u])
