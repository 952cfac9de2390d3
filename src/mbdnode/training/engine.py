"""The compiled engine: one scan an epoch, one optimizer update a batch.

The paper's algorithm (one Adam update for each pair of neighboring states, in time order), mini
batches and full batches on many trajectories are the same scan over rows of a table of examples.

How long JAX spent on tracing and compiling, apart from the work itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from mbdnode.models import AbstractModel, Network
from mbdnode.recipes import TrainingConfig
from mbdnode.training.objectives import AbstractObjective

_ADAM = optax.scale_by_adam()
# Of the refinement's first step, relative to the mean square of the slopes.
_FIRST_DAMPING = 1e-3


class Progress(eqx.Module):
    """All that training carries from epoch to epoch, and a checkpoint holds."""

    network: Any
    moments: optax.OptState
    multipliers: Float[Array, "n k"]
    alive: Bool[Array, ""]
    updates: Int[Array, ""]
    # Of the refinement, which comes after the epochs.
    damping: Float[Array, ""]
    # What multiplies Adam's learning rate.
    pace: Float[Array, ""]


def begin(model: AbstractModel, objective: AbstractObjective) -> Progress:
    """The state before the first update; its arrays are copies, since an epoch reuses them."""
    first, pace = objective.start(model)
    network = jax.tree.map(lambda x: jnp.array(x, copy=True), first)
    moments = _ADAM.init(eqx.filter(network, eqx.is_inexact_array))
    multipliers = objective.first_multipliers(model)
    kind = jax.tree.leaves(moments)[-1].dtype
    numbers = (jnp.asarray(_FIRST_DAMPING, kind), jnp.asarray(pace, kind))
    return Progress(network, moments, multipliers, jnp.array(True), jnp.zeros((), int), *numbers)


def batches(count: int, config: TrainingConfig, seed: int, epoch: int) -> Int[np.ndarray, "k b"]:
    """Which examples each update of an epoch sees; -1 fills up the last one of a single pass."""
    size = min(config.batch_size or count, count)
    updates, passes = -(-count // size), 1
    if config.updates is not None:
        updates, passes = config.updates, -(-config.updates * size // count)
    random, plain = np.random.default_rng([seed, epoch]), np.arange(count)
    orders = [random.permutation(count) if config.shuffle else plain for _ in range(passes)]
    filled = np.full(updates * size, -1)
    ordered = np.concatenate(orders)[: filled.size]
    filled[: ordered.size] = ordered
    return filled.reshape(-1, size)


def rates(config: TrainingConfig, epoch: int, updates: int) -> Float[np.ndarray, " k"]:
    """The learning rate of each update of an epoch."""
    first = epoch * updates
    return np.array([config.rate(first + i, updates) for i in range(updates)])


class Task(eqx.Module):
    """What stays the same from epoch to epoch; of the model, all but its network."""

    model: AbstractModel
    objective: AbstractObjective
    config: TrainingConfig = eqx.field(static=True)

    def with_network(self, network: Any) -> Any:
        """The model as it is after some training."""
        return eqx.tree_at(lambda m: m.network, self.model, network)


@eqx.filter_jit(donate="all-except-first")
def run_epoch(
    kept: tuple[Task, Int[Array, "k b"], Float[Array, " k"]], progress: Progress
) -> tuple[Progress, Float[Array, " k"], Bool[Array, " k"]]:
    """One pass over the examples.

    **Arguments:**

    - `kept`: the task, and for each update its examples and its learning rate.
    - `progress`: where training stands; its memory is reused.

    **Returns:**

    The new progress, the loss at every update, and whether the update was made. One whose loss or
    gradient is not finite changes no weight, and neither do those after it.
    """
    task, table, rates = kept
    objective = task.objective

    def batch_loss(network, row, multipliers):
        model = task.with_network(network)
        one = lambda i, lam: objective.loss(  # noqa: E731
            model, jax.tree.map(lambda x: x[i], objective.examples), lam
        )
        picked = jnp.maximum(row, 0)
        none = jnp.zeros((row.shape[0], 0), multipliers.dtype)
        lam = multipliers[picked] if multipliers.shape[0] else none
        if row.shape[0] == 1:
            return one(picked[0], lam[0])
        present = row >= 0
        losses = jnp.where(present, jax.vmap(one)(picked, lam), 0.0)
        return jnp.sum(losses) / jnp.sum(present).astype(losses.dtype)

    def update(carry: Progress, row, rate):
        loss, slope = eqx.filter_value_and_grad(batch_loss)(carry.network, row, carry.multipliers)
        alive = carry.alive & jnp.isfinite(loss) & _is_finite(slope)
        slope = jax.tree.map(
            lambda g, w: jnp.where(alive, g + task.config.weight_decay * w, 0.0),
            slope,
            carry.network,
        )
        # Optax raises a float to an integer power, which strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            step, moments = _ADAM.update(slope, carry.moments)
        size = jnp.where(alive, -carry.pace * rate, 0.0)
        network = eqx.apply_updates(carry.network, jax.tree.map(lambda x: size * x, step))
        made = carry.updates + alive.astype(carry.updates.dtype)
        parts = (network, moments, carry.multipliers, alive, made, carry.damping, carry.pace)
        return Progress(*parts), (loss, alive)

    arrays, static = eqx.partition(progress, eqx.is_array)

    def body(arrays, given):
        progress, told = update(eqx.combine(arrays, static), *given)
        return eqx.filter(progress, eqx.is_array), told

    arrays, (losses, alive) = jax.lax.scan(body, arrays, (table, rates))
    return eqx.combine(arrays, static), losses, alive


def _is_finite(slope: Any) -> Bool[Array, ""]:
    """Whether all slopes are finite.

    In a fully connected network each path from the loss to a weight passes a bias of the same
    layer, so the first layer's weights and the biases tell for all.
    """
    few = (slope.weights[0], *slope.biases) if isinstance(slope, Network) else slope
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(few)]))


@eqx.filter_jit
def raise_multipliers(task: Task, progress: Progress) -> Progress:
    """The augmented Lagrangian's update after an epoch."""
    model = task.with_network(progress.network)
    raised = task.objective.raised_multipliers(model, progress.multipliers)
    return eqx.tree_at(lambda p: p.multipliers, progress, raised)


class Compilation:
    """Seconds so far."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def counted_compilation() -> Iterator[Compilation]:
    """Add up what JAX reports of its own compilations inside the `with`."""
    total = Compilation()

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith("/jax/core/compile"):
            total.seconds += duration_secs

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield total
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
