"""Model predictive control: plan, take the first input, plan again."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.control.linearization import discretize, jacobians_at
from mbdnode.control.planners import AbstractPlanner, AlongPlan, AtTarget, Plan, Situation, waiting
from mbdnode.control.prediction import Forecaster
from mbdnode.control.program import Program
from mbdnode.control.riccati import riccati
from mbdnode.control.state_space import as_vector, state_space
from mbdnode.control.task import as_number, make_task, semidefinite
from mbdnode.decisions import Decision
from mbdnode.errors import UserError
from mbdnode.multibody import consistent_state
from mbdnode.naming import unknown_name
from mbdnode.trajectory import State

_MODES = ("once", "each")
# What a learned model may move by at its target, in displacements of one unit.
_STILL = 0.05


@dataclass(frozen=True)
class Control:
    """What a controller says for one step.

    **Arguments:**

    - `u`: the inputs to apply now.
    - `decision`: how they were found.
    - `plan_z`, `plan_u`: the states and inputs that it expects, now included.
    - `seconds`: what it took.
    """

    u: np.ndarray
    decision: Decision
    plan_z: np.ndarray
    plan_u: np.ndarray
    seconds: float


class MPC:
    """A model predictive controller on any mechanism or learned model.

    It plans `horizon` steps ahead with the least cost `sum (z - target)' Q (z - target) +
    (u - u_target)' R (u - u_target)`, applies the first input, and plans again. `z` is the minimal
    state: the independent coordinates, then their velocities (`controller.states`).

    A controller remembers its last plan, so it serves one loop at a time; `reset` makes it forget.

    **Arguments:**

    - `model`: a mechanism, a learned model, or an ensemble.
    - `horizon`: how many steps are planned.
    - `dt`: the length of a step, in seconds.
    - `Q`, `R`: weights: a matrix, a vector for its diagonal, or values by name; identity by
        default. `R` must be positive definite.
    - `target`: where to: a vector, values by name, or a `State`; zero, or where the mechanism is
        assembled, by default.
    - `u_target`: the inputs that hold it there, zero by default; also of those not actuated.
    - `actuated`: the inputs that the controller has, by name; all by default.
    - `z_bounds`: least and greatest states: a pair, or pairs by name. They are soft: left where
        there is no other way, which `Decision.SOFTENED` says.
    - `u_bounds`: least and greatest inputs, always kept.
    - `u_rate`: the most that the inputs may change in a second.
    - `terminal`: the cost at the end of the horizon: "riccati" for that of going on for ever, None
        for none (the paper), or a matrix.
    - `relinearize`: "once" plans with the linearisation at the target, which must be an equilibrium
        (the paper); "each" with one along the predicted motion, made anew at every step.
    - `iterations`: how often a plan is improved in a step, with "each". The first plan of all is
        improved until that changes nothing.
    - `load_gain`: between zero (off) and one: the part of each error of prediction that is taken
        as a lasting load on the inputs, and compensated from then on.
    - `violation_cost`: of leaving a bound on the states by one unit for one step.
    - `parameters`: of the model, if not the defaults.
    """

    def __init__(
        self,
        model: Any,
        *,
        horizon: Any,
        dt: Any,
        Q: Any = None,
        R: Any = None,
        target: Any = None,
        u_target: Any = None,
        actuated: Any = None,
        z_bounds: Any = None,
        u_bounds: Any = None,
        u_rate: Any = None,
        terminal: Any = "riccati",
        relinearize: str = "once",
        iterations: int = 1,
        load_gain: Any = 0.0,
        violation_cost: Any = 1e4,
        parameters: Mapping[str, Any] | None = None,
    ):
        self.space, z = state_space(
            model, target, parameters=parameters, actuated=actuated, held=u_target
        )
        self.states, self.inputs = self.space.names, self.space.input_names
        self._positions = np.asarray(self.space.partition.position.independent)
        self._velocities = np.asarray(self.space.partition.velocity.independent)
        _check_options(relinearize, iterations, load_gain)
        self.task = make_task(
            self.states,
            self.inputs,
            np.asarray(z),
            horizon=horizon,
            dt=dt,
            Q=Q,
            R=R,
            u_target=np.asarray(self.space.held)[np.array(self.space.actuated, int)],
            z_bounds=z_bounds,
            u_bounds=u_bounds,
            u_rate=u_rate,
            violation_cost=violation_cost,
        )
        self.relinearize, self.load_gain = relinearize, load_gain
        self.parameters = dict(parameters or {})
        A, B = _jacobians_at_target(self)
        _check_standing(self, terminal, A, B)
        A, B = (np.asarray(x) for x in discretize(A, B, self.task.dt_s))
        self.terminal = _terminal_weight(terminal, A, B, self)
        self._gain = _regulator(A, B, self.terminal, self.task.R)
        self._program = program = Program(self.task, self.terminal)
        self._forecaster = Forecaster(self.space, self.task, self.terminal)
        self._planner: AbstractPlanner
        if relinearize == "once":
            target, u_target = self.task.target, self.task.u_target
            self._planner = AtTarget(program, A, B, target, u_target, self.horizon)
        else:
            self._planner = AlongPlan(program, self._forecaster, B, self.horizon, iterations)
        self.reset()

    @property
    def dt(self) -> float:
        """The length of a step, in seconds."""
        return self.task.dt_s

    @property
    def horizon(self) -> int:
        """How many steps are planned."""
        return self.task.horizon

    def minimal(self, state: State) -> np.ndarray:
        """The entries of a whole state that `states` names."""
        q, v = np.asarray(state.q), np.asarray(state.v)
        return np.concatenate([q[self._positions], v[self._velocities]])

    def all_inputs(self, u: np.ndarray) -> np.ndarray:
        """Every input of the model: the actuated ones, and those that are held."""
        everything = np.array(self.space.held)
        everything[list(self.space.actuated)] = u
        return everything

    def reset(self, u: Any = None) -> None:
        """Forget the last plan, as at the start of a new loop.

        **Arguments:**

        - `u`: the input that is applied before the first decision; `u_target` by default.
        """
        self.last_input = self.task.u_target if u is None else as_vector("u", u, self.inputs)
        _check_reach(self)
        self.load = np.zeros(len(self.inputs))
        self._plan: Plan | None = None
        self._expected: np.ndarray | None = None
        self._near: np.ndarray | None = None
        self._program.forget()
        self._planner.forget()

    def __call__(
        self,
        z: Any,
        t: float = 0.0,
        *,
        reference: np.ndarray | None = None,
        pending: Sequence[np.ndarray] = (),
        near: Any = None,
    ) -> Control:
        """Decide on the inputs for the next step.

        **Arguments:**

        - `z`: the measured state: a vector in the order of `states`, or a `State`.
        - `t`: the time.
        - `reference`: where to be, a row for each of the next `horizon` steps; the target by
            default.
        - `pending`: inputs that are already on their way, and will act before this one does.
        - `near`: all coordinates, near which the constraints are closed; for a vector `z`.

        **Returns:**

        A `Control`. It never raises for what the state or the solver does: when there is no new
        plan, the last one is carried on.
        """
        began = time.perf_counter()
        reference = self._reference(reference)
        z = self._measured(z, float(t), near)
        self._observe(z)
        self._expected = None
        t, z = self._after(float(t), z, pending)
        hold = self.task.limited(self.task.u_target, self.last_input)
        decision, plan = Decision.UNMEASURED, None
        if np.all(np.isfinite(z)):
            decision, plan = self._planner.plan(
                Situation(
                    t,
                    z,
                    np.asarray(self.space.home if self._near is None else self._near),
                    self.last_input,
                    reference,
                    self._u_reference(),
                    self.load,
                    self._plan,
                    hold,
                )
            )
        if plan is not None:
            self._plan = plan
        elif self._plan is not None:
            self._plan = plan = self._plan.shifted(z)
        else:
            plan = waiting(z, self._without_plan(z), self.horizon)
        # Round-off of an interior point is no reason to pass a limit.
        self.last_input = u = self.task.limited(plan.u[0], self.last_input)
        if plan.q is not None:
            self._near = plan.q[min(1, self.horizon - 1)]
        if self._expected is None:
            self._expected = plan.z[1]
        return Control(u, decision, plan.z, plan.u, time.perf_counter() - began)

    def _without_plan(self, z: np.ndarray) -> np.ndarray:
        """The input where there has been no plan yet: the regulator's, or the target's."""
        away = z - self.task.target
        return self.task.u_target - (self._gain @ away if np.all(np.isfinite(away)) else 0.0)

    def _measured(self, z: Any, t: float, near: Any) -> np.ndarray:
        """The minimal state; a configuration near it is remembered."""
        if isinstance(z, State):
            count = len(self.space.system.coordinates)
            if np.shape(z.q) != (count,) or np.shape(z.v) != (count,):
                raise UserError(
                    f"The state has shapes {np.shape(z.q)} and {np.shape(z.v)}; the model has "
                    f"{count} coordinates."
                )
            near, z = z.q, self.minimal(z)
        else:
            z = self._as_minimal(z)
        if near is not None and np.all(np.isfinite(np.asarray(near))):
            self._near = np.asarray(near)
        elif self._near is None and np.all(np.isfinite(z)):
            known = dict(zip(self.states, map(float, z), strict=True))
            system, parameters = self.space.system, self.parameters
            # A measurement need not be a place that the mechanism can be in.
            with contextlib.suppress(UserError):
                state = consistent_state(system, known, t=t, parameters=parameters)
                self._near = np.asarray(state.q)
        return z

    def _as_minimal(self, z: Any) -> np.ndarray:
        try:
            vector = np.asarray(z, float)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"The state is {z!r}; give a State, or the numbers {', '.join(self.states)}."
            ) from error
        if vector.shape != (len(self.states),):
            raise UserError(
                f"The state has shape {vector.shape}; give {len(self.states)} number(s): "
                f"{', '.join(self.states)}."
            )
        return vector

    def _after(self, t: float, z: np.ndarray, pending: Sequence[np.ndarray]):
        """When, and where, the inputs that are on their way will have brought the state."""
        near = self.space.home if self._near is None else self._near
        for u in pending:
            if np.shape(u) != (len(self.inputs),):
                raise UserError(
                    f"An input in `pending` has shape {np.shape(u)}; give {len(self.inputs)} "
                    f"number(s): {', '.join(self.inputs)}."
                )
            step, near = self._forecaster.advance(t, z, np.asarray(u) + self.load, near)
            z, t = np.asarray(step), t + self.dt
            self._near = np.asarray(near)
            self._expected = z if self._expected is None else self._expected
        return t, z

    def _observe(self, z: np.ndarray) -> None:
        """Take a part of the last error of prediction as a lasting load on the inputs."""
        if self.load_gain and self._expected is not None:
            error = z - self._expected
            if np.all(np.isfinite(error)):
                found = np.linalg.pinv(self._planner.input_map[0]) @ error
                self.load = self.load + self.load_gain * found

    def _u_reference(self) -> np.ndarray:
        """The inputs that cost nothing: the target's, less what acts besides them."""
        wanted = np.clip(self.task.u_target - self.load, self.task.u_low, self.task.u_high)
        return np.repeat(wanted[None], self.task.horizon, axis=0)

    def _reference(self, given: Any) -> np.ndarray:
        count = self.task.horizon
        if given is None:
            return np.repeat(self.task.target[None], count, axis=0)
        rows = np.asarray(given, float)
        if rows.shape != (count, len(self.states)) or not np.all(np.isfinite(rows)):
            raise UserError(
                f"The reference has shape {rows.shape}; it must have {count} finite rows, one for "
                f"each step of the horizon, and the columns {', '.join(self.states)}."
            )
        return rows


def _moving(controller: MPC, A: np.ndarray, B: np.ndarray) -> str | None:
    """What changes at the target, as a sentence; None where the model stands still.

    A learned model never stands quite still. It does well enough where its rate is less than a
    displacement or an input of a twentieth of a unit would make.
    """
    space, task = controller.space, controller.task
    z, u = jnp.asarray(task.target), jnp.asarray(task.u_target)
    rate = np.asarray(space.rate(jnp.zeros(()), z, u, space.home)[0])
    allowed = _STILL * np.linalg.norm(np.concatenate([A, B], axis=1), axis=1)
    allowed[: space.positions] = 1e-9
    found = np.flatnonzero(~(np.abs(rate) <= allowed))
    if not found.size:
        return None
    return (
        f"The target moves: {controller.states[found[0]]} changes by {rate[found[0]]:.3g} a second"
    )


def _check_standing(controller: MPC, terminal: Any, A: np.ndarray, B: np.ndarray) -> None:
    """One linearisation, and the cost of going on for ever, are for where nothing moves."""
    moves = _moving(controller, A, B)
    if moves and controller.relinearize == "once":
        raise UserError(
            f"{moves} there. One linearisation is only good where the model stands still: choose "
            "an equilibrium and its u_target, or use relinearize='each'."
        )
    if moves and isinstance(terminal, str):
        raise UserError(
            f"{moves} there, so it has no cost of staying for ever. Give terminal=None, or a "
            "matrix of your own."
        )


def _jacobians_at_target(controller: MPC) -> tuple[np.ndarray, np.ndarray]:
    task = controller.task
    A, B = jacobians_at(controller.space, 0.0, task.target, task.u_target)
    if not (bool(jnp.all(jnp.isfinite(A))) and bool(jnp.all(jnp.isfinite(B)))):
        raise UserError("The model's Jacobian at the target is not finite. Move the target.")
    return np.asarray(A), np.asarray(B)


def _terminal_weight(given: Any, A: np.ndarray, B: np.ndarray, controller: MPC) -> np.ndarray:
    if given is None:
        return np.zeros_like(A)
    if not isinstance(given, str):
        return semidefinite("terminal", given, A.shape[0])
    if given != "riccati":
        raise unknown_name("terminal cost", given, ("riccati",))
    return riccati(A, B, controller.task.Q, controller.task.R)


def _regulator(A: np.ndarray, B: np.ndarray, P: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The gain that is best one step before the end; nought without a terminal cost."""
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)


def _check_reach(controller: MPC) -> None:
    """With a limit on the change, the inputs before the first step must leave a way."""
    task = controller.task
    low, high = task.u_low - task.u_change, task.u_high + task.u_change
    ranges = zip(controller.inputs, controller.last_input, low, high, strict=True)
    for name, u, least, most in ranges:
        if not least <= u <= most:
            raise UserError(
                f"No input is feasible in the first step: {name} is {u:g} before it and may "
                f"change too little to come within its bounds. Start from u between {least:g} "
                f"and {most:g}, or widen u_rate."
            )


def _check_options(relinearize: Any, iterations: Any, load_gain: Any) -> None:
    if relinearize not in _MODES:
        raise unknown_name("relinearize", str(relinearize), _MODES)
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise UserError(f"iterations is {iterations!r}; it must be a whole number of at least 1.")
    if iterations > 1 and relinearize == "once":
        raise UserError(
            f"iterations is {iterations}, but one linearisation leaves nothing to improve. Leave "
            "it out, or use relinearize='each'."
        )
    if not 0 <= as_number("load_gain", load_gain) <= 1:
        raise UserError(f"load_gain is {load_gain}; it must be between 0 and 1.")
