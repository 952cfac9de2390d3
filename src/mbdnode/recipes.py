"""Recipes: every named way to learn, with all that it needs.

Two configurations, because there are two verbs: a `TrainingConfig` says how `fit` trains the
network that it is given, an `IdentificationConfig` how `identify` finds a law. A `Recipe` names one
of them. A new recipe is one entry of `RECIPES`; Python, the command line, the tables and the pages
then know it.
"""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from mbdnode.config import check_types
from mbdnode.errors import UserError
from mbdnode.naming import import_object, is_own, object_name, unknown_name

_SCHEDULES = ("exponential", "cosine")
_Config = TypeVar("_Config")


@dataclass(frozen=True)
class TrainingConfig:
    """How a network is trained; the defaults are the paper's algorithm.

    **Arguments:**

    - `integrator`: the one inside the loss, by name or as an instance.
    - `epochs`: how many; zero leaves all of it to the refinement.
    - `updates`: Adam's in an epoch, passing over the data as often as they need; None for one pass.
    - `learning_rate`: Adam's, at the start.
    - `schedule`: how it falls: "exponential", by the factor `decay` after each epoch; "cosine",
        from update to update, to zero at the end of the last epoch; or one's own, a function from
        the number of the update to the rate, as `module:name` or as it is.
    - `decay`: of the exponential schedule.
    - `batch_size`: windows in one update; None takes all of them.
    - `shuffle`: draw the windows in a new order each epoch, instead of in time order.
    - `window`: steps in a sub-trajectory, the paper's w; None takes whole trajectories.
    - `loss`: "minimal" compares the independent coordinates (the paper's algorithm 3), "full"
        completes the state and compares all of them (algorithm 2); "acceleration" compares the
        accelerations with `targets` and integrates nothing (FNODE).
    - `targets`: of loss="acceleration": "spectral", by the Fourier transform inside of a run and by
        finite differences at its ends; "differences", of each step; or "analytic", by the
        mechanism's own equations.
    - `scaled_loss`: measure every error in units of that coordinate's usual change over a step, so
        that all of them count, instead of in the data's own units.
    - `gradient`: "backprop" through the integrator's steps, or Diffrax's "adjoint".
    - `weight_decay`: this many times every weight is added to its gradient.
    - `penalty`: weight of the squared constraint residual, for models with soft constraints.
    - `refinement`: after the epochs, at most so many iterations of Levenberg-Marquardt on all
        windows.
    - `regularization`: of the refinement: a multiple of the weights' mean square is added to the
        mean squared error. It begins with this part of Adam's last loss, scaled to the initial
        weight norm. Each iteration reduces it by 25 %.
    - `validation`: the part of the training data, from its end, on which to choose the network, if
        there are several, and when its refinement stops; zero for neither.
    - `patience`: stop when the loss has not fallen for so many epochs; None never does.
    - `precision`: of weights and data while training.
    """

    integrator: Any = "rk4"
    epochs: int = 400
    updates: int | None = None
    learning_rate: float = 1e-3
    schedule: Any = "exponential"
    decay: float = 0.98
    batch_size: int | None = 1
    shuffle: bool = False
    window: int | None = 1
    loss: Literal["minimal", "full", "acceleration"] = "minimal"
    targets: Literal["spectral", "differences", "analytic"] = "spectral"
    scaled_loss: bool = False
    gradient: Literal["backprop", "adjoint"] = "backprop"
    weight_decay: float = 0.0
    penalty: float = 1.0
    refinement: int = 0
    regularization: float = 0.0
    validation: float = 0.0
    patience: int | None = None
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self):
        for name, can in (("integrator", "step"), ("schedule", "__call__")):
            given = getattr(self, name)
            if not isinstance(given, str) and hasattr(given, can):
                object.__setattr__(self, name, object_name(given))
            elif not isinstance(given, str):
                raise UserError(f"{name} is {given!r}; it must be of type str, or one of your own.")
        check_types(self)
        if not is_own(self.schedule) and self.schedule not in _SCHEDULES:
            raise unknown_name("schedule", self.schedule, (*_SCHEDULES, "module:name"))
        if self.epochs < 0 or (self.epochs == 0 and not self.refinement):
            raise UserError(
                f"epochs is {self.epochs}; it must be at least 1, or 0 with a refinement."
            )
        above_zero = "must be above zero and finite", lambda x: math.isfinite(x) and x > 0
        not_negative = "must not be negative", lambda x: math.isfinite(x) and x >= 0
        at_least_one = "must be at least 1", lambda x: x is None or x >= 1
        for rule, holds, names in (
            (*at_least_one, ("updates", "batch_size", "window", "patience")),
            (*above_zero, ("learning_rate", "decay", "penalty")),
            (*not_negative, ("weight_decay", "regularization", "refinement")),
            ("must be from 0 to below 1", lambda x: 0 <= x < 1, ("validation",)),
            ("must be at most 1", lambda x: x <= 1, ("decay",)),
        ):
            for name in names:
                if not holds(getattr(self, name)):
                    raise UserError(f"{name} is {getattr(self, name)}; it {rule}.")
        if self.regularization and not self.refinement:
            raise UserError(
                f"regularization is {self.regularization}, but there is no refinement that it is "
                "of. Set refinement too, or leave it out; Adam has weight_decay."
            )
        if self.refinement and self.precision != "float64":
            raise UserError(
                f"refinement is {self.refinement} and precision is {self.precision!r}; its solves "
                "need precision='float64'."
            )

    def rate(self, update: int, in_epoch: int) -> float:
        """Adam's learning rate in an update, counted over all epochs of so many each."""
        if is_own(self.schedule):
            return float(import_object(self.schedule)(update))
        if self.schedule == "exponential":
            return self.learning_rate * self.decay ** (update // in_epoch)
        return self.learning_rate * (1 + math.cos(math.pi * update / (self.epochs * in_epoch))) / 2


@dataclass(frozen=True)
class IdentificationConfig:
    """How a law is found; the defaults are those of the recipe `best`.

    **Arguments:**

    - `integrator`: that made the data, or one that is exact enough at its step.
    - `refined`: try all candidates, and refine their coefficients by shooting until the steps of
        the integrator are met; a few candidates by regression alone if not.
    - `structure`: the family of laws to choose from; "chosen" for all of them.
    - `known`: what need not be learned: "nothing", the "mass" of the system, or the whole
        "mechanism", so that only the forces that it lacks are learned.
    - `forces`: "inputs" learns what the inputs do, "added" takes it from the mechanism.
    """

    integrator: str = "rk4"
    refined: bool = True
    structure: Literal["chosen", "linear", "lagrangian", "mechanical", "features"] = "chosen"
    known: Literal["nothing", "mass", "mechanism"] = "nothing"
    forces: Literal["inputs", "added"] = "inputs"

    def __post_init__(self):
        check_types(self)
        if self.structure == "lagrangian" and self.known != "nothing":
            raise UserError(
                f"known is {self.known!r} and structure is 'lagrangian', which is found whole. Use "
                "another structure, or leave `known` out."
            )


@dataclass(frozen=True)
class Recipe:
    """A named way to learn.

    **Arguments:**

    - `config`: of `fit`, or of `identify`.
    - `description`: one line, for every page that names it.
    - `samples`: how many to take in all, for a case that is trained on samples; None for as many
        as the case says.
    - `networks`: those that it trains, by name, the usual one first; empty for every one.
    - `settings`: what these networks are given beside a case's own settings.
    - `structures`: of an MBD-NODE, to choose from on the validation split; empty for the one of the
        settings.
    - `as_printed`: whether every network is trained as the paper's own table of the case says;
        otherwise one setting serves all cases.
    - `by_system`: fields of the configuration that differ, by the system's name in the catalog.
    """

    config: TrainingConfig | IdentificationConfig
    description: str
    samples: int | None = 10_000
    networks: tuple[str, ...] = ("mbd-node",)
    settings: Mapping[str, Any] = field(default_factory=dict)
    structures: tuple[str, ...] = ()
    as_printed: bool = False
    by_system: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def finds_law(self) -> bool:
        """Whether it is a recipe of `identify`; of `fit` if not."""
        return isinstance(self.config, IdentificationConfig)


PAPER = "paper"
# What a model that was found by regression is called, whatever its form; it has no network.
LAW = "law"
# In place of a model's name: what the data decides, and the unknown parameters of a mechanism.
AUTO, PARAMETERS = "auto", "parameters"
# Recipes by a name that they no longer have; stored configurations and commands know it.
_FORMER = {"trained": "adam-lm"}


class _Recipes(dict[str, Recipe]):
    """Recipes by name, former names included."""

    def __missing__(self, name: str) -> Recipe:
        if name not in _FORMER:
            raise KeyError(name)
        return self[_FORMER[name]]


RECIPES: dict[str, Recipe] = _Recipes(
    {
        PAPER: Recipe(
            TrainingConfig(),
            "networks, trained as the paper's text and tables say; MBD-NODE by Adam on one step "
            "ahead, an update for each step in time order",
            samples=None,
            networks=(),
            as_printed=True,
        ),
        "paper-shuffled": Recipe(
            TrainingConfig(shuffle=True),
            "MBD-NODE as by `paper`, but for the order of the updates, which is random",
            samples=None,
            as_printed=True,
        ),
        "adam-lm": Recipe(
            TrainingConfig(
                epochs=10,
                updates=100,
                learning_rate=1e-3,
                schedule="cosine",
                batch_size=512,
                shuffle=True,
                scaled_loss=True,
                refinement=60,
                regularization=1.0,
                validation=0.2,
                precision="float64",
            ),
            "a small MBD-NODE, free with an affine part or Lagrangian as a validation split says, "
            "trained by Adam and then by Levenberg-Marquardt on the errors of all steps",
            samples=5_000,
            settings={
                "width": 24,
                "affine": True,
                "angle_features": True,
                "angle_pairs": True,
                "scaling": True,
            },
            structures=("free", "lagrangian"),
        ),
        # Epochs, rates and decay are those of FNODE's run_experiments.sh, weight decay that of its
        # main_fnode.py (uwsbel/sbel-reproducibility, 2025/FNODE).
        "fnode": Recipe(
            TrainingConfig(loss="acceleration", epochs=450, shuffle=True),
            "MBD-NODE trained on accelerations found from the motion, without integration (FNODE, "
            "arXiv 2509.00183)",
            samples=None,
            settings={"divisor": ()},
            by_system={
                "single-mass-spring": {"epochs": 400, "weight_decay": 1e-3},
                "single-mass-spring-damper": {"weight_decay": 9e-5},
                "triple-mass-spring-damper": {"weight_decay": 5e-5},
                "double-pendulum": {"learning_rate": 3e-3, "weight_decay": 5e-4},
                "cart-pole": {"weight_decay": 1e-5},
                # From samples, as MBD-NODE: one update for each would take hours.
                "slider-crank": {"weight_decay": 1e-4, "batch_size": 64},
                # Friction jumps, and a Fourier transform would spread the jump: main_fnode_fric.py
                # takes finite differences too.
                "slider-crank-friction": {
                    "epochs": 400,
                    "learning_rate": 5e-3,
                    "decay": 0.99,
                    "batch_size": 256,
                    "weight_decay": 5e-5,
                    "targets": "differences",
                },
                # main_fnode_veh_param.py scales its targets too; it has 6,000 times our rows.
                "vehicle": {
                    "epochs": 100,
                    "batch_size": 256,
                    "scaled_loss": True,
                    "weight_decay": 1e-4,
                },
            },
        ),
        "fast": Recipe(
            IdentificationConfig(refined=False),
            "a law, found by regression among few forms; no network, no gradient descent",
            samples=2_000,
        ),
        "best": Recipe(
            IdentificationConfig(),
            "a law, found by regression among all forms, its coefficients then fitted to the steps "
            "of the integrator; no network, no gradient descent",
        ),
    }
)


def recipe_name(name: str) -> str:
    """The name of a recipe that is known by a former one; any other as it is."""
    return _FORMER.get(name, name)


def get_recipe(name: str) -> Recipe:
    """A recipe by name; raises `UserError` for one that is not known."""
    if recipe_name(name) not in RECIPES:
        raise unknown_name("recipe", name, RECIPES)
    return RECIPES[recipe_name(name)]


def law_recipes() -> str:
    """The recipes of `identify`, named in a sentence."""
    return " or ".join(repr(name) for name, recipe in RECIPES.items() if recipe.finds_law)


def training_config(recipe: str | TrainingConfig | IdentificationConfig) -> TrainingConfig:
    """The `TrainingConfig` of a recipe, or the one that is given.

    Raises `UserError` for what finds a law.
    """
    if isinstance(recipe, str) and recipe in _FORMER:
        warnings.warn(
            f"The recipe {recipe!r} is called {_FORMER[recipe]!r}; the old name goes with the next "
            "release.",
            DeprecationWarning,
            stacklevel=2,
        )
    return _config_of(
        recipe,
        TrainingConfig,
        "finds a law and trains no network. Use mbd.identify(system, data, ...), or recipe "
        f"'{PAPER}' or another TrainingConfig.",
    )


def identification_config(
    recipe: str | IdentificationConfig | TrainingConfig,
) -> IdentificationConfig:
    """The `IdentificationConfig` of a recipe, or the one that is given.

    Raises `UserError` for what trains a network.
    """
    return _config_of(
        recipe,
        IdentificationConfig,
        "trains a network and finds no law. Use mbd.fit(model, data, ...), or recipe "
        f"{law_recipes()}.",
    )


def _config_of(recipe: Any, kind: type[_Config], else_it: str) -> _Config:
    config = get_recipe(recipe).config if isinstance(recipe, str) else recipe
    if isinstance(config, kind):
        return config
    if not isinstance(config, (TrainingConfig, IdentificationConfig)):
        raise UserError(f"The recipe is {recipe!r}; give a key of RECIPES or a {kind.__name__}.")
    named = f"The recipe {recipe!r}" if isinstance(recipe, str) else f"Your {type(config).__name__}"
    raise UserError(f"{named} {else_it}")


def trained_by(recipe: str, models: Iterable[str]) -> tuple[str, ...]:
    """The models, of those that can be asked for, that come of a recipe; the usual one first."""
    found = get_recipe(recipe)
    if found.finds_law:
        return (LAW,)
    return found.networks or tuple(name for name in models if name != LAW)


def check_trained_by(recipe: str, model: str, models: Iterable[str]) -> None:
    """Raise `UserError` unless a recipe gives models of this name; `models` are all there are."""
    if model not in models:
        raise unknown_name("model", model, models)
    possible = trained_by(recipe, models)
    if model in possible:
        return
    gives = f"trains {', '.join(possible)}"
    way_out = f"use recipe {PAPER!r} (--recipe {PAPER})"
    if get_recipe(recipe).finds_law:
        gives = f"finds a {LAW} by regression"
    elif model == LAW:
        way_out = f"change the recipe (--recipe): a {LAW} is found by {law_recipes()}"
    raise UserError(
        f"The recipe {recipe!r} {gives}, not {model!r}. Leave --model out, or {way_out}."
    )


def check_some_trained_by(recipe: str, wanted: Iterable[str], models: Iterable[str]) -> None:
    """Raise `UserError` unless a recipe gives one of several models."""
    wanted, possible = tuple(wanted), trained_by(recipe, models)
    if not set(wanted) & set(possible):
        raise UserError(
            f"Nothing to run with the recipe {recipe!r}: {RECIPES[recipe].description}. Of "
            f"--models {','.join(wanted)} it gives none; add {possible[0]!r}, or leave that recipe "
            "out."
        )
