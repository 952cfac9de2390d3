"""A control task as data: from where to where, with which controller, against what."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mbdnode.control import MPC, QuadraticCost, closed_loop, jacobian_error, loop_difference
from mbdnode.multibody import AbstractMechanism
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class ControlTask:
    """What a controller is to do with a mechanism, whichever model it plans with.

    **Arguments:**

    - `name`, `title`: for files and for people.
    - `initial`: the start, by name.
    - `steps`: how many of the controller's.
    - `settings`: arguments of `MPC`, but its cost.
    - `cost`: weights, target and terminal cost.
    - `disturbance`: of the plant's inputs, over time; None for none.
    - `tolerance`: of every controlled state, for having settled.
    - `figure`: the label of the figure that shows it.
    """

    name: str
    title: str
    initial: Mapping[str, float]
    steps: int
    settings: Mapping[str, Any]
    cost: QuadraticCost = field(default_factory=QuadraticCost)
    disturbance: Callable[[float], Mapping[str, float]] | None = None
    tolerance: float = 1e-3
    figure: str = ""

    @property
    def setting(self) -> str:
        """Horizon, step and terminal cost of the controller, in words."""
        horizon, dt = self.settings["horizon"], self.settings["dt"]
        terminal = "none" if self.cost.terminal is None else "a given matrix"
        if isinstance(self.cost.terminal, str):
            terminal = "the infinite-horizon cost-to-go (Riccati)"
        return f"{horizon} steps of {dt:g} s; terminal cost: {terminal}"

    def controller(self, model: Any, **changes: Any) -> MPC:
        """The controller, planning with a model; `changes` are of the task's own settings."""
        terminal = changes.pop("terminal", self.cost.terminal)
        cost = replace(self.cost, terminal=terminal)
        return MPC(model, cost=cost, **{**self.settings, **changes})

    def run(
        self,
        plant: AbstractMechanism,
        controller: MPC,
        *,
        steps: int | None = None,
        report: Callable[[int, int], None] | None = None,
    ) -> Trajectory:
        """The plant under a controller, from the task's start."""
        return closed_loop(
            plant=plant,
            controller=controller,
            initial=self.initial,
            steps=self.steps if steps is None else steps,
            disturbance=self.disturbance,
            report=report,
        )


def compare_with_truth(
    task: ControlTask, plant: AbstractMechanism, model: Any, truth: Trajectory, found: Trajectory
) -> dict[str, Any]:
    """What control with a learned model is worth beside control with the mechanism itself.

    For metrics.json: relative errors of `A` and `B` at the target, the largest difference between
    the loops as a part of each column's range, when each settled, the median time of a decision.
    """
    error = jacobian_error(model, plant, task.cost.target, task.cost.u_target)
    assert truth.decisions is not None
    assert found.decisions is not None
    return {
        "jacobian_error_A": error.A,
        "jacobian_error_B": error.B,
        "largest_difference": loop_difference(found, truth),
        "settled_s": found.decisions.settled_at(task.tolerance),
        "settled_with_truth_s": truth.decisions.settled_at(task.tolerance),
        "fallbacks": found.decisions.fallbacks,
        "decision_seconds": float(np.nanmedian(found.decisions.seconds[:-1])),
    }


def control_sentence(who: str, compared: Mapping[str, Any]) -> str:
    """What `compare_with_truth` found, as the report says it."""
    parts = [part for part in compared["largest_difference"].values() if part is not None]
    apart = "the loops cannot be compared to their end"
    if len(parts) == len(compared["largest_difference"]):
        apart = f"at most {100 * max(parts, default=0.0):.2g} % of the range from the truth's loop"
    ended = "did not settle"
    if compared["settled_s"] is not None:
        ended = f"settled after {compared['settled_s']:.4g} s"
    exact = compared["settled_with_truth_s"]
    ended += "" if exact is None else f" (with the equations of motion after {exact:.4g} s)"
    return (
        f"{who}: relative error of A {compared['jacobian_error_A']:.1e}, of B "
        f"{compared['jacobian_error_B']:.1e}; {apart}; {ended}."
    )
