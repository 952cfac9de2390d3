"""A rollout summed up: how far it came, how well it kept its constraints and its energy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.evaluation import energy_drift
from mbdnode.models import AbstractRateModel
from mbdnode.multibody import AbstractMechanism, constraint_counts, resolve_parameters
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class RolloutSummary:
    """The figures of one rollout, up to its last good state.

    **Arguments:**

    - `rows`: how many states there are.
    - `start_s`, `end_s`: the first time and the last.
    - `degrees_of_freedom`: coordinates less constraints.
    - `position_residual`, `velocity_residual`: the largest; None without constraints.
    - `energy_drift_j`: the largest distance from the energy at the start; None where energy is
        not constant by nature.
    """

    rows: int
    start_s: float
    end_s: float
    degrees_of_freedom: int
    position_residual: float | None
    velocity_residual: float | None
    energy_drift_j: float | None

    def lines(self) -> list[tuple[str, str]]:
        """Labels and values to print, without those that there are not."""
        lines = [("time", f"{self.start_s:g} to {self.end_s:g} s")]
        for label, value, unit in (
            ("position residual", self.position_residual, ""),
            ("velocity residual", self.velocity_residual, ""),
            ("energy drift", self.energy_drift_j, " J"),
        ):
            if value is not None:
                lines.append((label, f"{value:.1e}{unit} at most"))
        return lines


def summarize(
    mechanism: AbstractMechanism | AbstractRateModel,
    trajectory: Trajectory,
    parameters: Mapping[str, Any] | None = None,
) -> RolloutSummary:
    """Sum up a rollout.

    **Arguments:**

    - `mechanism`: what moved, or the model of it.
    - `trajectory`: how.
    - `parameters`: those of the rollout, if not the defaults.

    **Returns:**

    A `RolloutSummary`.
    """
    kept = trajectory.kept
    holonomic, nonholonomic = constraint_counts(
        mechanism, resolve_parameters(mechanism, parameters)
    )
    # By NumPy: JAX would compile each of these for every length.
    times, *residuals = map(np.asarray, (kept.t, kept.position_residual, kept.velocity_residual))
    position = float(np.max(residuals[0])) if holonomic else None
    velocity = float(np.max(residuals[1])) if holonomic + nonholonomic else None
    return RolloutSummary(
        rows=len(kept),
        start_s=float(times[0]),
        end_s=float(times[-1]),
        degrees_of_freedom=len(mechanism.coordinates) - holonomic - nonholonomic,
        position_residual=position,
        velocity_residual=velocity,
        energy_drift_j=energy_drift(mechanism, kept, parameters),
    )
