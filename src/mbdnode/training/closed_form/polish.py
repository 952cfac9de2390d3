"""Levenberg-Marquardt through the integrator: the last digits of a model with few coefficients.

Differences of the data give the accelerations of the curve, not those of the equation that the
integrator was stepping. Fitting the steps themselves removes that error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.training.closed_form.rows import Rows, step_errors

_ROUNDS = 40
# A cost that falls by less than this part has settled.
_SETTLED = 1e-6


def polish(model: Any, rows: Rows, integrator: Any, unit: Any, *, fixed: int = -1) -> Any:
    """The model with coefficients that make the errors of single steps least.

    **Arguments:**

    - `model`: with coefficients that are nearly right, in its `network`.
    - `rows`: the training data.
    - `integrator`: that made it, or one that is exact enough.
    - `unit`: of the accelerations.
    - `fixed`: a coefficient that stays, where a common factor of all is free.

    **Returns:**

    The model; as it was, if nothing lowers the error.
    """
    leaf = jax.tree.leaves(model.network)[0]
    free = np.delete(np.arange(leaf.size), fixed) if fixed >= 0 else np.arange(leaf.size)

    def filled(values):
        whole = leaf.reshape(-1).at[free].set(values).reshape(leaf.shape)
        return eqx.tree_at(lambda m: jax.tree.leaves(m.network)[0], model, whole)

    @jax.jit
    def errors(values):
        return step_errors(filled(values), rows, integrator, unit).reshape(-1)

    slopes = jax.jit(jax.jacfwd(errors))
    values = np.asarray(leaf).reshape(-1)[free]
    now = np.asarray(errors(jnp.asarray(values)))
    if not np.all(np.isfinite(now)) or not values.size:
        return model
    cost, damping = float(now @ now), 1e-3
    for _ in range(_ROUNDS):
        matrix = np.asarray(slopes(jnp.asarray(values)))
        if not np.all(np.isfinite(matrix)):
            break
        fallen = 0.0
        for _ in range(8):
            trial = values + _step(matrix, now, damping)
            found = np.asarray(errors(jnp.asarray(trial)))
            reached = float(found @ found)
            if np.isfinite(reached) and reached < cost:
                fallen = (cost - reached) / cost
                values, now, cost, damping = trial, found, reached, damping * 0.1
                break
            damping *= 10.0
        if fallen < _SETTLED:
            break
    return filled(jnp.asarray(values))


def _step(matrix: np.ndarray, errors: np.ndarray, damping: float) -> np.ndarray:
    """The damped Gauss-Newton step, with columns of unit length."""
    norms = np.linalg.norm(matrix, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    size = matrix.shape[1]
    tall = np.vstack([matrix / norms, np.sqrt(damping) * np.eye(size)])
    right = np.concatenate([-errors, np.zeros(size)])
    return np.linalg.lstsq(tall, right, rcond=None)[0] / norms
