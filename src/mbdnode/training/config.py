"""How a model is trained, as data."""

import math
from dataclasses import dataclass
from typing import Literal

from mbdnode.config import check_types
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name


@dataclass(frozen=True)
class TrainingConfig:
    """One training run; the defaults are the paper's algorithm.

    **Arguments:**

    - `method`: "gradient" descent on a loss; or a "closed form" that is chosen among candidates
        on a validation split of the training range, or that and its steps "polished". These two use
        the integrator, `structure` and `known`, and nothing else of what follows; "gradient" does
        not use those two.
    - `integrator`: the one inside the loss.
    - `epochs`: passes over the data; zero leaves all of it to the refinement.
    - `learning_rate`, `decay`: Adam's rate, and the factor on it after each epoch.
    - `batch_size`: windows in one update; None takes all of them.
    - `shuffle`: draw the windows in a new order each epoch, instead of in time order.
    - `window`: steps in a sub-trajectory, the paper's w; None takes whole trajectories.
    - `loss`: "minimal" compares the independent coordinates (the paper's algorithm 3), "full"
        completes the state and compares all of them (algorithm 2).
    - `scaled_loss`: measure every error in units of that coordinate's usual change over a step, so
        that all of them count, instead of in the data's own units.
    - `gradient`: "backprop" through the integrator's steps, or Diffrax's "adjoint".
    - `weight_decay`: this many times every weight is added to its gradient.
    - `penalty`: weight of the squared constraint residual, for models with soft constraints.
    - `refinement`: after the epochs, so many iterations of damped Gauss-Newton on all windows.
    - `structure`: the family of laws that a closed form chooses from; "chosen" for all of them.
    - `known`: what a closed form need not learn: "nothing", the "mass" of the system, or the whole
        "mechanism", so that only the forces that it lacks are learned.
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
    scaled_loss: bool = False
    gradient: Literal["backprop", "adjoint"] = "backprop"
    weight_decay: float = 0.0
    penalty: float = 1.0
    refinement: int = 0
    structure: Literal["chosen", "linear", "lagrangian", "mechanical", "features"] = "chosen"
    known: Literal["nothing", "mass", "mechanism"] = "nothing"
    patience: int | None = None
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self):
        check_types(self)
        if self.epochs < 0 or (self.epochs == 0 and not self.refinement):
            raise UserError(
                f"epochs is {self.epochs}; it must be at least 1, or 0 with a refinement."
            )
        for name in ("batch_size", "window", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1.")
        for name in ("learning_rate", "decay", "penalty"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise UserError(f"{name} is {value}; it must be above zero and finite.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise UserError(f"weight_decay is {self.weight_decay}; it must not be negative.")
        for name, plain in (("structure", "chosen"), ("known", "nothing")):
            if self.method == "gradient" and getattr(self, name) != plain:
                raise UserError(
                    f"{name} is {getattr(self, name)!r}, which is for closed forms, but the method "
                    "is 'gradient'. Leave it out, or use recipe 'fast' or 'best'."
                )
        if self.structure == "lagrangian" and self.known != "nothing":
            raise UserError(
                f"known is {self.known!r} and structure is 'lagrangian', which is found whole. Use "
                "another structure, or leave `known` out."
            )
        if self.refinement < 0:
            raise UserError(f"refinement is {self.refinement}; it must not be negative.")
        if self.refinement and self.precision != "float64":
            raise UserError(
                f"refinement is {self.refinement} and precision is {self.precision!r}; its solves "
                "need precision='float64'."
            )
        if self.decay > 1:
            raise UserError(f"decay is {self.decay}; it must be at most 1.")

    @property
    def is_regression(self) -> bool:
        """Whether a law is found by regression, in place of a network that is trained."""
        return self.method != "gradient"


RECIPES: dict[str, TrainingConfig] = {
    "paper": TrainingConfig(),
    "free": TrainingConfig(
        epochs=0,
        batch_size=32,
        shuffle=True,
        scaled_loss=True,
        refinement=25,
        precision="float64",
    ),
    "fast": TrainingConfig(method="closed form", precision="float64"),
    "best": TrainingConfig(method="polished", precision="float64"),
}
# One line each, for every page that names them.
RECIPE_LINES: dict[str, str] = {
    "paper": "networks, trained as the paper's text and tables say; MBD-NODE by Adam on one step "
    "ahead, an update for each step in time order",
    "free": "the paper's network and loss with an affine part, scaled inputs and sine and cosine "
    "of angles, trained by damped Gauss-Newton",
    "fast": "a law, found by regression among few forms; no network, no gradient descent",
    "best": "a law, found by regression among all forms, its coefficients then fitted to the steps "
    "of the integrator; no network, no gradient descent",
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
