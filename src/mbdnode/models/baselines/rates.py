"""What HNN and LNN learn from: the time derivatives along the training data.

Accelerations, or rates of the momenta, are differences of the data itself, within each run.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.signal import differentiate
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models.objective import (
    STEPS_ONLY,
    AbstractObjective,
    mean_and_spread,
    refuse_drive,
    refuse_unused,
    single_runs,
)
from mbdnode.multibody import AbstractMechanism, resolve_parameters
from mbdnode.recipes import TrainingConfig
from mbdnode.trajectory import Dataset

# Integrators and short logs lose or gain a little energy; a damper takes more than this part of it.
_DRIFT = 0.01


class Rates(eqx.Module):
    """Positions, momenta or velocities, and the rates of both."""

    q: Float[Array, "*n nq"]
    p: Float[Array, "*n nq"]
    q_rate: Float[Array, "*n nq"]
    p_rate: Float[Array, "*n nq"]


class AbstractRateObjective(AbstractObjective):
    """The squared error of the rates, in units of their spread."""

    examples: Rates
    q_unit: Float[Array, " nq"]
    p_unit: Float[Array, " nq"]

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` for what this training does not use, and for an unknown integrator."""
        refuse_unused(model, config, STEPS_ONLY)
        if get_integrator(config.integrator).needs_separable:
            raise UserError(
                f"The integrator {config.integrator!r} needs rates of positions that depend on "
                f"velocities alone, which {model.kind} does not promise. Use 'rk4', or "
                "'implicit-midpoint', which is symplectic for any system."
            )

    @classmethod
    @abc.abstractmethod
    def momenta(cls, model: Any, q: Any, v: Any, mu: Any) -> Array:
        """What the model works on beside positions."""

    @classmethod
    def prepare(cls, model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, Any]:
        """Differentiate the data and scale it."""
        refuse_drive(model, data)
        runs = single_runs(data)
        _refuse_dissipation(model, runs)
        rates = jax.tree.map(lambda *x: jnp.concatenate(x), *[cls._rates(model, *r) for r in runs])
        count = rates.q.shape[1]
        q_unit, p_unit = jnp.ones(count), jnp.ones(count)
        if model.settings.scaling:
            center, spread = mean_and_spread(jnp.concatenate([rates.q, rates.p], axis=1))
            model = eqx.tree_at(lambda m: (m.center, m.spread), model, (center, spread))
            q_unit, p_unit = (mean_and_spread(x)[1] for x in (rates.q_rate, rates.p_rate))
            model = cls.scaled(model, spread[count:] * q_unit)
        return model, cls(rates, q_unit, p_unit)

    @classmethod
    def scaled(cls, model: Any, power: Any) -> Any:
        """The model with what else depends on the data's scales; `power` is momentum by rate."""
        return model

    @classmethod
    def _rates(cls, model: Any, t, q, v, values) -> Rates:
        p = cls.momenta(model, jnp.asarray(q), jnp.asarray(v), resolve_parameters(model, values))
        slope = jnp.asarray(differentiate(t, np.asarray(p)))
        return Rates(jnp.asarray(q), p, jnp.asarray(v), slope)


def _refuse_dissipation(model: Any, runs) -> None:
    """A mechanism that is declared conservative may come with data that is not."""
    body = model.body
    if not isinstance(body, AbstractMechanism):
        return
    for t, q, v, values in runs:
        mu = resolve_parameters(model, values)
        if body.potential_energy(jnp.asarray(q[0]), mu) is None:
            return
        kinetic = jax.vmap(lambda x, w: 0.5 * w @ body.mass(x, mu) @ w)(q, v)  # noqa: B023
        stored = jax.vmap(lambda x: body.potential_energy(x, mu))(q)  # noqa: B023
        energy, largest = np.asarray(kinetic + stored), float(jnp.max(kinetic))
        if abs(energy[-1] - energy[0]) > _DRIFT * largest:
            raise UserError(
                f"{model.kind} learns one energy that never changes, but along this data it goes "
                f"from {energy[0]:.4g} to {energy[-1]:.4g} J between t = {t[0]:g} and {t[-1]:g} s. "
                "Use mbd-node, which learns dissipation too."
            )
