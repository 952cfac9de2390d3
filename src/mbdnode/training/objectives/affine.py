"""The affine part of a network first: Levenberg-Marquardt on its few coefficients.

The layers of a network with an affine part start as opposites that cancel, so it starts at its
affine part. What that can explain by itself is better explained by it than by the layers: it is
found to round-off where it is all, and it goes on outside of the training data as it does inside.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.levenberg_marquardt import Iterate, iterate

_ITERATIONS, _FIRST_DAMPING = 60, 1e-2
# A mean squared error that falls by less than this part in so many iterations has settled, and so
# has one that is round-off.
_SETTLED, _OVER, _EXACT = 0.05, 5, 1e-24


def fit_affine(objective: Any, model: Any) -> tuple[Any, float]:
    """Fit the affine part alone.

    **Arguments:**

    - `objective`: with the data to fit.
    - `model`: whose layers cancel.

    **Returns:**

    The network, and the mean squared error that is left.
    """
    network = model.network
    count = len(objective) * jax.eval_shape(lambda: _errors(objective, model, np.arange(1))).size
    part, damping = (network.biases[-1], network.beside), jnp.asarray(_FIRST_DAMPING)
    losses: list[float] = []
    while len(losses) < _ITERATIONS and not _settled(losses):
        found = _iterate(objective, model, part, damping)
        part, damping = found.x, found.damping
        losses.append(float(found.cost) / count)
    return _with_part(network, part), losses[-1]


def _settled(losses: list[float]) -> bool:
    if not losses:
        return False
    slow = len(losses) > _OVER and losses[-1] >= (1 - _SETTLED) * losses[-1 - _OVER]
    return slow or losses[-1] <= _EXACT


def _with_part(network: Any, part: Any) -> Any:
    return eqx.tree_at(lambda n: (n.biases[-1], n.beside), network, part)


def _errors(objective: Any, model: Any, rows: Any) -> Any:
    picked = jax.tree.map(lambda x: x[rows], objective.examples)
    return jax.vmap(lambda example: objective.errors(model, example))(picked)


@eqx.filter_jit
def _iterate(objective: Any, model: Any, part: Any, damping: Any) -> Iterate:
    def errors(part, rows):
        own = eqx.tree_at(lambda m: m.network, model, _with_part(model.network, part))
        return _errors(objective, own, rows)

    return iterate(errors, part, damping, blocks=np.arange(len(objective))[None])
