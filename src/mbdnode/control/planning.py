"""From a state to a plan: with one linearization, or with a new one along the last plan.

A plan holds states and inputs, `z_1 ... z_N` and `u_0 ... u_(N-1)`. Planned along the motion, it
need not yet agree with the model: where `z_(k+1)` differs from the model's step from `z_k` there is
a gap, which the next quadratic program closes to first order (multiple shooting). Unlike a rollout,
such a plan can follow an unstable motion without being thrown off it. Every step is linearized half
way along it, where taking `A` and `B` as constant is an error of third order in the step, and
discretized exactly.

How far to go toward the program's plan is decided by cost and gaps as the model has them, not its
linearization.
"""

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.control.decisions import Decision
from mbdnode.control.linearization import discretize_all
from mbdnode.control.problem import ControlProblem
from mbdnode.control.quadratic_program import QuadraticProgram
from mbdnode.control.state_space import StateSpace
from mbdnode.integrators import RungeKutta4, stage_slopes

# How far to go toward the program's plan, in turn.
_FRACTIONS = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05, 0.02)
# A new plan that improves the merit by less than this part of it is good enough.
_GOOD_ENOUGH = 1e-6
# The first plan starts from nothing and is improved at most this often.
_FIRST_ITERATIONS = 100
# A violation above this, in a state's own unit, is more than the solver's tolerance.
_VIOLATED = 1e-6


@dataclass(frozen=True)
class MotionPlan:
    """States with the present one, inputs, and configurations near the states if they are known."""

    z: np.ndarray
    u: np.ndarray
    q: np.ndarray | None = None

    def shifted(self, z: np.ndarray) -> "MotionPlan":
        """The same plan from its next step on, from another state; its end is held."""
        states, inputs = (np.concatenate([x[1:], x[-1:]]) for x in (self.z, self.u))
        states[0] = z
        q = None if self.q is None else np.concatenate([self.q[1:], self.q[-1:]])
        return MotionPlan(states, inputs, q)


def waiting(
    z: np.ndarray, u: np.ndarray, horizon: int, near: np.ndarray | None = None
) -> MotionPlan:
    """To stay where it is: a plan to improve, not to follow."""
    states, inputs = np.repeat(z[None], horizon + 1, axis=0), np.repeat(u[None], horizon, axis=0)
    return MotionPlan(
        states, inputs, None if near is None else np.repeat(near[None], horizon, axis=0)
    )


@dataclass(frozen=True)
class Situation:
    """What a plan is made for.

    `near` is a configuration near the state, `previous` the input before now. References are for
    every step of the horizon. `disturbance` acts besides the inputs, in their units. `last` is a
    plan to improve, `hold` an input to begin from where there is none.
    """

    t: float
    z: np.ndarray
    near: np.ndarray
    previous: np.ndarray
    reference: np.ndarray
    u_reference: np.ndarray
    disturbance: np.ndarray
    last: MotionPlan | None
    hold: np.ndarray


class Predictor:
    """Compiled: one step, many of them, the model along a plan, and the merit of a plan."""

    def __init__(self, space: StateSpace, problem: ControlProblem, terminal: np.ndarray):
        bounds = (problem.z_low, problem.z_high)
        cost = (problem.Q, problem.R, terminal, *bounds, problem.violation_cost)
        cost, dt = jax.tree.map(lambda x: jnp.asarray(x, float), (cost, problem.dt_s))
        self.advance = _compiled(_advance, space, dt)
        self.follow = _compiled(_follow, space, dt)
        self.linearize = _compiled(_linearize, space, cost, dt)
        self.measure = _compiled(_measure, space, cost, dt)


def _compiled(function: Callable, *first: Any) -> Callable:
    """Compiled with its first arguments fixed: a call looks at the others alone."""
    return jax.jit(functools.partial(function, *first))


def _advance(space: StateSpace, dt, t, z, u, near):
    """One step of RK4, and the configuration at its start."""

    def slope(time, weights, found):
        slopes, configurations = found
        later = jnp.any(weights != 0)
        return space.rate(time, z + weights @ slopes, u, jnp.where(later, configurations[0], near))

    weights, found = stage_slopes(RungeKutta4.tableau, t, dt, slope, (z, near))
    return z + weights @ found[0], found[1][0]


def _follow(space: StateSpace, dt, t, z, near, u, disturbance):
    """The states that inputs lead to, the first included, and the configurations on the way."""

    def onward(carry, now):
        state, q = carry
        time, acting = now
        new, q = _advance(space, dt, time, state, acting, q)
        return (new, q), (new, q)

    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    _, (states, q) = jax.lax.scan(onward, (z, near), (times, u + disturbance[None]))
    return jnp.concatenate([z[None], states]), q


def _linearize(
    space: StateSpace, cost, dt, t, near, states, u, disturbance, reference, u_reference
):
    """The model along a plan, `[A B d]` of every step; the configurations; its cost and gaps."""
    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    acting = u + disturbance[None]
    ends, q = _advance_each(space, dt, times, states[:-1], acting, near)
    A, B, _ = jax.vmap(space.jacobians)(times + dt / 2, (states[:-1] + ends) / 2, acting, q)
    A, B = discretize_all(A, B, dt)
    applied = jnp.einsum("kij,kj->ki", A, states[:-1]) + jnp.einsum("kij,kj->ki", B, u)
    model = jnp.concatenate([A, B, (ends - applied)[..., None]], axis=-1)
    return model, q, _merit_terms(cost, states, u, ends, reference, u_reference)


def _measure(space: StateSpace, cost, dt, t, near, states, u, disturbance, reference, u_reference):
    """The cost of a plan, and the sum of its gaps."""
    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    ends, _ = _advance_each(space, dt, times, states[:-1], u + disturbance[None], near)
    return _merit_terms(cost, states, u, ends, reference, u_reference)


def _advance_each(space: StateSpace, dt, times, states, inputs, near):
    """One step from each state."""
    return jax.vmap(_advance, (None, None, 0, 0, 0, 0))(space, dt, times, states, inputs, near)


def _merit_terms(cost, states, u, ends, reference, u_reference):
    gaps = jnp.sum(jnp.abs(states[1:] - ends))
    return jnp.stack([_cost(cost, states, u, reference, u_reference), gaps])


def _cost(cost, states, u, reference, u_reference):
    """What the program minimizes."""
    Q, R, P, z_low, z_high, violation_cost = cost
    away, effort = states[1:] - reference, u - u_reference
    running = jnp.einsum("ki,ij,kj->", away[:-1], Q, away[:-1])
    spent = jnp.einsum("ki,ij,kj->", effort, R, effort)
    over = jnp.maximum(states[1:] - z_high[None], z_low[None] - states[1:])
    over = jnp.maximum(over, 0.0)
    return running + spent + away[-1] @ P @ away[-1] + violation_cost * jnp.sum(over + over**2)


class AbstractPlanner(abc.ABC):
    """Makes plans.

    `input_map` is by how much the inputs of each step move the states, as last known.
    """

    input_map: np.ndarray

    @abc.abstractmethod
    def forget(self) -> None:
        """Begin anew."""

    @abc.abstractmethod
    def plan(self, now: Situation) -> tuple[Decision, MotionPlan | None]:
        """A plan and how it came about; None if there is none."""


class AtTarget(AbstractPlanner):
    """Plans with the linearization at an equilibrium; `A` and `B` are the discrete model."""

    def __init__(self, program: QuadraticProgram, A, B, target, u_target, horizon: int):
        self._program = program
        self._A, self.input_map = (np.repeat(x[None], horizon, axis=0) for x in (A, B))
        self._held = np.repeat((target - A @ target - B @ u_target)[None], horizon, axis=0)

    def forget(self) -> None:
        """Nothing was learned on the way."""

    def plan(self, now: Situation) -> tuple[Decision, MotionPlan | None]:
        """One program, whose matrices are always the same."""
        solution = self._program.solve(
            self._A,
            self.input_map,
            self._held + self.input_map[0] @ now.disturbance,
            now.z,
            now.previous,
            now.reference,
            now.u_reference,
        )
        if solution is None:
            return Decision.UNSOLVED, None
        return _decision(solution.violation), MotionPlan(
            np.concatenate([now.z[None], solution.z]), solution.u
        )


class AlongPlan(AbstractPlanner):
    """Improves the last plan with linearizations along it.

    `B` is the discrete input matrix at the target, until there is one along a plan. A plan is
    improved `iterations` times; the first until that changes nothing.
    """

    def __init__(
        self, program: QuadraticProgram, predictor: Predictor, B, horizon: int, iterations: int
    ):
        self._program, self._predictor, self._iterations = program, predictor, iterations
        self._at_target = np.repeat(B[None], horizon, axis=0)
        self.forget()

    def forget(self) -> None:
        """Know the inputs' effect at the target alone."""
        self.input_map = self._at_target

    def plan(self, now: Situation) -> tuple[Decision, MotionPlan | None]:
        """Improve the last plan; if that fails, what its inputs lead to."""
        if now.last is None or now.last.q is None:
            fresh = waiting(now.z, now.hold, len(now.reference), now.near)
            return self._improved(now, fresh, _FIRST_ITERATIONS)
        shifted = now.last.shifted(now.z)
        decision, plan = self._improved(now, shifted, self._iterations)
        if plan is not None:
            return decision, plan
        # A plan that the motion has left behind may be too far from it to be improved.
        states, q = self._predictor.follow(now.t, now.z, now.near, shifted.u, now.disturbance)
        followed = MotionPlan(np.asarray(states), shifted.u, np.asarray(q))
        return self._improved(now, followed, self._iterations)

    def _improved(
        self, now: Situation, plan: MotionPlan, most: int
    ) -> tuple[Decision, MotionPlan | None]:
        """Linearize, solve, go as far as it is better; again."""
        violation, penalty, size = 0.0, 0.0, len(now.z)
        others = (now.disturbance, now.reference, now.u_reference)
        for _ in range(most):
            model, q, terms = self._predictor.linearize(now.t, plan.q, plan.z, plan.u, *others)
            model, q = np.asarray(model), np.asarray(q)
            if not np.all(np.isfinite(model)):
                return Decision.UNPREDICTED, None
            A, B, d = model[:, :, :size], model[:, :, size:-1], model[:, :, -1]
            solution = self._program.solve(A, B, d, now.z, now.previous, *others[1:])
            if solution is None:
                return Decision.UNSOLVED, None
            # An exact penalty: above the multipliers, closing a gap always pays.
            penalty = max(penalty, 2.0 * solution.multiplier)
            new = np.concatenate([now.z[None], solution.z]), solution.u
            plan, gained = self._towards(now.t, q, plan, new, (1.0, penalty), terms, others)
            self.input_map, violation = B, solution.violation
            if gained < _GOOD_ENOUGH:
                break
        return _decision(violation), plan

    def _towards(
        self, t, q, plan: MotionPlan, new, weights, terms, others
    ) -> tuple[MotionPlan, float]:
        """The first plan on the way to a new one that is better, and by which part of its merit."""
        before = float(np.dot(weights, terms))
        for fraction in _FRACTIONS:
            states, u = (
                old + fraction * (wanted - old)
                for old, wanted in zip((plan.z, plan.u), new, strict=True)
            )
            after = float(np.dot(weights, self._predictor.measure(t, q, states, u, *others)))
            if after < before:
                return MotionPlan(states, u, q), (before - after) / max(abs(after), 1e-12)
        return MotionPlan(plan.z, plan.u, q), 0.0


def _decision(violation: float) -> Decision:
    return Decision.SOFTENED if violation > _VIOLATED else Decision.SOLVED
