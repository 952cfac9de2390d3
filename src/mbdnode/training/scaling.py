"""Where training starts and in which units it measures, from the training data alone.

By NumPy, but for what the network reads: dozens of small programs, each compiled for a sum or a
quotient, would take longer than an epoch.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.models import MBDNODE, Scales
from mbdnode.program_cache import stored_program
from mbdnode.training.losses import Windows

# Features that together vary by less than this part of the most are taken as tied to each other:
# a coefficient for what little is left would be large, and made of the integrator's errors.
_STILL = 1e-3


def with_scaling(model: MBDNODE, windows: Windows, missed: Any = None) -> MBDNODE:
    """The model with the mean and spread of its features, and the size of what it gives.

    **Arguments:**

    - `model`: with `scaling=True`.
    - `windows`: the training data.
    - `missed`: of a hybrid, the accelerations or forces that what is known lacks. They are its
        unit, so that a correction of nothing is as small as they are.

    **Returns:**

    The model; a column that never changes is only shifted.
    """
    center, spread = mean_and_spread(_features(model, windows))
    scales = _scales(model, windows)
    if missed is not None:
        size = _root_mean_square(np.asarray(missed)[:, None])
        scales = scales._replace(rate_mean=jnp.zeros_like(size), rate_spread=size)
    out_center, out_spread = model.structure.units(scales)
    return eqx.tree_at(
        lambda m: (m.center, m.spread, m.out_center, m.out_spread),
        model,
        (center, spread, out_center, out_spread),
    )


def with_affine_start(model: MBDNODE, windows: Windows) -> MBDNODE:
    """The model with its layers giving zero, and the affine part of a free network fitted.

    The two halves of the last hidden layer start as opposites: they cancel, and yet every weight of
    that layer has a slope, which it would not have below a last layer of zeros. Each step's mean
    rate is compared with the features halfway, which is right to second order; what the integrator
    makes of the step is for training.

    **Arguments:**

    - `model`: with `affine=True`, scaled already if it is to be.
    - `windows`: the training data.

    **Returns:**

    The model. Of fits that the data can hardly tell apart it has the one with the least
    coefficients.
    """
    network = model.network
    offset, slope = jnp.zeros_like(network.biases[-1]), _first_slopes(model)
    # The outputs of other structures are no accelerations that the data could tell.
    if not model.structure.reads_configuration:
        offset, slope = _affine_fit(model, windows)
    half = network.biases[-2].size // 2
    mirrored = lambda x: x.at[half : 2 * half].set(x[:half])  # noqa: E731
    last = network.weights[-1].at[:, half : 2 * half].set(-network.weights[-1][:, :half])
    return eqx.tree_at(
        lambda m: (
            *(m.network.weights[-2], m.network.biases[-2], m.network.weights[-1]),
            *(m.network.biases[-1], m.network.beside),
        ),
        model,
        (
            *(mirrored(network.weights[-2]), mirrored(network.biases[-2])),
            *(last.at[:, 2 * half :].set(0.0), offset, slope),
        ),
    )


def _first_slopes(model: MBDNODE) -> Any:
    """Zero but for outputs that count by their products, which zero would be a dead end for."""
    shape = model.structure.count, model.center.size
    drawn = np.resize(np.asarray(model.network.weights[0]), shape)
    return jnp.asarray(np.where(model.structure.squared[:, None], drawn, 0.0))


def _affine_fit(model: MBDNODE, windows: Windows) -> tuple[Any, Any]:
    """The offset and the slopes of the least-squares fit of the mean rates."""
    features, slopes = _features(model, _halfway(windows)), _slopes(model, windows)
    rows, targets = (x.reshape(-1, x.shape[-1]) for x in (features, slopes))
    rows = (rows - np.asarray(model.center)) / np.asarray(model.spread)
    targets = (targets - np.asarray(model.out_center)) / np.asarray(model.out_spread)
    rows = np.concatenate([rows, np.ones((len(rows), 1), rows.dtype)], axis=1)
    found = np.linalg.lstsq(rows, targets, rcond=_STILL)[0].T
    return jnp.asarray(found[:, -1]), jnp.asarray(found[:, :-1])


def step_units(windows: Windows) -> tuple[Any, Any]:
    """How far each position and each velocity usually goes in one step.

    **Arguments:**

    - `windows`: the training data.

    **Returns:**

    The mean step times the spread of the velocities, and times that of the accelerations.
    """
    v, dt = np.asarray(windows.v), np.asarray(windows.dt)
    accelerations = np.diff(v, axis=1) / dt[..., None]
    velocity, acceleration = (np.asarray(mean_and_spread(x)[1]) for x in (v, accelerations))
    return jnp.asarray(np.mean(dt) * velocity), jnp.asarray(np.mean(dt) * acceleration)


def _features(model: MBDNODE, windows: Windows) -> np.ndarray:
    """What the network reads at every state of every window, before scaling."""
    return np.asarray(_read(model, windows))


@stored_program
def _read(model: MBDNODE, windows: Windows) -> Any:
    index = np.array(model.minimal)

    def row(t, q, v, u, mu):
        return model.features(t, q[index], v[index], u, mu)

    over_time = jax.vmap(row, in_axes=(0, 0, 0, 0, None))
    return jax.vmap(over_time)(windows.t, windows.q, windows.v, windows.u, windows.mu)


def _scales(model: MBDNODE, windows: Windows) -> Scales:
    """How large what the network's outputs are made of is in these windows."""
    index = np.array(model.minimal)
    angles = np.array([model.coordinates[i].is_angle for i in model.minimal])
    position = np.asarray(mean_and_spread(np.asarray(windows.q)[..., index])[1])
    largest = np.where(angles, 1.0, np.inf).astype(position.dtype)
    return Scales(
        *mean_and_spread(_slopes(model, windows)),
        position=jnp.asarray(np.minimum(position, largest)),
        velocity=_root_mean_square(np.asarray(windows.v)[..., index]),
        inputs=_root_mean_square(np.asarray(windows.u)[..., : model.structure.inputs]),
    )


def _root_mean_square(values: np.ndarray) -> Any:
    """Of every column, of which there may be none; one for what is always zero."""
    size = np.sqrt(np.mean(values**2, axis=(0, 1)))
    return jnp.asarray(np.where(size > 0, size, 1.0).astype(values.dtype))


def _halfway(windows: Windows) -> Windows:
    """The middle of every step; inputs are held over it."""

    def between(values):
        rows = np.asarray(values)
        return jnp.asarray((rows[:, 1:] + rows[:, :-1]) / 2)

    return Windows(
        t=between(windows.t),
        dt=windows.dt,
        q=between(windows.q),
        v=between(windows.v),
        u=jnp.asarray(np.asarray(windows.u)[:, :-1]),
        mu=windows.mu,
    )


def _slopes(model: MBDNODE, windows: Windows) -> np.ndarray:
    """What the network would have to give for the mean rates of every step."""
    index, dt = np.array(model.minimal), np.asarray(windows.dt)
    rates, slopes = (
        np.diff(np.asarray(x)[..., index], axis=1) / dt[..., None] for x in (windows.q, windows.v)
    )
    if model.settings.order == "first":
        return np.concatenate([rates, slopes], axis=-1)
    if model.settings.divisor:
        return slopes * np.asarray(model.settings.divisor, slopes.dtype)
    return slopes


def mean_and_spread(values: Any) -> tuple[Any, Any]:
    """Of every column; one that never changes has spread one, so that it is only shifted."""
    flat = np.asarray(values)
    flat = flat.reshape(-1, flat.shape[-1])
    mean, spread = np.mean(flat, axis=0), np.std(flat, axis=0)
    still = spread <= np.sqrt(np.finfo(spread.dtype).eps) * np.maximum(np.abs(mean), 1e-30)
    return jax.device_put((mean, np.where(still, 1.0, spread).astype(spread.dtype)))
