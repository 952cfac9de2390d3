"""Where a measured motion is now: the state that a model's own rollout through it ends in."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbdnode.integrators import get_integrator
from mbdnode.multibody import consistent_state
from mbdnode.training.closed_form.rows import Noise, Rows, estimate_noise, recorded_rates, rows_of
from mbdnode.training.closed_form.starts import end_states, last_windows
from mbdnode.trajectory import Dataset, State, Trajectory


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
    measurements least.

    **Arguments:**

    - `model`: a trained model that gives rates.
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
    data = Dataset(list(runs), values, recorded=recorded)
    rows = [
        rows_of(model, model.minimal, Dataset(run, own))
        for run, own in zip(runs, values, strict=True)
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
