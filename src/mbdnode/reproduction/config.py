"""What a run is, as data: case, model, recipe, and every number that decides its result."""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mbdnode.config import check_types, from_dict
from mbdnode.config import replace as replace_text
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models import KINDS, LAW, MBDNODE
from mbdnode.models import MODELS as LEARNED_MODELS
from mbdnode.models.paper_settings import for_system
from mbdnode.multibody import AbstractForecaster
from mbdnode.naming import is_own, unknown_name
from mbdnode.recipes import (
    RECIPES,
    IdentificationConfig,
    TrainingConfig,
    check_trained_by,
    get_recipe,
    recipe_name,
    training_config,
)
from mbdnode.recipes import trained_by as learned_by
from mbdnode.reproduction.cases import NUMERICAL, get_case
from mbdnode.reproduction.cases.case import Case
from mbdnode.training import structures_to_try

# What can be asked for by name: the learned models, and the integration of the known mechanism.
MODELS: Mapping[str, tuple[str, dict]] = ChainMap({NUMERICAL: (NUMERICAL, {})}, LEARNED_MODELS)


@dataclass(frozen=True)
class NoSettings:
    """Of a model that has none."""


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run's result.

    **Arguments:**

    - `case`, `model`, `recipe`, `seed`: by name, and the seed of weights and order.
    - `settings`: the network's shape; of a finished run, with the structure that was chosen.
    - `training`: the recipe's configuration in full, with the case's hyper-parameters: of a law an
        `IdentificationConfig`, of any other model a `TrainingConfig`.
    - `samples`: how many in all, for a case that is trained on samples.
    - `structures`: of an MBD-NODE, to choose from on the validation split, in place of the one of
        the settings; empty for that one.
    - `control_trials`: whether the model is also tried in the controllers of the case, of one
        whose own task is another.
    """

    case: str
    model: str = "mbd-node"
    recipe: str = "paper"
    seed: int = 0
    settings: Any = field(default_factory=dict)
    training: Any = field(default_factory=dict)
    samples: int = 1_000_000
    structures: tuple[str, ...] = ()
    control_trials: bool = True

    def __post_init__(self):
        check_types(self)
        object.__setattr__(self, "recipe", recipe_name(self.recipe))
        if self.model not in MODELS:
            raise unknown_name("model", self.model, MODELS)
        configuration = IdentificationConfig if self.model == LAW else TrainingConfig
        parts = {"settings": _settings_type(self.model), "training": configuration}
        for name, kind in parts.items():
            if isinstance(getattr(self, name), Mapping):
                object.__setattr__(self, name, from_dict(kind, getattr(self, name)))
            if not isinstance(getattr(self, name), kind):
                raise UserError(
                    f"{name} is {getattr(self, name)!r}; of the model {self.model!r} it must be a "
                    f"{kind.__name__}, or hold its values by name."
                )
        if self.seed < 0:
            raise UserError(f"The seed is {self.seed}; it must not be negative.")
        if self.samples < 1:
            raise UserError(f"samples is {self.samples}; it must be at least 1.")

    @property
    def asked(self) -> "RunConfig":
        """The same, without the structure that a run chooses itself: equal for equal runs."""
        if not self.structures:
            return self
        return replace(self, settings=replace(self.settings, structure=self.structures[0]))

    @property
    def finds_law(self) -> bool:
        """Whether a law is found; a network is trained, or nothing, if not."""
        return isinstance(self.training, IdentificationConfig)


def _settings_type(model: str) -> type:
    kind = MODELS[model][0]
    # A law finds its own form.
    return KINDS[kind].settings_type if kind in KINDS and model != LAW else NoSettings


def configure(
    case: str,
    *,
    model: str | None = None,
    recipe: str = "paper",
    integrator: str | None = None,
    seed: int = 0,
) -> RunConfig:
    """A complete configuration from the names that a user gives.

    None stands for the recipe's own model, and for its integrator.
    """
    chosen, recipe = get_case(case), recipe_name(recipe)
    get_recipe(recipe)
    model = models_of_recipe(recipe)[0] if model is None else model
    check_trained_by(recipe, model, MODELS)
    kind, own = MODELS[model]
    integrator = None if integrator is None else integrator.lower()
    if integrator is not None and not uses_integrator(model):
        raise UserError(
            f"{model} gives states directly and has no integrator, so {integrator!r} would change "
            "nothing. Leave it out."
        )
    if is_own(model) and not KINDS[kind].paper:
        training = replace(training_config(recipe), integrator=integrator or chosen.made_by)
        return RunConfig(chosen.name, model, recipe, seed, {}, training, samples=chosen.samples)
    if own.get("order") == "first" and integrator is None:
        first = chosen.column(kind).integrator
        # A first-order model is never separable.
        integrator = "rk4" if get_integrator(first).needs_separable else None
    if not RECIPES[recipe].as_printed:
        return _configured_alike(chosen, model, recipe, integrator, seed)
    column = chosen.column(kind, integrator)
    settings = {**column.settings, **own}
    if kind == MBDNODE.kind:
        symplectic = get_integrator(column.integrator).needs_separable
        settings["use_velocity"] = not symplectic or own.get("order") == "first"
        if own.get("order") == "first":
            settings.pop("divisor", None)
    training = column.applied(training_config(recipe))
    return RunConfig(chosen.name, model, recipe, seed, settings, training, samples=chosen.samples)


def models_of_recipe(recipe: str) -> tuple[str, ...]:
    """The models, by name, that come of a recipe; the usual one first."""
    return learned_by(recipe, MODELS)


def _configured_alike(
    case: Case, model: str, recipe: str, integrator: str | None, seed: int
) -> RunConfig:
    """Of a recipe with one setting for all cases."""
    chosen = RECIPES[recipe]
    config = chosen.config if chosen.finds_law else for_system(recipe, case.mechanism)
    training = replace(config, integrator=integrator or case.made_by)
    samples = case.samples if chosen.samples is None else chosen.samples
    own = case.column(MBDNODE.kind if chosen.finds_law else model).settings
    if isinstance(training, IdentificationConfig):
        # It chooses its own structure and needs little data. Forces that the case's network is
        # not trained on are added to either.
        if own.get("forces") == "added":
            training = replace(training, forces="added")
        return RunConfig(case.name, model, recipe, seed, {}, training, samples)
    settings = {**own, **chosen.settings}
    if model == MBDNODE.kind:
        settings["use_velocity"] = not get_integrator(training.integrator).needs_separable
    structures = structures_to_try(case.mechanism, chosen.structures)
    given = (settings, training, samples, structures)
    return RunConfig(case.name, model, recipe, seed, *given)


def uses_integrator(model: str) -> bool:
    """Whether a model, by name, is integrated."""
    kind = MODELS[model][0]
    return kind not in KINDS or not issubclass(KINDS[kind], AbstractForecaster)


def integrator_of(config: RunConfig) -> str:
    """The integrator's name, or "-" for a model that has none."""
    return config.training.integrator if uses_integrator(config.model) else "-"


def with_changes(config: RunConfig, changes: Mapping[str, str]) -> RunConfig:
    """The configuration with some fields given as text: of the run, its training or its model."""
    parts = {
        "samples": ("samples", "structures"),
        "training": tuple(type(config.training).__dataclass_fields__),
        "settings": tuple(type(config.settings).__dataclass_fields__),
    }
    known = [name for names in parts.values() for name in names]
    for key in changes:
        if key not in known:
            raise unknown_name("setting", key, known)
    mine = {part: {k: v for k, v in changes.items() if k in names} for part, names in parts.items()}
    config = replace_text(config, mine["samples"])
    return replace(
        config,
        # Who names a structure has chosen.
        structures=() if "structure" in changes else config.structures,
        training=replace_text(config.training, mine["training"]),
        settings=replace_text(config.settings, mine["settings"]),
    )
