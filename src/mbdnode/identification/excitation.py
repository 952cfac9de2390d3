"""Whether inputs act on their own, or follow the state, as those of a controller do.

Under a feedback `u = -K x` in all of the data, the accelerations of a machine are

    a = f(x) + b u = f(x) + c (u + K x) + b u    for any c,

so what the input does cannot be told from what the state does, and a law that predicts such runs
well may be wrong for every other input. Regression tells: of an input that follows the state, a
combination of positions, their sines and cosines, and velocities leaves next to nothing. The same
holds for a single sine in a steady state.
"""

import numpy as np

from mbdnode.data.rows import Rows, estimate_noise, rows_of, runs_of
from mbdnode.models.base import minimal_coordinates
from mbdnode.multibody import AbstractSystem
from mbdnode.trajectory import Dataset

# The part of an input's variance that is left of one that follows the state: what noise in the
# state makes, where there is any. Of inputs that were chosen freely, a third is left and more.
_LEFT_IN_NOISE, _LEFT = 0.02, 1e-8
# Noise is averaged over this part of a run.
_AVERAGED = 0.01


def inputs_that_follow(system: AbstractSystem, data: Dataset) -> tuple[str, ...]:
    """The inputs that are a combination of the state in all runs together.

    Their names; none for inputs that never change.
    """
    if not system.inputs:
        return ()
    minimal = minimal_coordinates(system)
    rows = rows_of(system, minimal, data, accelerations=False)
    angles = [system.coordinates[i].is_angle for i in minimal]
    regressors, inputs = _averaged(rows, angles)
    inputs = inputs - np.mean(inputs, axis=0)
    size = np.sum(inputs**2, axis=0)
    scale = np.max(np.abs(regressors), axis=0)
    regressors = regressors / np.where(scale > 0, scale, 1.0)
    # As many rows as unknowns would explain anything.
    if len(regressors) < 10 * regressors.shape[1]:
        return ()
    left = inputs - regressors @ np.linalg.lstsq(regressors, inputs, rcond=1e-10)[0]
    most = _LEFT_IN_NOISE if estimate_noise(rows).matters else _LEFT
    follows = (size > 0) & (np.sum(left**2, axis=0) < most * size)
    return tuple(name for name, one in zip(system.input_names, follows, strict=True) if one)


def describe_excitation(names: tuple[str, ...]) -> str:
    """What is to be doubted, as a part of a sentence; nothing for no names."""
    if not names:
        return ""
    who, are, they = ", ".join(names), "is a combination", "it does"
    if len(names) > 1:
        are, they = "are combinations", "they do"
    return (
        f"{who} {are} of the state in all training runs, as under a controller, so what {they} "
        "cannot be told from what the state does: the model holds for such runs alone. Record runs "
        "with steps or noise added to the input"
    )


def _averaged(rows: Rows, angles: list[bool]) -> tuple[np.ndarray, np.ndarray]:
    """What an input may be a combination of, and the inputs, both as means over a few rows."""
    z, s, u = (np.asarray(x) for x in (rows.z, rows.s, rows.u))
    turning = z[:, np.array(angles, bool)]
    table = np.column_stack([np.ones(len(z)), z, s, np.sin(turning), np.cos(turning), u])
    parts = []
    for first, last in runs_of(rows):
        width = max(1, int(_AVERAGED * (last - first)))
        sums = np.cumsum(np.vstack([np.zeros(table.shape[1]), table[first:last]]), axis=0)
        parts.append((sums[width:] - sums[:-width]) / width)
    means = np.concatenate(parts)
    return means[:, : -u.shape[1]], means[:, -u.shape[1] :]
