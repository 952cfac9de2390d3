"""The recipes `fast` and `best`: candidates from simple to rich, chosen on a held-out tail.

Every candidate is fitted to the first part of each run and rolled out over the rest of its
training range (draws have no order: some of them are held out). The first that is exact is taken;
if none is, the simplest of those that do nearly as well as the best. It is then fitted again to
all of the data. Nothing after the training range is ever read.
"""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.integrators import get_integrator
from mbdnode.models import MBDNODE
from mbdnode.training.closed_form.candidates import Candidate, Task, candidates
from mbdnode.training.closed_form.rows import Rows, rolled_out, rows_of, step_errors
from mbdnode.trajectory import Dataset

_HELD_OUT = 0.2
_SHORTEST = 10
# An error of this size, relative to the motion, is round-off: nothing richer can do better.
_EXACT = 1e-8
# A simpler candidate is taken if its error is within this factor of the best one's.
_NEARLY = 3.0


@dataclass(frozen=True)
class Trial:
    """A candidate and its error on what was held out."""

    candidate: Candidate
    error: float


@dataclass(frozen=True)
class Choice:
    """What the recipe decided.

    **Arguments:**

    - `model`: fitted to all of the data.
    - `trials`: every candidate that was tried, in order.
    - `chosen`: one of them.
    - `seconds`: what it took, compilation included.
    """

    model: Any
    trials: tuple[Trial, ...]
    chosen: Trial
    seconds: float


def fit_closed_form(
    system: Any, data: Dataset, *, integrator: str, polished: bool, seed: int
) -> Choice:
    """Learn a system's accelerations without gradient descent.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `data`: the training range.
    - `integrator`: that made the data, or one that is exact enough at its step.
    - `polished`: fit the steps of the integrator to the last digit.
    - `seed`: of drawn features.

    **Returns:**

    A `Choice`.
    """
    start = time.perf_counter()
    minimal = MBDNODE.for_system(system, width=1).minimal
    early, late = _split(minimal, data)
    task = Task(system, get_integrator(integrator), polished, seed)
    trials: list[Trial] = []
    for candidate in candidates(task, early):
        model = candidate.fit(early)
        error = np.inf if model is None else _held_out_error(model, late, task.integrator)
        trials.append(Trial(candidate, error))
        if error < _EXACT:
            break
    chosen = _choose(trials)
    model = chosen.candidate.fit(rows_of(minimal, data))
    if model is None:
        raise ValueError(
            f"The {chosen.candidate.name} was chosen on a part of the data but cannot be fitted to "
            "all of it. Use recipe 'paper'."
        )
    return Choice(model, tuple(trials), chosen, time.perf_counter() - start)


def _choose(trials: list[Trial]) -> Trial:
    best = min(trial.error for trial in trials)
    if not np.isfinite(best):
        raise ValueError(
            "No candidate could be rolled out over the end of the training range. Give more data, "
            "or use recipe 'paper'."
        )
    return next(trial for trial in trials if trial.error <= max(_NEARLY * best, _EXACT))


def _split(minimal: tuple[int, ...], data: Dataset) -> tuple[Rows, list[Rows]]:
    """The rows to fit, and the pieces to predict."""
    if all(len(run) <= _SHORTEST for run in data.trajectories):
        rows = rows_of(minimal, data)
        last = max(1, int(len(rows) * (1 - _HELD_OUT)))
        return _part(rows, 0, last), [_part(rows, last, len(rows))]
    early, late = [], []
    for run, values in zip(data.trajectories, data.parameters, strict=True):
        run.require_single("recipe")
        last = int((len(run) - 1) * (1 - _HELD_OUT))
        early.append((run.rows(0, last), values))
        late.append(rows_of(minimal, Dataset(run.rows(last, len(run) - 1), values)))
    runs, values = zip(*early, strict=True)
    return rows_of(minimal, Dataset(list(runs), list(values))), late


def _part(rows: Rows, first: int, last: int) -> Rows:
    return jax.tree.map(lambda x: x[first:last], rows)


def _held_out_error(model: Any, pieces: list[Rows], integrator: Any) -> float:
    """Root mean square over the pieces, in units of the motion's own spread."""
    squares = [_piece_error(model, piece, integrator) for piece in pieces]
    mean = float(np.mean(squares))
    return float(np.sqrt(mean)) if np.isfinite(mean) else np.inf


def _piece_error(model: Any, rows: Rows, integrator: Any) -> float:
    if _is_one_run(rows):
        z, s = jax.jit(lambda m: rolled_out(m, rows, integrator))(model)
        away = [(z - rows.z_next) / _spread(rows.z), (s - rows.s_next) / _spread(rows.s)]
        return float(jnp.mean(jnp.concatenate(away, axis=1) ** 2))
    unit = jnp.std(rows.a, axis=0)
    count = rows.z.shape[1]
    missed = jax.jit(lambda m: step_errors(m, rows, integrator, unit)[:, :count])(model)
    return float(jnp.mean(missed**2))


def _is_one_run(rows: Rows) -> bool:
    return len(rows) > 1 and bool(np.allclose(rows.z[1:], rows.z_next[:-1], rtol=0, atol=1e-12))


def _spread(values):
    spread = jnp.std(values, axis=0)
    return jnp.where(spread > 0, spread, 1.0)[None]
