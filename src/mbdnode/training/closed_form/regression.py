"""Least squares for what is linear in its unknowns.

Over each step the data gives the mean acceleration, which is that in the middle of the step to
second order. Columns have unit length; drawn features carry a ridge, given functions none. The
accelerations are then corrected by what the steps show: where a step of the model ends beside the
data, its acceleration was off by that much over the step,

    a <- a + (v_data - v_model)/dt,

and the fit is repeated. Each round shrinks what is left by about the square of the step over the
time in which the accelerations change.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.models.library import Library
from mbdnode.training.closed_form.rows import Rows, step_errors
from mbdnode.training.scaling import mean_and_spread

_ROUNDS = 20


def regress(model: Library, rows: Rows, *, ridge: float, integrator: Any, unit: Any) -> Library:
    """The library with the coefficients of least squares.

    **Arguments:**

    - `model`: whose functions.
    - `rows`: the training data.
    - `ridge`: on the drawn features, in units of a column's own length.
    - `integrator`: whose steps correct the accelerations.
    - `unit`: of the accelerations.

    **Returns:**

    The model.
    """
    width = rows.dt[:, None]
    z = (rows.z + rows.z_next) / 2 - width * (rows.s_next - rows.s) / 8
    s = (rows.s + rows.s_next) / 2
    states = jax.vmap(model.states)(z, s, rows.u)
    center, spread = mean_and_spread(states)
    model = eqx.tree_at(lambda m: (m.center, m.spread), model, (center, spread))
    matrix = np.asarray(jax.jit(jax.vmap(model.columns))(z, s, rows.u))
    norms = np.linalg.norm(matrix, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    weights = np.zeros(matrix.shape[1])
    weights[matrix.shape[1] - model.settings.features :] = np.sqrt(ridge)
    tall = np.vstack([matrix / norms, np.diag(weights)[weights > 0]])
    left, values, right = np.linalg.svd(tall, full_matrices=False)
    inverse = np.where(values > 1e-13 * values[0], 1 / np.maximum(values, 1e-300), 0.0)

    def solved(targets: np.ndarray) -> Library:
        padded = np.vstack([targets, np.zeros((len(tall) - len(matrix), targets.shape[1]))])
        found = (right.T @ (inverse[:, None] * (left.T @ padded))) / norms[:, None]
        return eqx.tree_at(lambda m: m.network.weights, model, jnp.asarray(found.T))

    targets = np.asarray((rows.s_next - rows.s) / width)
    fitted = solved(targets)
    best, least, count = fitted, np.inf, targets.shape[1]
    missed = jax.jit(lambda m: step_errors(m, rows, integrator, unit)[:, :count])
    for _ in range(_ROUNDS):
        off = np.asarray(missed(fitted))
        size = float(np.sqrt(np.mean(off**2)))
        if not size < 0.5 * least:
            return best if least < size else fitted
        best, least = fitted, size
        targets = targets - off * np.asarray(unit)
        fitted = solved(targets)
    return best
