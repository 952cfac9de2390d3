"""The objective of HNN and LNN: the time derivatives along the training data.

Accelerations, or rates of the momenta, are differences of the data itself, within each run.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.signal import differentiate
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models import HNN, LNN
from mbdnode.multibody import AbstractMechanism, resolve_parameters
from mbdnode.recipes import TrainingConfig
from mbdnode.training.objectives.base import (
    STEPS_ONLY,
    AbstractObjective,
    refuse_drive,
    refuse_unused,
    single_runs,
)
from mbdnode.training.scaling import mean_and_spread
from mbdnode.trajectory import Dataset

# Integrators and short logs lose or gain a little energy; a damper takes more than this part of it.
_DRIFT = 0.01


class Rates(eqx.Module):
    """Positions, momenta or velocities, and the rates of both."""

    q: Float[Array, "*n nq"]
    p: Float[Array, "*n nq"]
    q_rate: Float[Array, "*n nq"]
    p_rate: Float[Array, "*n nq"]


class RateObjective(AbstractObjective):
    """The squared error of the rates, in units of their spread."""

    examples: Rates
    q_unit: Float[Array, " nq"]
    p_unit: Float[Array, " nq"]

    def loss(self, model: Any, example: Any, multipliers):
        """Of one state."""
        if isinstance(model, LNN):
            error = (model.acceleration(example.q, example.p) - example.p_rate) / self.p_unit
            return jnp.mean(error**2)
        q_rate, p_rate = model.canonical_rates(example.q, example.p)
        errors = ((q_rate - example.q_rate) / self.q_unit, (p_rate - example.p_rate) / self.p_unit)
        return jnp.mean(jnp.concatenate(errors) ** 2)

    def diagnose(self, model: Any):
        """The worst condition of an LNN's mass over the data."""
        if not isinstance(model, LNN):
            return {}
        masses = np.asarray(jax.vmap(model.mass)(self.examples.q, self.examples.p))
        if not np.all(np.isfinite(masses)):
            return {"mass_condition": float("inf"), "mass_sign_changes": 0.0}
        signs = np.sign(np.linalg.det(masses))
        return {
            "mass_condition": float(np.max(np.linalg.cond(masses))),
            "mass_sign_changes": float(np.sum(signs != signs[0])),
        }


def check_rates(model: HNN | LNN, config: TrainingConfig) -> None:
    """Raise `UserError` for what this training does not use, and for an unknown integrator."""
    refuse_unused(model, config, STEPS_ONLY)
    if get_integrator(config.integrator).needs_separable:
        raise UserError(
            f"The integrator {config.integrator!r} needs rates of positions that depend on "
            f"velocities alone, which {model.kind} does not promise. Use 'rk4', or "
            "'implicit-midpoint', which is symplectic for any system."
        )


def prepare_rates(
    model: HNN | LNN, data: Dataset, config: TrainingConfig
) -> tuple[HNN | LNN, RateObjective]:
    """Differentiate the data and scale it."""
    refuse_drive(model, data)
    runs = single_runs(data)
    _refuse_dissipation(model, runs)
    parts = [_rates(model, *run) for run in runs]
    rates = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    count = rates.q.shape[1]
    q_unit, p_unit = jnp.ones(count), jnp.ones(count)
    if model.settings.scaling:
        center, spread = mean_and_spread(jnp.concatenate([rates.q, rates.p], axis=1))
        model = eqx.tree_at(lambda m: (m.center, m.spread), model, (center, spread))
        q_unit, p_unit = (mean_and_spread(x)[1] for x in (rates.q_rate, rates.p_rate))
        if isinstance(model, HNN):
            # dH/dp is a velocity, so this makes the network's own slopes of order one.
            size = jnp.mean(spread[count:] * q_unit)
            model = eqx.tree_at(lambda m: m.energy_spread, model, size)
    return model, RateObjective(rates, q_unit, p_unit)


def _rates(model: HNN | LNN, t, q, v, values) -> Rates:
    p = jnp.asarray(v)
    if isinstance(model, HNN):
        mu = resolve_parameters(model, values)
        p = jax.vmap(lambda x, w: model.body.mass(x, mu) @ w)(jnp.asarray(q), p)
    return Rates(jnp.asarray(q), p, jnp.asarray(v), jnp.asarray(differentiate(t, np.asarray(p))))


def _refuse_dissipation(model: HNN | LNN, runs) -> None:
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
