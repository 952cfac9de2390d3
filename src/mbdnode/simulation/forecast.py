"""A forecaster's states as a trajectory, up to the first that is not a number."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.multibody import AbstractForecaster, is_traced
from mbdnode.simulation.signals import Signal
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import State, Trajectory


def forecast(forecaster: AbstractForecaster, t, initial: Any, signal: Signal) -> Trajectory:
    """Ask for all times at once; `simulate` is its public face."""
    past = _past(forecaster, initial)
    if not is_traced(t, past):
        forecaster.check_start(np.asarray(t), np.asarray(past))
    _check_inputs(forecaster, signal)
    return _forecast(forecaster, t, past, signal.samples)


def _past(forecaster: AbstractForecaster, initial: Any):
    """The first rows, positions before velocities."""
    if isinstance(initial, (State, Trajectory)):
        rows = jnp.concatenate([initial.q, initial.v], axis=-1)
        return rows[None] if isinstance(initial, State) else rows
    names = (*forecaster.coordinate_names, *forecaster.rate_names)
    if not isinstance(initial, dict) or set(initial) != set(names):
        raise ValueError(
            f"{type(forecaster).__name__} starts from a State, from all of {', '.join(names)} by "
            "name, or from a Trajectory of the motion's first rows."
        )
    return jnp.asarray([[float(initial[name]) for name in names]])


def _check_inputs(forecaster: AbstractForecaster, signal: Signal) -> None:
    if is_traced(signal.samples) or not np.any(signal.samples):
        return
    raise ValueError(
        f"{type(forecaster).__name__} knows one motion and has no inputs, so forces cannot change "
        "what it predicts. Use a model that learns accelerations, such as MBDNODE."
    )


@eqx.filter_jit
def _forecast(forecaster: AbstractForecaster, t, past, samples) -> Trajectory:
    states = forecaster.forecast(t, past)
    finite = jnp.isfinite(states)
    good = jnp.cumprod(jnp.all(finite, axis=1)).astype(bool)
    states = jnp.where(good[:, None], states, jnp.nan)
    last = jnp.maximum(jnp.sum(good) - 1, 0)
    count = len(forecaster.coordinates)
    first_bad = jnp.argmin(finite[jnp.minimum(last + 1, len(t) - 1)]) % count
    whole = good[-1]
    none = jnp.zeros(t.shape)
    return Trajectory(
        t=t,
        q=states[:, :count],
        v=states[:, count:],
        u=samples,
        position_residual=none,
        velocity_residual=none,
        status=Status(
            jnp.where(whole, Outcome.COMPLETED.value, Outcome.NOT_FINITE.value),
            last,
            t[last],
            jnp.where(whole, -1, first_bad),
            forecaster.coordinate_names,
        ),
        coordinates=forecaster.coordinate_names,
        rates=forecaster.rate_names,
        inputs=forecaster.input_names,
    )
