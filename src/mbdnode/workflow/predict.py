"""What a fitted model predicts, and where that is outside its training data.

`predict_like` is the work of `mbdnode predict`, `predict_from` that of `mbdnode simulate` with a
fit.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.config import as_path
from mbdnode.data.logs import Columns, as_columns, find_files, read
from mbdnode.errors import UserError
from mbdnode.evaluation import HeldOut, Scores, predict, score
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractSystem,
    consistent_state,
    resolve_parameters,
)
from mbdnode.simulation import simulate
from mbdnode.trajectory import Trajectory
from mbdnode.workflow.driven_motion import times_and_inputs
from mbdnode.workflow.folder import StoredFit, read_folder
from mbdnode.workflow.systems import first_member, used_parameters
from mbdnode.workflow.unrecorded_coordinates import complete_runs


def predict_like(
    fit: StoredFit | str | Path,
    log: str | Path,
    *,
    inputs: str | Path | None = None,
    parameters: Mapping[str, float] | None = None,
) -> tuple[Trajectory, Scores]:
    """The motion of a log as the model predicts it, from the log's first state, under its inputs.

    **Arguments:**

    - `fit`: the folder of a fit, or what `read_folder` makes of it.
    - `log`: a file with the same columns as those it was fitted to, holding one run.
    - `inputs`: the file of its inputs, if those have their own files; None for the one of the fit
        that has the log's name.
    - `parameters`: by name, in place of the log's.

    **Returns:**

    The prediction, with `outside`, and how far it is from what was recorded. How well the model
    predicts other runs is the `verdict` of the `StoredFit`.
    """
    stored, log = _opened(fit), str(log)
    model = first_member(stored.model)
    _check_parameters(model, parameters or {})
    columns = as_columns(stored.config.columns, _input_files(stored.config.columns, log, inputs))
    data, _ = complete_runs(model.body, read(log, columns))
    if len(data.trajectories) != 1:
        raise UserError(
            f"'{log}' holds {len(data.trajectories)} runs, and one can be predicted at a time. "
            "Give a log of one run."
        )
    truth = data.trajectories[0]
    values = {**data.parameters[0], **(parameters or {})}
    given = (stored.model, truth, stored.config.integrator, values)
    found = _marked(stored, predict(*given, check_step=True))
    recorded = truth.columns if data.recorded is None else data.recorded
    run = HeldOut(log, truth, found, np.asarray(found.outside), recorded, stored.biased)
    return found, score([run], model.coordinates)


def _input_files(columns: Columns, log: str, inputs: str | Path | None) -> dict[str, Any]:
    """Of all files of inputs, the one that goes with a log."""
    if not columns.input_files:
        if inputs is not None:
            raise UserError("The log has its inputs in itself. Leave inputs (--inputs) out.")
        return {}
    if inputs is not None:
        return {"input_files": str(inputs)}
    files = find_files(columns.input_files)
    same = [file for file in files if file.stem == Path(log).stem]
    if len(files) > 1 and len(same) != 1:
        raise UserError(
            f"The fit has {len(files)} files of inputs, and {len(same)} of them are called like "
            f"'{log}'. Say which one goes with it by inputs (--inputs)."
        )
    return {"input_files": str((same if len(files) > 1 else files)[0])}


def predict_from(
    fit: StoredFit | str | Path,
    initial: Mapping[str, float],
    inputs: str | Path | None = None,
    *,
    steps: int | None = None,
    dt_s: float | None = None,
    parameters: Mapping[str, float] | None = None,
    integrator: str | None = None,
) -> Trajectory:
    """The motion from an initial state.

    **Arguments:**

    - `fit`: the folder of a fit, or what `read_folder` makes of it.
    - `initial`: coordinates and velocities by name; what is left out follows from the constraints,
        or is zero.
    - `inputs`: a log of times and inputs, read as those of the fit were; None for zero.
    - `steps`, `dt_s`: the times, where no inputs give them.
    - `parameters`: by name; those of the fit's roles, or the defaults, for the rest.
    - `integrator`: in place of the fit's.

    **Returns:**

    The prediction, with `outside`. How well the model predicts is the `verdict` of the `StoredFit`.
    """
    stored = _opened(fit)
    model = first_member(stored.model)
    if not isinstance(model, AbstractSystem):
        raise UserError(
            f"{type(model).__name__} goes on from a recorded motion, not from an initial state "
            "alone. Use predict_like (mbdnode predict --like LOG)."
        )
    _check_parameters(model, parameters or {})
    given = stored.config.columns, inputs
    t, u, values = times_and_inputs(model, *given, steps=steps, dt_s=dt_s)
    if inputs is None:
        values = stored.config.given_parameters
    values = {**values, **(parameters or {})}
    state = consistent_state(model, initial, t=float(t[0]), parameters=values)
    # Of one learned motion no parameter can be chosen, and simulate refuses it.
    used = parameters if isinstance(model, AbstractForecaster) else values
    how = integrator or stored.config.integrator
    run = simulate(stored.model, t, state, inputs=u, integrator=how, parameters=used)
    return _marked(stored, run)


def _opened(fit: StoredFit | str | Path) -> StoredFit:
    return fit if isinstance(fit, StoredFit) else read_folder(as_path(fit))


def _check_parameters(model: Any, given: Mapping[str, float]) -> None:
    """Raise `UserError` for a parameter that would change nothing."""
    if not given:
        return
    used = used_parameters(model)
    resolve_parameters(model, given)
    for name in given:
        if name not in used:
            raise UserError(
                f"{name}={given[name]:g} would change nothing: the model "
                f"was trained at one value of {name!r}, and its motion does not depend on it. It "
                f"depends on: {', '.join(used) or 'no parameter'}."
            )


def _marked(stored: StoredFit, run: Trajectory) -> Trajectory:
    return replace(run, outside=stored.domain.outside(run))
