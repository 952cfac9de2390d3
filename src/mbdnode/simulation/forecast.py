"""A forecaster's states as a trajectory, up to the first that is not a number."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody import AbstractForecaster, is_traced
from mbdnode.simulation.ensemble import AbstractEnsemble, spread_of
from mbdnode.simulation.signals import Signal
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import State, Trajectory


def forecast(
    source: AbstractForecaster | AbstractEnsemble, t, initial: Any, signal: Signal
) -> Trajectory:
    """Ask for all times at once, one forecaster or each of several; `simulate` is its face."""
    members = list(source) if isinstance(source, AbstractEnsemble) else [source]
    past = _past(members[0], initial)
    if not is_traced(t, past):
        for member in members:
            member.check_start(np.asarray(t), np.asarray(past))
    _check_inputs(members[0], signal)
    return _forecast(source, t, past, signal.samples)


def _past(forecaster: AbstractForecaster, initial: Any):
    """The first rows, positions before velocities."""
    if isinstance(initial, (State, Trajectory)):
        rows = jnp.concatenate([initial.q, initial.v], axis=-1)
        return rows[None] if isinstance(initial, State) else rows
    names = (*forecaster.coordinate_names, *forecaster.rate_names)
    if not isinstance(initial, dict) or set(initial) != set(names):
        raise UserError(
            f"{type(forecaster).__name__} starts from a State, from all of {', '.join(names)} by "
            "name, or from a Trajectory of the motion's first rows."
        )
    return jnp.asarray([[float(initial[name]) for name in names]])


def _check_inputs(forecaster: AbstractForecaster, signal: Signal) -> None:
    if is_traced(signal.samples) or not np.any(signal.samples):
        return
    raise UserError(
        f"{type(forecaster).__name__} knows one motion and has no inputs, so forces cannot change "
        "what it predicts. Use a model that learns accelerations, such as MBDNODE."
    )


@eqx.filter_jit
def _forecast(source: AbstractForecaster | AbstractEnsemble, t, past, samples) -> Trajectory:
    if not isinstance(source, AbstractEnsemble):
        return _as_trajectory(source, t, source.forecast(t, past), samples)
    members = source.map(lambda member: member.forecast(t, past))
    mean = _as_trajectory(source[0], t, jnp.mean(members, axis=0), samples)
    deviation = jnp.where(jnp.isfinite(mean.q[:, :1]), spread_of(members), jnp.nan)
    count = mean.q.shape[1]
    return replace(mean, spread=State(deviation[:, :count], deviation[:, count:]))


def _as_trajectory(forecaster: AbstractForecaster, t, states, samples) -> Trajectory:
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
