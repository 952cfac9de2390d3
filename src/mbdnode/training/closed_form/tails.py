"""What is held out of the training range, and how far a model is from it."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.training.closed_form.rows import Rows, rolled_out, spread_of_accelerations, step_errors
from mbdnode.training.closed_form.shooting import final_state, make_shots, shoot
from mbdnode.training.closed_form.task import Task


@dataclass(frozen=True)
class Tail:
    """The end of one run.

    **Arguments:**

    - `before`: the rows of the run that may be fitted; None for draws, which have no order.
    - `after`: those to predict.
    """

    before: Rows | None
    after: Rows


def held_out_error(task: Task, model: Any, tails: list[Tail]) -> float:
    """Root mean square over the tails, in units of the motion's own spread.

    **Arguments:**

    - `task`: what is to be learned.
    - `model`: fitted to what comes before the tails.
    - `tails`: to be predicted.

    **Returns:**

    The error; infinity if a rollout fails.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.mean([_squared_error(task, model, tail) for tail in tails]))
    return float(np.sqrt(mean)) if np.isfinite(mean) else np.inf


def integrator_error(task: Task, model: Any, tails: list[Tail]) -> float:
    """By how much the integrator's own steps move the model's rollouts over the tails.

    **Arguments:**

    - `task`, `model`, `tails`: as for `held_out_error`.

    **Returns:**

    The change with steps of half the length, relative to the motion; zero for draws.
    """
    squares = [0.0]
    for tail in tails:
        if tail.before is None:
            continue
        coarse = _rolled_out(model, tail.after, task.integrator)
        fine = _rolled_out(model, _halved(tail.after), task.integrator)
        moved = [
            (np.asarray(a) - np.asarray(b)[1::2]) / spread_of(a)
            for a, b in zip(coarse, fine, strict=True)
        ]
        squares.append(float(np.mean(np.concatenate(moved, axis=1) ** 2)))
    return float(np.sqrt(np.max(squares)))


def _halved(rows: Rows) -> Rows:
    """Every step as two; only where steps begin, how long they are and what acts is of use."""
    twice = jax.tree.map(lambda x: jnp.repeat(x, 2, axis=0), rows)
    dt = twice.dt / 2
    return eqx.tree_at(lambda r: (r.t, r.dt), twice, (twice.t.at[1::2].add(dt[1::2]), dt))


def _squared_error(task: Task, model: Any, tail: Tail) -> float:
    rows = tail.after
    if tail.before is None:
        missed = _step_errors(model, rows, task.integrator, spread_of_accelerations(rows))
        return float(jnp.mean(missed[:, : rows.z.shape[1]] ** 2))
    if task.noise.matters:
        rows = _begun_at(rows, *_estimated_start(task, model, tail.before))
    z, s = _rolled_out(model, rows, task.integrator)
    away = [
        np.asarray(z - rows.z_next) / spread_of(rows.z_next),
        np.asarray(s - rows.s_next) / spread_of(rows.s_next),
    ]
    return float(np.mean(np.concatenate(away, axis=1) ** 2))


def _estimated_start(task: Task, model: Any, before: Rows) -> tuple[Any, Any]:
    """Where the run is at the end of what may be fitted: as measured would be off by the noise."""
    shots = make_shots(before, from_the_end=True)
    if shots is None:
        return before.z_next[-1], before.s_next[-1]
    _, starts = shoot(model, shots, task.integrator, task.noise, np.array([], int))
    return final_state(model, starts, shots, task.integrator)


def _begun_at(rows: Rows, z: Any, s: Any) -> Rows:
    return eqx.tree_at(lambda r: (r.z, r.s), rows, (rows.z.at[0].set(z), rows.s.at[0].set(s)))


def spread_of(values: Any) -> np.ndarray:
    """The spread of every column; one for a column that stays."""
    spread = np.std(np.asarray(values), axis=0)
    return np.where(spread > 0, spread, 1.0)


# Compiled once for all candidates of one form.
@eqx.filter_jit
def _rolled_out(model, rows, integrator):
    return rolled_out(model, rows, integrator)


@eqx.filter_jit
def _step_errors(model, rows, integrator, unit):
    return step_errors(model, rows, integrator, unit)
