"""The FCNN's objective: the state at every time of the training range."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.models import FCNN
from mbdnode.training.config import TrainingConfig
from mbdnode.training.objectives.base import (
    STEPS_ONLY,
    AbstractObjective,
    refuse_drive,
    refuse_unused,
    single_runs,
)
from mbdnode.training.scaling import mean_and_spread
from mbdnode.trajectory import Dataset


class TimedStates(eqx.Module):
    """Scaled times, and the scaled states there."""

    t: Float[Array, "*n"]
    states: Float[Array, "*n states"]


class StateObjective(AbstractObjective):
    """The squared error of the scaled state."""

    examples: TimedStates

    def loss(self, model: Any, example: Any, multipliers):
        """Of one time."""
        return jnp.mean((model.scaled_states(example.t) - example.states) ** 2)


def check_states(model: FCNN, config: TrainingConfig) -> None:
    """Raise `UserError` for what this training does not use."""
    refuse_unused(model, config, ("integrator", *STEPS_ONLY))


def prepare_states(
    model: FCNN, data: Dataset, config: TrainingConfig
) -> tuple[FCNN, StateObjective]:
    """Scale the one motion that it can learn."""
    refuse_drive(model, data)
    runs = single_runs(data)
    if len(runs) > 1:
        raise UserError(
            f"An FCNN is a function of time and learns one motion; the data has {len(runs)} runs. "
            "Give it one of them, or use MBDNODE, which learns from all."
        )
    t, q, v, _ = runs[0]
    states = jnp.asarray(np.concatenate([q, v], axis=1))
    table = jnp.concatenate([jnp.asarray(t)[:, None], states], axis=1)
    center, spread = jnp.zeros(table.shape[1]), jnp.ones(table.shape[1])
    if model.settings.scaling:
        center, spread = mean_and_spread(table)
    model = eqx.tree_at(lambda m: (m.center, m.spread, m.start), model, (center, spread, states[0]))
    scaled = (table - center[None]) / spread[None]
    return model, StateObjective(TimedStates(scaled[:, 0], scaled[:, 1:]))
