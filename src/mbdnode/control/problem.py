"""What a controller is to do: costs and limits; all checked before the first step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.control.checks import (
    as_bounds,
    as_count,
    as_positive,
    as_rate,
    as_weight,
    check_inside,
)
from mbdnode.control.state_space import StateSpace, state_space
from mbdnode.errors import UserError, check_memory


@dataclass(frozen=True)
class QuadraticCost:
    """What a controller minimizes: how far from where, and with how much effort.

    Over the horizon, `sum (z - target)' Q (z - target) + (u - u_target)' R (u - u_target)`, and at
    its end the terminal cost.

    **Arguments:**

    - `Q`, `R`: weights: a matrix, a vector for its diagonal, or values by name; identity by
        default. `R` must be positive definite.
    - `target`: where to: a vector, values by name, or a `State`; zero, or where the mechanism is
        assembled, by default.
    - `u_target`: the inputs that hold it there, zero by default; also of those not actuated.
    - `terminal`: the cost at the end of the horizon: "riccati" for the infinite-horizon
        cost-to-go, None for none (the paper), or a matrix.
    """

    Q: Any = None
    R: Any = None
    target: Any = None
    u_target: Any = None
    terminal: Any = "riccati"


@dataclass(frozen=True)
class Limits:
    """What a controller keeps to.

    **Arguments:**

    - `z_bounds`: min and max of the states: a pair, or pairs by name. They are soft: left where
        there is no other way, which `Decision.SOFTENED` says.
    - `u_bounds`: min and max of the inputs, always kept.
    - `u_rate`: the most that the inputs may change in a second, always kept.
    - `violation_cost`: of leaving a bound on the states by one unit for one step.
    """

    z_bounds: Any = None
    u_bounds: Any = None
    u_rate: Any = None
    violation_cost: Any = 1e4


@dataclass(frozen=True)
class ControlProblem:
    """Horizon, `QuadraticCost` and `Limits` as checked arrays: all of a program but the model.

    Bounds are infinite where there is none. `u_change` is the most that an input may change from
    one step to the next.
    """

    horizon: int
    dt_s: float
    Q: np.ndarray
    R: np.ndarray
    target: np.ndarray
    u_target: np.ndarray
    z_low: np.ndarray
    z_high: np.ndarray
    u_low: np.ndarray
    u_high: np.ndarray
    u_change: np.ndarray
    violation_cost: float

    def limited(self, u: np.ndarray, previous: np.ndarray) -> np.ndarray:
        """The nearest input that bounds and limits allow after another."""
        low = np.maximum(self.u_low, previous - self.u_change)
        high = np.minimum(self.u_high, previous + self.u_change)
        return np.clip(u, low, high)

    def check_reach(self, names: tuple[str, ...], u: np.ndarray) -> None:
        """Raise `UserError` if limits on the change leave no input after `u`, by name."""
        low, high = self.u_low - self.u_change, self.u_high + self.u_change
        for name, value, lowest, highest in zip(names, u, low, high, strict=True):
            if not lowest <= value <= highest:
                raise UserError(
                    f"No input is feasible in the first step: {name} is {value:g} before it and "
                    "may change too little to come within its bounds. Start from u between "
                    f"{lowest:g} and {highest:g}, or widen u_rate."
                )


def problem_for(
    model: Any, cost: QuadraticCost, limits: Limits, actuated: Any, parameters: Any, **steps: Any
) -> tuple[StateSpace, ControlProblem]:
    """A model in minimal form at the cost's target, and what is to be done with it there.

    `steps` are the horizon and the length of a step, as `make_problem` takes them.
    """
    space, z = state_space(
        model, cost.target, parameters=parameters, actuated=actuated, held=cost.u_target
    )
    u, names = space.actuated_of(space.held), (space.names, space.input_names)
    return space, make_problem(*names, np.asarray(z), u, cost=cost, limits=limits, **steps)


def make_problem(
    states: tuple[str, ...],
    inputs: tuple[str, ...],
    target: np.ndarray,
    u_target: np.ndarray,
    *,
    horizon: Any,
    dt: Any,
    cost: QuadraticCost,
    limits: Limits,
) -> ControlProblem:
    """Check and complete what the user gave; `target` and `u_target` are the cost's, in order."""
    if not inputs:
        raise UserError("The model has no inputs, so there is nothing to control it with.")
    horizon, dt_s = as_count("The horizon", horizon), as_positive("dt", dt)
    # The blocks of A, B and the weights of every step, in the program and in its solver.
    needed_bytes = 8 * 8 * horizon * (len(states) + len(inputs)) ** 2
    check_memory(needed_bytes, f"A horizon of {horizon:,} steps", "Plan fewer steps ahead.")
    z_low, z_high = as_bounds("z_bounds", limits.z_bounds, states)
    u_low, u_high = as_bounds("u_bounds", limits.u_bounds, inputs)
    check_inside("target", target, z_low, z_high, states)
    check_inside("u_target", u_target, u_low, u_high, inputs)
    weight = as_weight("Q", cost.Q, states, definite=False)
    if not np.any(weight):
        raise UserError("Q is zero, so no state is controlled. Give at least one of them a weight.")
    return ControlProblem(
        horizon=horizon,
        dt_s=dt_s,
        Q=weight,
        R=as_weight("R", cost.R, inputs, definite=True),
        target=target,
        u_target=u_target,
        z_low=z_low,
        z_high=z_high,
        u_low=u_low,
        u_high=u_high,
        u_change=as_rate(limits.u_rate, inputs) * dt_s,
        violation_cost=as_positive("violation_cost", limits.violation_cost),
    )
