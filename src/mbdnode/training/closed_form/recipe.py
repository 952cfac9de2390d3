"""The recipes `fast` and `best`: candidates from simple to rich, chosen on a held-out tail.

Every candidate is fitted to the first part of each run and rolled out over the rest of its
training range (draws have no order: some of them are held out; of very many runs, the ends of a
few dozen are predicted, drawn evenly). The first that is exact, or as
near as noise lets one see, is taken; if none is, the simplest of those that do nearly as well as
the best. It is then fitted again to all of the data. Nothing after the training range is ever read.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models.base import minimal_coordinates
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.library import Forces, Known
from mbdnode.training.closed_form.candidates import candidates, most_candidates
from mbdnode.training.closed_form.rows import (
    Noise,
    Rows,
    estimate_noise,
    filled_up,
    rows_of,
    single_trajectories,
    varying,
)
from mbdnode.training.closed_form.tails import (
    Tails,
    held_out_error,
    integrator_error,
    judged,
    make_tails,
    noise_in,
)
from mbdnode.training.closed_form.task import Candidate, Task
from mbdnode.trajectory import Dataset, Trajectory

_HELD_OUT = 0.2
_SHORTEST = 10
# An error of this size, relative to the motion, is round-off: nothing richer can do better.
_EXACT = 1e-8
# Errors below this may be those of a good integrator.
_INTEGRATORS_OWN = 1e-5
# What is not polished does not become exact, and stops at what people call accurate.
_ACCURATE = 3e-4
# A simpler candidate is taken if its error is within this factor of the best one's; of errors that
# are mostly noise, the differences mean more.
_NEARLY, _NEARLY_IN_NOISE = 3.0, 1.2
_WHILE = 10

# Called with what is being done ("form", "chunk"), how many are, of how many at most, and the least
# error so far.
Tell = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Trial:
    """A candidate, its error on what was held out, and the model that made it."""

    candidate: Candidate
    error: float
    model: Any


@dataclass(frozen=True)
class Choice:
    """What the recipe decided.

    **Arguments:**

    - `model`: fitted to all of the data.
    - `trials`: every candidate that was tried, in order.
    - `chosen`: one of them.
    - `noise`: that was found in the data.
    - `floor`: the error that the noise alone makes on what was held out.
    - `seconds`: what it took, compilation included.
    """

    model: Any
    trials: tuple[Trial, ...]
    chosen: Trial
    noise: Noise
    floor: float
    seconds: float


def fit_closed_form(
    system: Any,
    data: Dataset,
    *,
    integrator: str,
    polished: bool,
    seed: int,
    structure: str = "chosen",
    known: Known = "nothing",
    forces: Forces = "inputs",
    more: Callable[[], Iterator[Dataset]] | None = None,
    chunks: int = 1,
    tell: Tell | None = None,
) -> Choice:
    """Learn a system's accelerations without gradient descent.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `data`: the training range.
    - `integrator`: that made the data, or one that is exact enough at its step.
    - `polished`: fit the steps of the integrator to the last digit.
    - `seed`: of drawn features.
    - `structure`: one family of candidates, or "chosen" for all of them.
    - `known`: what of the system need not be learned.
    - `forces`: whether what the inputs do is learned, or added as the mechanism has it.
    - `more`: gives further data, piece by piece, as often as it is called. The choice is made on
        `data` alone; what is linear in its unknowns is then fitted to all.
    - `chunks`: how many pieces there are, the first included.
    - `tell`: called for every candidate and every piece.

    **Returns:**

    A `Choice`.
    """
    start = time.perf_counter()
    minimal = minimal_coordinates(system)
    rows = rows_of(system, minimal, data)
    early, tails = _split(system, minimal, data)
    noise = estimate_noise(early)
    early = filled_up(early, len(rows))
    trials: list[Trial] = []

    def say(what: str, done: int, total: int) -> None:
        if tell is not None:
            tell(what, done, total, min((trial.error for trial in trials), default=np.inf))

    def all_rows() -> Iterator[Rows]:
        yield rows
        for number, piece in enumerate(more() if more is not None else (), start=2):
            say("chunk", number, chunks)
            yield rows_of(system, minimal, piece, accelerations=False)

    task = Task(
        system,
        get_integrator(integrator),
        polished,
        seed,
        noise,
        varying(rows),
        structure,
        known,
        forces,
        None if more is None else all_rows,
    )
    # What was rounded on its way here cannot be met more closely either.
    floor = noise_in(tails, noise)
    enough = max(_EXACT if polished else _ACCURATE, _NEARLY_IN_NOISE * floor)
    for candidate in candidates(task, early):
        model = candidate.fit(early)
        error = np.inf if model is None else held_out_error(task, model, tails)
        trials.append(Trial(candidate, error, model))
        say("form", len(trials), most_candidates(task))
        if error < enough or (noise.matters and _stalled(trials)):
            break
        if error < _INTEGRATORS_OWN and task.integrator.order >= 4 and not noise.matters:
            # Data of another integrator cannot be met more closely than this one is exact.
            enough = max(enough, 2 * integrator_error(task, model, tails))
            if error < enough:
                break
    chosen = _choose(trials, enough, _NEARLY_IN_NOISE if noise.matters else _NEARLY)
    model = chosen.candidate.fit(rows)
    if model is None:
        model = chosen.model  # All of the data defeats what a part of it supports.
    if isinstance(model, LearnedMechanism):
        model = model.without_zeros()
    return Choice(model, tuple(trials), chosen, noise, floor, time.perf_counter() - start)


def _stalled(trials: list[Trial]) -> bool:
    """Whether richer candidates have not done better for a while; the rest would fit the noise."""
    errors = [trial.error for trial in trials]
    return len(errors) > _WHILE and min(errors[:-_WHILE]) < _NEARLY_IN_NOISE * min(errors[-_WHILE:])


def _choose(trials: list[Trial], enough: float, nearly: float) -> Trial:
    best = min((trial.error for trial in trials), default=np.inf)
    if not np.isfinite(best):
        raise UserError(
            "No candidate could be rolled out over the end of the training range. Give more data, "
            "leave the structure open, or use recipe 'paper'."
        )
    return next(trial for trial in trials if trial.error <= max(nearly * best, enough))


def _split(system: Any, minimal: tuple[int, ...], data: Dataset) -> tuple[Rows, Tails]:
    """The rows to fit, and what to predict: the ends of all runs, or of evenly many."""
    if all(len(run) <= _SHORTEST for run in data.trajectories):
        rows = rows_of(system, minimal, data)
        last = max(1, int(len(rows) * (1 - _HELD_OUT)))
        first, second = (
            jax.tree.map(lambda x, a=a, b=b: x[a:b], rows) for a, b in ((0, last), (last, None))
        )
        return first, Tails(second, None)
    early, ends = [], []
    for run, values in single_trajectories(data):
        if len(run) <= _SHORTEST:
            early.append((run, values))
            continue
        last = int((len(run) - 1) * (1 - _HELD_OUT))
        early.append((_cut(run, 0, last), values))
        ends.append((early[-1], (_cut(run, last, len(run) - 1), values)))
    plain = lambda part: rows_of(system, minimal, Dataset(*part), accelerations=False)  # noqa: E731
    tails = make_tails([(plain(ends[i][0]), plain(ends[i][1])) for i in judged(len(ends))])
    parts, values = zip(*early, strict=True)
    return rows_of(system, minimal, Dataset(list(parts), list(values))), tails


def _cut(run: Trajectory, first: int, last: int) -> Trajectory:
    """From one row to another; by NumPy, as no program is to be compiled for every length."""
    return jax.tree.map(lambda x: np.asarray(x)[first : last + 1] if np.ndim(x) else x, run)
