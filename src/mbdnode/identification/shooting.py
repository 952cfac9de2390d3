"""Fitting measured motions: rollouts over windows, each from a start that is fitted too.

One step of noisy data says next to nothing of the law. A rollout over about a period does, if it
need not pass through a measured state. Levenberg-Marquardt over the coefficients of the model and
the starts of all windows; the starts belong to their own windows alone and are eliminated there.

Levenberg-Marquardt through the integrator: the last digits of a model with few coefficients.

Differences of the data give the accelerations of the curve, not those of the equation that the
integrator was stepping. Fitting the steps themselves removes that error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mbdnode.identification.weak_form import samples_per_period
from mbdnode.training.rows import Noise, Rows, rolled_out, runs_of, step_errors

_ROUNDS, _SETTLED = 30, 1e-4
_SHORTEST, _LONGEST, _MOST = 10, 200, 64
_LEAST_NOISE = 1e-3


class Shots(eqx.Module):
    """Windows of the data, one after another.

    **Arguments:**

    - `rows`: of each window, with a leading axis.
    - `starts`: the state at the begin of each, fitted or measured.
    """

    rows: Rows
    starts: Any


def make_shots(rows: Rows, *, from_the_end: bool = False) -> Shots | None:
    """Windows of about a period, each inside one run.

    **Arguments:**

    - `rows`: the data.
    - `from_the_end`: the last window alone, up to the last row.

    **Returns:**

    The `Shots`, no more than a fixed number, spread over the data; None if no run is long enough.
    """
    pieces = runs_of(rows)
    longest = max(last - first for first, last in pieces)
    length = min(max(samples_per_period(rows), _SHORTEST), _LONGEST, longest)
    if from_the_end:
        pieces = [(pieces[-1][1] - length, pieces[-1][1])]
    starts = [i for first, last in pieces for i in range(first, last - length + 1, length)]
    if length < 2 or pieces[0][0] < 0:
        return None
    if len(starts) > _MOST:
        starts = [starts[i] for i in np.linspace(0, len(starts) - 1, _MOST).astype(int)]
    index = np.array(starts)[:, None] + np.arange(length)[None, :]
    windows = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[index]), rows)
    return Shots(windows, jnp.concatenate([windows.z[:, 0], windows.s[:, 0]], axis=1))


def shoot(model: Any, shots: Shots, integrator: Any, noise: Noise, free: np.ndarray) -> Any:
    """The model whose rollouts miss the measurements least.

    **Arguments:**

    - `model`: with coefficients that are nearly right, in its `network`.
    - `shots`: the windows.
    - `integrator`: that is exact enough at the data's step.
    - `noise`: the unit of what is missed.
    - `free`: which coefficients may change, by index.

    **Returns:**

    The model and the fitted starts; as they were, if nothing is better.
    """
    unit = jnp.asarray(unit_of(shots.rows, noise))
    values, starts = np.asarray(ravel_pytree(model.network)[0]), np.asarray(shots.starts)
    now = np.asarray(_missed(values, starts, model, shots.rows, integrator, unit))
    if not np.all(np.isfinite(now)):
        return model, shots.starts
    cost, damping = float(np.sum(now**2)), 1e-2
    for _ in range(_ROUNDS):
        slopes = _slopes(values, starts, model, shots.rows, integrator, unit)
        by_values, by_starts = (np.asarray(x) for x in slopes)
        if not (np.all(np.isfinite(by_values)) and np.all(np.isfinite(by_starts))):
            break
        fallen = 0.0
        for _ in range(8):
            change, moves = _step(by_values[..., free], by_starts, now, damping)
            trial, begun = values.copy(), starts + moves
            trial[free] += change
            found = np.asarray(_missed(trial, begun, model, shots.rows, integrator, unit))
            reached = float(np.sum(found**2))
            if np.isfinite(reached) and reached < cost:
                fallen = (cost - reached) / cost
                values, starts, now, cost = trial, begun, found, reached
                damping *= 0.1
                break
            damping *= 10.0
        if fallen < _SETTLED:
            break
    return _with_values(model, jnp.asarray(values)), jnp.asarray(starts)


def unit_of(windows: Rows, noise: Noise) -> np.ndarray:
    """The unit of each component: its noise, but no less than a part of its motion.

    What was smoothed before it came here has less noise than error.
    """
    parts = []
    for values, size in ((windows.z, noise.z), (windows.s, noise.s)):
        spread = np.std(np.asarray(values), axis=(0, 1))
        parts.append(np.maximum(size, _LEAST_NOISE * np.where(spread > 0, spread, 1.0)))
    return np.concatenate(parts)


def _with_values(model: Any, values: Any) -> Any:
    return eqx.tree_at(lambda m: m.network, model, ravel_pytree(model.network)[1](values))


def from_start(model: Any, start: Any, rows: Rows, integrator: Any) -> tuple[Any, Any]:
    """The model's path along one window, from another start."""
    count = rows.z.shape[1]
    begun = eqx.tree_at(
        lambda r: (r.z, r.s),
        rows,
        (rows.z.at[0].set(start[:count]), rows.s.at[0].set(start[count:])),
    )
    return rolled_out(model, begun, integrator)


def missed_by(model: Any, start: Any, rows: Rows, integrator: Any, unit: Any) -> Any:
    """By how much that path and its start miss the measurements; nothing where rows fill up."""
    z, s = from_start(model, start, rows, integrator)
    away = jnp.concatenate([z - rows.z_next, s - rows.s_next], axis=1) / unit[None]
    away = jnp.where(rows.weight[:, None] > 0, away, 0.0)
    measured = jnp.concatenate([rows.z[0], rows.s[0]])
    first = ((start - measured) / unit)[None]
    return jnp.concatenate([first, away]).reshape(-1)


def _all_missed(values, starts, model, windows: Rows, integrator, unit):
    own = _with_values(model, values)
    one = lambda start, rows: missed_by(own, start, rows, integrator, unit)  # noqa: E731
    return jax.vmap(one)(starts, windows)


@eqx.filter_jit
def _missed(values, starts, model, windows, integrator, unit):
    return _all_missed(values, starts, model, windows, integrator, unit)


@eqx.filter_jit
def _slopes(values, starts, model, windows, integrator, unit):
    def single(values, start, rows):
        lone = jax.tree.map(lambda x: x[None], rows)
        return _all_missed(values, start[None], model, lone, integrator, unit)[0]

    along = lambda k: jax.vmap(jax.jacfwd(single, argnums=k), (None, 0, 0))  # noqa: E731
    return along(0)(values, starts, windows), along(1)(values, starts, windows)


def _step(by_values, by_starts, missed, damping: float):
    """Of the coefficients, once every start has done what it can; then of the starts."""
    basis = np.linalg.qr(by_starts)[0]
    inside = lambda x: x - basis @ (np.swapaxes(basis, -1, -2) @ x)  # noqa: E731
    tall = inside(by_values).reshape(missed.size, by_values.shape[-1])
    right = inside(missed[..., None]).reshape(-1)
    norms = np.linalg.norm(tall, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    size = tall.shape[1]
    padded = np.vstack([tall / norms, np.sqrt(damping) * np.eye(size)])
    change = np.linalg.lstsq(padded, np.concatenate([-right, np.zeros(size)]), rcond=None)[0]
    change = change / norms
    left = missed + by_values @ change
    moves = -np.stack(
        [np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(by_starts, left, strict=True)]
    )
    return change, moves


_ROUNDS_OF_POLISH = 40
# A cost that falls by less than this part has settled.
_SETTLED_OF_POLISH = 1e-6


def polish(model: Any, rows: Rows, integrator: Any, unit: Any, free: np.ndarray) -> Any:
    """The model with coefficients that make the errors of single steps least.

    **Arguments:**

    - `model`: with coefficients that are nearly right, in its `network`.
    - `rows`: the training data.
    - `integrator`: that made it, or one that is exact enough.
    - `unit`: of the accelerations.
    - `free`: which coefficients may change, by index; the others stay.

    **Returns:**

    The model; as it was, if nothing lowers the error.
    """
    values = np.asarray(ravel_pytree(model.network)[0])
    now = np.asarray(_errors(values, model, rows, integrator, unit))
    if not np.all(np.isfinite(now)) or not free.size:
        return model
    cost, damping = float(now @ now), 1e-3
    for _ in range(_ROUNDS_OF_POLISH):
        matrix = np.asarray(_slopes_of_polish(values, model, rows, integrator, unit))[:, free]
        if not np.all(np.isfinite(matrix)):
            break
        fallen = 0.0
        for _ in range(8):
            trial = values.copy()
            trial[free] += _step_of_polish(matrix, now, damping)
            found = np.asarray(_errors(trial, model, rows, integrator, unit))
            reached = float(found @ found)
            if np.isfinite(reached) and reached < cost:
                fallen = (cost - reached) / cost
                values, now, cost, damping = trial, found, reached, damping * 0.1
                break
            damping *= 10.0
        if fallen < _SETTLED_OF_POLISH:
            break
    return _with_values_of_polish(model, jnp.asarray(values))


def _with_values_of_polish(model: Any, values: Any) -> Any:
    return eqx.tree_at(lambda m: m.network, model, ravel_pytree(model.network)[1](values))


# Compiled once for all candidates of one form: which coefficients are free is decided outside.
@eqx.filter_jit
def _errors(values, model, rows, integrator, unit):
    return step_errors(_with_values_of_polish(model, values), rows, integrator, unit).reshape(-1)


@eqx.filter_jit
def _slopes_of_polish(values, model, rows, integrator, unit):
    def errors(x):
        return step_errors(_with_values_of_polish(model, x), rows, integrator, unit).reshape(-1)

    return jax.jacfwd(errors)(values)


def _step_of_polish(matrix: np.ndarray, errors: np.ndarray, damping: float) -> np.ndarray:
    """The damped Gauss-Newton step, with columns of unit length."""
    norms = np.linalg.norm(matrix, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    size = matrix.shape[1]
    tall = np.vstack([matrix / norms, np.sqrt(damping) * np.eye(size)])
    right = np.concatenate([-errors, np.zeros(size)])
    return np.linalg.lstsq(tall, right, rcond=None)[0] / norms
