"""The environment that `mbdnode.control.gym` registers; the one module that imports Gymnasium."""

from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from mbdnode.control.checks import as_spread
from mbdnode.control.closed_loop import SteppedPlant
from mbdnode.control.episodes import EpisodeTask
from mbdnode.control.problem import problem_for
from mbdnode.errors import UserError
from mbdnode.multibody import consistent_state
from mbdnode.naming import by_name
from mbdnode.status import Outcome
from mbdnode.trajectory import State


class ModelEnvironment(gymnasium.Env):
    """A mechanism or a learned model, one held input a step; made by `mbdnode.control.gym`."""

    metadata = {"render_modes": []}

    def __init__(self, model: Any, task: EpisodeTask, parameters: Any = None):
        self.space, self.problem = problem_for(
            model, task.cost, task.limits, task.actuated, parameters, horizon=1, dt=task.dt
        )
        problem = self.problem
        for name, low, high in zip(
            self.space.input_names, problem.u_low, problem.u_high, strict=True
        ):
            if not np.isfinite(high - low):
                raise UserError(
                    f"Input {name!r} has no bounds, and actions are scaled to them. Give "
                    f"limits=Limits(u_bounds={{{name!r}: (-1.0, 1.0)}})."
                )
        self.plant = SteppedPlant(
            model,
            task.initial,
            problem.dt_s,
            parameters=parameters,
            integrator=task.integrator,
            substeps=task.substeps,
        )
        self._known, self._spread = _spread(task, self.space.system)
        self._parameters = parameters
        size = 2 * len(self.space.system.coordinates)
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (len(problem.u_low),), np.float64)
        self.state, self.t, self.last_input = self.plant.start, 0.0, problem.u_target

    @property
    def observation_names(self) -> tuple[str, ...]:
        """The entries of an observation."""
        return (*self.space.system.coordinate_names, *self.space.system.rate_names)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode: the observation, and the time. No `options` are known."""
        super().reset(seed=seed)
        self.state = self.plant.start
        if self._spread:
            known = {
                name: value + self.np_random.uniform(-1.0, 1.0) * self._spread.get(name, 0.0)
                for name, value in self._known.items()
            }
            self.state = consistent_state(
                self.space.system,
                known,
                guess=dict(zip(self.observation_names, self._observed(), strict=True)),
                parameters=self._parameters,
            )
        self.t, self.last_input = 0.0, self.problem.u_target
        return self._observed(), {"t": self.t}

    def step(self, action):
        """Take one step with the inputs held; `action` is between -1 and 1 for each of them.

        An episode ends by a bound or a failure. It is cut by the registered number of steps, not
        here. The information is the time, the inputs and how the step went.
        """
        problem = self.problem
        part = (np.clip(np.asarray(action, float), -1.0, 1.0) + 1.0) / 2.0
        asked = problem.u_low + part * (problem.u_high - problem.u_low)
        u = problem.limited(asked, self.last_input)
        everything = self.space.all_inputs(u)
        state, status = self.plant.advance(self.t, self.state, everything)
        good = int(status.code) == Outcome.COMPLETED.value
        if good:
            self.state, self.t, self.last_input = state, self.t + problem.dt_s, u
        z = self.space.minimal(self.state)
        away, effort = z - problem.target, u - problem.u_target
        reward = -float(away @ problem.Q @ away + effort @ problem.R @ effort)
        ended = not good or bool(np.any((z < problem.z_low) | (z > problem.z_high)))
        if ended:
            reward -= problem.violation_cost
        info = {"t": self.t, "u": everything, "status": str(status)}
        return self._observed(), reward, ended, False, info

    def _observed(self) -> np.ndarray:
        return np.concatenate([np.asarray(self.state.q), np.asarray(self.state.v)])


def _spread(task: EpisodeTask, system: Any) -> tuple[dict[str, float], dict[str, float]]:
    """The start by name, and how far each value may be from it."""
    spread = by_name(task.spread)
    if not spread:
        return {}, {}
    names = (*system.coordinate_names, *system.rate_names)
    if isinstance(task.initial, State):
        raise UserError(
            "A spread needs a start by name, such as {'theta': 0.1}, of which the rest follows; "
            "this one is a State."
        )
    as_spread("The spread", spread, names)
    known = {name: 0.0 for name in spread}
    known |= {name: float(jnp.asarray(value)) for name, value in by_name(task.initial).items()}
    return known, {name: float(width) for name, width in spread.items()}
