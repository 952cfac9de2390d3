"""LSTM: the next state from a window of past ones.

Two layers read the window; the last hidden state, through an affine layer, gives the change to the
next state. A rollout feeds predictions back, and so needs the first window of true states, and the
step that it was trained with. Its loss is the squared error of the state after every window of the
training range, scaled.
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
from mbdnode.models.base import AbstractModel, names_of
from mbdnode.models.capabilities import Capability, check_capable
from mbdnode.models.network import check_weights
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

# Times in a file have a few digits less than a float.
_SAME_STEP = 1e-6


# The same in every table.
_USUAL = HyperParameters(
    "lstm",
    "-",
    400,
    5e-4,
    0.98,
    "the paper's other cases",
    {"width": 256, "layers": 2},
    training={"batch_size": 16, "shuffle": True},
    activation="Sigmoid, Tanh",
)
_TRIED = (
    "single-mass-spring-damper triple-mass-spring-damper single-pendulum double-pendulum cart-pole"
)
PAPER = (_USUAL, *in_tables(_USUAL, _TRIED))


class Sequences(eqx.Module):
    """Windows of scaled states, and the state after each."""

    past: Float[Array, "*n k states"]
    following: Float[Array, "*n states"]


class SequenceObjective(AbstractObjective):
    """The squared error of the next state, scaled; by its usual change if that is learned."""

    examples: Sequences
    unit: Float[Array, " states"]

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` for what this training does not use."""
        refuse_unused(model, config, ("integrator", *STEPS_ONLY))

    @classmethod
    def prepare(cls, model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, Any]:
        """Scale the motions and cut them into windows, each one step after the last."""
        refuse_drive(model, data)
        past = model.settings.past
        runs = single_runs(data)
        dt = _common_step([t for t, *_ in runs])
        motions = [np.concatenate([q, v], axis=1) for _, q, v, _ in runs]
        shortest = min(len(motion) for motion in motions)
        if shortest <= past:
            raise UserError(
                f"This LSTM reads {past} states to predict the next, but a run has only "
                f"{shortest}. Give longer runs, or a smaller `past`."
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
        return model, cls(Sequences(table[:, :-1], table[:, -1]), unit)

    def loss(self, model: Any, example: Any, multipliers):
        """Of one window."""
        error = (model.next_state(example.past) - example.following) / self.unit
        return jnp.mean(error**2)


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
    objective: ClassVar[Any] = SequenceObjective
    paper: ClassVar[tuple[HyperParameters, ...]] = PAPER
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
