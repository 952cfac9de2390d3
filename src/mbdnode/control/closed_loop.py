"""A controller and a plant, step by step: what is measured, decided, applied, and what happens.

References and disturbances are functions of time or rows; the plant takes one step of the
controller at a time, with its inputs held, and is compiled once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.control.checks import as_count, as_spread, rows_over_time
from mbdnode.control.decisions import Decision, Decisions
from mbdnode.control.mpc import MPC
from mbdnode.control.state_space import check_controllable
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.multibody import (
    AbstractNamed,
    AbstractSystem,
    check_state,
    choose_partition,
    constraint_counts,
    residuals_along,
    resolve_parameters,
)
from mbdnode.simulation import AbstractEnsemble
from mbdnode.simulation.held_inputs import rollout_held
from mbdnode.simulation.simulate import as_state
from mbdnode.status import Outcome, Status, completed
from mbdnode.trajectory import State, Trajectory, check_trajectory_size
from mbdnode.waiting_notice import counts_steps


@counts_steps
def closed_loop(
    *,
    plant: Any,
    controller: MPC,
    initial: Any,
    steps: Any,
    parameters: Any = None,
    integrator: Any = "rk4",
    substeps: Any = 4,
    reference: Any = None,
    disturbance: Any = None,
    noise: Any = None,
    delay: Any = 0,
    seed: Any = 0,
    report: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Run a plant under a controller.

    **Arguments:**

    - `plant`: a mechanism or a learned model, with the coordinates and inputs of the controller's
        model.
    - `controller`: it is reset first.
    - `initial`: a `State`, or what is known of it by name.
    - `steps`: how many of the controller's.
    - `parameters`: of the plant, if not the defaults; the controller does not know of them.
    - `integrator`, `substeps`: how the plant takes one step of the controller.
    - `reference`: where to be: a function of time, or an array with a row for each time from 0 on,
        whose last row is held; columns as `controller.states`, or by name. The controller sees a
        horizon of it ahead. The controller's target by default.
    - `disturbance`: added to the plant's inputs without the controller's knowledge: a function of
        time, an array with a row for each step (the last one is held), one row for all, or values
        or columns by name.
    - `noise`: the standard deviation of the measurement's error: one for all states, one each, or
        by name.
    - `delay`: after how many steps a decision acts. The controller knows of it, and plans from
        where the inputs on their way will have brought the plant.
    - `seed`: of the noise.
    - `report`: called with the number of steps taken and of all.

    **Returns:**

    A `Trajectory` with the inputs as they were decided (without the disturbance) and, as
    `trajectory.decisions`, the status and the seconds of every decision. It never raises for what
    happens on the way.
    """
    steps, substeps = as_count("steps", steps), as_count("substeps", substeps)
    delay = as_count("delay", delay, 0)
    if not isinstance(controller, MPC):
        raise TypeError(f"The controller is a {type(controller).__name__}; it must be an MPC.")
    if report is not None and not callable(report):
        raise TypeError(f"report is a {type(report).__name__}; it must be a function.")
    _check_names(plant, controller)
    body = SteppedPlant(
        plant,
        initial,
        controller.dt,
        parameters=parameters,
        integrator=integrator,
        substeps=substeps,
    )
    rows = steps + 1 + delay + controller.horizon
    check_trajectory_size(rows, 2 * len(body.system.coordinates) + len(body.system.inputs))
    times = controller.dt * np.arange(rows)
    target = controller.problem.target
    sought = {} if reference is None else reference
    wanted = rows_over_time("The reference", sought, times, controller.states, target)
    push = {} if disturbance is None else disturbance
    pushed = rows_over_time("The disturbance", push, times[:steps], body.system.input_names)
    deviation = as_spread("The noise", {} if noise is None else noise, controller.states)
    try:
        random = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise UserError(f"seed is {seed!r}; it must be a whole number of at least 0.") from error

    controller.reset()
    state = body.start
    states, inputs, codes, seconds = [state], [], [], []
    pending = [controller.last_input] * delay
    failure = None
    for k in range(steps):
        # What is decided now acts from the delay's end on.
        first = k + 1 + delay
        ahead = wanted[first : first + controller.horizon]
        measured = state
        if np.any(deviation):
            measured = controller.space.minimal(state) + random.normal(0.0, deviation)
        said = controller(measured, times[k], reference=ahead, pending=tuple(pending), near=state.q)
        pending.append(said.u)
        inputs.append(controller.space.all_inputs(pending.pop(0)))
        codes.append(said.decision)
        seconds.append(said.seconds)
        state, status = body.advance(float(times[k]), state, inputs[k] + pushed[k])
        if int(status.code) != Outcome.COMPLETED.value:
            failure = status
            break
        states.append(state)
        if report is not None:
            report(k + 1, steps)
    times, goal = times[: steps + 1], wanted[: steps + 1]
    decisions = _decisions(controller, times, states, codes, seconds, goal)
    return _trajectory(body, times, states, inputs, failure, decisions)


class SteppedPlant:
    """A mechanism or a model whose inputs are held over each step."""

    def __init__(
        self,
        system: Any,
        initial: Any,
        dt_s: float,
        *,
        parameters: Any,
        integrator: Any,
        substeps: int,
    ):
        if isinstance(system, AbstractEnsemble):
            raise UserError(
                "The plant is an ensemble, which has no single motion. Use one of its members, "
                "ensemble[i]; the ensemble may be the controller's model."
            )
        check_controllable(system)
        self.system: AbstractSystem = system
        self.mu = resolve_parameters(system, parameters)
        self.start = as_state(system, initial, 0.0, parameters)
        check_state(system, jnp.zeros(()), self.start.q, self.start.v, self.mu)
        constrained = sum(constraint_counts(system, self.mu)) > 0
        self._moving = constrained and not system.closed_on_minimal
        self._partition = choose_partition(system, jnp.zeros(()), self.start.q, self.mu)
        self._integrator = get_integrator(integrator)
        self._grid = dt_s * np.linspace(0.0, 1.0, substeps + 1)

    def advance(self, t: float, state: State, u: np.ndarray) -> tuple[State, Status]:
        """The state after one step, and how the step went."""
        if self._moving:
            # Over many steps the first choice may have become a poor one.
            time = jnp.asarray(t, float)
            self._partition = choose_partition(self.system, time, state.q, self.mu)
        run = rollout_held(
            self.system,
            self._integrator,
            t + self._grid,
            state,
            u,
            self.mu,
            self._partition,
            self._moving,
        )
        q, v = (jax.device_put(np.asarray(x)[-1]) for x in (run.q, run.v))
        return State(q, v), run.status


def _trajectory(
    body: SteppedPlant,
    times: np.ndarray,
    states: list[State],
    inputs,
    failure,
    decisions: Decisions,
) -> Trajectory:
    """The rows as one trajectory; those after a failure are NaN."""
    q, v = (_padded([getattr(s, name) for s in states], len(times)) for name in ("q", "v"))
    t = jnp.asarray(times, float)
    position, velocity = residuals_along(body.system, t, q, v, body.mu)
    last, names = jnp.asarray(len(states) - 1, int), body.system.coordinate_names
    end = jnp.asarray(times[len(states) - 1], float)
    status = completed(end, last, names)
    if failure is not None:
        status = Status(failure.code, last, end, failure.coordinate, names)
    return Trajectory(
        t=t,
        q=q,
        v=v,
        u=_padded([*inputs, inputs[-1]] if failure is None else inputs, len(times)),
        position_residual=position,
        velocity_residual=velocity,
        status=status,
        coordinates=names,
        rates=body.system.rate_names,
        inputs=body.system.input_names,
        decisions=decisions,
    )


def _decisions(controller: MPC, times, states: list[State], codes, seconds, goal) -> Decisions:
    z = np.array([controller.space.minimal(state) for state in states])
    away = np.full((len(times), z.shape[1]), np.nan)
    away[: len(z)] = np.abs(z - goal[: len(z)])
    # What has no weight goes where it will.
    away[: len(z), np.diag(controller.problem.Q) == 0] = 0.0
    missing = len(times) - len(codes) - 1
    code = [*codes, *[Decision.NOT_REACHED] * missing]
    took = [*seconds, *[np.nan] * missing]
    return Decisions(
        code=np.array([*code, code[-1]], int),
        seconds=np.array([*took, took[-1]]),
        error=np.max(away, axis=1),
        t=np.asarray(times),
        worst=np.argmax(np.nan_to_num(away), axis=1),
        names=controller.states,
    )


def _padded(rows: list, count: int):
    values = np.array(rows)[:count]
    gone = np.full((count - len(values), values.shape[1]), np.nan)
    return jax.device_put(np.concatenate([values, gone]))


def _check_names(plant: Any, controller: MPC) -> None:
    """The controller's model must speak of the plant's coordinates and inputs."""
    model = controller.space.system
    if not isinstance(plant, AbstractNamed):
        return  # Refused as what it is.
    for what, mine, theirs in (
        ("coordinates", model.coordinate_names, plant.coordinate_names),
        ("inputs", model.input_names, plant.input_names),
    ):
        if mine != theirs:
            raise UserError(
                f"The controller's model has the {what} {', '.join(mine) or '(none)'}, but the "
                f"plant has {', '.join(theirs) or '(none)'}. Control a plant with a model of it."
            )


def loop_difference(found: Trajectory, truth: Trajectory) -> dict[str, float | None]:
    """The largest difference between two closed loops, column by column.

    **Arguments:**

    - `found`, `truth`: at the same times.

    **Returns:**

    By the column's name, as a part of its range in `truth`; a column that does not move there is
    left out. None where a loop ended early.
    """
    result = {}
    for name in truth.columns[1:]:
        expected = np.asarray(truth[name])
        width = float(np.nanmax(expected) - np.nanmin(expected))
        # What only round-off moves has no range to compare with.
        if width > 1e-9 * max(1.0, float(np.nanmax(np.abs(expected)))):
            part = float(np.max(np.abs(np.asarray(found[name]) - expected)) / width)
            result[name] = part if np.isfinite(part) else None
    return result
