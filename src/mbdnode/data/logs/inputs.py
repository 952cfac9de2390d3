"""Inputs that were sampled at times of their own, brought to those of the states."""

from dataclasses import dataclass, replace

import numpy as np

from mbdnode.data.logs.layout import lay_out, runs_of
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.roles import Roles
from mbdnode.data.logs.summary import counted
from mbdnode.errors import UserError


@dataclass(frozen=True)
class Signal:
    """Inputs with their own times.

    **Arguments:**

    - `t`: increasing, in seconds.
    - `values`: `(n, inputs)` in SI.
    - `names`: of the inputs, without units.
    """

    t: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]


def signal_of(log: AbstractLog, roles: Roles, time: str) -> dict[str | None, Signal]:
    """The inputs of a log with their own times, by run.

    **Arguments:**

    - `log`: which holds them.
    - `roles`: names them, and the column that tells runs apart, if the log has it.
    - `time`: the column of their times.

    **Returns:**

    A signal for each run; under None if there is one only. Rows without a value are left out.
    """
    own = replace(roles, time=time, coordinates=(), rates=(), parameters=())
    signals: dict[str | None, Signal] = {}
    layout = lay_out(log, own)
    names = tuple(
        found.plain(name, column)
        for (name, column), found in zip(roles.inputs, layout.inputs, strict=True)
    )
    for run in runs_of(layout):
        whole = np.column_stack([run.t, run.table])
        whole = whole[np.all(np.isfinite(whole), axis=1)]
        steps = np.diff(whole[:, 0])
        if len(whole) == 0 or np.any(steps < 0):
            why = "no values" if len(whole) == 0 else "times that go back"
            raise UserError(f"The inputs of {run.place} have {why}. Fix them.")
        whole = whole[np.concatenate([[True], steps > 0])]
        signals[run.label] = Signal(whole[:, 0], whole[:, 1:], names)
        left_out = len(run.t) - len(whole)
        log.note(
            "inputs",
            f"{counted(len(whole), 'sample')} of {', '.join(names)}, every "
            f"{float(np.median(np.diff(whole[:, 0]))) if len(whole) > 1 else 0:.4g} s"
            + (
                f"; {left_out:,} without a value or of a repeated time left out" if left_out else ""
            ),
        )
    return signals


def at_times(signal: Signal, t: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    """The inputs at the states' times.

    **Arguments:**

    - `signal`: the inputs.
    - `t`: the states' times.
    - `how`: "held" for the last value at or before a time, "linear" for one between neighbours.

    **Returns:**

    The values, and whether the signal covers each time. It covers one step after its last sample
    if it is held, and none if not.
    """
    usual = float(np.median(np.diff(signal.t))) if len(signal.t) > 1 else 0.0
    end = signal.t[-1] + (usual if how == "held" else 0.0)
    covered = (t >= signal.t[0]) & (t <= end)
    if how == "held":
        last = np.clip(np.searchsorted(signal.t, t, side="right") - 1, 0, len(signal.t) - 1)
        return signal.values[last], covered
    columns = [np.interp(t, signal.t, column) for column in signal.values.T]
    return np.column_stack(columns), covered
