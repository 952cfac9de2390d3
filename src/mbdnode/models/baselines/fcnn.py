"""FCNN: the state as a function of time.

    (q, v)(t) = network(t).

It knows one motion. Nothing in it says what happens after the last time that it has seen. Its loss
is the squared error of the scaled state at every time of the training range.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel, names_of
from mbdnode.models.capabilities import Capability, check_capable
from mbdnode.models.network import Network, NetworkConfig
from mbdnode.models.objective import (
    STEPS_ONLY,
    AbstractObjective,
    mean_and_spread,
    refuse_drive,
    refuse_unused,
    single_runs,
)
from mbdnode.models.paper_settings import HyperParameters, in_tables
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractNamed,
    Coordinate,
    Input,
    Parameter,
    is_traced,
)
from mbdnode.recipes import TrainingConfig
from mbdnode.trajectory import Dataset

# How far, in standard deviations of the training data, a start may be from the learned one.
_SAME_START = 1e-6


_USUAL = HyperParameters("fcnn", "-", 600, 5e-4, 0.98, "the paper's other cases")
PAPER = (
    _USUAL,
    *in_tables(_USUAL, "single-mass-spring-damper triple-mass-spring-damper single-pendulum"),
    *in_tables(_USUAL, "double-pendulum cart-pole", decay=0.99),
)


class TimedStates(eqx.Module):
    """Scaled times, and the scaled states there."""

    t: Float[Array, "*n"]
    states: Float[Array, "*n states"]


class StateObjective(AbstractObjective):
    """The squared error of the scaled state."""

    examples: TimedStates

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` for what this training does not use."""
        refuse_unused(model, config, ("integrator", *STEPS_ONLY))

    @classmethod
    def prepare(cls, model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, Any]:
        """Scale the one motion that it can learn."""
        refuse_drive(model, data)
        runs = single_runs(data)
        if len(runs) > 1:
            raise UserError(
                f"An FCNN is a function of time and learns one motion; the data has {len(runs)} "
                "runs. Give it one of them, or use MBDNODE, which learns from all."
            )
        t, q, v, _ = runs[0]
        states = jnp.asarray(np.concatenate([q, v], axis=1))
        table = jnp.concatenate([jnp.asarray(t)[:, None], states], axis=1)
        center, spread = jnp.zeros(table.shape[1]), jnp.ones(table.shape[1])
        if model.settings.scaling:
            center, spread = mean_and_spread(table)
        model = eqx.tree_at(
            lambda m: (m.center, m.spread, m.start), model, (center, spread, states[0])
        )
        scaled = (table - center[None]) / spread[None]
        return model, cls(TimedStates(scaled[:, 0], scaled[:, 1:]))

    def loss(self, model: Any, example: Any, multipliers):
        """Of one time."""
        return jnp.mean((model.scaled_states(example.t) - example.states) ** 2)


@dataclass(frozen=True)
class FCNNConfig(NetworkConfig):
    """The shape of an FCNN; the defaults are the paper's.

    **Arguments:**

    - `width`, `hidden_layers`, `activation`, `initialization`: of the network.
    - `scaling`: time and states are shifted and scaled by the training range's own mean and
        spread.
    """


class FCNN(AbstractModel, AbstractForecaster):
    """A network of time. Make one with `FCNN.for_system`."""

    kind: ClassVar[str] = "fcnn"
    objective: ClassVar[Any] = StateObjective
    paper: ClassVar[tuple[HyperParameters, ...]] = PAPER
    settings_type: ClassVar[type] = FCNNConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.COORDINATES,
            Capability.DISSIPATION,
            Capability.NO_ACCELERATIONS,
            Capability.CONTINUOUS,
        }
    )

    network: Network
    # Of time, then of the states; the start is not a number until there is training data.
    center: Float[Array, " columns"]
    spread: Float[Array, " columns"]
    start: Float[Array, " states"]
    body: AbstractNamed
    settings: FCNNConfig = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> "FCNN":
        """An untrained model of a system.

        **Arguments:**

        - `system`: gives the names; it must not have constraints.
        - `seed`: of the network's first weights.
        - `settings`: fields of `FCNNConfig`.

        **Returns:**

        An `FCNN`.
        """
        check_capable(cls.kind, cls.capabilities, system)
        config = from_dict(FCNNConfig, settings)
        states = 2 * len(system.coordinates)
        return cls(
            config.make(1, states, seed),
            jax.device_put(np.zeros(1 + states)),
            jax.device_put(np.ones(1 + states)),
            jax.device_put(np.full(states, np.nan)),
            system,
            config,
            **names_of(system),
        )

    def scaled_states(self, scaled_time: Float[Array, ""]) -> Float[Array, " states"]:
        """The network's own value, in the precision of its weights."""
        return self.network(scaled_time[None].astype(self.network.weights[0].dtype))

    def check_start(self, t, past):
        """Only the start that was learned can be asked for."""
        if past.shape[0] != 1:
            raise UserError(
                f"An FCNN starts from one state, not from {past.shape[0]}. Give a State."
            )
        if not is_traced(past) and not bool(self.knows(t, past)):
            names, start = (*self.coordinate_names, *self.rate_names), np.asarray(self.start)
            learned = ", ".join(f"{n} = {x:g}" for n, x in zip(names, start, strict=True))
            raise UserError(
                f"This FCNN is a function of time that has learned the motion from {learned}; it "
                "cannot start elsewhere. Start there, or use a model that learns accelerations, "
                "such as MBDNODE."
            )

    def knows(self, t, past):
        """The start that was learned."""
        allowed = _SAME_START * (self.spread[1:] + jnp.abs(self.start))
        return ~jnp.any(jnp.abs(past[0] - self.start) > allowed)

    def forecast(self, t, past):
        """Evaluate the network at every time."""
        scaled = (t - self.center[0]) / self.spread[0]
        states = jax.vmap(self.scaled_states)(scaled).astype(t.dtype)
        return self.center[None, 1:] + self.spread[None, 1:] * states
