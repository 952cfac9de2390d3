"""`fit_ensemble`: the same training from several seeds, as one compiled program.

Each member starts from weights of its own and, where the order of the windows is random, sees them
in an order of its own; it learns what `fit` would have made of that seed. An epoch of all members
is one call of the engine's epoch, mapped over them. A refinement takes one member after the other,
since each has a large Jacobian.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel, Ensemble
from mbdnode.recipes import TrainingConfig, training_config
from mbdnode.training.data import as_dataset, cast, check_names, check_stream, choose_smoother
from mbdnode.training.engine import (
    Progress,
    Task,
    batches,
    begin,
    counted_compilation,
    raise_multipliers,
    rates,
    run_epoch,
)
from mbdnode.training.epoch_checkpoint import noted_interrupts
from mbdnode.training.fit import Fit, Report
from mbdnode.training.objectives import check_training, prepare
from mbdnode.training.refinement import refine
from mbdnode.trajectory import Dataset, Trajectory
from mbdnode.waiting_notice import counts_rows

_ADVICE = "Lower the learning rate, shorten the window, or use precision=float64."


class Roster:
    """The members' losses so far and how each of them ended.

    A member ends by itself: it diverges, or its loss has not fallen for `patience` epochs, as it
    would in a training of its own.

    **Arguments:**

    - `seeds`: one for each member.
    - `config`: of their training.
    """

    def __init__(self, seeds: Sequence[int], config: TrainingConfig):
        self.seeds, self.config = tuple(seeds), config
        self.losses: list[list[float]] = [[] for _ in seeds]
        self.interrupted = False
        self._diverged: dict[int, str] = {}
        self._stopped: set[int] = set()
        self._epochs = 0

    @property
    def flags(self) -> list[bool]:
        """For each member whether it goes on."""
        ended = self._stopped | set(self._diverged)
        return [not self.interrupted and i not in ended for i in range(len(self.seeds))]

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

    def note(self, losses: Any, made: Any) -> float | None:
        """Enter an epoch.

        **Arguments:**

        - `losses`, `made`: for each member and update, its loss and whether it was made.

        **Returns:**

        The mean loss of those that went through it; None if none did.
        """
        survived = []
        for i in np.flatnonzero(self.flags):
            if not np.all(made[i]):
                update = self._epochs * made.shape[1] + int(np.argmin(made[i]))
                self._diverged[int(i)] = f"update {update} (epoch {self._epochs})"
                continue
            self.losses[i].append(float(np.mean(losses[i])))
            survived.append(self.losses[i][-1])
            if self._is_stalled(self.losses[i]):
                self._stopped.add(int(i))
        if not survived:
            return None
        self._epochs += 1
        return float(np.mean(survived))

    def interrupt(self) -> None:
        """End all that go on."""
        self.interrupted = self.going

    @property
    def outcome(self) -> str:
        """How the ensemble's training ended, as a word."""
        if len(self._diverged) == len(self.seeds):
            return "diverged"
        if self.interrupted:
            return "interrupted"
        return "completed" if self.going else "stopped"

    @property
    def status(self) -> str:
        """The same as a sentence."""
        patience = self.config.patience
        done = f"after {self._epochs} of {self.config.epochs} epochs"
        if self.outcome == "diverged":
            first = next(iter(self._diverged.values()))
            return (
                "the loss or its gradient was not finite in any member, in the first of them at "
                f"{first}; the weights before it are kept. {_ADVICE}"
            )
        members = f"{len(self.counted)} members"
        parts = {
            "interrupted": f"interrupted {done} of {members}",
            "completed": f"completed {self._epochs} epochs of {members}",
            "stopped": f"stopped {done} of {members}: no loss had fallen for {patience}",
        }[self.outcome]
        if self._stopped and self.outcome != "stopped":
            parts += (
                f"; {self._named(self._stopped)} stopped before, no loss falling for {patience}"
            )
        if self._diverged:
            when = ", ".join(self._diverged[i] for i in sorted(self._diverged))
            parts += (
                f"; {self._named(self._diverged)} diverged at {when} and is left out. {_ADVICE}"
            )
        return parts

    def _named(self, members) -> str:
        return "seed " + ", ".join(str(self.seeds[i]) for i in sorted(members))

    def _is_stalled(self, losses: list[float]) -> bool:
        patience = self.config.patience
        if patience is None or len(losses) <= patience:
            return False
        return min(losses[-patience:]) >= min(losses[:-patience])


@dataclass(frozen=True)
class Refinements:
    """Where the members of an ensemble stand at the end of their training.

    **Arguments:**

    - `members`: the progress of each.
    - `losses`: the last loss of each.
    - `status`, `outcome`: how their refinement ended, as an addition to a sentence and as a word;
        empty if there was none.
    - `iterations`: how many were made, in all.
    - `compile_seconds`: that it took.
    """

    members: list[Progress]
    losses: list[float]
    status: str = ""
    outcome: str = ""
    iterations: int = 0
    compile_seconds: float = 0.0


def refine_members(
    tasks: Sequence[Task],
    given: Refinements,
    history: list[dict[str, Any]],
    report: Callable | None,
) -> Refinements:
    """Refine every member as `fit` would refine it alone.

    **Arguments:**

    - `tasks`: of each member, with its first weights and the data to fit.
    - `given`: where the members stand.
    - `history`: of the epochs; a row is added for each iteration, with the members' mean loss.
    - `report`: called with each of these rows, when all members are done.

    **Returns:**

    Where they stand now. Ctrl-C ends it after the running iteration; the members after that one
    are then as they were.
    """
    members, losses = list(given.members), list(given.losses)
    added: list[list[dict[str, Any]]] = []
    compile_s, outcome = 0.0, "completed"
    for number, (task, member) in enumerate(zip(tasks, given.members, strict=True)):
        # The regularization goes by the member's own loss, not by the mean of all.
        own = [*history[:-1], *({**row, "loss": losses[number]} for row in history[-1:])]
        members[number], outcome, _, seconds = refine(task, member, own, None, _keep_nothing)
        compile_s += seconds
        added.append(own[len(history) :])
        losses[number] = own[-1]["loss"]
        if outcome == "interrupted":
            break
    counts = [len(rows) for rows in added]
    for row in _merged(added, len(history)):
        history.append(row)
        if report is not None:
            report(row, tasks[0].config.epochs + tasks[0].config.refinement)
    status = f"; refined {min(counts)} to {max(counts)} times"
    if outcome == "interrupted":
        status = f"; interrupted in the refinement of member {len(counts)} of {len(members)}"
    return Refinements(members, losses, status, outcome, sum(counts), compile_s)


def _keep_nothing(progress: Progress, at_an_end: bool) -> None:
    """An ensemble has no checkpoint."""


def _merged(added: list[list[dict[str, Any]]], first: int) -> list[dict[str, Any]]:
    """One row an iteration; a member that has settled counts with its last loss."""
    rows = []
    for k in range(max(len(own) for own in added)):
        reached = [own[min(k, len(own) - 1)]["loss"] for own in added if own]
        spent = [own[k]["seconds"] for own in added if k < len(own)]
        rows.append(
            {
                "epoch": first + k,
                "loss": float(np.mean(reached)),
                "learning_rate": 0.0,
                "seconds": float(sum(spent)),
            }
        )
    return rows


# Of the networks of all members. Measured on one core of one machine, eight members, one window an
# update: below, side by side was faster (at a width of 128, 0.5 MB, by 1.1), above it slower (at
# 256, 2 MB, by 1.4).
_SMALL_BYTES = 2**20


@counts_rows
def fit_ensemble(
    model: Any,
    data: Dataset | Trajectory | AbstractStream,
    recipe: str | TrainingConfig = "paper",
    *,
    members: int = 8,
    seed: int = 0,
    report: Report | None = None,
) -> Fit:
    """Train several networks at once, from different seeds.

    **Arguments:**

    - `model`: what to train; its kind, its settings and its system count, its weights do not.
    - `data`: what all members learn from, as for `fit`.
    - `recipe`: a name, or a `TrainingConfig`. A law is the same for every seed, so there is no
        ensemble of laws.
    - `members`: how many.
    - `seed`: of the first member's weights and order of windows; the next have seed + 1, ...
    - `report`: called after every epoch with its row of the history and the number of epochs.

    **Returns:**

    A `Fit` whose model is an `Ensemble`. A member whose loss is not finite is left out of it and
    named in the status, unless it happens to all: then all are there, with their last good
    weights. In the history, `loss` is the mean over the members that were training; the
    diagnostics have the members' seeds and last losses.
    """
    config = training_config(recipe)
    check_training(model, config)
    _check(members, seed, config)
    stream = data if isinstance(data, AbstractStream) else None
    first = as_dataset(data.chunk(0) if isinstance(data, AbstractStream) else data)
    check_names(model, first)
    check_stream(model, stream)
    seeds = range(seed, seed + members)
    smooth = choose_smoother(model.body, first)
    models, task, progress = _begin(_drawn(model, seeds), smooth(first), config)

    def task_of(epoch: int) -> Task:
        """The same task with this epoch's data."""
        if stream is None or epoch == 0:
            return task
        fresh = prepare(models[0], smooth(stream.chunk(epoch)), config)[1].examples
        return eqx.tree_at(lambda t: t.objective.examples, task, cast(fresh, config.precision))

    roster, progress, history, compile_s = _train(task_of, progress, seeds, report)
    finished = [jax.tree.map(lambda x, i=i: x[i], progress) for i in roster.counted]
    ending = Refinements(finished, [roster.last_loss(i) for i in roster.counted])
    if config.refinement and roster.outcome in ("completed", "stopped"):
        shared = task_of(max(config.epochs - 1, 0))
        first_weights = [cast(models[i].network, config.precision) for i in roster.counted]
        own = [eqx.tree_at(lambda t: t.model.network, shared, w) for w in first_weights]
        ending = refine_members(own, ending, history, report)
    trained = [
        eqx.tree_at(lambda m: m.network, models[i], member.network)
        for i, member in zip(roster.counted, ending.members, strict=True)
    ]
    told = [task.objective.diagnose(one) for one in trained]
    return Fit(
        model=Ensemble(trained),
        history=history,
        status=roster.status + ending.status + smooth.status,
        outcome=ending.outcome or roster.outcome,
        updates=int(jnp.sum(progress.updates)) + ending.iterations,
        train_seconds=float(sum(row["seconds"] for row in history)),
        compile_seconds=compile_s + ending.compile_seconds,
        diagnostics={
            "seeds": [seeds[i] for i in roster.counted],
            "losses": ending.losses,
            **{name: [one[name] for one in told] for name in told[0]},
        },
    )


def _check(members: int, seed: int, config: TrainingConfig) -> None:
    if config.validation:
        raise UserError(
            f"validation is {config.validation}, which chooses a network and where its refinement "
            "stops; the members of an ensemble are all of one network, and trained to the end. "
            "Choose one with fit, and give it to fit_ensemble with validation=0."
        )
    if not isinstance(members, int) or members < 2:
        raise UserError(
            f"members is {members!r}; it must be a whole number, at least 2. Use fit for one."
        )
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}; it must be a whole number, not negative.")


def _drawn(model: AbstractModel, seeds: Sequence[int]) -> list[Any]:
    """A model like the given one for each seed."""
    settings = {f.name: getattr(model.settings, f.name) for f in fields(model.settings)}
    return [type(model).for_system(model.body, seed=seed, **settings) for seed in seeds]


def _begin(
    models: list[Any], data: Dataset, config: TrainingConfig
) -> tuple[list[Any], Task, Progress]:
    """The members scaled to the data, what they share in training, and their first states."""
    prepared = [prepare(model, data, config) for model in models]
    models = [model for model, _ in prepared]
    objective = cast(prepared[0][1], config.precision)
    in_precision = [cast(model, config.precision) for model in models]
    progress = jax.tree.map(
        lambda *x: jnp.stack(x), *(begin(model, objective) for model in in_precision)
    )
    return models, Task(in_precision[0], objective, config), progress


def _train(
    task_of, progress: Progress, seeds: Sequence[int], report: Report | None
) -> tuple[Roster, Progress, list[dict[str, Any]], float]:
    """All epochs, until no member is left that goes on."""
    config: TrainingConfig = task_of(0).config
    roster, history, compile_s = Roster(seeds, config), [], 0.0
    with noted_interrupts() as interrupt:
        for epoch in range(config.epochs):
            task = task_of(epoch)
            count = len(task.objective)
            tables = np.stack([batches(count, config, seed, epoch) for seed in seeds])
            rate = rates(config, epoch, tables.shape[1])
            start = time.perf_counter()
            with counted_compilation() as compilation:
                progress, losses, made = _epoch(task, progress, tables, rate)
            seconds = time.perf_counter() - start - compilation.seconds
            compile_s += compilation.seconds
            mean_loss = roster.note(losses, made)
            if mean_loss is None:
                break
            history.append(
                {
                    "epoch": epoch,
                    "loss": mean_loss,
                    "learning_rate": float(rate[0]),
                    "seconds": seconds,
                }
            )
            if report is not None:
                report(history[-1], config.epochs + config.refinement)
            if interrupt.requested:
                roster.interrupt()
            if not roster.going:
                break
            # A member that has stopped must not be moved any further.
            progress = eqx.tree_at(lambda p: p.alive, progress, jnp.asarray(roster.flags))
    return roster, progress, history, compile_s


def _epoch(task: Task, progress: Progress, tables, rate: np.ndarray):
    """One epoch of all members; losses and whether each update was made, by member."""
    kept = (task, jnp.asarray(tables), jnp.asarray(rate, task.config.precision))
    progress, losses, made = _run_epoch(kept, progress, _side_by_side(progress))
    if progress.multipliers.size:
        progress = _raise_multipliers(task, progress)
    return progress, np.asarray(losses), np.asarray(made)


@eqx.filter_jit(donate="all-except-first")
def _run_epoch(kept, progress: Progress, side_by_side: bool):
    """The engine's epoch for every member."""
    task, tables, rate = kept
    plain = run_epoch.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]
    one = lambda table, own: plain((task, table, rate), own)  # noqa: E731
    if side_by_side:
        return jax.vmap(one)(tables, progress)
    return jax.lax.map(lambda both: one(*both), (tables, progress))


def _side_by_side(progress: Progress) -> bool:
    """Whether members make their updates together, or each its epoch after the other's.

    Together the small operations of an update are shared. Large networks were slower so, probably
    because those of all members no longer fit in a core's cache.
    """
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(progress.network))
    return jax.default_backend() != "cpu" or size <= _SMALL_BYTES


@eqx.filter_jit
def _raise_multipliers(task: Task, progress: Progress) -> Progress:
    return jax.vmap(lambda own: raise_multipliers(task, own))(progress)
