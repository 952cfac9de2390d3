"""A case with the user's changes, simulated: checked first, then run and timed.

The work behind `mbdnode simulate`.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from mbdnode.errors import UserError
from mbdnode.integrators import INTEGRATORS
from mbdnode.multibody import consistent_state, constraint_counts, resolve_parameters
from mbdnode.naming import unknown_name
from mbdnode.reproduction.cases.case import Case
from mbdnode.simulation import simulate
from mbdnode.simulation.simulate import ANALYTIC
from mbdnode.trajectory import State, Trajectory, check_trajectory_size


@dataclass(frozen=True)
class CaseRun:
    """A case that is ready to go: every request has been checked."""

    case: Case
    parameters: Mapping[str, float]
    initial: State
    arguments: Mapping[str, Any]

    def __call__(self, *, check_step: bool = True) -> tuple[Trajectory, float]:
        """The trajectory, and the seconds that it took; `check_step` as for `simulate`."""
        began = time.perf_counter()
        trajectory = simulate(self.case.mechanism, **self.arguments, check_step=check_step)
        jax.block_until_ready(trajectory.q)
        return trajectory, time.perf_counter() - began


def prepare_case(
    case: Case,
    *,
    steps: int | None = None,
    dt_s: float | None = None,
    integrator: str | None = None,
    initial: Mapping[str, float] | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> CaseRun:
    """Check a request and complete it from the case.

    **Arguments:**

    - `case`: what to run.
    - `steps`, `dt_s`, `integrator`, `initial`, `parameters`: in place of the case's own.
    - `seed`: of the case's random inputs, 0 by default.

    **Returns:**

    A `CaseRun`. Raises `UserError` for what cannot be done.
    """
    steps = case.steps if steps is None else steps
    dt_s = case.dt_s if dt_s is None else dt_s
    integrator = case.integrator if integrator is None else integrator
    if steps < 1:
        raise UserError(f"The number of steps is {steps}; it must be at least 1.")
    check_trajectory_size(steps, 2 * len(case.mechanism.coordinates) + len(case.mechanism.inputs))
    if not (math.isfinite(dt_s) and dt_s > 0):
        raise UserError(
            f"The step is {dt_s:g} s; it must be finite and above zero. "
            f"The case's own is {case.dt_s:g} s."
        )
    if integrator.lower() not in (*INTEGRATORS, ANALYTIC):
        raise unknown_name("integrator", integrator, (*INTEGRATORS, ANALYTIC))
    if seed is not None and case.inputs is None:
        raise UserError(
            f"Case {case.name!r} has no random inputs, so a seed of {seed} would change nothing. "
            "Leave it out."
        )
    if seed is not None and seed < 0:
        raise UserError(f"The seed is {seed}; it must not be negative.")
    mu = {**case.parameters, **(parameters or {})}
    resolve_parameters(case.mechanism, mu)
    state = _initial_state(case, initial or {}, mu)
    arguments = dict(
        t=case.times(steps, dt_s),
        initial=state,
        inputs=case.make_inputs(steps, seed or 0),
        parameters=mu,
        integrator=integrator,
    )
    return CaseRun(case, mu, state, arguments)


def _initial_state(
    case: Case, given: Mapping[str, float], parameters: Mapping[str, float]
) -> State:
    """The initial state that the user asks for, with the case's own values for the rest.

    In a constrained system the case gives as many positions as there are degrees of freedom. A user
    who gives another coordinate asks for a position that these would contradict, so then they are
    only the initial guess of the assembly. The same goes for velocities.
    """
    system = case.mechanism
    constrained = sum(constraint_counts(system, resolve_parameters(system, parameters))) > 0
    known, guess = dict(given), {}
    for names in (system.coordinate_names, system.rate_names):
        own = {name: value for name, value in case.initial.items() if name in names}
        contradicts = any(name in names and name not in own for name in given)
        known |= {} if constrained and contradicts else {**own, **known}
        guess |= {name: value for name, value in own.items() if name in system.coordinate_names}
    return consistent_state(system, known, guess=guess, parameters=parameters)
