"""From a state to a plan: with one linearisation, or with a new one along the last plan."""

import abc
from dataclasses import dataclass

import numpy as np

from mbdnode.control.prediction import Forecaster
from mbdnode.control.program import Program
from mbdnode.decisions import Decision

# How far to go towards the programme's plan, in turn.
_FRACTIONS = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.02)
# A new plan that improves the merit by less than this part of it is good enough.
_GOOD_ENOUGH = 1e-6
# The first plan starts from nothing and is improved at most this often.
_FIRST_ITERATIONS = 100
# A violation above this, in a state's own unit, is more than the solver's tolerance.
_VIOLATED = 1e-6


@dataclass(frozen=True)
class Plan:
    """States with the present one, inputs, and configurations near the states if they are known."""

    z: np.ndarray
    u: np.ndarray
    q: np.ndarray | None = None

    def shifted(self, z: np.ndarray) -> "Plan":
        """The same plan from its next step on, from another state; its end is held."""
        states, inputs = (np.concatenate([x[1:], x[-1:]]) for x in (self.z, self.u))
        states[0] = z
        q = None if self.q is None else np.concatenate([self.q[1:], self.q[-1:]])
        return Plan(states, inputs, q)


def waiting(z: np.ndarray, u: np.ndarray, horizon: int, near: np.ndarray | None = None) -> Plan:
    """To stay where it is: a plan to improve, not to follow."""
    states, inputs = np.repeat(z[None], horizon + 1, axis=0), np.repeat(u[None], horizon, axis=0)
    return Plan(states, inputs, None if near is None else np.repeat(near[None], horizon, axis=0))


@dataclass(frozen=True)
class Situation:
    """What a plan is made for.

    **Arguments:**

    - `t`, `z`, `near`: the time, the state, and a configuration near it.
    - `previous`: the input before now.
    - `reference`, `u_reference`: where to, for every step of the horizon.
    - `load`: what acts besides the inputs, in their units.
    - `last`: a plan to improve; None at the start.
    - `hold`: an input to begin from where there is no plan.
    """

    t: float
    z: np.ndarray
    near: np.ndarray
    previous: np.ndarray
    reference: np.ndarray
    u_reference: np.ndarray
    load: np.ndarray
    last: Plan | None
    hold: np.ndarray


class AbstractPlanner(abc.ABC):
    """Makes plans.

    `input_map` is by how much the inputs of each step move the states, as last known.
    """

    input_map: np.ndarray

    @abc.abstractmethod
    def forget(self) -> None:
        """Begin anew."""

    @abc.abstractmethod
    def plan(self, now: Situation) -> tuple[Decision, Plan | None]:
        """A plan and how it came about; None if there is none."""


class AtTarget(AbstractPlanner):
    """Plans with the linearisation at an equilibrium.

    **Arguments:**

    - `program`: the quadratic programme.
    - `A`, `B`: the discrete model.
    - `target`, `u_target`: the equilibrium.
    - `horizon`: how many steps.
    """

    def __init__(self, program: Program, A, B, target, u_target, horizon: int):
        self._program = program
        self._A, self.input_map = (np.repeat(x[None], horizon, axis=0) for x in (A, B))
        self._held = np.repeat((target - A @ target - B @ u_target)[None], horizon, axis=0)

    def forget(self) -> None:
        """Nothing was learned on the way."""

    def plan(self, now: Situation) -> tuple[Decision, Plan | None]:
        """One programme, whose matrices are always the same."""
        solution = self._program.solve(
            self._A,
            self.input_map,
            self._held + self.input_map[0] @ now.load,
            now.z,
            now.previous,
            now.reference,
            now.u_reference,
        )
        if solution is None:
            return Decision.UNSOLVED, None
        return _decision(solution.violation), Plan(
            np.concatenate([now.z[None], solution.z]), solution.u
        )


class AlongPlan(AbstractPlanner):
    """Improves the last plan with linearisations along it.

    **Arguments:**

    - `program`: the quadratic programme.
    - `forecaster`: the model.
    - `B`: the discrete input matrix at the target, until there is one along a plan.
    - `horizon`: how many steps.
    - `iterations`: how often a plan is improved; the first until that changes nothing.
    """

    def __init__(self, program: Program, forecaster: Forecaster, B, horizon: int, iterations: int):
        self._program, self._forecaster, self._iterations = program, forecaster, iterations
        self._at_target = np.repeat(B[None], horizon, axis=0)
        self.forget()

    def forget(self) -> None:
        """Know the inputs' effect at the target alone."""
        self.input_map = self._at_target

    def plan(self, now: Situation) -> tuple[Decision, Plan | None]:
        """Improve the last plan; if that fails, what its inputs lead to."""
        if now.last is None or now.last.q is None:
            fresh = waiting(now.z, now.hold, len(now.reference), now.near)
            return self._improved(now, fresh, _FIRST_ITERATIONS)
        shifted = now.last.shifted(now.z)
        decision, plan = self._improved(now, shifted, self._iterations)
        if plan is not None:
            return decision, plan
        # A plan that the motion has left behind may be too far from it to be improved.
        states, q = self._forecaster.follow(now.t, now.z, now.near, shifted.u, now.load)
        followed = Plan(np.asarray(states), shifted.u, np.asarray(q))
        return self._improved(now, followed, self._iterations)

    def _improved(self, now: Situation, plan: Plan, most: int) -> tuple[Decision, Plan | None]:
        """Linearise, solve, go as far as it is better; again."""
        violation, gap_price, size = 0.0, 0.0, len(now.z)
        others = (now.load, now.reference, now.u_reference)
        for _ in range(most):
            model, q, judged = self._forecaster.linearise(now.t, plan.q, plan.z, plan.u, *others)
            model, q = np.asarray(model), np.asarray(q)
            if not np.all(np.isfinite(model)):
                return Decision.UNPREDICTED, None
            A, B, d = model[:, :, :size], model[:, :, size:-1], model[:, :, -1]
            solution = self._program.solve(A, B, d, now.z, now.previous, *others[1:])
            if solution is None:
                return Decision.UNSOLVED, None
            # Closing a gap is worth more than its price in the programme, so that it pays.
            gap_price = max(gap_price, 2.0 * solution.price)
            new = np.concatenate([now.z[None], solution.z]), solution.u
            plan, gained = self._towards(now.t, q, plan, new, (1.0, gap_price), judged, others)
            self.input_map, violation = B, solution.violation
            if gained < _GOOD_ENOUGH:
                break
        return _decision(violation), plan

    def _towards(self, t, q, plan: Plan, new, prices, judged, others) -> tuple[Plan, float]:
        """The first plan on the way to a new one that is better, and by which part of its merit."""
        before = float(np.dot(prices, judged))
        for fraction in _FRACTIONS:
            states, u = (
                old + fraction * (wanted - old)
                for old, wanted in zip((plan.z, plan.u), new, strict=True)
            )
            after = float(np.dot(prices, self._forecaster.measure(t, q, states, u, *others)))
            if after < before:
                return Plan(states, u, q), (before - after) / max(abs(after), 1e-12)
        return Plan(plan.z, plan.u, q), 0.0


def _decision(violation: float) -> Decision:
    return Decision.SOFTENED if violation > _VIOLATED else Decision.SOLVED
