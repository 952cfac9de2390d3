"""What is held out of the training range, and how far a model is from it.

All tails go through one compiled program: the shorter ones are filled up with rows that nothing is
compared with.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.training.closed_form.rows import (
    Noise,
    Rows,
    rolled_out,
    side_by_side,
    spread_of_accelerations,
    step_errors,
)
from mbdnode.training.closed_form.starts import end_states, last_windows
from mbdnode.training.closed_form.task import Task

# Ends of runs that are predicted; more would judge a candidate no better.
MOST_TAILS = 32


@dataclass(frozen=True)
class Tails:
    """The ends of runs, or draws.

    **Arguments:**

    - `after`: the rows to predict, with a leading axis of runs; without one for draws, which have
        no order.
    - `windows`: the last rows before them, which may be fitted; None where they cannot tell where
        a run begins to be predicted.
    """

    after: Rows
    windows: Rows | None

    @property
    def are_draws(self) -> bool:
        """Whether single steps are to be predicted, and not runs."""
        return self.after.t.ndim == 1

    def __len__(self) -> int:
        return self.after.t.shape[0]

    def lengths(self) -> list[int]:
        """Of every run, without what fills it up."""
        return [int(n) for n in np.sum(np.asarray(self.after.weight) > 0, axis=1)]


def make_tails(pairs: list[tuple[Rows, Rows]]) -> Tails:
    """The ends of runs.

    **Arguments:**

    - `pairs`: what comes before the end of each run, and the end.

    **Returns:**

    `Tails`.
    """
    before, after = (list(x) for x in zip(*pairs, strict=True))
    return Tails(side_by_side(after), last_windows(before))


def judged(count: int) -> np.ndarray:
    """Which of this many runs are predicted: all, or evenly many of them."""
    return np.linspace(0, count - 1, min(count, MOST_TAILS)).astype(int)


def held_out_error(task: Task, model: Any, tails: Tails) -> float:
    """Root mean square over the tails, in units of the motion's own spread.

    **Arguments:**

    - `task`: what is to be learned.
    - `model`: fitted to what comes before the tails.
    - `tails`: to be predicted.

    **Returns:**

    The error; infinity if a rollout fails.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(np.mean(_squared_errors(task, model, tails)))
    return float(np.sqrt(mean)) if np.isfinite(mean) else np.inf


def _squared_errors(task: Task, model: Any, tails: Tails) -> list[float]:
    rows = tails.after
    if tails.are_draws:
        missed = _step_errors(model, rows, task.integrator, spread_of_accelerations(rows))
        return [float(jnp.mean(missed[:, : rows.z.shape[1]] ** 2))]
    if task.noise.matters and tails.windows is not None:
        # As measured, a run would begin beside its own path by the noise.
        rows = _begun_at(rows, *end_states(model, tails.windows, task.integrator, task.noise))
    paths = [np.asarray(x) for x in _rolled_out(model, rows, task.integrator)]
    ends = [np.asarray(x) for x in (rows.z_next, rows.s_next)]
    return [
        _mean_square(
            [(x[i, :n] - y[i, :n]) / spread_of(y[i, :n]) for x, y in zip(paths, ends, strict=True)]
        )
        for i, n in enumerate(tails.lengths())
    ]


def integrator_error(task: Task, model: Any, tails: Tails) -> float:
    """By how much the integrator's own steps move the model's rollouts over the tails.

    **Arguments:**

    - `task`, `model`, `tails`: as for `held_out_error`.

    **Returns:**

    The change with steps of half the length, relative to the motion; zero for draws.
    """
    if tails.are_draws:
        return 0.0
    coarse = [np.asarray(x) for x in _rolled_out(model, tails.after, task.integrator)]
    fine = [np.asarray(x) for x in _rolled_out(model, _halved(tails.after), task.integrator)]
    squares = [
        _mean_square(
            [
                (x[i, :n] - y[i, 1 : 2 * n : 2]) / spread_of(x[i, :n])
                for x, y in zip(coarse, fine, strict=True)
            ]
        )
        for i, n in enumerate(tails.lengths())
    ]
    return float(np.sqrt(np.max(squares)))


def noise_in(tails: Tails, noise: Noise) -> float:
    """The error that a perfect model would have over the tails, for the noise alone."""
    rows = tails.after
    z, s = (np.asarray(x) for x in (rows.z, rows.s))
    if tails.are_draws:
        z, s, lengths = z[None], s[None], [len(rows)]
    else:
        lengths = tails.lengths()
    squares = [
        _mean_square([noise.z / spread_of(z[i, :n]), noise.s / spread_of(s[i, :n])])
        for i, n in enumerate(lengths)
    ]
    return float(np.sqrt(np.mean(squares)))


def _mean_square(parts: list[np.ndarray]) -> float:
    return float(np.mean(np.concatenate(parts, axis=-1) ** 2))


def _halved(rows: Rows) -> Rows:
    """Every step as two; only where steps begin, how long they are and what acts is of use."""
    twice = jax.tree.map(lambda x: jnp.repeat(x, 2, axis=1), rows)
    dt = twice.dt / 2
    later = twice.t.at[:, 1::2].add(dt[:, 1::2])
    return eqx.tree_at(lambda r: (r.t, r.dt), twice, (later, dt))


def _begun_at(rows: Rows, z: Any, s: Any) -> Rows:
    return eqx.tree_at(lambda r: (r.z, r.s), rows, (rows.z.at[:, 0].set(z), rows.s.at[:, 0].set(s)))


def spread_of(values: Any) -> np.ndarray:
    """The spread of every column; one for a column that stays."""
    spread = np.std(np.asarray(values), axis=0)
    return np.where(spread > 0, spread, 1.0)


# Compiled once for all candidates of one form.
@eqx.filter_jit
def _rolled_out(model, rows, integrator):
    return jax.vmap(lambda one: rolled_out(model, one, integrator))(rows)


@eqx.filter_jit
def _step_errors(model, rows, integrator, unit):
    return step_errors(model, rows, integrator, unit)
