"""FCNN: the state as a function of time.

    (q, v)(t) = network(t)

It knows one motion. Nothing in it says what happens after the last time that it has seen.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types, from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel, Capability, check_capable
from mbdnode.models.network import Activation, Initialization, Network, make_network
from mbdnode.multibody import AbstractForecaster, AbstractNamed, Coordinate, Input, Parameter

# How far, in standard deviations of the training data, a start may be from the learned one.
_SAME_START = 1e-6


@dataclass(frozen=True)
class FCNNConfig:
    """The shape of an FCNN; the defaults are the paper's.

    **Arguments:**

    - `width`, `hidden_layers`, `activation`, `initialization`: of the network.
    - `scaling`: time and states are shifted and scaled by the training range's own mean and
        spread.
    """

    width: int = 256
    hidden_layers: int = 2
    activation: Activation = "tanh"
    initialization: Initialization = "xavier"
    scaling: bool = True

    def __post_init__(self):
        check_types(self)
        for name in ("width", "hidden_layers"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1.")


class FCNN(AbstractModel, AbstractForecaster):
    """A network of time. Make one with `FCNN.for_system`."""

    kind: ClassVar[str] = "fcnn"
    objective: ClassVar[str] = "states"
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
        sizes = (1, *[config.width] * config.hidden_layers, states)
        return cls(
            make_network(sizes, config.activation, config.initialization, seed),
            jnp.zeros(1 + states),
            jnp.ones(1 + states),
            jnp.full(states, jnp.nan),
            system,
            config,
            coordinates=system.coordinates,
            inputs=system.inputs,
            parameters=system.parameters,
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
        start, spread = np.asarray(self.start), np.asarray(self.spread)[1:]
        if np.any(np.abs(past[0] - start) > _SAME_START * (spread + np.abs(start))):
            names = (*self.coordinate_names, *self.rate_names)
            learned = ", ".join(f"{n} = {x:g}" for n, x in zip(names, start, strict=True))
            raise UserError(
                f"This FCNN is a function of time that has learned the motion from {learned}; it "
                "cannot start elsewhere. Start there, or use a model that learns accelerations, "
                "such as MBDNODE."
            )

    def forecast(self, t, past):
        """Evaluate the network at every time."""
        scaled = (t - self.center[0]) / self.spread[0]
        states = jax.vmap(self.scaled_states)(scaled).astype(t.dtype)
        return self.center[None, 1:] + self.spread[None, 1:] * states
