"""What each kind of model makes small: one file an objective, one line to register it."""

from collections.abc import Callable
from typing import Any

from mbdnode.errors import UserError
from mbdnode.models import FCNN, HNN, LNN, LSTM, MBDNODE, AbstractModel
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

_CHECKS: dict[type, Callable[[Any, TrainingConfig], None]] = {
    MBDNODE: check_steps,
    FCNN: check_states,
    LSTM: check_sequences,
    HNN: check_rates,
    LNN: check_rates,
}
_PREPARES: dict[type, Callable[..., tuple[Any, AbstractObjective]]] = {
    MBDNODE: prepare_steps,
    FCNN: prepare_states,
    LSTM: prepare_sequences,
    HNN: prepare_rates,
    LNN: prepare_rates,
}


def check_training(model: Any, config: TrainingConfig) -> None:
    """Raise `UserError` unless this model can be trained like this.

    **Arguments:**

    - `model`, `config`: what, and how.
    """
    _find(_CHECKS, model)(model, config)


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
    return _find(_PREPARES, model)(model, data, config)


def _find(registry: dict[type, Any], model: Any) -> Any:
    if isinstance(model, AbstractModel) and model.is_law:
        raise UserError(
            f"A law ({model.kind}) is found by regression and has no network to train. Use "
            "mbd.identify(law.body, data), with the law's structure if that is to be kept."
        )
    if type(model) not in registry:
        raise TypeError(
            f"fit was given a {type(model).__name__}; it trains a model, such as "
            "MBDNODE.for_system(mechanism)."
        )
    return registry[type(model)]


__all__ = ["AbstractObjective", "check_training", "prepare"]
