"""Shift and scale of what a network reads and gives, from the training data alone."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.models import MBDNODE
from mbdnode.training.windows import Windows


def with_scaling(model: MBDNODE, windows: Windows) -> MBDNODE:
    """The model with the mean and spread of its features and rates in these windows.

    **Arguments:**

    - `model`: with `scaling=True`.
    - `windows`: the training data.

    **Returns:**

    The model; a column that never changes is only shifted.
    """
    index = np.array(model.minimal)

    def row(t, q, v, u, mu):
        return model.features(t, q[index], v[index], u, mu)

    over_time = jax.vmap(row, in_axes=(0, 0, 0, 0, None))
    features = jax.vmap(over_time)(windows.t, windows.q, windows.v, windows.u, windows.mu)
    slopes = jnp.diff(windows.v[..., index], axis=1) / windows.dt[..., None]
    if model.settings.order == "first":
        rates = jnp.diff(windows.q[..., index], axis=1) / windows.dt[..., None]
        slopes = jnp.concatenate([rates, slopes], axis=-1)
    elif model.settings.divisor:
        divisor = jnp.asarray(model.settings.divisor, slopes.dtype)
        slopes = slopes * jnp.broadcast_to(divisor, slopes.shape)
    center, spread = mean_and_spread(features)
    out_center, out_spread = mean_and_spread(slopes)
    return eqx.tree_at(
        lambda m: (m.center, m.spread, m.out_center, m.out_spread),
        model,
        (center, spread, out_center, out_spread),
    )


def mean_and_spread(values: Any) -> tuple[Any, Any]:
    """Of every column; one that never changes has spread one, so that it is only shifted."""
    flat = values.reshape(-1, values.shape[-1])
    mean, spread = jnp.mean(flat, axis=0), jnp.std(flat, axis=0)
    still = spread <= jnp.sqrt(jnp.finfo(spread.dtype).eps) * jnp.maximum(jnp.abs(mean), 1e-30)
    return mean, jnp.where(still, 1.0, spread)
