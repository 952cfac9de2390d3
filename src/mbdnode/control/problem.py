"""What a controller is to do: costs and limits; all checked before the first step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.control.checks import as_count, as_positive, as_vector, symmetric
from mbdnode.control.state_space import StateSpace, state_space
from mbdnode.errors import UserError, check_memory
from mbdnode.naming import by_name


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
    z_low, z_high = _bounds("z_bounds", limits.z_bounds, states)
    u_low, u_high = _bounds("u_bounds", limits.u_bounds, inputs)
    _check_inside("target", target, z_low, z_high, states)
    _check_inside("u_target", u_target, u_low, u_high, inputs)
    weight = _weight("Q", cost.Q, states, definite=False)
    if not np.any(weight):
        raise UserError("Q is zero, so no state is controlled. Give at least one of them a weight.")
    return ControlProblem(
        horizon=horizon,
        dt_s=dt_s,
        Q=weight,
        R=_weight("R", cost.R, inputs, definite=True),
        target=target,
        u_target=u_target,
        z_low=z_low,
        z_high=z_high,
        u_low=u_low,
        u_high=u_high,
        u_change=_rate(limits.u_rate, inputs) * dt_s,
        violation_cost=as_positive("violation_cost", limits.violation_cost),
    )


def _weight(name: str, given: Any, names: tuple[str, ...], *, definite: bool) -> np.ndarray:
    """A symmetric matrix; from a vector or by name its diagonal, the identity if None."""
    if given is None:
        return np.eye(len(names))
    given = by_name(given)
    if isinstance(given, Mapping) or np.ndim(given) == 1:
        given = np.diag(as_vector(f"The diagonal of {name}", given, names))
    return symmetric(name, given, len(names), definite=definite)


def _bounds(what: str, given: Any, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Min and max of each, infinite where nothing is said."""
    given = by_name({} if given is None else given)
    if isinstance(given, Mapping):
        pairs = {name: _pair(f"{what}[{name!r}]", pair) for name, pair in given.items()}
        sides = [{name: pair[side] for name, pair in pairs.items()} for side in (0, 1)]
    else:
        sides = _pair(what, given)
    low, high = (
        as_vector(f"One side of {what}", side, names, usual, one_for_all=True, finite=False)
        for side, usual in zip(sides, (-np.inf, np.inf), strict=True)
    )
    for name, lowest, highest in zip(names, low, high, strict=True):
        if np.isnan(lowest) or np.isnan(highest) or not lowest < highest:
            raise UserError(
                f"{what} leaves no room for {name}: it would have to be above {lowest:g} and below "
                f"{highest:g}. Give the min first."
            )
    return low, high


def _pair(what: str, given: Any) -> tuple[Any, Any]:
    try:
        low, high = given
        # None on a side is no bound there.
        return (-np.inf if low is None else low), (np.inf if high is None else high)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{what} is {given!r}; give the min and the max, such as (-1.0, 1.0)."
        ) from error


def _rate(given: Any, names: tuple[str, ...]) -> np.ndarray:
    """The most that each input may change in a second."""
    given = {} if given is None else given
    rate = as_vector("u_rate", given, names, np.inf, one_for_all=True, finite=False)
    if not np.all(rate > 0):
        raise UserError(
            f"u_rate is {given!r}; every input needs a limit above zero, in its unit per second."
        )
    return rate


def _check_inside(what: str, values: np.ndarray, low, high, names: tuple[str, ...]) -> None:
    for name, value, lowest, highest in zip(names, values, low, high, strict=True):
        if not lowest <= value <= highest:
            raise UserError(
                f"{what} has {name} = {value:g}, outside its own bounds {lowest:g} to {highest:g}: "
                "no plan could both go there and keep them. Move one of the two."
            )
