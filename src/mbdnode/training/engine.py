"""The compiled engine: one scan an epoch, one optimiser update a batch.

The paper's algorithm (one Adam update for each pair of neighbouring states, in time order), mini
batches and full batches on many trajectories are the same scan over rows of a table of windows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from mbdnode.integrators import AbstractIntegrator
from mbdnode.models import MBDNODE
from mbdnode.multibody import Partition
from mbdnode.training.config import TrainingConfig
from mbdnode.training.losses import predict, soft_residual, window_loss
from mbdnode.training.windows import Windows

_ADAM = optax.scale_by_adam()


class Progress(eqx.Module):
    """All that training carries from epoch to epoch, and a checkpoint holds."""

    model: MBDNODE
    moments: optax.OptState
    multipliers: Float[Array, "n k"]
    alive: Bool[Array, ""]


def begin(model: MBDNODE, windows: Windows) -> Progress:
    """The state before the first update."""
    moments = _ADAM.init(eqx.filter(model, eqx.is_inexact_array))
    count = len(windows) if model.settings.constraints == "augmented" else 0
    size = 0
    if count:
        first = jax.tree.map(lambda x: x[0], windows)
        states = first.q[1:], first.v[1:]
        size = jax.eval_shape(lambda: soft_residual(model, first, *states)).shape[0]
    return Progress(model, moments, jnp.zeros((count, size), windows.q.dtype), jnp.array(True))


def batches(count: int, config: TrainingConfig, seed: int, epoch: int) -> Int[np.ndarray, "k b"]:
    """Which windows each update of an epoch sees; -1 fills up the last one."""
    order = np.arange(count)
    if config.shuffle:
        order = np.random.default_rng([seed, epoch]).permutation(count)
    size = min(config.batch_size or count, count)
    filled = np.full(-(-count // size) * size, -1)
    filled[:count] = order
    return filled.reshape(-1, size)


class Task(eqx.Module):
    """What stays the same from epoch to epoch."""

    windows: Windows
    integrator: AbstractIntegrator
    config: TrainingConfig = eqx.field(static=True)
    partition: Partition


@eqx.filter_jit(donate="all-except-first")
def run_epoch(
    kept: tuple[Task, Int[Array, "k b"], Float[Array, ""]], progress: Progress
) -> tuple[Progress, Float[Array, " k"]]:
    """One pass over the windows.

    **Arguments:**

    - `kept`: the task, the table of each update's windows, and the learning rate.
    - `progress`: where training stands; its memory is reused.

    **Returns:**

    The new progress, and the loss at every update. An update whose loss or gradient is not finite
    changes no weight, and neither do those after it.
    """
    task, table, rate = kept
    windows = task.windows

    def batch_loss(model, row, multipliers):
        one = lambda i, lam: window_loss(  # noqa: E731
            model,
            task.integrator,
            task.config,
            task.partition,
            jax.tree.map(lambda x: x[i], windows),
            lam,
        )
        picked = jnp.maximum(row, 0)
        lam = multipliers[picked] if multipliers.shape[0] else jnp.zeros((row.shape[0], 0))
        if row.shape[0] == 1:
            return one(picked[0], lam[0])
        present = row >= 0
        return jnp.sum(jnp.where(present, jax.vmap(one)(picked, lam), 0.0)) / jnp.sum(present)

    def update(carry: Progress, row):
        loss, slope = eqx.filter_value_and_grad(batch_loss)(carry.model, row, carry.multipliers)
        alive = carry.alive & jnp.isfinite(loss) & _is_finite(slope)
        slope = jax.tree.map(lambda g: jnp.where(alive, g, 0.0), slope)
        step, moments = _ADAM.update(slope, carry.moments)
        size = jnp.where(alive, -rate, 0.0)
        model = eqx.apply_updates(carry.model, jax.tree.map(lambda x: size * x, step))
        return Progress(model, moments, carry.multipliers, alive), loss

    arrays, static = eqx.partition(progress, eqx.is_array)

    def body(arrays, row):
        progress, loss = update(eqx.combine(arrays, static), row)
        return eqx.filter(progress, eqx.is_array), loss

    arrays, losses = jax.lax.scan(body, arrays, table)
    return eqx.combine(arrays, static), losses


def _is_finite(slope: MBDNODE) -> Bool[Array, ""]:
    """Every path back to the inputs passes the first layer, so its slopes tell for all."""
    first, bias = slope.network.weights[0], slope.network.biases[0]
    return jnp.all(jnp.isfinite(first)) & jnp.all(jnp.isfinite(bias))


@eqx.filter_jit
def raise_multipliers(task: Task, progress: Progress) -> Progress:
    """The augmented Lagrangian's update, `lambda += 2 penalty phi`, after an epoch."""
    model = progress.model

    def residual(window):
        return soft_residual(model, window, *predict(model, task.integrator, task.config, window))

    raised = progress.multipliers + 2 * task.config.penalty * jax.vmap(residual)(task.windows)
    return eqx.tree_at(lambda p: p.multipliers, progress, raised)
