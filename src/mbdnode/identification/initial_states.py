"""States of measured runs at their ends, from which to predict: initial states.

A measured state is off by the noise; the end of a model's own path that is fitted to about the last
period is not. The model stays as it is, so each window has an initial state of its own to fit, and
all windows go through one compiled program. They may have different lengths: what
fills the shorter ones up has no weight.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from mbdnode.data.rows import (
    Noise,
    Rows,
    counted,
    estimate_noise,
    recorded_rates,
    rows_of,
    side_by_side,
)
from mbdnode.identification.biased_rates import without_biased_rates
from mbdnode.identification.parameters.end_states import end_states_of_mechanism
from mbdnode.identification.rollouts import SegmentRollouts
from mbdnode.identification.shooting import (
    make_segments,
    path_jacobians,
    path_residuals,
    unit_of,
)
from mbdnode.integrators import get_integrator
from mbdnode.levenberg_marquardt import Minimum, minimize_each
from mbdnode.multibody import AbstractMechanism, consistent_state
from mbdnode.trajectory import Dataset, State, Trajectory

# Measured states are near enough for nearly the whole Gauss-Newton step, and a law that does not
# follow the motion after so many of them never does.
_DAMPING, _ITERATIONS = 1e-6, 5


def last_windows(runs: list[Rows]) -> Rows | None:
    """About the last period of every run.

    `Rows` with a leading axis; None if a run is too short for a window.
    """
    segments = [make_segments(run, from_the_end=True) for run in runs]
    if any(one is None for one in segments):
        return None
    return side_by_side([_single(one.rows, 0) for one in segments if one])


def end_states(
    model: Any, windows: Rows, integrator: Any, noise: Noise, measured: np.ndarray
) -> tuple[Any, Any]:
    """Where the model is after every window, from the initial state with the smallest residual."""
    units = _units(windows, noise, measured)
    initial = fit_initial_states(model, windows, integrator, units).x
    path = SegmentRollouts(windows).paths(model, initial, integrator)
    ends = path[np.arange(len(path)), _last(windows)]
    return ends[:, : len(measured)], ends[:, len(measured) :]


def end_covariances(
    model: Any, windows: Rows, integrator: Any, noise: Noise, measured: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same states in one row, and their covariance for noise alone, to first order.

    States `x` and covariances `S (J' J)^-1 S'`, with the Jacobian `J` of the residuals in units of
    the noise, and `S = dx / d initial state`; not a number where windows do not tell the state.
    """
    units = _units(windows, noise, measured)
    initial = fit_initial_states(model, windows, integrator, units).x
    rollouts, none = SegmentRollouts(windows), np.zeros(0, int)
    every, last = np.arange(len(initial)), _last(windows)
    ends = rollouts.paths(model, initial, integrator)[every, last]
    grown = rollouts.changes(model, initial, integrator, none)[1][every, last]
    jacobians = path_jacobians(rollouts, model, initial, windows, integrator, units, none)[1]
    squares = np.swapaxes(jacobians, 1, 2) @ jacobians
    sound = np.all(np.isfinite(squares) & np.isfinite(grown), axis=(1, 2), keepdims=True)
    own = np.linalg.pinv(np.where(sound, squares, np.eye(squares.shape[1])), hermitian=True)
    return ends, np.where(sound, grown @ own @ np.swapaxes(grown, 1, 2), np.nan)


def _units(windows: Rows, noise: Noise, measured: np.ndarray) -> np.ndarray:
    singles = [_single(windows, i) for i in range(windows.t.shape[0])]
    units = np.stack([unit_of(_alone(counted(one)), noise) for one in singles])
    return np.where(np.concatenate([np.ones(len(measured), bool), measured]), units, np.inf)


def _last(windows: Rows) -> np.ndarray:
    return np.sum(np.asarray(windows.weight) > 0, axis=1) - 1


def fit_initial_states(model: Any, windows: Rows, integrator: Any, units: Any) -> Minimum:
    """The initial state of each window with the smallest residual; as measured if none is less."""
    rollouts, none = SegmentRollouts(windows), np.zeros(0, int)
    given = windows, integrator, units
    return minimize_each(
        lambda x: path_residuals(rollouts, model, x, *given),
        lambda x: path_jacobians(rollouts, model, x, *given, none)[1],
        np.concatenate([np.asarray(windows.z)[:, 0], np.asarray(windows.s)[:, 0]], axis=1),
        damping=_DAMPING,
        iterations=_ITERATIONS,
    )


def _single(rows: Rows, place: int) -> Rows:
    """One of several; by NumPy, as no program is to be compiled for every shape."""
    return jax.tree.map(lambda x: np.asarray(x)[place], rows)


def _alone(rows: Rows) -> Rows:
    return jax.tree.map(lambda x: np.asarray(x)[None], rows)


def estimate_state(
    model: Any,
    run: Trajectory,
    *,
    integrator: str = "rk4",
    parameters: Mapping[str, Any] | None = None,
    recorded: Sequence[str] | None = None,
) -> State:
    """The state at the end of a measured motion, free of most of its noise.

    The model is rolled out through about the last period, from the initial state that misses the
    measurements least. Recorded rates that are something else than the derivatives of their
    positions are not looked at.

    **Arguments:**

    - `model`: a trained model that gives rates, or a mechanism.
    - `run`: what was measured.
    - `integrator`: that is exact enough at its step.
    - `parameters`: of the run, if not the defaults.
    - `recorded`: the columns that were measured; rates that were estimated are not looked at. All
        of them if not given.

    **Returns:**

    A `State` that keeps the constraints, from which `simulate` can go on. As measured, if the run
    is too short to tell or the model does not follow it.
    """
    values = None if parameters is None else [parameters]
    return estimate_states(
        model, [run], integrator=integrator, parameters=values, recorded=recorded
    )[0]


def estimate_states(
    model: Any,
    runs: Sequence[Trajectory],
    *,
    integrator: str = "rk4",
    parameters: Sequence[Mapping[str, Any]] | None = None,
    recorded: Sequence[str] | None = None,
) -> list[State]:
    """The states at the ends of several measured motions, by one compiled program.

    **Arguments:**

    - `model`, `integrator`, `recorded`: as for `estimate_state`.
    - `runs`: what was measured.
    - `parameters`: of each run, if not the defaults.

    **Returns:**

    A `State` for each run.
    """
    values = [{}] * len(runs) if parameters is None else [dict(one) for one in parameters]
    if isinstance(model, AbstractMechanism):
        return end_states_of_mechanism(model, runs, values, recorded, integrator)
    data, _ = without_biased_rates(
        model, Dataset(list(runs), values, recorded=recorded), model.minimal
    )
    rows = [
        rows_of(model, model.minimal, Dataset(run, own), interpolation=model.interpolation)
        for run, own in zip(data.trajectories, values, strict=True)
    ]
    measured = recorded_rates(model, model.minimal, data)
    noise = estimate_noise(rows_of(model, model.minimal, data, accelerations=False))
    reached = _reached(model, rows, integrator, noise, measured)
    states = []
    for run, own, one, found in zip(runs, values, rows, reached, strict=True):
        z, s = found or (np.asarray(one.z_next)[-1], np.asarray(one.s_next)[-1])
        known = {}
        for place, i in enumerate(model.minimal):
            known[model.coordinate_names[i]] = float(z[place])
            known[model.rate_names[i]] = float(s[place])
        states.append(consistent_state(model, known, t=float(run.t[-1]), parameters=own))
    return states


def _reached(
    model: Any, rows: list[Rows], integrator: str, noise: Noise, measured: np.ndarray
) -> list[Any]:
    """Position and velocity at the end of each run; None where they cannot be told."""
    able = [i for i, one in enumerate(rows) if last_windows([one]) is not None]
    found: list[Any] = [None] * len(rows)
    if not able:
        return found
    windows = last_windows([rows[i] for i in able])
    assert windows is not None
    z, s = end_states(model, windows, get_integrator(integrator), noise, measured)
    for place, i in enumerate(able):
        if np.all(np.isfinite(z[place])) and np.all(np.isfinite(s[place])):
            found[i] = z[place], s[place]
    return found
