"""The paper's objective: integrate over a window, compare with the data."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.integrators import AbstractIntegrator, get_integrator
from mbdnode.models import AbstractRateModel
from mbdnode.multibody import Partition, choose_partition, resolve_parameters
from mbdnode.recipes import TrainingConfig
from mbdnode.training.losses import (
    Units,
    Windows,
    correction_errors,
    cut,
    predict,
    soft_residual,
    window_errors,
    window_loss,
)
from mbdnode.training.objectives.affine import fit_affine
from mbdnode.training.objectives.base import AbstractObjective
from mbdnode.training.scaling import step_units, with_affine_start, with_scaling
from mbdnode.trajectory import Dataset

# Windows, evenly over all of them, to which the affine part is fitted first: few enough to be fast,
# and always as many, so that one compiled program serves.
_START_WINDOWS = 256
# A mean squared error from which on Adam has its full rate.
_LARGE = 1e-2


class StepObjective(AbstractObjective):
    """The loss of windows, through the integrator."""

    examples: Windows
    integrator: AbstractIntegrator
    partition: Partition
    config: TrainingConfig = eqx.field(static=True)
    units: Units | None = None

    def loss(self, model: Any, example: Any, multipliers):
        """The window's squared error, with what soft constraints and a hybrid's correction add."""
        given = (model, self.integrator, self.config, self.partition, example)
        found = window_loss(*given, multipliers, self.units)
        if model.corrected is None:
            return found
        return found + jnp.mean(correction_errors(model, example, self.units) ** 2)

    def errors(self, model: Any, example: Any):
        """What the window's squared error is made of.

        The velocities' alone for a model that gives accelerations: within a step the positions
        follow from the same ones, and tell less of them by a factor of the step. A penalty's
        residuals follow, weighted so that their mean counts as it does in the loss.
        """
        given = (model, self.integrator, self.config, self.partition, example)
        found = window_errors(*given, self.units)
        if model.settings.order == "first":
            return found
        velocities = jnp.split(found, 2)[1]
        if model.settings.constraints == "penalty":
            states = predict(model, self.integrator, self.config, example)
            residual = soft_residual(model, example, *states)
            weight = (self.config.penalty * velocities.size / residual.size) ** 0.5
            velocities = jnp.concatenate([velocities, weight * residual])
        if model.corrected is None:
            return velocities
        return jnp.concatenate([velocities, correction_errors(model, example, self.units)])

    def start(self, model: Any) -> tuple[Any, float]:
        """With an affine part that is fitted first, and a rate that is as small as what is left.

        Adam moves every weight by about its rate, however small the slopes are: where the affine
        part says nearly all, a usual rate would undo it.
        """
        if not (self.config.refinement and model.settings.affine) or model.corrected is not None:
            return super().start(model)
        rows = np.linspace(0, len(self) - 1, _START_WINDOWS).round().astype(int)
        picked = jax.tree.map(lambda x: jax.device_put(np.asarray(x)[rows]), self.examples)
        network, loss = fit_affine(eqx.tree_at(lambda o: o.examples, self, picked), model)
        return network, min(1.0, (loss / _LARGE) ** 0.5)

    def first_multipliers(self, model: Any):
        """One for each constraint residual of each window."""
        if model.settings.constraints != "augmented":
            return super().first_multipliers(model)
        first = jax.tree.map(lambda x: x[0], self.examples)
        states = first.q[1:], first.v[1:]
        size = jax.eval_shape(lambda: soft_residual(model, first, *states)).shape[0]
        return jnp.zeros((len(self), size), self.examples.q.dtype)

    def raised_multipliers(self, model: Any, multipliers):
        """The augmented Lagrangian's update, `lambda += 2 penalty phi`."""
        if model.settings.constraints != "augmented":
            return multipliers

        def residual(window):
            states = predict(model, self.integrator, self.config, window)
            return soft_residual(model, window, *states)

        return multipliers + 2 * self.config.penalty * jax.vmap(residual)(self.examples)


def check_steps(model: AbstractRateModel, config: TrainingConfig) -> None:
    """Raise `UserError` for an integrator that does not suit model, gradient or precision."""
    integrator = get_integrator(config.integrator)
    if integrator.needs_separable and not model.separable:
        raise UserError(
            f"The integrator {config.integrator!r} needs accelerations that depend on positions "
            "alone; make the model with use_velocity=False, or use 'rk4'."
        )
    if config.refinement and model.settings.constraints == "augmented":
        raise UserError(
            f"refinement is {config.refinement}, but it raises no multipliers, and the model's "
            "constraints are 'augmented'. Leave it out, or use constraints='penalty' or 'hard'."
        )
    if config.refinement and (model.settings.constraints, model.settings.order) == (
        "penalty",
        "first",
    ):
        raise UserError(
            f"refinement is {config.refinement}, but with constraints='penalty' it knows models of "
            "accelerations alone, and order is 'first'. Leave it out, or use order='second'."
        )
    tolerance = getattr(integrator, "rtol", None)  # Of those of Diffrax.
    if config.gradient == "adjoint" and not hasattr(integrator, "rtol"):
        raise UserError(
            f"gradient='adjoint' solves with Diffrax, which has no {config.integrator!r}; use one "
            "of its integrators, such as 'dopri5'."
        )
    finest = float(jnp.finfo(config.precision).eps)
    if tolerance and tolerance < finest:
        raise UserError(
            f"The integrator {config.integrator!r} asks for a tolerance of {tolerance:g}, "
            f"but {config.precision} resolves {finest:.1g}. Use precision='float64'."
        )


def prepare_steps(model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, StepObjective]:
    """Cut the data into windows."""
    windows = cut(model, data, config.window)
    integrator = get_integrator(config.integrator)
    if model.settings.scaling:
        missed = None if model.corrected is None else _missed(model, integrator, config, windows)
        model = with_scaling(model, windows, missed)
    if model.settings.affine and model.corrected is None:
        model = with_affine_start(model, windows)
    units = step_units(windows) if config.scaled_loss else None
    partition = own_partition(model, windows)
    return model, StepObjective(windows, integrator, partition, config, units)


def _missed(model: Any, integrator: AbstractIntegrator, config: TrainingConfig, windows: Windows):
    """The accelerations or forces that what is known lacks, by the first step of every window."""
    index = np.array(model.minimal)

    @eqx.filter_jit
    def velocities(model, windows):
        one = lambda window: predict(model, integrator, config, window)[1][0]  # noqa: E731
        return jax.vmap(one)(windows)

    gone = windows.v[:, 1, index] - velocities(model, windows)
    gone = gone / windows.dt[:, :1]
    if not model.structure.gives_forces:
        return gone

    def force(window, missed):
        place = window.t[0], window.q[0, index], window.mu, window.q[0]
        return model.known.mass(*place) @ missed

    return jax.vmap(force)(windows, gone)


def own_partition(model: AbstractRateModel, windows: Windows) -> Partition:
    """The model's own split; its minimal coordinates are named, so any configuration serves."""
    mu = resolve_parameters(model)
    return choose_partition(model, jnp.zeros(()), jnp.asarray(windows.q[0, 0], float), mu)
