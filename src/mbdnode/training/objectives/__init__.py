"""What each kind of model makes small: one file an objective, one entry to register it."""

from collections.abc import Callable
from typing import Any

from mbdnode.errors import UserError
from mbdnode.models import AbstractModel
from mbdnode.naming import unknown_name
from mbdnode.recipes import TrainingConfig
from mbdnode.training.objectives.base import AbstractObjective
from mbdnode.training.objectives.rates import check_rates, prepare_rates
from mbdnode.training.objectives.sequences import (
    check_sequences,
    check_states,
    prepare_sequences,
    prepare_states,
)
from mbdnode.training.objectives.steps import check_steps, prepare_steps
from mbdnode.trajectory import Dataset

# What checks a model and its configuration, and what prepares model and data; a model's class names
# its objective. Those of a new loss are one file in this room and one entry here.
OBJECTIVES: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "steps": (check_steps, prepare_steps),
    "states": (check_states, prepare_states),
    "sequences": (check_sequences, prepare_sequences),
    "rates": (check_rates, prepare_rates),
}


def check_training(model: Any, config: TrainingConfig) -> None:
    """Raise `UserError` unless this model can be trained like this.

    **Arguments:**

    - `model`, `config`: what, and how.
    """
    _objective_of(model)[0](model, config)


def prepare(
    model: AbstractModel, data: Dataset, config: TrainingConfig
) -> tuple[AbstractModel, AbstractObjective]:
    """The model scaled to the data, and what is to be made small.

    **Arguments:**

    - `model`: with its first weights.
    - `data`: what to learn from.
    - `config`: how.

    **Returns:**

    The model, whose network has changed at most in where its affine part starts, and the objective.
    """
    return _objective_of(model)[1](model, data, config)


def _objective_of(model: Any) -> tuple[Callable[..., None], Callable[..., Any]]:
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
    if model.objective not in OBJECTIVES:
        raise unknown_name(f"objective of {model.kind}", model.objective, OBJECTIVES)
    return OBJECTIVES[model.objective]


__all__ = ["OBJECTIVES", "AbstractObjective", "check_training", "prepare"]
