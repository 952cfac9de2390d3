"""A model as an environment of Gymnasium: learn to control it by trial and error.

An episode begins near a given state and takes steps with the inputs held. The reward of a step is
minus the cost that `MPC` minimizes,

    r = -(z - target)' Q (z - target) - (u - u_target)' R (u - u_target),

so what one controller achieves can be compared with the other. Where a state leaves its bounds, or
the motion cannot go on, the episode ends at the price of a violation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mbdnode.control.checks import as_count
from mbdnode.control.problem import Limits, QuadraticCost
from mbdnode.errors import UserError


@dataclass(frozen=True)
class EpisodeTask:
    """What is to be learned: from where to where, at which cost, within which limits.

    **Arguments:**

    - `initial`: the start, as a `State` or by name.
    - `spread`: by name, how far each value of `initial` may be from it at the start of an episode;
        uniform, and drawn from the environment's own random numbers.
    - `dt`: the length of a step, in seconds.
    - `steps`: how many an episode has at most.
    - `cost`: weights and target; a terminal cost has no meaning here and is not used.
    - `limits`: `u_bounds` are needed, since actions between -1 and 1 are scaled to them. An episode
        ends where a state leaves `z_bounds`.
    - `actuated`: the inputs that are actions, by name; all by default.
    - `integrator`, `substeps`: how a step is taken.
    """

    initial: Any
    spread: Mapping[str, float] = field(default_factory=dict)
    dt: float = 0.02
    steps: int = 500
    cost: QuadraticCost = field(default_factory=QuadraticCost)
    limits: Limits = field(default_factory=Limits)
    actuated: Any = None
    integrator: Any = "rk4"
    substeps: int = 1


def gym(model: Any, task: EpisodeTask, name: str | None = None, *, parameters: Any = None) -> str:
    """Register a model as an environment of Gymnasium.

    **Arguments:**

    - `model`: a mechanism or a learned model with inputs.
    - `task`: what is to be learned.
    - `name`: of the environment, letters, digits, "-" and "_"; the model's class by default.
        One that was registered before under this name is replaced.
    - `parameters`: of the model, if not the defaults.

    **Returns:**

    The identifier for `gymnasium.make`, "mbdnode/NAME-v0". Observations are all coordinates, then
    all velocities, in the order of the model's names; actions are between -1 and 1. Raises
    `UserError` for a task that the model cannot be given.
    """
    try:
        import gymnasium
        from gymnasium.envs.registration import registry
    except ImportError as error:
        raise UserError(
            "Gymnasium is not installed. Install it with `pip install mbdnode[gym]`."
        ) from error
    from mbdnode.control.gym_environment import ModelEnvironment

    name = type(model).__name__ if name is None else name
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise UserError(
            f"The environment's name is {name!r}; it must have letters, digits, '-' and '_' only."
        )
    if not isinstance(task, EpisodeTask):
        raise TypeError(f"The task is a {type(task).__name__}; it must be an EpisodeTask.")
    steps = as_count("steps", task.steps)
    # Made once here, so that a wrong task is refused now and not when it is first used.
    ModelEnvironment(model, task, parameters).close()
    identifier = f"mbdnode/{name}-v0"
    registry.pop(identifier, None)
    gymnasium.register(
        identifier,
        entry_point=lambda: ModelEnvironment(model, task, parameters),  # pyright: ignore
        max_episode_steps=steps,
    )
    return identifier
