"""An objective: examples, and the loss of one of them.

A class of models names its own; one that names none is trained through the integrator.
"""

import abc
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.rows import single_trajectories
from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel
from mbdnode.models.capabilities import Capability, check_capable
from mbdnode.recipes import TrainingConfig
from mbdnode.trajectory import Dataset

# What only models that are trained through the integrator use.
STEPS_ONLY = (
    *("window", "loss", "scaled_loss", "gradient", "penalty", "targets"),
    *("refinement", "validation"),
)


class AbstractObjective(eqx.Module):
    """What training makes small: the mean loss over the examples."""

    if TYPE_CHECKING:
        examples: ClassVar[Any]
    else:
        # Arrays with a leading axis of equal length.
        examples: eqx.AbstractVar[Any]

    # Whether it can go on with new data each epoch: scales come from the first that is seen.
    takes_streams: ClassVar[bool] = False

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` unless this model can be trained like this."""
        refuse_unused(model, config, STEPS_ONLY)

    @classmethod
    @abc.abstractmethod
    def prepare(
        cls, model: Any, data: Dataset, config: TrainingConfig
    ) -> "tuple[Any, AbstractObjective]":
        """The model scaled to the data, and what is to be made small."""

    def __len__(self) -> int:
        return jax.tree.leaves(self.examples)[0].shape[0]

    @abc.abstractmethod
    def loss(self, model: Any, example: Any, multipliers: Float[Array, " k"]) -> Float[Array, ""]:
        """The loss of one example."""

    def prediction_loss(self, model: Any, example: Any) -> Float[Array, ""]:
        """What the predictions alone cost, for data that trains nothing."""
        return self.loss(model, example, jnp.zeros(0))

    def errors(self, model: Any, example: Any) -> Float[Array, " m"]:
        """What the loss of one example is the mean square of, for an objective that is one."""
        raise TypeError(f"{type(self).__name__} is no mean square, so it cannot be refined.")

    def weighted(self, model: Any, weights: Mapping[str, float]) -> "AbstractObjective":
        """With errors that count by their coordinate or velocity."""
        raise UserError(
            f"weights are given, but the training of {model.kind} has no use for them. Leave them "
            "out."
        )

    def measured_by(self, model: Any, measure: Callable) -> "AbstractObjective":
        """With a loss of one's own, a function of the errors of a window."""
        raise UserError(
            f"loss is a function of errors, but the training of {model.kind} has none over steps. "
            "Give a class of objectives."
        )

    def on(self, model: Any, data: Dataset) -> "AbstractObjective":
        """The same on other data, in the same units."""
        raise UserError(
            f"validation is given, but the training of {model.kind} scales every example by its "
            "own data. Leave it out."
        )

    def start(self, model: Any) -> tuple[Any, float]:
        """The network from which training starts, and what multiplies Adam's learning rate."""
        return model.network, 1.0

    def first_multipliers(self, model: Any) -> Float[Array, "n k"]:
        """Multipliers of an augmented Lagrangian, for each example; none by default."""
        return jnp.zeros((0, 0), jax.tree.leaves(self.examples)[0].dtype)

    def raised_multipliers(self, model: Any, multipliers: Float[Array, "n k"]):
        """Their values after an epoch."""
        return multipliers

    def diagnose(self, model: Any) -> dict[str, float]:
        """What a user should know of the trained model, by name."""
        return {}


def refuse_unused(model: AbstractModel, config: TrainingConfig, unused: tuple[str, ...]) -> None:
    """Raise `UserError` if a field that would change nothing is not at its default."""
    plain = TrainingConfig()
    for f in fields(config):
        if f.name in unused and getattr(config, f.name) != getattr(plain, f.name):
            raise UserError(
                f"{f.name} is {getattr(config, f.name)!r}, but the training of {model.kind} does "
                "not use it. Leave it out."
            )


def refuse_drive(model: AbstractModel, data: Dataset) -> None:
    """Raise `UserError` if inputs change with time and the model has no place for them."""
    driven = any(np.any(np.ptp(np.asarray(run.u), axis=-2) > 0) for run in data.trajectories)
    if driven and Capability.INPUTS not in model.capabilities:
        check_capable(model.kind, model.capabilities, model.body, driven=True)


def single_runs(data: Dataset) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, dict]]:
    """Times, positions, velocities and parameters of every run, batches taken apart."""
    return [
        (np.asarray(run.t), np.asarray(run.q), np.asarray(run.v), values)
        for run, values in single_trajectories(data)
    ]


def mean_and_spread(values: Any) -> tuple[Any, Any]:
    """Of every column; one that never changes has spread one, so that it is only shifted."""
    flat = np.asarray(values)
    flat = flat.reshape(-1, flat.shape[-1])
    mean, spread = np.mean(flat, axis=0), np.std(flat, axis=0)
    still = spread <= np.sqrt(np.finfo(spread.dtype).eps) * np.maximum(np.abs(mean), 1e-30)
    return jax.device_put((mean, np.where(still, 1.0, spread).astype(spread.dtype)))
