"""`fit_ensemble`: the same training from several seeds, as one compiled program.

Each member starts from weights of its own and, where the order of the windows is drawn, sees them
in an order of its own; it learns what `fit` would have made of that seed. An epoch of all members
is one call of the engine's epoch, mapped over them.
"""

import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel, Ensemble
from mbdnode.training.compilation import counted_compilation
from mbdnode.training.config import TrainingConfig, get_recipe
from mbdnode.training.engine import Progress, Task, batches, begin, raise_multipliers, run_epoch
from mbdnode.training.fit import Report
from mbdnode.training.fitted import Fit
from mbdnode.training.given import as_dataset, cast, check_names, check_stream, choose_smoother
from mbdnode.training.interrupt import noted_interrupts
from mbdnode.training.objectives import check_training, prepare
from mbdnode.training.refined_members import Refinements, refine_members
from mbdnode.training.roster import Roster
from mbdnode.trajectory import Dataset, Trajectory

# Of the networks of all members. Measured on one core of one machine, eight members, one window an
# update: below, side by side was faster (at a width of 128, 0.5 MB, by 1.1), above it slower (at
# 256, 2 MB, by 1.4).
_SMALL_BYTES = 2**20


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
    - `recipe`: a name, or a `TrainingConfig`, whose method is "gradient".
    - `members`: how many.
    - `seed`: of the first member's weights and order of windows; the next have seed + 1, ...
    - `report`: called after every epoch with its row of the history and the number of epochs.

    **Returns:**

    A `Fit` whose model is an `Ensemble`. A member whose loss is not finite is left out of it and
    named in the status, unless it happens to all: then all are there, with their last good
    weights. In the history, `loss` is the mean over the members that were training; the
    diagnostics have the members' seeds and last losses.
    """
    config = get_recipe(recipe)
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
        ending = refine_members(task_of(max(config.epochs - 1, 0)), ending, history, report)
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
    if config.method != "gradient":
        raise UserError(
            f"The method {config.method!r} finds one law from the data, the same for every seed, "
            "so that an ensemble of seeds would agree with itself and say nothing. Use "
            "recipe='paper' or 'free', or another TrainingConfig with method='gradient'."
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
    drawn: list[Any], data: Dataset, config: TrainingConfig
) -> tuple[list[Any], Task, Progress]:
    """The members scaled to the data, what they share in training, and their first states."""
    prepared = [prepare(model, data, config) for model in drawn]
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
            task, rate = task_of(epoch), config.learning_rate * config.decay**epoch
            count = len(task.objective)
            tables = np.stack([batches(count, config, seed, epoch) for seed in seeds])
            start = time.perf_counter()
            with counted_compilation() as compilation:
                progress, losses, made = _epoch(task, progress, tables, rate)
            seconds = time.perf_counter() - start - compilation.seconds
            compile_s += compilation.seconds
            mean_loss = roster.note(losses, made)
            if mean_loss is None:
                break
            history.append(
                {"epoch": epoch, "loss": mean_loss, "learning_rate": rate, "seconds": seconds}
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


def _epoch(task: Task, progress: Progress, tables, rate: float):
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
