"""Choose among networks, and when to stop, on a validation split of the training data.

The last part of every run is held back (of runs that are too short for that, the last of them).
Each candidate is trained on the rest; after each iteration of its refinement, what was held back is
predicted from its first state on. The candidates come in turn until one is good. The one with the
smallest error is trained again on all of the data, for as many iterations of the refinement as did
not make that error worse. What Adam alone predicts does not count where a refinement follows: on a
chaotic motion it was at times better by luck, and then nothing was refined.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import to_dict
from mbdnode.errors import UserError
from mbdnode.formatting import percent
from mbdnode.models.base import has_nonholonomic
from mbdnode.models.objective import mean_and_spread
from mbdnode.parallel import Workers
from mbdnode.recipes import TrainingConfig
from mbdnode.training.checkpoint import (
    Checkpoint,
    digest,
    read_errors,
    write_errors,
)
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.interrupts import noted_interrupts
from mbdnode.training.loss import check_training, objective_of
from mbdnode.training.prepare import Units, Windows, cast, cut
from mbdnode.training.refine import refine
from mbdnode.training.train import Report, Roster, Task, begin, train
from mbdnode.trajectory import Dataset, Trajectory

# Runs with fewer steps are held back whole.
_LONG = 20
# Iterations of the refinement that a candidate has at most: those who are still better then
# are not stopped. A hybrid has all of them: it is small, and begins so near to the data that what
# it predicts may get worse before it gets better.
_ITERATIONS = 10
# An error that is larger than the smallest one by less than this factor is no worse.
_SAME = 2.0
# A candidate whose NRMSE is at most this is good: those after it are not tried.
_GOOD = 1e-4


@dataclass(frozen=True)
class Choice:
    """What was chosen on the validation split.

    **Arguments:**

    - `candidate`: its place among the candidates.
    - `refinement`: how many iterations it is to have on all of the data.
    - `errors`: the smallest NRMSE of each candidate that was tried, on the validation split; inf if
        it diverged.
    - `seconds`, `compile_seconds`: that it took to train them.
    """

    candidate: int
    refinement: int
    errors: tuple[float, ...]
    seconds: float
    compile_seconds: float

    def describe(self, names: Sequence[str]) -> str:
        """What was chosen, as a part of a sentence."""
        told = [f"{name} {percent(error)}" for name, error in zip(names, self.errors, strict=False)]
        if len(names) == 1:
            return f"validation NRMSE {percent(self.errors[0])}"
        return f"chose {names[self.candidate]} by validation NRMSE ({', '.join(told)})"


def structures_to_try(system: Any, structures: Sequence[str]) -> tuple[str, ...]:
    """Of a recipe's structures, those that suit a system; none where there is no choice.

    **Arguments:**

    - `system`: that networks are to be models of.
    - `structures`: of the recipe, the usual one first.
    """
    # Lagrange's equations of minimal coordinates lack the forces of nonholonomic constraints.
    lagrangian = not has_nonholonomic(system)
    suited = tuple(name for name in structures if name != "lagrangian" or lagrangian)
    return suited if len(suited) > 1 else ()


def make_candidates(
    kind: type[Any],
    system: Any,
    config: TrainingConfig,
    structures: Sequence[str],
    seed: int,
    settings: Mapping[str, Any],
) -> list[Any]:
    """Untrained networks to choose from.

    **Arguments:**

    - `kind`: of the networks.
    - `system`: that they are models of.
    - `config`: of their training.
    - `structures`: one for each; empty for the one of the settings.
    - `seed`: of their first weights.
    - `settings`: what they share.

    **Returns:**

    A list. Raises `UserError` for one that cannot be trained like this.
    """
    own = [{**settings, "structure": name} for name in structures] or [dict(settings)]
    found = [kind.for_system(system, seed=seed, **one) for one in own]
    for model in found:
        check_training(model, config)
    return found


def choose(
    models: Sequence[Any],
    data: Dataset,
    config: TrainingConfig,
    seed: int,
    report: Report,
    checkpoint: Checkpoint | None = None,
    workers: Workers | None = None,
) -> Choice | None:
    """Train every candidate on a part of the data, and compare them on the rest.

    The choice; None if Ctrl-C came before it was made.
    """
    training, held = split(data, config.validation)
    found = []
    start = time.perf_counter()
    with counted_compilation() as compilation, noted_interrupts() as interrupt:
        known = lambda number: _known(models[number], data, training, held, config, seed)  # noqa: E731
        ahead: dict[int, Future[Any]] = {}
        if workers is not None:
            workers.share(training, held)
            for number in range(1, len(models)):
                count, identity = known(number)
                if read_errors(checkpoint, number, identity) is None:
                    given = models[number], training, held, count, config, seed
                    ahead[number] = workers.submit(train_and_predict, *given)
        for number, model in enumerate(models):
            count, identity = known(number)
            errors = read_errors(checkpoint, number, identity)
            if errors is None:
                if workers is not None and number in ahead:
                    errors = workers.result(ahead[number])
                    errors = None if interrupt.requested else errors
                else:
                    errors = _errors_of(model, training, held, count, config, seed, report)
                if errors is None:
                    return None
                if checkpoint is not None:
                    write_errors(checkpoint, number, errors, identity)
                if interrupt.requested:  # In the last iteration, after which there was no more.
                    return None
            found.append(errors)
            if np.min(errors) <= _GOOD:
                break
        for future in ahead.values():
            future.cancel()
    best = int(np.argmin([np.min(errors) for errors in found]))
    errors = found[best]
    good = int(np.flatnonzero(errors <= _SAME * np.min(errors))[-1]) + 1
    return Choice(
        candidate=best,
        refinement=good if config.refinement and good < len(errors) else config.refinement,
        errors=tuple(float(np.min(errors)) for errors in found),
        seconds=time.perf_counter() - start - compilation.seconds,
        compile_seconds=compilation.seconds,
    )


def _known(
    model: Any, data: Dataset, training: Dataset, held: Dataset, config: TrainingConfig, seed: int
) -> tuple[int, dict[str, Any]]:
    """How many windows the data has, and what decides the errors of a candidate."""
    count = len(cut(model, data, config.window))
    return count, {
        "model": to_dict(model.config),
        "training": to_dict(config),
        "seed": seed,
        "first weights": digest(model),
        "data": digest((training.trajectories, training.parameters, held.trajectories, count)),
    }


def train_and_predict(
    model: Any, training: Dataset, held: Dataset, count: int, config: TrainingConfig, seed: int
) -> np.ndarray | None:
    """On a worker: the errors of one candidate on the validation split."""
    return _errors_of(model, training, held, count, config, seed, None)


def _errors_of(
    model, training, held, count, config: TrainingConfig, seed, report
) -> np.ndarray | None:
    """The validation NRMSE after every iteration of the refinement; after Adam without one."""
    model, objective = objective_of(model, None, config).prepare(model, training, config)
    # Some windows twice, to be as many as in all of the data: the same compiled programs serve.
    again = np.resize(np.arange(len(objective)), count)
    examples = jax.tree.map(lambda x: jax.device_put(np.asarray(x)[again]), objective.examples)
    objective = eqx.tree_at(lambda o: o.examples, objective, examples)
    model, objective = cast((model, objective), config.precision)
    task, roster = Task(model, objective, config), Roster((seed,), config, [])
    history: list[dict[str, Any]] = []
    begun, keep = begin(model, objective), lambda progress, at_an_end: False
    progress, _ = train(lambda epoch: task, begun, roster, history, report, keep, 0.0)
    if roster.interrupted:
        return None
    windows, units = cast(_rollouts(model, training, held), config.precision)
    errors = [_nrmse(task, windows, units, progress.network)]

    def watch(progress, at_an_end):
        errors.append(_nrmse(task, windows, units, progress.network))

    hybrid = getattr(model, "corrected", None) is not None
    iterations = config.refinement if hybrid else min(config.refinement, _ITERATIONS)
    if iterations and bool(progress.alive):
        outcome = refine(task, progress, history, report, watch, iterations)[1]
        if outcome == "interrupted":
            return None
    found = np.asarray(jnp.stack(errors[1:] or errors))
    return np.where(np.isfinite(found), found, np.inf)


def _rollouts(model: Any, training: Dataset, held: Dataset) -> tuple[Windows, Units]:
    """What was held back in segments of equal length, and the spread of the training data."""
    steps = min(len(run) - 1 for run in held.trajectories)
    known = cut(model, training, 1)
    return cut(model, held, steps), (mean_and_spread(known.q)[1], mean_and_spread(known.v)[1])


@eqx.filter_jit
def _nrmse(task: Task, windows: Windows, units: Units, network: Any) -> Float[Array, ""]:
    objective: Any = replace(task.objective, units=units)
    one = lambda window: objective.prediction_errors(task.with_network(network), window)  # noqa: E731
    return jnp.sqrt(jnp.mean(jax.vmap(one)(windows) ** 2))


def split(data: Dataset, part: float) -> tuple[Dataset, Dataset]:
    """What to train on, and what to hold back.

    Both. Raises `UserError` for data that is too short for it.
    """
    pairs = list(zip(data.trajectories, data.parameters, strict=True))
    if min(len(run) - 1 for run in data.trajectories) >= _LONG:
        both = [_cut_rows(run, part) for run in data.trajectories]
        kept, held = zip(*both, strict=True)
        return Dataset(kept, data.parameters), Dataset(held, data.parameters)
    if len(pairs) == 1 and pairs[0][0].t.ndim == 2:
        kept, held = _cut_members(*pairs[0], part)
    else:
        first = round(len(pairs) * (1 - part))
        kept, held = pairs[:first], pairs[first:]
    if not kept or not held:
        raise UserError(
            f"validation is {part}, but the training data has {len(pairs)} run(s) of at most "
            f"{max(len(run) for run in data.trajectories) - 1} steps, too few to hold some of them "
            f"back. Give at least {_LONG} steps, or set validation=0."
        )
    made = lambda side: Dataset([run for run, _ in side], [own for _, own in side])  # noqa: E731
    return made(kept), made(held)


def _cut_rows(run: Trajectory, part: float) -> tuple[Trajectory, Trajectory]:
    """One run, or every run of a batch, in two; both have the row between them."""
    rows = len(run)
    at = round((rows - 1) * (1 - part))
    axis = run.t.ndim - 1

    def taken(first: int, last: int) -> Trajectory:
        place = (slice(None),) * axis + (slice(first, last + 1),)
        own = lambda x: jnp.asarray(np.asarray(x)[place]) if x.ndim > axis else x  # noqa: E731
        return jax.tree.map(own, run)

    return taken(0, at), taken(at, rows - 1)


def _cut_members(run: Trajectory, values: Any, part: float):
    """The first members of a batch, and the last ones."""
    count = run.t.shape[0]
    at = round(count * (1 - part))

    def taken(which: slice) -> list[tuple[Trajectory, dict[str, Any]]]:
        if not len(range(count)[which]):
            return []
        own = {k: x if np.ndim(x) == 0 else np.asarray(x)[which] for k, x in values.items()}
        return [(jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[which]), run), own)]

    return taken(slice(0, at)), taken(slice(at, None))
