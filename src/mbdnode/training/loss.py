"""Which loss a model is trained by: its own, FNODE's, or that of the paper's algorithms."""

import warnings
from typing import Any

from mbdnode.errors import UserError
from mbdnode.models import AbstractModel, AbstractObjective, AbstractRateModel
from mbdnode.recipes import TrainingConfig
from mbdnode.training.algorithms import StepObjective
from mbdnode.training.fnode import AccelerationObjective

# By the name of a loss in a configuration, for models that name no objective of their own.
OBJECTIVES: dict[str, type[AbstractObjective]] = {
    "minimal": StepObjective,
    "full": StepObjective,
    "acceleration": AccelerationObjective,
}


def objective_of(
    model: Any, loss: Any = None, config: TrainingConfig | None = None
) -> type[AbstractObjective]:
    """What training makes small: one that is given, the model's own, or what `config` asks for."""
    if not isinstance(model, AbstractModel):
        raise TypeError(
            f"fit was given a {type(model).__name__}; it trains a model, such as "
            "MBDNODE.for_system(mechanism)."
        )
    if model.is_law:
        raise UserError(
            f"A law ({model.kind}) is found by regression and has no network to train. Use "
            "mbd.identify(law.body, data), with the law's structure if that is to be kept."
        )
    if isinstance(loss, type):
        if not issubclass(loss, AbstractObjective):
            raise UserError(f"loss is the class {loss.__name__}; it must be an AbstractObjective.")
        return loss
    if model.objective == "steps":
        warnings.warn(
            f"{model.kind} has objective='steps'; leave it out: a model of rates is trained "
            "through the integrator.",
            DeprecationWarning,
            stacklevel=2,
        )
    elif model.objective is not None:
        return model.objective
    if not isinstance(model, AbstractRateModel) or not hasattr(model.settings, "order"):
        raise UserError(
            f"{model.kind} names no objective and gives no rates, so there is nothing to train it "
            "by. Name one: `objective = ...` on its class, or loss=... in fit."
        )
    return OBJECTIVES["minimal" if config is None else config.loss]


def check_training(model: Any, config: TrainingConfig) -> None:
    """Raise `UserError` unless this `model` can be trained by this `config`."""
    objective_of(model, None, config).check(model, config)
