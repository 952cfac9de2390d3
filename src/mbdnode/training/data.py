"""What training is given: data of some form, checked against the model, its noise taken off.

A loss over single steps compares differences of neighboring states, in which noise is many times
larger than in the states: at a hundred samples a second, noise of one part in a hundred of the
velocity is as large as the acceleration itself. So every column that is noisy is replaced by local
polynomials (`mbdnode.data.signal`). What is only rounded is left as it is, to the last bit.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.data.signal import Window, choose_window, local_values
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel
from mbdnode.multibody import require_system
from mbdnode.numerics import check_precision
from mbdnode.training.rows import CLEAN, estimate_noise, rows_of, single_trajectories
from mbdnode.trajectory import Dataset, Trajectory

# Positions and velocities of a run; each has as many columns as there are coordinates.
StateWindows = tuple[tuple[Window | None, ...], tuple[Window | None, ...]]


def as_dataset(data: Dataset | Trajectory) -> Dataset:
    """A single trajectory as a dataset of one."""
    return data if isinstance(data, Dataset) else Dataset(data)


def check_stream(model: AbstractModel, stream: AbstractStream | None) -> None:
    """Raise `UserError` for a network that cannot learn from a stream.

    Scales come from the first data that is seen, and other models scale every example.
    """
    if stream is None:
        return
    if model.objective != "steps":
        raise UserError(
            f"{model.kind} learns from recorded motions, not from a stream of samples. Give it a "
            "Dataset, or use MBDNODE."
        )
    if getattr(model.settings, "constraints", None) == "augmented":
        raise UserError(
            "An augmented Lagrangian keeps multipliers for every step of the data, and a stream "
            "gives new steps each epoch. Give it a Dataset, or use constraints='penalty'."
        )


def cast(tree: Any, precision: str) -> Any:
    """The tree with all of its real numbers in a precision."""
    dtype = jnp.dtype(precision)
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda x: x.astype(dtype), arrays), rest)


def check_names(system: Any, data: Dataset) -> None:
    """Raise `UserError` unless system (or model) and data have the same names, in float64."""
    check_precision()
    require_system(system)
    first = data.trajectories[0]
    if first.coordinates != system.coordinate_names or first.inputs != system.input_names:
        ours = ", ".join((*system.coordinate_names, *system.input_names))
        theirs = ", ".join((*first.coordinates, *first.inputs))
        kind = "model" if isinstance(system, AbstractModel) else "system"
        raise UserError(
            f"The {kind} has coordinates and inputs {ours}, but the data has {theirs}. Use the "
            f"{kind} that made the data, or one made for it."
        )


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
        """The data with its noisy columns smoothed; as it is if there are none.

        **Arguments:**

        - `data`: with the columns for which the windows were chosen.
        """
        if not self.status:
            return data
        runs = [_smoothed(run, self.windows) for run in data.trajectories]
        return Dataset(runs, data.parameters, data.summary, data.recorded)


def choose_smoother(system: Any, data: Dataset) -> Smoother:
    """The smoother that the data asks for.

    **Arguments:**

    - `system`: gives the parameters' defaults.
    - `data`: runs; those of fewer than a dozen rows do not tell noise from motion.

    **Returns:**

    A `Smoother`, which does nothing for data without noise.
    """
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
    window = choose_window(t, values, level, order=0)
    return window if window is not None and window.risk < level**2 else None


def _smoothed(run: Trajectory, windows: StateWindows) -> Trajectory:
    t = np.asarray(run.t)
    rows = t.shape[-1]
    found = []
    for values, own in zip((run.q, run.v), windows, strict=True):
        table = np.array(values)
        flat = table.reshape(-1, rows, table.shape[-1])
        for place, times in enumerate(t.reshape(-1, rows)):
            for column, window in enumerate(own):
                fitting = _narrowed(window, rows)
                if fitting is not None:
                    noisy = flat[place, :, column]
                    flat[place, :, column] = local_values(times, noisy, fitting, order=0)
        found.append(jnp.asarray(table))
    return eqx.tree_at(lambda r: (r.q, r.v), run, tuple(found))


def _narrowed(window: Window | None, rows: int) -> Window | None:
    """The window within a run of so many rows; None where the polynomial would pass through all."""
    if window is None:
        return None
    half = min(window.half_width, (rows - 1) // 2)
    return Window(window.degree, half, window.risk) if 2 * half > window.degree else None
