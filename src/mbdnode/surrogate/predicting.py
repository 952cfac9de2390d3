"""What a fitted model says of a start and inputs, and where it leaves what it has seen."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mbdnode.data.logs import read
from mbdnode.errors import UserError
from mbdnode.experiments.run import predict
from mbdnode.multibody import AbstractSystem, consistent_state
from mbdnode.simulation import simulate
from mbdnode.surrogate.completing import complete_runs
from mbdnode.surrogate.folder import StoredFit
from mbdnode.trajectory import Trajectory, check_steps


def predict_like(stored: StoredFit, log: str) -> tuple[Trajectory, Trajectory]:
    """The motion of a log as the model has it, from the log's first state, under its inputs.

    **Arguments:**

    - `stored`: the fit.
    - `log`: a file with the same columns as those it was fitted to, holding one run.

    **Returns:**

    The prediction, with `outside`, and the log's own trajectory.
    """
    model = _body_holder(stored)
    data, _ = complete_runs(model.body, read(log, **stored.config.columns))
    if len(data.trajectories) != 1:
        raise UserError(
            f"'{log}' holds {len(data.trajectories)} runs, and one can be predicted at a time. "
            "Give a log of one run."
        )
    truth = data.trajectories[0]
    found = predict(stored.model, truth, stored.config.integrator, data.parameters[0])
    return _marked(stored, found), truth


def predict_from(
    stored: StoredFit,
    initial: Mapping[str, float],
    inputs: str | None,
    *,
    steps: int | None,
    dt_s: float | None,
) -> Trajectory:
    """The motion from a start.

    **Arguments:**

    - `stored`: the fit.
    - `initial`: coordinates and velocities by name; what is left out follows from the constraints,
        or is zero.
    - `inputs`: a log of times and inputs; None for zero.
    - `steps`, `dt_s`: the times, where no inputs give them.

    **Returns:**

    The prediction, with `outside`.
    """
    model = _body_holder(stored)
    if not isinstance(model, AbstractSystem):
        raise UserError(
            f"{type(model).__name__} goes on from a recorded motion, not from any start. Use "
            "--like LOG."
        )
    if inputs is None:
        if steps is None or dt_s is None:
            raise UserError("Without --inputs, the times are not known: give --steps and --dt.")
        if steps < 1 or not (np.isfinite(dt_s) and dt_s > 0):
            raise UserError(f"--steps is {steps} and --dt is {dt_s}; both must be above zero.")
        check_steps(steps, 2 * len(model.coordinates) + len(model.inputs))
        t, u = dt_s * np.arange(steps + 1), None
    else:
        if steps is not None or dt_s is not None:
            raise UserError("--inputs gives the times, so leave --steps and --dt out.")
        t, u = _read_inputs(stored, model, inputs)
    state = consistent_state(model, initial, t=float(t[0]))
    integrator = stored.config.integrator
    run = simulate(stored.model, t, state, inputs=u, integrator=integrator)
    return _marked(stored, run)


def _read_inputs(stored: StoredFit, model: Any, path: str) -> tuple[np.ndarray, np.ndarray]:
    """The times and inputs of a log that need not have any states."""
    columns, names = stored.config.columns, model.input_names
    asked = columns.get("inputs") or []
    chosen = dict(asked) if isinstance(asked, Mapping) else {name: name for name in asked}
    if not chosen:
        raise UserError("The model has no inputs, so --inputs would change nothing. Leave it out.")
    # The first input plays the coordinate: reading needs one, and its rate is not used.
    first = next(iter(chosen))
    others = {name: column for name, column in chosen.items() if name != first}
    data = read(
        path,
        time=columns.get("time"),
        coordinates={first: chosen[first]},
        inputs=others or None,
        angles=[],
        gaps=columns.get("gaps", "refuse"),
    )
    if len(data.trajectories) != 1:
        raise UserError(f"'{path}' holds {len(data.trajectories)} runs; give one.")
    run = data.trajectories[0]
    rows = [np.asarray(run[name]) if name in chosen else np.zeros(len(run)) for name in names]
    return np.asarray(run.t), np.stack(rows, axis=1)


def _body_holder(stored: StoredFit) -> Any:
    """The model, or the first of an ensemble."""
    model = stored.model
    return model if hasattr(model, "body") else model[0]  # type: ignore[index]


def _marked(stored: StoredFit, run: Trajectory) -> Trajectory:
    return replace(run, outside=stored.domain.outside(run))
