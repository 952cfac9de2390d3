"""Where measured runs are at their ends: a model's own path through the last window of each.

A measured state is off by the noise; the end of a path that is fitted to a whole window is not.
The model stays as it is, so each window has a start of its own to fit, by Gauss-Newton, and all
windows go through one compiled program. They may have different lengths: what fills the shorter
ones up has no weight.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.training.closed_form.rows import Noise, Rows, counted, side_by_side
from mbdnode.training.closed_form.shooting import from_start, make_shots, missed_by, unit_of

_ROUNDS, _SETTLED = 30, 1e-4


def last_windows(runs: list[Rows]) -> Rows | None:
    """About the last period of every run.

    **Arguments:**

    - `runs`: of any length.

    **Returns:**

    `Rows` with a leading axis; None if a run is too short for a window.
    """
    shots = [make_shots(run, from_the_end=True) for run in runs]
    if any(one is None for one in shots):
        return None
    return side_by_side([jax.tree.map(lambda x: x[0], one.rows) for one in shots if one])


def end_states(
    model: Any, windows: Rows, integrator: Any, noise: Noise, measured: np.ndarray
) -> tuple[Any, Any]:
    """Where the model is after every window, from the start that misses the measurements least.

    **Arguments:**

    - `model`: a trained model that gives rates.
    - `windows`: with a leading axis.
    - `integrator`: that is exact enough at the data's step.
    - `noise`: the unit of what is missed.
    - `measured`: which velocities were; the others are not looked at.

    **Returns:**

    Positions and velocities, one row for each window.
    """
    singles = [jax.tree.map(lambda x, i=i: x[i], windows) for i in range(windows.t.shape[0])]
    units = np.stack([unit_of(_alone(counted(one)), noise) for one in singles])
    looked_at = np.concatenate([np.ones(len(measured), bool), measured])
    units = jnp.asarray(np.where(looked_at, units, np.inf))
    starts = _settled(model, windows, integrator, units)
    z, s = (np.asarray(x) for x in _paths(starts, model, windows, integrator))
    last = np.sum(np.asarray(windows.weight) > 0, axis=1) - 1
    every = np.arange(len(last))
    return z[every, last], s[every, last]


def _alone(rows: Rows) -> Rows:
    return jax.tree.map(lambda x: x[None], rows)


def _settled(model: Any, windows: Rows, integrator: Any, units: Any) -> np.ndarray:
    """The fitted starts; as measured where nothing is better."""
    starts = np.concatenate([np.asarray(windows.z)[:, 0], np.asarray(windows.s)[:, 0]], axis=1)
    # A model that does not follow a window misses it by more than can be squared.
    with np.errstate(over="ignore", invalid="ignore"):
        now = np.asarray(_missed(starts, model, windows, integrator, units))
        cost = np.sum(now**2, axis=1)
        moving = np.isfinite(cost)
        for _ in range(_ROUNDS):
            slopes = np.asarray(_slopes(starts, model, windows, integrator, units))
            moving = moving & np.all(np.isfinite(slopes), axis=(1, 2))
            if not moving.any():
                break
            moves = np.zeros_like(starts)
            for i in np.flatnonzero(moving):
                moves[i] = -np.linalg.lstsq(slopes[i], now[i], rcond=None)[0]
            found = np.asarray(_missed(starts + moves, model, windows, integrator, units))
            reached = np.sum(found**2, axis=1)
            better = moving & np.isfinite(reached) & (reached < cost)
            starts = np.where(better[:, None], starts + moves, starts)
            now = np.where(better[:, None], found, now)
            moving = better & (cost - reached >= _SETTLED * cost)
            cost = np.where(better, reached, cost)
    return starts


@eqx.filter_jit
def _missed(starts, model, windows, integrator, units):
    one = lambda start, rows, unit: missed_by(model, start, rows, integrator, unit)  # noqa: E731
    return jax.vmap(one)(starts, windows, units)


@eqx.filter_jit
def _slopes(starts, model, windows, integrator, units):
    def one(start, rows, unit):
        return jax.jacfwd(lambda x: missed_by(model, x, rows, integrator, unit))(start)

    return jax.vmap(one)(starts, windows, units)


@eqx.filter_jit
def _paths(starts, model, windows, integrator):
    return jax.vmap(lambda start, rows: from_start(model, start, rows, integrator))(starts, windows)
