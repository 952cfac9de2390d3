"""How a model is trained, as data."""

import math
from dataclasses import dataclass
from typing import Literal

from mbdnode.config import check_types
from mbdnode.naming import unknown_name


@dataclass(frozen=True)
class TrainingConfig:
    """One training run; the defaults are the paper's algorithm.

    **Arguments:**

    - `method`: "gradient" descent on a loss; or a "closed form" that is chosen among candidates
        on a held-out part of the training range, or that and its steps "polished". These two use
        the integrator and nothing else of what follows.
    - `integrator`: the one inside the loss.
    - `epochs`: passes over the data.
    - `learning_rate`, `decay`: Adam's rate, and the factor on it after each epoch.
    - `batch_size`: windows in one update; None takes all of them.
    - `shuffle`: draw the windows in a new order each epoch, instead of in time order.
    - `window`: steps in a sub-trajectory, the paper's w; None takes whole trajectories.
    - `loss`: "minimal" compares the independent coordinates (the paper's algorithm 3), "full"
        completes the state and compares all of them (algorithm 2).
    - `gradient`: "backprop" through the integrator's steps, or Diffrax's "adjoint".
    - `weight_decay`: this many times every weight is added to its gradient.
    - `penalty`: weight of the squared constraint residual, for models with soft constraints.
    - `patience`: stop when the loss has not fallen for so many epochs; None never does.
    - `precision`: of weights and data while training.
    """

    method: Literal["gradient", "closed form", "polished"] = "gradient"
    integrator: str = "rk4"
    epochs: int = 400
    learning_rate: float = 1e-3
    decay: float = 0.98
    batch_size: int | None = 1
    shuffle: bool = False
    window: int | None = 1
    loss: Literal["minimal", "full"] = "minimal"
    gradient: Literal["backprop", "adjoint"] = "backprop"
    weight_decay: float = 0.0
    penalty: float = 1.0
    patience: int | None = None
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self):
        check_types(self)
        for name in ("epochs", "batch_size", "window", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1.")
        for name in ("learning_rate", "decay", "penalty"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value}; it must be above zero and finite.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ValueError(f"weight_decay is {self.weight_decay}; it must not be negative.")
        if self.decay > 1:
            raise ValueError(f"decay is {self.decay}; it must be at most 1.")


RECIPES: dict[str, TrainingConfig] = {
    "paper": TrainingConfig(),
    "fast": TrainingConfig(method="closed form", precision="float64"),
    "best": TrainingConfig(method="polished", precision="float64"),
}


def get_recipe(recipe: str | TrainingConfig) -> TrainingConfig:
    """A recipe by name, or the configuration given.

    **Arguments:**

    - `recipe`: a key of `RECIPES`, or a `TrainingConfig`.

    **Returns:**

    A `TrainingConfig`.
    """
    if isinstance(recipe, TrainingConfig):
        return recipe
    if recipe not in RECIPES:
        raise unknown_name("recipe", recipe, RECIPES)
    return RECIPES[recipe]
