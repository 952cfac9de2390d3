"""When a motion from an initial state is computed, and what drives it."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from mbdnode.data.logs import Columns
from mbdnode.data.logs.reading import read_inputs
from mbdnode.errors import UserError, check_trajectory_size
from mbdnode.multibody import AbstractSystem


def times_and_inputs(
    system: AbstractSystem,
    columns: Columns,
    inputs: str | Path | None,
    *,
    steps: int | None,
    dt_s: float | None,
) -> tuple[np.ndarray, np.ndarray | None, dict[str, float]]:
    """The times of a motion, its inputs and parameters, by a log of inputs or by a number of steps.

    Without such a log there are no parameters, and the inputs are None.
    """
    if inputs is not None:
        if not system.inputs:
            raise UserError(
                "The model has no inputs, so inputs (--inputs) would change nothing. Leave it out."
            )
        if not columns.inputs:
            columns = replace(columns, inputs=system.input_names)
        log = read_inputs(str(inputs), columns, dt_s=dt_s, steps=steps)
        zero = np.zeros(len(log.t))
        u = np.stack([log.u.get(name, zero) for name in system.input_names], axis=1)
        return log.t, u, dict(log.parameters)
    if steps is None or dt_s is None:
        raise UserError(
            "Without inputs (--inputs), the times are not known: give steps (--steps) and dt_s "
            "(--dt)."
        )
    if steps < 1 or not (np.isfinite(dt_s) and dt_s > 0):
        raise UserError(
            f"steps (--steps) is {steps} and dt_s (--dt) is {dt_s}; both must be above zero."
        )
    check_trajectory_size(steps, 2 * len(system.coordinates) + len(system.inputs))
    return dt_s * np.arange(steps + 1), None, {}
