"""`fit`: train a network on data, and say how it went."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.cluster import calls_ahead
from mbdnode.config import from_dict, to_dict
from mbdnode.data import AbstractStream
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel
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
from mbdnode.training.epoch_checkpoint import (
    Checkpoint,
    Interrupt,
    digest,
    noted_interrupts,
    read_checkpoint,
    read_identity,
    write_checkpoint,
)
from mbdnode.training.network_selection import Choice, choose
from mbdnode.training.objectives import AbstractObjective, check_training, prepare
from mbdnode.training.refinement import is_refinement, refine
from mbdnode.trajectory import Dataset, Trajectory
from mbdnode.waiting_notice import counts_rows


@dataclass(frozen=True)
class Fit:
    """A trained model and how it came about.

    **Arguments:**

    - `model`: with the last good weights.
    - `history`: for each epoch its number, mean loss, learning rate and seconds; iterations of a
        refinement follow, with a learning rate of zero.
    - `status`: how training ended, as a sentence.
    - `outcome`: the same as a word: completed, stopped, interrupted, or diverged.
    - `updates`: how many were made, in all.
    - `train_seconds`, `compile_seconds`: apart from each other.
    - `diagnostics`: what a user should know of the trained model, by name.
    """

    model: Any
    history: list[dict[str, Any]]
    status: str
    outcome: str
    updates: int
    train_seconds: float
    compile_seconds: float
    diagnostics: dict[str, Any] = field(default_factory=dict)


Report = Callable[[dict[str, Any], int], None]


@counts_rows
def fit(
    model: Any,
    data: Dataset | Trajectory | AbstractStream,
    recipe: str | TrainingConfig = "paper",
    *,
    seed: int = 0,
    report: Report | None = None,
    checkpoint: Checkpoint | None = None,
    watch: Callable[[Any, list[dict[str, Any]]], None] | None = None,
    cluster: str | None = None,
) -> Fit:
    """Train a network, or the best of several.

    Data with noise that can be told from its motion is smoothed first, and the status says so.

    **Arguments:**

    - `model`: with its first weights; it is not changed. Of several in a list, the one with the
        smallest error on the validation split is trained.
    - `data`: what to learn from; nothing outside of it is ever seen. A stream gives new data for
        every epoch, and none of it is kept.
    - `recipe`: a key of `RECIPES`, or a `TrainingConfig`; laws are found by `identify`.
    - `seed`: of the order of the windows, where that is random.
    - `report`: called after every epoch with its row of the history and the number of epochs.
    - `checkpoint`: where to keep the state, so that a killed run can go on.
    - `watch`: called after every epoch and iteration of the chosen network with the model as it is
        then and the history, to follow an error of one's own; it changes nothing.
    - `cluster`: the address of a Dask scheduler, such as "tcp://127.0.0.1:8786", whose workers
        train those of several models that are compared after the first. The result has the same
        bits as here.

    **Returns:**

    A `Fit`. Ctrl-C ends training after the running epoch, with what has been learned so far, which
    is nothing while several are compared; a loss that is not finite ends it with the weights before
    that update. A refinement of a stream is on the data of its last epoch.
    """
    config = training_config(recipe)
    candidates = list(model) if isinstance(model, (list, tuple)) else [model]
    stream = data if isinstance(data, AbstractStream) else None
    first = as_dataset(data.chunk(0) if isinstance(data, AbstractStream) else data)
    _check_candidates(candidates, config)
    if cluster is not None and len(candidates) == 1:
        raise UserError(
            f"The cluster is {cluster!r}, but there is one model, which is trained in one process. "
            "Give several to choose from, or leave the cluster out."
        )
    for one in candidates:
        check_training(one, config)
        check_names(one, first)
        check_stream(one, stream)
    smooth = choose_smoother(candidates[0].body, first)
    choice, shifted = None, report
    if config.validation:
        choice = None if checkpoint is None else _noted_choice(checkpoint)
        chosen = _Comparison(config, len(candidates), report)
        with calls_ahead(None if choice else cluster) as calls:
            given = candidates, smooth(first), config, seed, chosen, checkpoint, calls
            choice = choice or choose(*given)
        if choice is None:
            return Fit(candidates[0], [], _NOT_CHOSEN, "interrupted", 0, 0.0, 0.0)
        shifted = chosen.rest
    model = candidates[0 if choice is None else choice.candidate]
    model, objective = prepare(model, smooth(first), config)
    in_precision, objective = cast((model, objective), config.precision)
    task = Task(in_precision, objective, config)
    begun = time.perf_counter()
    with counted_compilation() as compilation:
        progress, history = begin(in_precision, objective), []
    spent = time.perf_counter() - begun - compilation.seconds, compilation.seconds
    identity = _identity(in_precision, objective, config, seed)
    identity |= {} if choice is None else {"choice": to_dict(choice)}
    if checkpoint is not None and checkpoint.resume and checkpoint.path.is_file():
        progress, history = read_checkpoint(checkpoint.path, progress, identity)

    def task_of(epoch: int) -> Task:
        """The same task with this epoch's data."""
        if stream is None or epoch == 0:
            return task
        fresh = prepare(model, smooth(stream.chunk(epoch)), config)[1].examples
        fresh = cast(fresh, config.precision)
        return eqx.tree_at(lambda t: t.objective.examples, task, fresh)

    # All but the network is as it was given: training must not round a mechanism's own numbers.
    with_network = lambda network: eqx.tree_at(lambda m: m.network, model, network)  # noqa: E731

    def look(progress: Progress) -> None:
        if watch is not None:
            watch(with_network(progress.network), history)

    keeper = _Keeper(checkpoint, history, identity, look)
    progress, fit = _train(task_of, task, progress, history, seed, shifted, keeper, spent)
    if config.refinement and fit.outcome in ("completed", "stopped"):
        last = task_of(max(config.epochs - 1, 0))
        iterations = None if choice is None else choice.refinement
        fit = _refine(last, progress, fit, shifted, keeper, iterations)
    trained = with_network(fit.model.network)
    told = fit.status + smooth.status
    fit = replace(fit, model=trained, status=told, diagnostics=objective.diagnose(trained))
    return fit if choice is None else _with_choice(fit, choice, candidates)


_NOT_CHOSEN = "interrupted before a network was chosen; nothing is kept of it"


class _Comparison:
    """Counts the rows of all candidates, and those of the training that follows, as one."""

    def __init__(self, config: TrainingConfig, candidates: int, report: Report | None):
        self.each, self.candidates = config.epochs + config.refinement, candidates
        self.report, self.rows = report, 0

    def __call__(self, row: dict[str, Any], total: int) -> None:
        if self.report is not None:
            said = {"epoch": self.rows, "part": "comparing structures"}
            self.report(row | said, (self.candidates + 1) * self.each)
        self.rows += 1

    @property
    def rest(self) -> Report | None:
        """For the training that follows."""
        if self.report is None:
            return None
        report, before = self.report, self.rows
        part = {"part": "training the one that was chosen"}
        return lambda row, total: report(
            row | part | {"epoch": before + row["epoch"]}, before + total
        )


def _check_candidates(candidates: list[Any], config: TrainingConfig) -> None:
    if not candidates:
        raise UserError("fit was given no model. Give one, or several to choose from.")
    if len(candidates) > 1 and not config.validation:
        raise UserError(
            f"fit was given {len(candidates)} models, but validation is 0, so there is nothing to "
            "choose by. Give one model, or set validation to a part such as 0.2."
        )


def _noted_choice(checkpoint: Checkpoint) -> Choice | None:
    """The choice of the run that is to go on; whose run it is, is checked with all the rest."""
    if not (checkpoint.resume and checkpoint.path.is_file()):
        return None
    noted = read_identity(checkpoint.path).get("choice")
    return None if noted is None else from_dict(Choice, noted)


def _with_choice(fit: Fit, choice: Choice, candidates: list[Any]) -> Fit:
    """The fit, with what was chosen and what that took."""
    names = [getattr(model.settings, "structure", model.kind) for model in candidates]
    return replace(
        fit,
        status=f"{choice.describe(names)}; {fit.status}",
        train_seconds=fit.train_seconds + choice.seconds,
        compile_seconds=fit.compile_seconds + choice.compile_seconds,
        diagnostics={
            **fit.diagnostics,
            "validation_nrmse": choice.errors[choice.candidate],
            "selection_seconds": choice.seconds,
        },
    )


class _Keeper:
    """Writes checkpoints: now and then, and always at an end."""

    def __init__(
        self, checkpoint: Checkpoint | None, history: list[dict], identity: Any, look: Callable
    ):
        self.checkpoint, self.history, self.identity = checkpoint, history, identity
        self.look = look
        self.last_written = time.perf_counter()

    def __call__(self, progress: Progress, at_an_end: bool) -> None:
        self.look(progress)
        now = time.perf_counter()
        if self.checkpoint is None:
            return
        if at_an_end or now - self.last_written >= self.checkpoint.interval_s:
            write_checkpoint(self.checkpoint.path, progress, self.history, self.identity)
            self.last_written = time.perf_counter()

    def describe(self, status: str, outcome: str) -> str:
        """The status, with where to go on from."""
        if outcome != "interrupted" or self.checkpoint is None:
            return status
        return f"{status}; the state is in {self.checkpoint.path}"


def _train(
    task_of, task: Task, progress: Progress, history, seed, report, keeper: _Keeper, spent
) -> tuple[Progress, Fit]:
    """The epochs; the first one has the seconds that were spent on the start."""
    config, compile_s = task.config, spent[1]
    made_epochs = [row for row in history if not is_refinement(row)]
    ending = _ending(made_epochs, config, Interrupt())
    with noted_interrupts() as interrupt:
        for epoch in range(len(made_epochs), config.epochs if ending is None else 0):
            task = task_of(epoch)
            table = jnp.asarray(batches(len(task.objective), config, seed, epoch))
            rate = rates(config, epoch, len(table))
            start = time.perf_counter()
            progress, losses, made, compiled_s = _epoch(task, progress, table, rate)
            compile_s += compiled_s
            if not bool(progress.alive):
                ending = _diverged(int(np.argmin(made)), table.shape[0], epoch)
                break
            row = {
                "epoch": epoch,
                "loss": float(jnp.mean(losses)),
                "learning_rate": float(rate[0]),
                "seconds": time.perf_counter() - start - compiled_s + (0 if epoch else spent[0]),
            }
            history.append(row)
            if report is not None:
                report(row, config.epochs + config.refinement)
            ending = _ending(history, config, interrupt)
            keeper(progress, ending is not None or epoch + 1 == config.epochs)
            if ending is not None:
                break
    outcome, status = ending or ("completed", f"completed {config.epochs} epochs")
    return progress, Fit(
        model=task.with_network(progress.network),
        history=history,
        status=keeper.describe(status, outcome),
        outcome=outcome,
        updates=int(progress.updates),
        train_seconds=float(sum(row["seconds"] for row in history)),
        compile_seconds=compile_s,
    )


def _refine(task: Task, progress: Progress, fit: Fit, report, keeper, iterations) -> Fit:
    """What comes after the epochs."""
    progress, outcome, status, compile_s = refine(
        task, progress, fit.history, report, keeper, iterations
    )
    return replace(
        fit,
        model=task.with_network(progress.network),
        status=keeper.describe(f"{fit.status}; {status}" if fit.updates else status, outcome),
        outcome=outcome,
        updates=int(progress.updates),
        train_seconds=float(sum(row["seconds"] for row in fit.history)),
        compile_seconds=fit.compile_seconds + compile_s,
    )


def _diverged(first: int, length: int, epoch: int) -> tuple[str, str]:
    return "diverged", (
        f"the loss or its gradient was not finite at update {epoch * length + first} (epoch "
        f"{epoch}); the weights before it are kept. Lower the learning rate, shorten the window, "
        "or use precision=float64."
    )


def _ending(history, config: TrainingConfig, interrupt: Interrupt) -> tuple[str, str] | None:
    done = f"after {len(history)} of {config.epochs} epochs"
    if interrupt.requested:
        return "interrupted", f"interrupted {done}"
    if config.patience is None or len(history) <= config.patience:
        return None
    losses = [row["loss"] for row in history]
    if min(losses[-config.patience :]) < min(losses[: -config.patience]):
        return None
    return "stopped", f"stopped {done}: the loss had not fallen for {config.patience}"


def _epoch(task: Task, progress: Progress, table, rate: np.ndarray):
    """One epoch; the seconds that its compilation took are told apart."""
    kept = (task, table, jnp.asarray(rate, task.config.precision))
    with counted_compilation() as compilation:
        progress, losses, made = run_epoch(kept, progress)
        if progress.multipliers.size:
            progress = raise_multipliers(task, progress)
        jax.block_until_ready(losses)
    return progress, losses, np.asarray(made), compilation.seconds


def _identity(
    model: AbstractModel, objective: AbstractObjective, config: TrainingConfig, seed: int
) -> Any:
    """What two runs must share for one to go on from the other's checkpoint."""
    return {
        "model": to_dict(model.config),
        "training": to_dict(config),
        "seed": seed,
        "first weights": digest(model),
        "data": digest(objective.examples),
    }
