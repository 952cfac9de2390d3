"""Levenberg-Marquardt through the integrator: the last digits of a model with few coefficients.

Differences of the data give the accelerations of the curve, not those of the equation that the
integrator was stepping. Fitting the steps themselves removes that error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from mbdnode.training.closed_form.rows import Rows, step_errors

_ROUNDS = 40
# A cost that falls by less than this part has settled.
_SETTLED = 1e-6


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
    for _ in range(_ROUNDS):
        matrix = np.asarray(_slopes(values, model, rows, integrator, unit))[:, free]
        if not np.all(np.isfinite(matrix)):
            break
        fallen = 0.0
        for _ in range(8):
            trial = values.copy()
            trial[free] += _step(matrix, now, damping)
            found = np.asarray(_errors(trial, model, rows, integrator, unit))
            reached = float(found @ found)
            if np.isfinite(reached) and reached < cost:
                fallen = (cost - reached) / cost
                values, now, cost, damping = trial, found, reached, damping * 0.1
                break
            damping *= 10.0
        if fallen < _SETTLED:
            break
    return _with_values(model, jnp.asarray(values))


def _with_values(model: Any, values: Any) -> Any:
    return eqx.tree_at(lambda m: m.network, model, ravel_pytree(model.network)[1](values))


# Compiled once for all candidates of one form: which coefficients are free is decided outside.
@eqx.filter_jit
def _errors(values, model, rows, integrator, unit):
    return step_errors(_with_values(model, values), rows, integrator, unit).reshape(-1)


@eqx.filter_jit
def _slopes(values, model, rows, integrator, unit):
    def errors(x):
        return step_errors(_with_values(model, x), rows, integrator, unit).reshape(-1)

    return jax.jacfwd(errors)(values)


def _step(matrix: np.ndarray, errors: np.ndarray, damping: float) -> np.ndarray:
    """The damped Gauss-Newton step, with columns of unit length."""
    norms = np.linalg.norm(matrix, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    size = matrix.shape[1]
    tall = np.vstack([matrix / norms, np.sqrt(damping) * np.eye(size)])
    right = np.concatenate([-errors, np.zeros(size)])
    return np.linalg.lstsq(tall, right, rcond=None)[0] / norms
