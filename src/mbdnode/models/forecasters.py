"""FCNN and LSTM: models that give states, and no rates.

FCNN, the state as a function of time,

    (q, v)(t) = network(t).

It knows one motion. Nothing in it says what happens after the last time that it has seen.

LSTM, the next state from a window of past ones. Two layers read the window; the last hidden state,
through an affine layer, gives the change to the next state. A rollout feeds predictions back, and
so needs the first window of true states, and the step that it was trained with.
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
from mbdnode.models.base import AbstractModel, Capability, check_capable, names_of
from mbdnode.models.network import Network, NetworkConfig, check_weights
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractNamed,
    Coordinate,
    Input,
    Parameter,
    is_traced,
)

# How far, in standard deviations of the training data, a start may be from the learned one.
_SAME_START = 1e-6
# Times in a file have a few digits less than a float.
_SAME_STEP = 1e-6


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


@dataclass(frozen=True)
class LSTMConfig:
    """The shape of an LSTM; the defaults are the paper's.

    **Arguments:**

    - `width`, `layers`: of the network.
    - `past`: how many states it reads.
    - `increments`: predict the change of the state, not the state.
    - `scaling`: states (and changes) are shifted and scaled by the training range's own mean and
        spread.
    """

    width: int = 256
    layers: int = 2
    past: int = 16
    increments: bool = True
    scaling: bool = True

    def __post_init__(self):
        check_types(self)
        for name in ("width", "layers", "past"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1.")


class Recurrent(eqx.Module):
    """Layers of LSTM cells and an affine layer on the last hidden state.

    **Arguments:**

    - `reading`, `hidden`, `biases`: of each cell, the four gates stacked.
    - `weight`, `bias`: of the affine layer.
    """

    reading: tuple[Float[Array, "_ _"], ...]
    hidden: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    weight: Float[Array, "_ _"]
    bias: Float[Array, " _"]

    def __call__(self, window: Float[Array, "k n_in"]) -> Float[Array, " n_out"]:
        """The value after the last row of the window."""
        rows = window
        for reading, hidden, bias in zip(self.reading, self.hidden, self.biases, strict=True):
            # What does not depend on the hidden state is one product for the whole window.
            driven = rows @ reading.T + bias[None, :]
            rows = _run_cell(hidden, driven)
        return self.weight @ rows[-1] + self.bias


def _run_cell(hidden, driven: Float[Array, "k four_width"]) -> Float[Array, "k width"]:
    width = hidden.shape[1]

    def step(carry, drive):
        h, c = carry
        i, f, g, o = jnp.split(drive + hidden @ h, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(width, driven.dtype)
    return jax.lax.scan(step, (zero, zero), driven)[1]


def make_recurrent(count_in: int, width: int, layers: int, count_out: int, seed: Any) -> Recurrent:
    """Draw one; all entries are uniform within `1/sqrt(width)`, as is the custom."""
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}; it must be a whole number, not negative.")
    check_weights(4 * width * (count_in + (2 * layers - 1) * width))
    random = np.random.default_rng(seed)
    draw = lambda *shape: jnp.asarray(random.uniform(-1, 1, shape) / np.sqrt(width))  # noqa: E731
    sizes = [count_in, *[width] * (layers - 1)]
    return Recurrent(
        tuple(draw(4 * width, size) for size in sizes),
        tuple(draw(4 * width, width) for _ in sizes),
        tuple(draw(4 * width) for _ in sizes),
        draw(count_out, width),
        draw(count_out),
    )


class LSTM(AbstractModel, AbstractForecaster):
    """A network that continues a sequence of states. Make one with `LSTM.for_system`."""

    kind: ClassVar[str] = "lstm"
    objective: ClassVar[str] = "sequences"
    settings_type: ClassVar[type] = LSTMConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.COORDINATES,
            Capability.DISSIPATION,
            Capability.NO_ACCELERATIONS,
        }
    )

    network: Recurrent
    center: Float[Array, " states"]
    spread: Float[Array, " states"]
    # Of the changes from one state to the next.
    change_center: Float[Array, " states"]
    change_spread: Float[Array, " states"]
    # The step; zero, and any step goes, until there is training data.
    dt_s: Float[Array, ""]
    body: AbstractNamed
    settings: LSTMConfig = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> "LSTM":
        """An untrained model of a system.

        **Arguments:**

        - `system`: gives the names; it must not have constraints.
        - `seed`: of the network's first weights.
        - `settings`: fields of `LSTMConfig`.

        **Returns:**

        An `LSTM`.
        """
        check_capable(cls.kind, cls.capabilities, system)
        config = from_dict(LSTMConfig, settings)
        states = 2 * len(system.coordinates)
        return cls(
            make_recurrent(states, config.width, config.layers, states, seed),
            jnp.zeros(states),
            jnp.ones(states),
            jnp.zeros(states),
            jnp.ones(states),
            jnp.zeros(()),
            system,
            config,
            **names_of(system),
        )

    @property
    def history(self) -> int:
        """The window."""
        return self.settings.past

    def next_state(self, window: Float[Array, "k states"]) -> Float[Array, " states"]:
        """The state after a window of scaled states, scaled likewise."""
        raw = self.network(window.astype(self.network.weight.dtype)).astype(window.dtype)
        if not self.settings.increments:
            return raw
        fixed = (self.change_center, self.change_spread, self.spread)
        center, spread, unit = (jax.lax.stop_gradient(x).astype(window.dtype) for x in fixed)
        return window[-1] + (center + spread * raw) / unit

    def check_start(self, t, past):
        """The window must be full and the step the one that was learned."""
        if past.shape[0] != self.settings.past:
            raise UserError(
                f"This LSTM goes on from {self.settings.past} states, but {past.shape[0]} were "
                f"given. Pass the first rows of the motion, trajectory.rows(0, "
                f"{self.settings.past - 1}), as the initial state."
            )
        if len(t) <= self.settings.past:
            raise UserError(
                f"There are {len(t)} times, and this LSTM is given the first {self.settings.past} "
                "of them. Ask for more."
            )
        if not is_traced(t) and not bool(self.knows(t, past)):
            steps, learned = np.diff(t), float(self.dt_s)
            raise UserError(
                f"This LSTM was trained with a step of {learned:g} s and knows no other, but the "
                f"times have steps from {steps.min():g} to {steps.max():g} s. Use those of the "
                "training data."
            )

    def knows(self, t, past):
        """The step that was learned."""
        away = jnp.abs(jnp.diff(t) - self.dt_s)
        return (self.dt_s == 0) | ~jnp.any(away > _SAME_STEP * self.dt_s)

    def forecast(self, t, past):
        """Feed every prediction back."""
        scaled = (past - self.center[None]) / self.spread[None]

        def onward(window, _):
            state = self.next_state(window)
            return jnp.concatenate([window[1:], state[None]]), state

        states = jax.lax.scan(onward, scaled, None, length=t.shape[0] - past.shape[0])[1]
        return jnp.concatenate([past, self.center[None] + self.spread[None] * states])
