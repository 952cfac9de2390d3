"""Where a measured motion is now: the state that a model's own rollout through it ends in."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mbdnode.integrators import get_integrator
from mbdnode.multibody import consistent_state
from mbdnode.training.closed_form.rows import estimate_noise, rows_of
from mbdnode.training.closed_form.starts import end_states, last_windows
from mbdnode.trajectory import Dataset, State, Trajectory


def estimate_state(
    model: Any,
    run: Trajectory,
    *,
    integrator: str = "rk4",
    parameters: Mapping[str, Any] | None = None,
) -> State:
    """The state at the end of a measured motion, free of most of its noise.

    The model is rolled out through about the last period, from the start that misses the
    measurements least.

    **Arguments:**

    - `model`: a trained model that gives rates.
    - `run`: what was measured.
    - `integrator`: that is exact enough at its step.
    - `parameters`: of the run, if not the defaults.

    **Returns:**

    A `State` that keeps the constraints, from which `simulate` can go on. As measured, if the run
    is too short to tell or the model does not follow it.
    """
    rows = rows_of(model, model.minimal, Dataset(run, parameters))
    z, s = np.asarray(rows.z_next)[-1], np.asarray(rows.s_next)[-1]
    window = last_windows([rows])
    if window is not None:
        reached = end_states(model, window, get_integrator(integrator), estimate_noise(rows))
        if all(np.all(np.isfinite(x)) for x in reached):
            z, s = reached[0][0], reached[1][0]
    names = [(model.coordinate_names[i], model.rate_names[i]) for i in model.minimal]
    known = {}
    for place, (name, rate) in enumerate(names):
        known[name], known[rate] = float(z[place]), float(s[place])
    return consistent_state(model, known, t=float(run.t[-1]), parameters=parameters)
