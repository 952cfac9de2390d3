"""A controller and a plant, step by step: what is measured, decided, applied, and what happens."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.control.mpc import MPC
from mbdnode.control.plant import Plant
from mbdnode.control.schedule import deviations, rows_of
from mbdnode.decisions import Decision, Decisions
from mbdnode.errors import UserError
from mbdnode.multibody import AbstractNamed
from mbdnode.simulation.rollout import make_row
from mbdnode.status import Outcome, Status, completed
from mbdnode.trajectory import State, Trajectory, check_steps


def closed_loop(
    *,
    plant: Any,
    controller: MPC,
    initial: Any,
    steps: Any,
    parameters: Mapping[str, Any] | None = None,
    integrator: Any = "rk4",
    substeps: Any = 4,
    reference: Any = None,
    disturbance: Any = None,
    noise: Any = None,
    delay: Any = 0,
    seed: int = 0,
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
        whose last row is held; columns as `controller.states`. The controller sees a horizon of it
        ahead. The controller's target by default.
    - `disturbance`: added to the plant's inputs without the controller's knowledge: a function of
        time, an array with a row for each step (the last one is held), one row for all, or values
        by name.
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
    _check_counts(steps, substeps, delay)
    if not isinstance(controller, MPC):
        raise TypeError(f"The controller is a {type(controller).__name__}; it must be an MPC.")
    if report is not None and not callable(report):
        raise TypeError(f"report is a {type(report).__name__}; it must be a function.")
    _check_names(plant, controller)
    body = Plant(
        plant,
        initial,
        controller.dt,
        parameters=parameters,
        integrator=integrator,
        substeps=substeps,
    )
    rows = steps + 1 + delay + controller.horizon
    check_steps(rows, 2 * len(body.system.coordinates) + len(body.system.inputs))
    times = controller.dt * np.arange(rows)
    wanted = rows_of("reference", reference, times, controller.states, controller.task.target)
    pushed = rows_of("disturbance", disturbance, times[:steps], body.system.input_names)
    deviation = deviations(noise, controller.states)
    random = np.random.default_rng(seed)

    controller.reset()
    state = body.start
    states, inputs, codes, seconds = [state], [], [], []
    pending = [controller.last_input] * delay
    failure = None
    for k in range(steps):
        # What is decided now acts from the delay's end on.
        first = k + 1 + delay
        ahead = None if wanted is None else wanted[first : first + controller.horizon]
        measured = state
        if deviation is not None:
            measured = controller.minimal(state) + random.normal(0.0, deviation)
        said = controller(measured, times[k], reference=ahead, pending=tuple(pending), near=state.q)
        pending.append(said.u)
        inputs.append(controller.all_inputs(pending.pop(0)))
        codes.append(said.decision)
        seconds.append(said.seconds)
        load = inputs[k] if pushed is None else inputs[k] + pushed[k]
        state, status = body.advance(float(times[k]), state, load)
        if int(status.code) != Outcome.COMPLETED.value:
            failure = status
            break
        states.append(state)
        if report is not None:
            report(k + 1, steps)
    goal = controller.task.target[None] if wanted is None else wanted[: steps + 1]
    decisions = _decisions(controller, times[: steps + 1], states, codes, seconds, goal)
    return _trajectory(body, times[: steps + 1], states, inputs, failure, decisions)


def _trajectory(
    body: Plant, times: np.ndarray, states: list[State], inputs, failure, decisions: Decisions
) -> Trajectory:
    """The rows as one trajectory; those after a failure are not numbers."""
    q, v = (_padded([getattr(s, name) for s in states], len(times)) for name in ("q", "v"))
    t = jnp.asarray(times)
    rows = jax.vmap(lambda s, a, b: make_row(body.system, s, State(a, b), body.mu))(t, q, v)
    last, names = jnp.asarray(len(states) - 1), body.system.coordinate_names
    status = completed(t[last], last, names)
    if failure is not None:
        status = Status(failure.code, last, t[last], failure.coordinate, names)
    return Trajectory(
        t=t,
        q=q,
        v=v,
        u=_padded([*inputs, inputs[-1]] if failure is None else inputs, len(times)),
        position_residual=rows.position_residual,
        velocity_residual=rows.velocity_residual,
        status=status,
        coordinates=names,
        rates=body.system.rate_names,
        inputs=body.system.input_names,
        decisions=decisions,
    )


def _decisions(controller: MPC, times, states: list[State], codes, seconds, goal) -> Decisions:
    z = np.array([controller.minimal(state) for state in states])
    away = np.full((len(times), z.shape[1]), np.nan)
    away[: len(z)] = np.abs(z - goal[: len(z)])
    # What has no weight goes where it will.
    away[: len(z), np.diag(controller.task.Q) == 0] = 0.0
    missing = len(times) - len(codes) - 1
    code = [*codes, *[Decision.NOT_REACHED] * missing]
    took = [*seconds, *[np.nan] * missing]
    return Decisions(
        code=np.array([*code, code[-1]], int),
        seconds=np.array([*took, np.nan]),
        error=np.max(away, axis=1),
        t=np.asarray(times),
        worst=np.argmax(np.nan_to_num(away), axis=1),
        names=controller.states,
    )


def _padded(rows: list, count: int):
    values = np.array(rows)[:count]
    gone = np.full((count - len(values), values.shape[1]), np.nan)
    return jnp.asarray(np.concatenate([values, gone]))


def _check_counts(steps: Any, substeps: Any, delay: Any) -> None:
    for name, value, least in (("steps", steps, 1), ("substeps", substeps, 1), ("delay", delay, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise UserError(f"{name} is {value!r}; it must be a whole number of at least {least}.")


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
