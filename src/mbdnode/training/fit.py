"""`fit`: train a network on data, or several of them, and say how it went."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.config import from_dict, to_dict
from mbdnode.data import AbstractStream
from mbdnode.data.smoothing import choose_smoother
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel, Ensemble
from mbdnode.models.paper_settings import configured
from mbdnode.naming import object_name
from mbdnode.parallel import workers
from mbdnode.recipes import TrainingConfig
from mbdnode.training.checkpoint import (
    Checkpoint,
    digest,
    read_checkpoint,
    read_identity,
    write_checkpoint,
)
from mbdnode.training.choose import Choice, choose
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.loss import objective_of
from mbdnode.training.prepare import as_dataset, cast, check_names, check_stream
from mbdnode.training.refine import refine_each
from mbdnode.training.train import (
    Progress,
    Report,
    Roster,
    Task,
    begin,
    train,
)
from mbdnode.trajectory import Dataset, Trajectory
from mbdnode.waiting_notice import counts_rows

# Called with a model and the history.
Callback = Callable[[Any, list[dict[str, Any]]], Any]
_NOT_CHOSEN = "interrupted before a network was chosen; nothing is kept of it"


@dataclass(frozen=True)
class Fit:
    """A trained model and how it came about.

    **Arguments:**

    - `model`: with the last good weights; of several members an `Ensemble`.
    - `history`: for each epoch its number, mean loss, learning rate and seconds; iterations of a
        refinement follow, with a learning rate of zero.
    - `status`: how training ended, as a sentence.
    - `outcome`: the same as a word: completed, stopped, interrupted, or diverged.
    - `updates`: how many were made, in all.
    - `train_seconds`, `compile_seconds`: apart from each other.
    - `diagnostics`: what a user should know of the trained model, by name.
    - `config`: by what it was trained: the recipe, with the paper's settings for this model.
    """

    model: Any
    history: list[dict[str, Any]]
    status: str
    outcome: str
    updates: int
    train_seconds: float
    compile_seconds: float
    diagnostics: dict[str, Any] = field(default_factory=dict)
    config: TrainingConfig | None = None


@counts_rows
def fit(
    model: Any,
    data: Dataset | Trajectory | AbstractStream,
    recipe: str | TrainingConfig = "paper",
    *,
    seed: int = 0,
    members: int | None = None,
    report: Report | None = None,
    checkpoint: Checkpoint | None = None,
    callback: Callback | None = None,
    optimizer: Any = None,
    schedule: Any = None,
    loss: Any = None,
    weights: Mapping[str, float] | None = None,
    validation: Dataset | Trajectory | None = None,
    device: Any = None,
    cluster: str | None = None,
    watch: Callback | None = None,
) -> Fit:
    """Train a network, or the best of several, or several from different seeds.

    Data with noise that can be told from its motion is smoothed first, and the status says so.

    **Arguments:**

    - `model`: with its first weights; it is not changed. Of several in a list, the one with the
        smallest error on the validation split is trained.
    - `data`: what to learn from; nothing outside of it is ever seen. A stream gives new data for
        every epoch, and none of it is kept.
    - `recipe`: a key of `RECIPES`, with the paper's settings for this model and system where the
        recipe is the paper's; or a `TrainingConfig`. Laws are found by `identify`.
    - `seed`: of the order of the windows, where that is random.
    - `members`: train so many networks like this one, from weights and orders of `seed`,
        `seed` + 1, ... Each learns what it would alone. The model is then an `Ensemble`, without
        those that diverged, unless all did; in the history, `loss` is the mean over the members
        that were training, and the diagnostics have their seeds and last losses.
    - `report`: called after every epoch with its row of the history and the number of epochs.
    - `checkpoint`: where to keep the state, so that a killed run can go on.
    - `callback`: called after every epoch and iteration of the chosen network with the model as it
        is then and the history. Where it returns True after an epoch, the epochs end.
    - `optimizer`: of Optax, such as `optax.adamw(1e-3)`, in place of Adam. It has a learning rate
        of its own, so the recipe's is not used; `schedule` multiplies its steps.
    - `schedule`: from the number of the update to the learning rate, such as those of Optax; or its
        name, `module:name`.
    - `loss`: a function of the errors of a window, with a row for each step and columns for
        positions and velocities, in place of their mean square; or a class of objectives
        (`AbstractObjective`), for a training of one's own.
    - `weights`: how much the squared error of each coordinate and velocity counts, by name; 1 for
        those that are not named.
    - `validation`: other data, whose loss after every epoch is `validation_loss` in the history. It
        trains nothing.
    - `device`: where to compute: "cpu", "gpu", or a device of JAX; JAX's own choice if None.
    - `cluster`: the address of a Dask scheduler, such as "tcp://127.0.0.1:8786", whose workers
        train those of several models that are compared after the first. The result has the same
        bits as here.
    - `watch`: the former name of `callback`.

    **Returns:**

    A `Fit`. Ctrl-C ends training after the running epoch, with what has been learned so far, which
    is nothing while several are compared; a loss that is not finite ends it with the weights before
    that update. A refinement of a stream is on the data of its last epoch.
    """
    if device is not None:
        given = {name: value for name, value in locals().items() if name != "device"}
        with jax.default_device(_device(device)):
            return fit(**given)
    if watch is not None:
        warnings.warn("watch is called callback.", DeprecationWarning, stacklevel=2)
        callback = watch
    _check_kinds(optimizer=optimizer, loss=loss, callback=callback, checkpoint=checkpoint)
    candidates = list(model) if isinstance(model, (list, tuple)) else [model]
    config, told = configured(recipe, _first_of(candidates))
    if schedule is not None or optimizer is not None:
        config = replace(config, schedule=_constant if schedule is None else schedule)
    _check_own(config, optimizer=optimizer, loss=loss, weights=weights, validation=validation)
    stream = data if isinstance(data, AbstractStream) else None
    first = as_dataset(data.chunk(0) if isinstance(data, AbstractStream) else data)
    _check_candidates(candidates, config, cluster)
    _check_members(members, seed, config)
    for one in candidates:
        objective_of(one, loss, config).check(one, config)
        check_names(one, first)
        check_stream(objective_of(one, loss, config), one, stream)
    smooth = choose_smoother(candidates[0].body, first)
    choice, shifted = None, report
    if config.validation:
        choice = None if checkpoint is None else _noted_choice(checkpoint)
        chosen = _Comparison(config, len(candidates), report)
        place = cluster if choice is None else None
        with nullcontext() if place is None else workers(place) as crew:
            given = candidates, smooth(first), config, seed, chosen, checkpoint, crew
            choice = choice or choose(*given)
        if choice is None:
            return Fit(candidates[0], [], _NOT_CHOSEN, "interrupted", 0, 0.0, 0.0, config=config)
        shifted = chosen.rest
    model = candidates[0 if choice is None else choice.candidate]
    several = members is not None
    seeds = tuple(range(seed, seed + (members or 1)))
    kind = objective_of(model, loss, config)

    def prepare(model: Any, data: Dataset) -> tuple[Any, Any]:
        """The model and its objective, with what a user brings along."""
        model, objective = kind.prepare(model, smooth(data), config)
        if weights is not None:
            objective = objective.weighted(model, weights)
        if loss is not None and not isinstance(loss, type):
            objective = objective.measured_by(model, loss)
        return model, objective

    starts = _drawn(model, seeds) if several else [model]
    models, objectives = zip(*(prepare(one, first) for one in starts), strict=True)
    networks = _Networks(models, several)
    in_precision, objective = cast((models, objectives[0]), config.precision)
    task = Task(in_precision[0], objective, config, *([] if optimizer is None else [optimizer]))
    validate = None
    if validation is not None:
        other = as_dataset(validation)
        check_names(models[0], other)
        held = cast(objectives[0].on(models[0], smooth(other)), config.precision)
        validate = lambda each: float(_mean_loss(task, held, each, several))  # noqa: E731

    def task_of(epoch: int) -> Task:
        """The same task with this epoch's data."""
        if stream is None or epoch == 0:
            return task
        fresh = prepare(models[0], stream.chunk(epoch))[1].examples
        return eqx.tree_at(lambda t: t.objective.examples, task, cast(fresh, config.precision))

    begun = time.perf_counter()
    with counted_compilation() as compilation:
        progress = networks.joined([begin(one, objective, task.optimizer) for one in in_precision])
    spent = time.perf_counter() - begun - compilation.seconds
    identity = _identity(in_precision, objective, config, seed) | _own_identity(loss, weights)
    identity |= {} if choice is None else {"choice": to_dict(choice)}
    history: list[dict[str, Any]] = []
    if checkpoint is not None and checkpoint.resume and checkpoint.path.is_file():
        progress, history = read_checkpoint(checkpoint.path, progress, identity)
    roster = Roster(seeds, config, history)
    keep = _Keeper(checkpoint, history, identity, networks, callback)
    progress, compile_s = train(task_of, progress, roster, history, shifted, keep, spent, validate)
    counted, status, outcome = roster.counted, roster.status, roster.outcome
    ended = [networks.apart(progress)[i] for i in counted]
    losses, updates = [roster.last_loss(i) for i in counted], int(np.sum(progress.updates))
    if config.refinement and outcome in ("completed", "stopped"):
        last = task_of(max(config.epochs - 1, 0))
        tasks = [
            eqx.tree_at(lambda t: t.model.network, last, in_precision[i].network) for i in counted
        ]
        iterations = None if choice is None else choice.refinement
        before = sum(int(one.updates) for one in ended)
        # A checkpoint has the state of all members.
        given = tasks, ended, losses, history, shifted, None if several else keep, iterations
        ended, outcome, refined, seconds = refine_each(*given)
        updates += sum(int(one.updates) for one in ended) - before
        status = f"{status}; {refined}" if roster.epochs else refined
        compile_s += seconds
    trained = networks.trained([one.network for one in ended], counted)
    each = [objective.diagnose(one) for one in (trained if several else [trained])]
    diagnostics = each[0]
    if several:
        lists = {name: [one[name] for one in each] for name in diagnostics}
        diagnostics = {"seeds": [seeds[i] for i in counted], "losses": losses, **lists}
    found = Fit(
        model=trained,
        history=history,
        status=keep.describe(status, outcome) + smooth.status + told,
        outcome=outcome,
        updates=updates,
        train_seconds=float(sum(row["seconds"] for row in history)),
        compile_seconds=compilation.seconds + compile_s,
        diagnostics=diagnostics,
        config=config,
    )
    return found if choice is None else _with_choice(found, choice, candidates)


def fit_ensemble(
    model: Any, data: Any, recipe: str | TrainingConfig = "paper", *, members: int = 8, **given: Any
) -> Fit:
    """`fit` of `model`, `data`, `recipe` and `members` by its former name; `given` as there."""
    warnings.warn(
        "fit_ensemble is fit(..., members=8) now; the old name goes with the next release.",
        DeprecationWarning,
        stacklevel=2,
    )
    return fit(model, data, recipe, members=members, **given)


def _first_of(candidates: list[Any]) -> Any:
    if not candidates:
        raise UserError("fit was given no model. Give one, or several to choose from.")
    objective_of(candidates[0])
    return candidates[0]


def _check_candidates(candidates: list[Any], config: TrainingConfig, cluster: str | None) -> None:
    if len(candidates) > 1 and not config.validation:
        raise UserError(
            f"fit was given {len(candidates)} models, but validation is 0, so there is nothing to "
            "choose by. Give one model, or set validation to a part such as 0.2."
        )
    if cluster is not None and len(candidates) == 1:
        raise UserError(
            f"The cluster is {cluster!r}, but there is one model, which is trained in one process. "
            "Give several to choose from, or leave the cluster out."
        )


def _constant(update: int) -> float:
    """The schedule of an optimizer that has one of its own."""
    return 1.0


def _device(device: Any) -> Any:
    """A device of JAX, by its platform's name or as it is."""
    if not isinstance(device, str):
        return device
    try:
        return jax.devices(device)[0]
    except RuntimeError as error:
        known = ", ".join(sorted({one.platform for one in jax.devices()}))
        raise UserError(
            f"device is {device!r}, which JAX does not have here ({known}). Install JAX for it, or "
            "leave it out."
        ) from error


# What an argument must be, and how a user is told.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "optimizer": (
        lambda x: hasattr(x, "init") and hasattr(x, "update"),
        "one of Optax, such as optax.adamw(1e-3)",
    ),
    "loss": (callable, "a function of the errors, or a class of objectives"),
    "callback": (callable, "a function of the model and the history"),
    "checkpoint": (
        lambda x: isinstance(x, Checkpoint),
        "a mbdnode.training.Checkpoint(path)",
    ),
}


def _check_kinds(**given: Any) -> None:
    """Raise `UserError` for an argument of a wrong type."""
    for name, (fits, kind) in _KINDS.items():
        if given[name] is not None and not fits(given[name]):
            raise UserError(f"{name} is {given[name]!r}; give {kind}.")


def _check_own(config: TrainingConfig, **own: Any) -> None:
    """Raise `UserError` for what the comparison of networks does not take."""
    given = [name for name, value in own.items() if value is not None]
    if given and config.validation:
        raise UserError(
            f"{', '.join(given)} cannot be given with a recipe whose validation is "
            f"{config.validation}, which compares networks on a part of the data. Set it to 0."
        )
    if own["optimizer"] is not None and config.refinement:
        raise UserError(
            f"optimizer is given and refinement is {config.refinement}. Set the refinement to 0."
        )


@eqx.filter_jit
def _mean_loss(task: Task, objective: Any, networks: Any, several: bool) -> Any:
    """Of networks on other data."""

    def one(network):
        loss = lambda example: objective.prediction_loss(task.with_network(network), example)  # noqa: E731
        return jnp.mean(jax.vmap(loss)(objective.examples))

    return jnp.mean(jax.vmap(one)(networks)) if several else one(networks)


def _check_members(members: int | None, seed: int, config: TrainingConfig) -> None:
    if members is None:
        return
    if config.validation:
        raise UserError(
            f"validation is {config.validation}, which chooses a network and where its refinement "
            "stops; the members of an ensemble are all of one network, and trained to the end. "
            "Choose one with fit, and give it with members and validation=0."
        )
    if not isinstance(members, int) or members < 2:
        raise UserError(
            f"members is {members!r}; it must be a whole number, at least 2. Leave it out for one."
        )
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}; it must be a whole number, not negative.")


def _drawn(model: AbstractModel, seeds: Sequence[int]) -> list[Any]:
    """The model with first weights for each seed; all else, such as a law, is as it was given."""
    settings = {f.name: getattr(model.settings, f.name) for f in fields(model.settings)}
    fresh = [type(model).for_system(model.body, seed=seed, **settings).network for seed in seeds]
    if eqx.tree_equal(fresh[0], fresh[1]):
        raise UserError(
            "All members would start from the same weights: the network was given with them. Give "
            "make(count_in, count_out, seed), which draws them."
        )
    return [eqx.tree_at(lambda m: m.network, model, network) for network in fresh]


class _Networks:
    """The networks that are trained: one, or those of several members."""

    def __init__(self, models: Sequence[Any], several: bool):
        self.models, self.several = models, several

    def joined(self, trees: list[Any]) -> Any:
        """One tree, with an axis of members where there are several."""
        return jax.tree.map(lambda *x: jnp.stack(x), *trees) if self.several else trees[0]

    def apart(self, tree: Any) -> list[Any]:
        """The parts of such a tree."""
        if not self.several:
            return [tree]
        return [jax.tree.map(lambda x, i=i: x[i], tree) for i in range(len(self.models))]

    def trained(self, networks: Sequence[Any], which: Sequence[int]) -> Any:
        """The models with these networks.

        All else is as it was given: training must not round a mechanism's own numbers.
        """
        pairs = zip(which, networks, strict=True)
        found = [eqx.tree_at(lambda m: m.network, self.models[i], network) for i, network in pairs]
        return Ensemble(found) if self.several else found[0]


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
    """Calls the callback, and writes checkpoints: now and then, and always at an end."""

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        history: list[dict],
        identity: Any,
        networks: _Networks,
        callback: Callback | None,
    ):
        self.checkpoint, self.history, self.identity = checkpoint, history, identity
        self.networks, self.callback = networks, callback
        self.last_written = time.perf_counter()

    def __call__(self, progress: Progress, at_an_end: bool) -> bool:
        ends = self.callback is not None and bool(self._called(self.callback, progress))
        now = time.perf_counter()
        if self.checkpoint is None:
            return ends
        if ends or at_an_end or now - self.last_written >= self.checkpoint.interval_s:
            write_checkpoint(self.checkpoint.path, progress, self.history, self.identity)
            self.last_written = time.perf_counter()
        return ends

    def _called(self, callback: Callback, progress: Progress) -> Any:
        each = self.networks.apart(progress.network)
        return callback(self.networks.trained(each, range(len(each))), self.history)

    def describe(self, status: str, outcome: str) -> str:
        """The status, with where to go on from."""
        if outcome != "interrupted" or self.checkpoint is None:
            return status
        return f"{status}; the state is in {self.checkpoint.path}"


def _identity(models: Any, objective: Any, config: TrainingConfig, seed: int) -> dict[str, Any]:
    """What two runs must share for one to go on from the other's checkpoint."""
    return {
        "model": to_dict(models[0].config),
        "training": to_dict(config),
        "seed": seed,
        "first weights": digest(models),
        "data": digest(objective.examples),
    }


def _own_identity(loss: Any, weights: Mapping[str, float] | None) -> dict[str, Any]:
    """The same of what a user brings along; a function without a name is like any other."""
    found: dict[str, Any] = {} if weights is None else {"weights": dict(weights)}
    if loss is not None:
        name = object_name(loss)
        found["loss"] = "" if name.startswith("<") else name
    return found
