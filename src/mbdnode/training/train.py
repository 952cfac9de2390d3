"""The epochs: one compiled scan each, one optimizer update a batch, for one network or for several.

The paper's algorithm (one Adam update for each pair of neighboring states, in time order), mini
batches and full batches on many trajectories are the same scan over rows of a table of examples.
Networks from several seeds are one more axis of the same program.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from mbdnode.models import AbstractModel, AbstractObjective, Network
from mbdnode.models.network import precision_of
from mbdnode.recipes import TrainingConfig
from mbdnode.training.checkpoint import is_refinement
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.interrupts import noted_interrupts

Report = Callable[[dict[str, Any], int], None]
_ADVICE = "Lower the learning rate, shorten the window, or use precision=float64."
_ADAM = optax.scale_by_adam()
# Of the refinement's first step, relative to the mean square of the slopes.
_FIRST_DAMPING = 1e-3
# Of the networks of all members. Measured on one core of one machine, eight members, one window an
# update: below, side by side was faster (at a width of 128, 0.5 MB, by 1.1), above it slower (at
# 256, 2 MB, by 1.4).
_SMALL_BYTES = 2**20


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


def begin(model: AbstractModel, objective: AbstractObjective, optimizer: Any = _ADAM) -> Progress:
    """The state before the first update; its arrays are copies, since an epoch reuses them."""
    first, pace = objective.start(model)
    network = jax.tree.map(lambda x: jnp.array(x, copy=True), first)
    moments = optimizer.init(eqx.filter(network, eqx.is_inexact_array))
    multipliers = objective.first_multipliers(model)
    kind = precision_of(network)
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
    # Of Optax. Adam's steps are multiplied by the learning rate; one's own has a rate of its own.
    optimizer: Any = eqx.field(static=True, default=_ADAM)

    def with_network(self, network: Any) -> Any:
        """The model as it is after some training."""
        return eqx.tree_at(lambda m: m.network, self.model, network)


def run_epoch(
    task: Task, tables: Int[np.ndarray, "*m k b"], rates: Any, progress: Progress
) -> tuple[Progress, Float[Array, "*m k"], Bool[Array, "*m k"]]:
    """One pass over the examples: the new progress, the loss at every update, and if it was made.

    An update has a row of `tables`, its examples, and one of `rates`, its learning rate. Several
    networks have an axis more, in the tables and in the progress, whose memory is reused. An update
    whose loss or gradient is not finite changes no weight, and neither do those after it.
    """
    kept = (task, jnp.asarray(tables), jnp.asarray(rates, task.config.precision))
    return _run_epoch(kept, progress, _side_by_side(progress))


def _side_by_side(progress: Progress) -> bool:
    """Whether several networks make their updates together, or each its epoch after the other's.

    Together the small operations of an update are shared. Large networks were slower so, probably
    because those of all members no longer fit in a core's cache.
    """
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(progress.network))
    return jax.default_backend() != "cpu" or size <= _SMALL_BYTES


@eqx.filter_jit(donate="all-except-first")
def _run_epoch(kept: tuple[Task, Any, Any], progress: Progress, side_by_side: bool) -> Any:
    task, tables, rates = kept
    if tables.ndim == 2:
        return _epoch(task, tables, rates, progress)
    one = lambda both: _epoch(task, both[0], rates, both[1])  # noqa: E731
    return (jax.vmap(one) if side_by_side else lambda all: jax.lax.map(one, all))(
        (tables, progress)
    )


def _epoch(task: Task, table: Int[Array, "k b"], rates: Float[Array, " k"], progress: Progress):
    """The scan over updates."""

    def update(now: Progress, given):
        row, rate = given
        loss, slope = eqx.filter_value_and_grad(_batch_loss)(
            now.network, task, row, now.multipliers
        )
        alive = now.alive & jnp.isfinite(loss) & _is_finite(slope)
        decayed = lambda g, w: jnp.where(alive, g + task.config.weight_decay * w, 0.0)  # noqa: E731
        slope = jax.tree.map(decayed, slope, now.network)
        # Optax raises a float to an integer power, which strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            step, moments = task.optimizer.update(slope, now.moments, now.network)
        sign = -now.pace if task.optimizer is _ADAM else jnp.ones_like(now.pace)
        size = jnp.where(alive, sign * rate, 0.0)
        network = eqx.apply_updates(now.network, jax.tree.map(lambda x: size * x, step))
        made = now.updates + alive.astype(now.updates.dtype)
        after = replace(now, network=network, moments=moments, alive=alive, updates=made)
        return after, (loss, alive)

    progress, (losses, alive) = jax.lax.scan(update, progress, (table, rates))
    return progress, losses, alive


def _batch_loss(network: Any, task: Task, row: Int[Array, " b"], multipliers: Any) -> Any:
    """The mean over the examples of a row; -1 stands for none."""
    model, objective = task.with_network(network), task.objective

    def one(place, multipliers):
        example = jax.tree.map(lambda x: x[place], objective.examples)
        return objective.loss(model, example, multipliers)

    picked = jnp.maximum(row, 0)
    none = jnp.zeros((row.shape[0], 0), multipliers.dtype)
    own = multipliers[picked] if multipliers.shape[0] else none
    if row.shape[0] == 1:
        return one(picked[0], own[0])
    present = row >= 0
    losses = jnp.where(present, jax.vmap(one)(picked, own), 0.0)
    return jnp.sum(losses) / jnp.sum(present).astype(losses.dtype)


def _is_finite(slope: Any) -> Bool[Array, ""]:
    """Whether all slopes are finite.

    In a fully connected network each path from the loss to a weight passes a bias of the same
    layer, so the first layer's weights and the biases tell for all.
    """
    few = (slope.weights[0], *slope.biases) if isinstance(slope, Network) else slope
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(few)]))


@eqx.filter_jit
def raise_multipliers(task: Task, progress: Progress) -> Progress:
    """The augmented Lagrangian's update after an epoch, of one network or of several."""

    def one(network, multipliers):
        return task.objective.raised_multipliers(task.with_network(network), multipliers)

    several = progress.multipliers.ndim == 3
    raised = (jax.vmap(one) if several else one)(progress.network, progress.multipliers)
    return eqx.tree_at(lambda p: p.multipliers, progress, raised)


class Roster:
    """The members' losses so far and how each of them ended.

    A member ends by itself: it diverges, or its loss has not fallen for `patience` epochs, as it
    would in a training of its own.
    """

    def __init__(self, seeds: Sequence[int], config: TrainingConfig, history: Sequence[dict]):
        self.seeds, self.config = tuple(seeds), config
        self.losses: list[list[float]] = [[] for _ in seeds]
        self.interrupted = self.ended = False
        self._diverged: dict[int, str] = {}
        self._stopped: set[int] = set()
        rows = [row for row in history if not is_refinement(row)]
        self.epochs = len(rows)
        for i, own in enumerate(self.losses):
            every = [row["losses"][i] if self.several else row["loss"] for row in rows]
            own += [loss for loss in every if loss is not None]
            if self._is_stalled(own):
                self._stopped.add(i)
            elif len(own) < len(rows):
                self._diverged[i] = f"epoch {len(own)}"

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return len(self.seeds) > 1

    @property
    def flags(self) -> list[bool]:
        """For each member whether it goes on."""
        ended = self._stopped | set(self._diverged)
        return [
            not (self.interrupted or self.ended) and i not in ended for i in range(len(self.seeds))
        ]

    @property
    def going(self) -> bool:
        """Whether any does."""
        return any(self.flags)

    @property
    def counted(self) -> list[int]:
        """The members that make up the ensemble: those that did not diverge, or all."""
        everyone = range(len(self.seeds))
        return [i for i in everyone if i not in self._diverged] or list(everyone)

    def last_loss(self, member: int) -> float:
        """The mean loss of its last epoch; not a number if it never finished one."""
        return self.losses[member][-1] if self.losses[member] else float("nan")

    def note(self, losses: Any, made: Any) -> dict[str, Any] | None:
        """Enter an epoch.

        The mean loss of those that went through it, and that of each of several, for the history;
        None if none did.
        """
        found: list[float | None] = [None] * len(self.seeds)
        for i in np.flatnonzero(self.flags).tolist():
            if not np.all(made[i]):
                update = self.epochs * made.shape[1] + int(np.argmin(made[i]))
                self._diverged[i] = f"update {update} (epoch {self.epochs})"
                continue
            self.losses[i].append(float(np.mean(losses[i])))
            found[i] = self.losses[i][-1]
            if self._is_stalled(self.losses[i]):
                self._stopped.add(i)
        survived = [loss for loss in found if loss is not None]
        if not survived:
            return None
        self.epochs += 1
        mean = {"loss": float(np.mean(survived))}
        return {**mean, "losses": found} if self.several else mean

    def interrupt(self) -> None:
        """End all that go on, as a user asks by Ctrl-C."""
        self.interrupted = self.going

    def end(self) -> None:
        """End all that go on, as a callback asks."""
        self.ended = self.going

    @property
    def outcome(self) -> str:
        """How training ended, as a word."""
        if len(self._diverged) == len(self.seeds):
            return "diverged"
        if self.interrupted:
            return "interrupted"
        return "completed" if self.going else "stopped"

    @property
    def status(self) -> str:
        """The same as a sentence."""
        patience = self.config.patience
        done = f"after {self.epochs} of {self.config.epochs} epochs"
        if self.outcome == "diverged":
            where = " in any member, in the first of them" if self.several else ""
            return (
                f"the loss or its gradient was not finite{where} at "
                f"{next(iter(self._diverged.values()))}; the weights before it are kept. {_ADVICE}"
            )
        of = f" of {len(self.counted)} members" if self.several else ""
        parts = {
            "interrupted": f"interrupted {done}{of}",
            "completed": f"completed {self.epochs} epochs{of}",
            "stopped": f"stopped {done}{of}: "
            + ("the callback said so" if self.ended else f"the loss had not fallen for {patience}"),
        }[self.outcome]
        if self._stopped and self.outcome != "stopped":
            named = self._named(self._stopped)
            parts += f"; {named} stopped before, the loss not falling for {patience}"
        if self._diverged:
            when = ", ".join(self._diverged[i] for i in sorted(self._diverged))
            named = self._named(self._diverged)
            parts += f"; {named} diverged at {when} and is left out. {_ADVICE}"
        return parts

    def _named(self, members) -> str:
        return "seed " + ", ".join(str(self.seeds[i]) for i in sorted(members))

    def _is_stalled(self, losses: list[float]) -> bool:
        patience = self.config.patience
        if patience is None or len(losses) <= patience:
            return False
        return min(losses[-patience:]) >= min(losses[:-patience])


def train(
    task_of: Callable[[int], Task],
    progress: Progress,
    roster: Roster,
    history: list[dict[str, Any]],
    report: Report | None,
    keep: Callable[[Progress, bool], bool],
    spent: float,
    validate: Callable[[Any], float] | None = None,
) -> tuple[Progress, float]:
    """The epochs, until no network is left that goes on: the progress, and seconds of compilation.

    `keep` is called after every epoch with the progress, and whether it was the last one; what is
    true ends training. The seconds that the start has `spent` count as the first epoch's.
    `validate` is the loss of networks on other data, for the history.
    """
    config, compile_s, several = roster.config, 0.0, roster.several
    with noted_interrupts() as interrupt:
        for epoch in range(roster.epochs, config.epochs):
            if not roster.going:
                break
            task = task_of(epoch)
            tables = [batches(len(task.objective), config, seed, epoch) for seed in roster.seeds]
            tables = np.stack(tables) if several else tables[0]
            rate = rates(config, epoch, tables.shape[-2])
            if several:
                # A member that has stopped must not be moved any further.
                progress = eqx.tree_at(lambda p: p.alive, progress, jnp.asarray(roster.flags))
            start = time.perf_counter()
            with counted_compilation() as compilation:
                progress, losses, made = run_epoch(task, tables, rate, progress)
                if progress.multipliers.size:
                    progress = raise_multipliers(task, progress)
                losses, made = (
                    np.asarray(x).reshape(len(roster.seeds), -1) for x in (losses, made)
                )
            seconds = time.perf_counter() - start - compilation.seconds
            compile_s += compilation.seconds
            entered = roster.note(losses, made)
            if entered is None:
                break
            row = {
                "epoch": epoch,
                **entered,
                "learning_rate": float(rate[0]),
                "seconds": seconds + (0 if epoch else spent),
            }
            if rate[0] == 0:  # As of a schedule that warms up; see `is_refinement`.
                row["refinement"] = False
            if validate is not None:
                row["validation_loss"] = validate(progress.network)
            history.append(row)
            if report is not None:
                report(row, config.epochs + config.refinement)
            if interrupt.requested:
                roster.interrupt()
            if keep(progress, not roster.going or epoch + 1 == config.epochs):
                roster.end()
    return progress, compile_s
