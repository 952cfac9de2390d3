"""A case as the gallery shows it: a row of its table and a scene for its figure.

A case with the user's changes: checked first, then run and timed.
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
from mbdnode.report import Scene, summarise
from mbdnode.reproduction.cases.case import Case
from mbdnode.simulation import simulate
from mbdnode.simulation.simulate import ANALYTIC
from mbdnode.trajectory import State, Trajectory, check_trajectory_size


@dataclass(frozen=True)
class Run:
    """A case that is ready to go: every request has been checked."""

    case: Case
    parameters: Mapping[str, float]
    initial: State
    arguments: Mapping[str, Any]

    def __call__(self) -> tuple[Trajectory, float]:
        """The trajectory, and the seconds that it took."""
        began = time.perf_counter()
        trajectory = simulate(self.case.mechanism, **self.arguments)
        jax.block_until_ready(trajectory.q)
        return trajectory, time.perf_counter() - began


def prepare(
    case: Case,
    *,
    steps: int | None = None,
    dt_s: float | None = None,
    integrator: str | None = None,
    initial: Mapping[str, float] | None = None,
    parameters: Mapping[str, float] | None = None,
    seed: int | None = None,
) -> Run:
    """Check a request and complete it from the case.

    **Arguments:**

    - `case`: what to run.
    - `steps`, `dt_s`, `integrator`, `initial`, `parameters`: in place of the case's own.
    - `seed`: of the case's random inputs, 0 by default.

    **Returns:**

    A `Run`. Raises `UserError` for what cannot be done.
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
    state = start(case, initial or {}, mu)
    arguments = dict(
        t=case.times(steps, dt_s),
        initial=state,
        inputs=case.make_inputs(steps, seed or 0),
        parameters=mu,
        integrator=integrator,
    )
    return Run(case, mu, state, arguments)


def start(case: Case, given: Mapping[str, float], parameters: Mapping[str, float]) -> State:
    """The state that the user asks for, with the case's own values where they leave room.

    In a constrained system the case gives as many positions as there are freedoms. A user who
    gives another coordinate asks for a place that these would contradict, so then they only say
    where to look. The same goes for velocities.
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


NUMBERS = (
    "free",
    "steps",
    "compile\n[s]",
    "run\n[ms]",
    "position\nresidual",
    "velocity\nresidual",
    "energy\ndrift\n[J]",
)
HEADINGS = ("case", *NUMBERS[:2], "method", *NUMBERS[2:])


@dataclass(frozen=True)
class Exhibit:
    """One case, simulated.

    **Arguments:**

    - `row`: the values below `HEADINGS`.
    - `scene`: for a figure.
    - `failure`: what went wrong, if the rollout ended early.
    """

    row: tuple[str, ...]
    scene: Scene
    failure: str | None


def exhibit(case: Case) -> Exhibit:
    """Simulate a case twice: the first time compiles, the second does not."""
    run = prepare(case)
    _, with_compilation = run()
    trajectory, seconds = run()
    summary = summarise(case.mechanism, trajectory, run.parameters)
    row = (
        case.name,
        str(summary.degrees_of_freedom),
        f"{summary.rows - 1:,}",
        case.integrator,
        f"{with_compilation - seconds:.2f}",
        f"{1e3 * seconds:.1f}",
        _exponent(summary.position_residual),
        _exponent(summary.velocity_residual),
        _exponent(summary.energy_drift_j),
    )
    scene = Scene(
        name=case.name,
        title=case.title,
        mechanism=case.mechanism,
        trajectory=trajectory,
        parameters=run.parameters,
        train_end_s=case.train_steps * case.dt_s,
    )
    return Exhibit(
        row, scene, None if trajectory.status.ok else f"{case.name}: {trajectory.status}"
    )


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
