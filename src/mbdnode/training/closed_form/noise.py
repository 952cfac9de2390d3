"""How noisy measurements are, from the measurements alone.

A smooth motion is nearly a polynomial over a few samples, so high differences of it vanish and
those of noise do not. The median is taken, so that a few sudden changes do not count as noise.
"""

from dataclasses import dataclass

import numpy as np

from mbdnode.training.closed_form.rows import Rows
from mbdnode.training.closed_form.weak import runs_of

_ORDER = 6
# The differences of independent noise of size one have this size.
_GAIN = float(np.sqrt(924.0))
# Of the median of a normal variable's absolute value.
_MEDIAN = 0.6745
# Below this part of the motion, noise is what rounding and an integrator leave.
_CLEAN = 1e-6


@dataclass(frozen=True)
class Noise:
    """The size of the noise of every position and velocity.

    **Arguments:**

    - `z`, `s`: one value for each coordinate, never zero.
    - `relative`: the greatest of them, as a part of the motion's own spread.
    """

    z: np.ndarray
    s: np.ndarray
    relative: float

    @property
    def matters(self) -> bool:
        """Whether the data is measured rather than computed."""
        return self.relative > _CLEAN


def estimate_noise(rows: Rows) -> Noise:
    """The noise of the data.

    **Arguments:**

    - `rows`: in order of run and time.

    **Returns:**

    The `Noise`; none of it where every run is too short to tell.
    """
    sizes, spreads = [], []
    for values in (np.asarray(rows.z), np.asarray(rows.s)):
        differences = [
            np.diff(values[first:last], n=_ORDER, axis=0)
            for first, last in runs_of(rows)
            if last - first > 2 * _ORDER
        ]
        count = values.shape[1]
        whole = np.concatenate(differences) if differences else np.zeros((1, count))
        sizes.append(np.median(np.abs(whole), axis=0) / (_MEDIAN * _GAIN))
        spreads.append(np.std(values, axis=0))
    spread = [np.where(x > 0, x, 1.0) for x in spreads]
    relative = max(float(np.max(a / b)) for a, b in zip(sizes, spread, strict=True))
    floors = [np.maximum(a, 1e-12 * b) for a, b in zip(sizes, spread, strict=True)]
    return Noise(floors[0], floors[1], relative)
