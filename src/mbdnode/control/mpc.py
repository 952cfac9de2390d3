"""Model predictive control: plan, take the first input, plan again."""

import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.control.checks import as_count, as_number, as_rows, as_vector, check_kind, real_rows
from mbdnode.control.decisions import Decision
from mbdnode.control.linearization import discretize, jacobians_at
from mbdnode.control.planning import (
    AbstractPlanner,
    AlongPlan,
    AtTarget,
    MotionPlan,
    Predictor,
    Situation,
    waiting,
)
from mbdnode.control.problem import ControlProblem, Limits, QuadraticCost, problem_for
from mbdnode.control.quadratic_program import QuadraticProgram
from mbdnode.control.state_space import StateSpace
from mbdnode.control.terminal_cost import check_equilibrium, regulator_gain, terminal_weight
from mbdnode.errors import UserError
from mbdnode.multibody import consistent_state
from mbdnode.naming import unknown_name
from mbdnode.trajectory import State, Trajectory

_MODES = ("once", "each")
_USUAL_COST, _NO_LIMITS = QuadraticCost(), Limits()


@dataclass(frozen=True)
class Control:
    """What a controller decides for one step.

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

    It plans `horizon` steps ahead with minimum cost, applies the first input, and plans again. `z`
    is the minimal state: the independent coordinates, then their velocities (`controller.states`).

    A controller remembers its last plan, so it serves one loop at a time; `reset` makes it forget.

    **Arguments:**

    - `model`: a mechanism, a learned model, or an ensemble.
    - `horizon`: how many steps are planned.
    - `dt`: the length of a step, in seconds.
    - `cost`: a `QuadraticCost`: weights, target and terminal cost.
    - `limits`: `Limits`: bounds on states and inputs, and on the inputs' rate.
    - `actuated`: the inputs that the controller has, by name; all by default.
    - `relinearize`: "once" plans with the linearization at the target, which must be an equilibrium
        (the paper); "each" with one along the predicted motion, made anew at every step.
    - `iterations`: how often a plan is improved in a step, with "each". The first plan of all is
        improved until that changes nothing.
    - `observer_gain`: the disturbance-observer gain, between zero (off) and one: the part of each
        prediction error that is taken as a lasting disturbance of the inputs, and compensated from
        then on.
    - `parameters`: of the model, if not the defaults.
    """

    def __init__(
        self,
        model: Any,
        *,
        horizon: Any,
        dt: Any,
        cost: Any = _USUAL_COST,
        limits: Any = _NO_LIMITS,
        actuated: Any = None,
        relinearize: str = "once",
        iterations: int = 1,
        observer_gain: Any = 0.0,
        parameters: Any = None,
    ):
        check_kind("cost", cost, QuadraticCost)
        check_kind("limits", limits, Limits)
        _check_options(relinearize, iterations, observer_gain)
        self.space, self.problem = problem_for(
            model, cost, limits, actuated, parameters, horizon=horizon, dt=dt
        )
        self.states, self.inputs = self.space.names, self.space.input_names
        problem = self.problem
        self.relinearize, self.observer_gain = relinearize, observer_gain
        self.parameters = dict(parameters or {})
        A, B, rate = _linearized_at_target(self.space, problem)
        check_equilibrium(self.space, A, B, rate, relinearize=relinearize, terminal=cost.terminal)
        A, B = (np.asarray(x) for x in discretize(A, B, problem.dt_s))
        self.terminal = terminal_weight(cost.terminal, A, B, problem)
        self._gain = regulator_gain(A, B, self.terminal, problem.R)
        self._program = program = QuadraticProgram(problem, self.terminal)
        self._predictor = Predictor(self.space, problem, self.terminal)
        self._planner: AbstractPlanner
        if relinearize == "once":
            target, u_target = problem.target, problem.u_target
            self._planner = AtTarget(program, A, B, target, u_target, self.horizon)
        else:
            self._planner = AlongPlan(program, self._predictor, B, self.horizon, iterations)
        self.reset()

    @property
    def dt(self) -> float:
        """The length of a step, in seconds."""
        return self.problem.dt_s

    @property
    def horizon(self) -> int:
        """How many steps are planned."""
        return self.problem.horizon

    def cost_of(self, motion: Trajectory) -> float:
        """What a motion costs: what plans minimize, summed over its steps.

        **Arguments:**

        - `motion`: with the columns that `states` and `inputs` name, such as a closed loop; of one
            that failed, the rows before.

        **Returns:**

        The sum of the weighted squares, without a terminal cost.
        """
        rows = motion.kept

        def away(names: tuple[str, ...], target: np.ndarray) -> np.ndarray:
            return np.stack([np.asarray(rows[name]) for name in names], axis=1)[:-1] - target

        z, u = away(self.states, self.problem.target), away(self.inputs, self.problem.u_target)
        states = np.einsum("ki,ij,kj->", z, self.problem.Q, z)
        return float(states + np.einsum("ki,ij,kj->", u, self.problem.R, u))

    def reset(self, u: Any = None) -> None:
        """Forget the last plan, as at the start of a new loop.

        **Arguments:**

        - `u`: the input that is applied before the first decision; `u_target` by default.
        """
        self.last_input = self.problem.u_target if u is None else as_vector("u", u, self.inputs)
        self.problem.check_reach(self.inputs, self.last_input)
        self.disturbance = np.zeros(len(self.inputs))
        self._plan: MotionPlan | None = None
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

        - `z`: the measured state: a vector in the order of `states`, by name, or a `State`.
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
        t = as_number("t", t)
        if not isinstance(pending, Iterable):
            raise UserError(f"pending is {pending!r}; give a list of inputs.")
        reference = self._reference(reference)
        z = self._measured(z, t, near)
        self._observe(z)
        self._expected = None
        t, z = self._after(t, z, pending)
        hold = self.problem.limited(self.problem.u_target, self.last_input)
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
                    self.disturbance,
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
        self.last_input = u = self.problem.limited(plan.u[0], self.last_input)
        if plan.q is not None:
            self._near = plan.q[min(1, self.horizon - 1)]
        if self._expected is None:
            self._expected = plan.z[1]
        return Control(u, decision, plan.z, plan.u, time.perf_counter() - began)

    def _without_plan(self, z: np.ndarray) -> np.ndarray:
        """The input where there has been no plan yet: the regulator's, or the target's."""
        away = z - self.problem.target
        return self.problem.u_target - (self._gain @ away if np.all(np.isfinite(away)) else 0.0)

    def _measured(self, z: Any, t: float, near: Any) -> np.ndarray:
        """The minimal state; a configuration near it is remembered."""
        if isinstance(z, State):
            system = self.space.system
            near = as_vector("The state's q", z.q, system.coordinate_names, finite=False)
            as_vector("The state's v", z.v, system.rate_names, finite=False)
            z = self.space.minimal(z)
        else:
            z = as_vector("The state", z, self.states, None, finite=False)
        near = None if near is None else real_rows("near", near)
        if near is not None and np.all(np.isfinite(near)):
            self._near = near
        elif self._near is None and np.all(np.isfinite(z)):
            known = dict(zip(self.states, map(float, z), strict=True))
            system, parameters = self.space.system, self.parameters
            # A measurement need not be a place that the mechanism can be in.
            with contextlib.suppress(UserError):
                state = consistent_state(system, known, t=t, parameters=parameters)
                self._near = np.asarray(state.q)
        return z

    def _after(self, t: float, z: np.ndarray, pending: Sequence[np.ndarray]):
        """When, and where, the inputs that are on their way will have brought the state."""
        near = self.space.home if self._near is None else self._near
        for u in pending:
            coming = as_vector("An input in `pending`", u, self.inputs) + self.disturbance
            step, near = self._predictor.advance(t, z, coming, near)
            z, t = np.asarray(step), t + self.dt
            self._near = np.asarray(near)
            self._expected = z if self._expected is None else self._expected
        return t, z

    def _observe(self, z: np.ndarray) -> None:
        """Take a part of the last prediction error as a lasting disturbance of the inputs."""
        if self.observer_gain and self._expected is not None:
            error = z - self._expected
            if np.all(np.isfinite(error)):
                found = np.linalg.pinv(self._planner.input_map[0]) @ error
                self.disturbance = self.disturbance + self.observer_gain * found

    def _u_reference(self) -> np.ndarray:
        """The inputs that cost nothing: the target's, less what acts besides them."""
        wanted = np.clip(
            self.problem.u_target - self.disturbance, self.problem.u_low, self.problem.u_high
        )
        return np.repeat(wanted[None], self.problem.horizon, axis=0)

    def _reference(self, given: Any) -> np.ndarray:
        count = self.problem.horizon
        if given is None:
            return np.repeat(self.problem.target[None], count, axis=0)
        wanted = f"{count} finite rows, one for each step of the horizon,"
        rows = as_rows("The reference", given, self.states, self.problem.target, wanted)
        if len(rows) != count:
            raise UserError(f"The reference has {len(rows)} rows; give {wanted[:-1]}.")
        return rows


def _linearized_at_target(space: StateSpace, problem: ControlProblem):
    found = jacobians_at(space, 0.0, problem.target, problem.u_target)
    A, B, rate = (np.asarray(x) for x in found)
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(B))):
        raise UserError("The model's Jacobian at the target is not finite. Move the target.")
    return A, B, rate


def _check_options(relinearize: Any, iterations: Any, observer_gain: Any) -> None:
    if relinearize not in _MODES:
        raise unknown_name("relinearize", str(relinearize), _MODES)
    if as_count("iterations", iterations) > 1 and relinearize == "once":
        raise UserError(
            f"iterations is {iterations}, but one linearization leaves nothing to improve. Leave "
            "it out, or use relinearize='each'."
        )
    if not 0 <= as_number("observer_gain", observer_gain) <= 1:
        raise UserError(f"observer_gain is {observer_gain}; it must be between 0 and 1.")
