"""The LSTM's objective: the state after every window of the training range.

The FCNN's objective: the state at every time of the training range.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.models import FCNN, LSTM
from mbdnode.recipes import TrainingConfig
from mbdnode.training.objectives.base import (
    STEPS_ONLY,
    AbstractObjective,
    refuse_drive,
    refuse_unused,
    single_runs,
)
from mbdnode.training.scaling import mean_and_spread
from mbdnode.trajectory import Dataset

# Times in a file have a few digits less than a float.
_SAME_STEP = 1e-6


class Sequences(eqx.Module):
    """Windows of scaled states, and the state after each."""

    past: Float[Array, "*n k states"]
    following: Float[Array, "*n states"]


class SequenceObjective(AbstractObjective):
    """The squared error of the next state, scaled; by its usual change if that is learned."""

    examples: Sequences
    unit: Float[Array, " states"]

    def loss(self, model: Any, example: Any, multipliers):
        """Of one window."""
        error = (model.next_state(example.past) - example.following) / self.unit
        return jnp.mean(error**2)


def check_sequences(model: LSTM, config: TrainingConfig) -> None:
    """Raise `UserError` for what this training does not use."""
    refuse_unused(model, config, ("integrator", *STEPS_ONLY))


def prepare_sequences(
    model: LSTM, data: Dataset, config: TrainingConfig
) -> tuple[LSTM, SequenceObjective]:
    """Scale the motions and cut them into windows, each one step after the last."""
    refuse_drive(model, data)
    past = model.settings.past
    runs = single_runs(data)
    dt = _common_step([t for t, *_ in runs])
    motions = [np.concatenate([q, v], axis=1) for _, q, v, _ in runs]
    shortest = min(len(motion) for motion in motions)
    if shortest <= past:
        raise UserError(
            f"This LSTM reads {past} states to predict the next, but a run has only {shortest}. "
            "Give longer runs, or a smaller `past`."
        )
    states = motions[0].shape[1]
    center, spread = jnp.zeros(states), jnp.ones(states)
    change_center, change_spread = jnp.zeros(states), jnp.ones(states)
    if model.settings.scaling:
        center, spread = mean_and_spread(jnp.asarray(np.concatenate(motions)))
        changes = np.concatenate([np.diff(motion, axis=0) for motion in motions])
        change_center, change_spread = mean_and_spread(jnp.asarray(changes))
    model = eqx.tree_at(
        lambda m: (m.center, m.spread, m.change_center, m.change_spread, m.dt_s),
        model,
        (center, spread, change_center, change_spread, jnp.asarray(dt)),
    )
    scaled = [(motion - np.asarray(center)) / np.asarray(spread) for motion in motions]
    windows = [
        motion[np.arange(len(motion) - past)[:, None] + np.arange(past + 1)[None, :]]
        for motion in scaled
    ]
    table = jnp.asarray(np.concatenate(windows))
    unit = change_spread / spread if model.settings.increments else jnp.ones(states)
    return model, SequenceObjective(Sequences(table[:, :-1], table[:, -1]), unit)


def _common_step(times: list[np.ndarray]) -> float:
    """The step that all times share."""
    steps = np.concatenate([np.diff(t) for t in times])
    dt = float(np.median(steps))
    if np.any(np.abs(steps - dt) > _SAME_STEP * dt):
        raise UserError(
            f"An LSTM knows no time, so all steps must be equal, but they are from {steps.min():g} "
            f"to {steps.max():g} s. Resample the data, or use MBDNODE."
        )
    return dt


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
