"""FNODE (arXiv 2509.00183): the loss of single states, by their accelerations.

    L = mean over coordinates of ((f(Z_i, u_i) - a_i) / unit)^2

Nothing is integrated: `a_i` is found from the motion first (`targets_of`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.signal import is_spectral, spectral_rate
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models import AbstractObjective
from mbdnode.models.objective import mean_and_spread, refuse_unused
from mbdnode.multibody import (
    AbstractMechanism,
    accelerations,
    choose_partition,
    resolve_parameters,
)
from mbdnode.recipes import TrainingConfig
from mbdnode.training.algorithms import StepObjective, own_partition, started
from mbdnode.training.prepare import (
    Windows,
    check_unrefined,
    cut,
    halfway,
    sizes,
    suitable_integrator,
)
from mbdnode.trajectory import Dataset, Trajectory


class Targets(eqx.Module):
    """States and the accelerations of their minimal coordinates."""

    t: Float[Array, "*n"]
    q: Float[Array, "*n nq"]
    v: Float[Array, "*n nq"]
    u: Float[Array, "*n nu"]
    mu: dict[str, Float[Array, "*n"]]
    a: Float[Array, "*n nz"]


class AccelerationObjective(AbstractObjective):
    """The loss of single states, by their accelerations: nothing is integrated (FNODE).

    **Arguments:**

    - `examples`: states and the accelerations that belong to them.
    - `config`: how they are compared.
    - `units`: of the rates; None for ones.
    - `spectral`: the part of the targets that are by the Fourier transform.
    - `measure`: of a state's errors, in a table of one row; None for their mean square.
    """

    examples: Targets
    config: TrainingConfig = eqx.field(static=True)
    units: Float[Array, " nr"] | None = None
    spectral: float = eqx.field(static=True, default=0.0)
    measure: Callable[[Array], Array] | None = eqx.field(static=True, default=None)

    takes_streams: ClassVar[bool] = True

    def loss(self, model: Any, example: Targets, multipliers):
        """The squared error of one state, and what a hybrid's correction adds."""
        error = self.prediction_loss(model, example)
        if model.corrected is not None:
            error = error + jnp.mean(self._correction(model, example) ** 2)
        return error

    def prediction_loss(self, model: Any, example: Targets) -> Float[Array, ""]:
        """What the predictions alone cost."""
        errors = self.prediction_errors(model, example)
        return jnp.mean(errors**2) if self.measure is None else self.measure(errors[None])

    def prediction_errors(self, model: Any, example: Targets) -> Float[Array, " nr"]:
        """Of the accelerations; of a model of first order, those of its velocities before them."""
        index, at = np.array(model.minimal), example
        z, s = at.q[index], at.v[index]
        velocity, acceleration = model.rates_near(at.t, z, s, at.u, at.mu, at.q)
        errors = acceleration - at.a
        if model.settings.order == "first":
            errors = jnp.concatenate([velocity - s, errors])
        return errors if self.units is None else errors / self.units

    def errors(self, model: Any, example: Targets) -> Float[Array, " m"]:
        """What the loss of a state is the mean square of."""
        errors = self.prediction_errors(model, example)
        if model.corrected is None:
            return errors
        return jnp.concatenate([errors, self._correction(model, example)])

    def _correction(self, model: Any, at: Targets) -> Float[Array, " nz"]:
        """What a hybrid's network adds, weighted."""
        index = np.array(model.minimal)
        added = model.learned_acceleration(at.t, at.q[index], at.v[index], at.u, at.mu, at.q)
        added = added if self.units is None else added / self.units
        return model.settings.correction_weight**0.5 * added

    def weighted(self, model: Any, weights: Mapping[str, float]) -> "AccelerationObjective":
        """With the squared errors of accelerations times these, by the velocity's name."""
        rates = [model.rate_names[i] for i in model.minimal]
        names = [model.coordinate_names[i] for i in model.minimal]
        first = names if model.settings.order == "first" else []
        size = jnp.asarray(sizes(weights, (*first, *rates)), self.examples.q.dtype)
        return replace(self, units=size if self.units is None else self.units * size)

    def measured_by(self, model: Any, measure: Callable[[Array], Array]) -> "AccelerationObjective":
        """With a loss of one's own in place of the mean square."""
        check_unrefined(self.config)
        return replace(self, measure=measure)

    def on(self, model: Any, data: Dataset) -> "AccelerationObjective":
        """The same on other data."""
        return replace(self, examples=targets_of(model, data, self.config.targets)[0])

    def diagnose(self, model: Any) -> dict[str, float]:
        """The part of the targets that are by the Fourier transform."""
        return {"spectral_targets": self.spectral}

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` for what this training does not use."""
        suitable_integrator(model, config)
        refuse_unused(model, config, ("window", "gradient", "penalty", "validation"))
        if model.settings.constraints in ("penalty", "augmented"):
            raise UserError(
                f"constraints is {model.settings.constraints!r}, which weighs the residuals of "
                "predicted states, and loss='acceleration' predicts none. Use constraints='hard'."
            )

    @classmethod
    def prepare(cls, model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, Any]:
        """Find the accelerations of the data."""
        examples, spectral = targets_of(model, data, config.targets)
        units = None
        if config.scaled_loss:
            compared = examples.a
            if model.settings.order == "first":
                velocities = examples.v[:, np.array(model.minimal)]
                compared = np.concatenate([velocities, compared], axis=1)
            units = mean_and_spread(compared)[1]
        windows = cut(model, data, 1)
        steps = StepObjective(
            windows, get_integrator("fe1"), own_partition(model, windows), TrainingConfig()
        )
        return started(model, windows, steps), cls(examples, config, units, spectral)


def targets_of(model: Any, data: Dataset, method: str) -> tuple[Targets, float]:
    """What FNODE learns from. Each run is differentiated alone, so nothing outside of it is seen.

    Over a step the inputs are held, and a change of them is a kink of the velocities, which a
    Fourier transform would spread over the run. So the spectral rates are those of runs without
    changing inputs, with even times and 20 rows or more. Of others the mean acceleration of each
    step is that of the state halfway, to second order.
    """
    spectral = [method == "spectral" and _is_spectral(run) for run in data.trajectories]
    other = "differences" if method == "spectral" else method
    parts = [
        _targets(model, Dataset([run], [values]), method if suits else other)
        for run, values, suits in zip(data.trajectories, data.parameters, spectral, strict=True)
    ]
    sizes = np.array([len(part["t"]) for part in parts])
    joined = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *parts)
    return Targets(**joined), float(np.sum(sizes[spectral]) / np.sum(sizes))


def _is_spectral(run: Trajectory) -> bool:
    steady = not np.any(np.ptp(np.asarray(run.u)[..., :-1, :], axis=-2) > 0)
    t = np.asarray(run.t)
    return steady and all(is_spectral(times) for times in t.reshape(-1, t.shape[-1]))


def _targets(model: Any, one: Dataset, method: str) -> dict[str, Any]:
    """The fields of `Targets` for one run, or one batch of runs."""
    index = np.array(model.minimal)
    if method == "spectral":
        whole = cut(model, one, None)
        t, v = np.asarray(whole.t), np.asarray(whole.v)[..., index]
        a = np.stack([spectral_rate(*pair) for pair in zip(t, v, strict=True)])
        return _flat(whole, a)
    steps = cut(model, one, 1)
    if method == "analytic":
        return _flat(steps, _true_accelerations(model, steps), rows=1)
    slopes = np.diff(np.asarray(steps.v)[..., index], axis=1) / np.asarray(steps.dt)[..., None]
    return _flat(halfway(steps), slopes)


def _flat(windows: Windows, a: np.ndarray, rows: int | None = None) -> dict[str, Any]:
    """The first rows of every window, one after the other."""
    columns = {"q": windows.q, "v": windows.v, "u": windows.u, "a": a}
    t = np.asarray(windows.t)[:, :rows]
    flat = {name: np.asarray(x)[:, :rows].reshape(t.size, -1) for name, x in columns.items()}
    mu = {name: np.repeat(np.asarray(x), t.shape[1]) for name, x in windows.mu.items()}
    return {"t": t.reshape(-1), "mu": mu, **flat}


def _true_accelerations(model: Any, windows: Windows) -> np.ndarray:
    """By the equations of motion of the model's mechanism, at the first row of every window."""
    body = model.body
    if not isinstance(body, AbstractMechanism):
        raise UserError(
            f"targets is 'analytic', but {type(body).__name__} has no equations of motion. Use "
            "'spectral'."
        )
    first = jax.tree.map(lambda x: x[0], windows)
    split = choose_partition(body, first.t[0], first.q[0], resolve_parameters(body)).velocity

    @jax.jit
    def at(t, q, v, u, mu):
        return jax.vmap(lambda *state: accelerations(body, split, *state)[0])(t, q, v, u, mu)

    states = (x[:, 0] for x in (windows.t, windows.q, windows.v, windows.u))
    return np.asarray(at(*states, windows.mu))[:, None, np.array(model.minimal)]
