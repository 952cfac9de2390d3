"""What a run is, as data: case, model, recipe, and every number that decides its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mbdnode.config import check_types, from_dict
from mbdnode.config import replace as replace_text
from mbdnode.errors import UserError
from mbdnode.experiments import get_case
from mbdnode.experiments.case import Case
from mbdnode.integrators import get_integrator
from mbdnode.models import KINDS, MBDNODE
from mbdnode.multibody import AbstractForecaster
from mbdnode.naming import unknown_name
from mbdnode.simulation.simulate import ANALYTIC
from mbdnode.training import RECIPES, TrainingConfig

# The mechanism itself by an integrator, with nothing to learn: a row of one of the paper's tables.
NUMERICAL = "numerical"
# The kind of each model, and what tells it from others of that kind.
MODELS: dict[str, tuple[str, dict]] = {
    "mbd-node": ("mbd-node", {}),
    "sonode": ("mbd-node", {"forces": "none"}),
    "node": ("mbd-node", {"order": "first", "forces": "none"}),
    **{kind: (kind, {}) for kind in ("hnn", "lnn", "lstm", "fcnn")},
    NUMERICAL: (NUMERICAL, {}),
}
# The recipe that trains every model as its own table says; the others have one setting for all
# cases, and train MBD-NODE.
PAPER = "paper"
# What the paper's network is given by a recipe that trains it well.
_WELL_POSED = {"affine": True, "angle_features": True, "scaling": True}
# Draws in all, for a case that is trained on draws; the paper takes 10^7.
_DRAWS = {"fast": 2_000, "best": 10_000, "free": 20_000}


@dataclass(frozen=True)
class NoSettings:
    """Of a model that has none."""


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run's result.

    **Arguments:**

    - `case`, `model`, `recipe`, `seed`: by name, and the seed of weights and order.
    - `settings`: the model's shape.
    - `training`: the recipe in full, with the case's hyper-parameters.
    - `samples`: how many draws in all, for a case that is trained on draws.
    """

    case: str
    model: str = "mbd-node"
    recipe: str = "paper"
    seed: int = 0
    settings: Any = field(default_factory=dict)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    samples: int = 1_000_000

    def __post_init__(self):
        check_types(self)
        if self.model not in MODELS:
            raise unknown_name("model", self.model, MODELS)
        if isinstance(self.settings, Mapping):
            object.__setattr__(
                self, "settings", from_dict(_settings_type(self.model), self.settings)
            )
        if self.seed < 0:
            raise UserError(f"The seed is {self.seed}; it must not be negative.")
        if self.samples < 1:
            raise UserError(f"samples is {self.samples}; it must be at least 1.")


def _settings_type(model: str) -> type:
    kind = MODELS[model][0]
    return KINDS[kind].settings_type if kind in KINDS else NoSettings


def configure(
    case: str,
    *,
    model: str = "mbd-node",
    recipe: str = "paper",
    integrator: str | None = None,
    seed: int = 0,
) -> RunConfig:
    """The configuration of a run, from the names that a user gives.

    **Arguments:**

    - `case`, `model`, `recipe`: by name.
    - `integrator`: in place of the recipe's.
    - `seed`: of weights and order.

    **Returns:**

    A `RunConfig`, complete: every number that it needs is in it.
    """
    chosen = get_case(case)
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    if recipe not in RECIPES:
        raise unknown_name("recipe", recipe, RECIPES)
    kind, own = MODELS[model]
    integrator = None if integrator is None else integrator.lower()
    if integrator is not None and not uses_integrator(model):
        raise UserError(
            f"{model} gives states directly and has no integrator, so {integrator!r} would change "
            "nothing. Leave it out."
        )
    if own.get("order") == "first" and integrator is None:
        first = chosen.column(kind).integrator
        # A first-order model is never separable.
        integrator = "rk4" if get_integrator(first).needs_separable else None
    if model not in trained_by(recipe):
        raise UserError(
            f"The recipe {recipe!r} trains {', '.join(trained_by(recipe))}, not {model!r}. Leave "
            f"--model out, or use recipe {PAPER!r}."
        )
    if recipe != PAPER:
        return _configured_alike(chosen, model, recipe, integrator, seed)
    column = chosen.column(kind, integrator)
    settings = {**column.settings, **own}
    if kind == MBDNODE.kind:
        symplectic = get_integrator(column.integrator).needs_separable
        settings["use_velocity"] = not symplectic or own.get("order") == "first"
        if own.get("order") == "first":
            settings.pop("divisor", None)
    training = replace(
        RECIPES[recipe],
        epochs=column.epochs,
        learning_rate=column.learning_rate,
        decay=column.decay,
        **({"integrator": column.integrator} if uses_integrator(model) else {}),
        **column.training,
    )
    if chosen.box:
        # Draws have no order in time, and one update a draw would take days.
        training = replace(training, batch_size=64)
    return RunConfig(chosen.name, model, recipe, seed, settings, training, samples=chosen.draws)


def trained_by(recipe: str) -> tuple[str, ...]:
    """The models, by name, that a recipe trains."""
    return tuple(MODELS) if recipe == PAPER else ("mbd-node",)


def _configured_alike(
    case: Case, model: str, recipe: str, integrator: str | None, seed: int
) -> RunConfig:
    """Of a recipe with one setting for all cases."""
    # The steps that are fitted are those of the integrator that made the data.
    made_by = "rk4" if case.integrator == ANALYTIC else case.integrator
    training = replace(RECIPES[recipe], integrator=integrator or made_by)
    if training.method != "gradient":
        # It chooses its own structure and needs little data.
        return RunConfig(case.name, model, recipe, seed, {}, training, samples=_DRAWS[recipe])
    if case.box:
        # A refinement sees at once what fits in memory; a pass over all draws comes first.
        training = replace(training, epochs=1)
    settings = {**case.column(model).settings, **_WELL_POSED}
    settings["use_velocity"] = not get_integrator(training.integrator).needs_separable
    return RunConfig(case.name, model, recipe, seed, settings, training, samples=_DRAWS[recipe])


def uses_integrator(model: str) -> bool:
    """Whether a model, by name, is integrated."""
    kind = MODELS[model][0]
    return kind not in KINDS or not issubclass(KINDS[kind], AbstractForecaster)


def integrator_of(config: RunConfig) -> str:
    """The integrator's name, or "-" for a model that has none."""
    return config.training.integrator if uses_integrator(config.model) else "-"


def with_changes(config: RunConfig, changes: Mapping[str, str]) -> RunConfig:
    """The configuration with some fields given as text, wherever they belong.

    **Arguments:**

    - `config`: of the run.
    - `changes`: text by field name, of the run, its training or its model.

    **Returns:**

    A new configuration. Raises `UserError` for an unknown field or a value of the wrong type.
    """
    parts = {
        "samples": ("samples",),
        "training": tuple(TrainingConfig.__dataclass_fields__),
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
        training=replace_text(config.training, mine["training"]),
        settings=replace_text(config.settings, mine["settings"]),
    )


def printed(config: RunConfig) -> dict[str, str]:
    """The column of a hyper-parameter table, under the paper's own headings."""
    settings, training = config.settings, config.training
    layers = getattr(settings, "hidden_layers", getattr(settings, "layers", "-"))
    activation = "Sigmoid, Tanh" if config.model == "lstm" else getattr(settings, "activation", "-")
    batch = "all" if training.batch_size is None else str(training.batch_size)
    stages = ["Adam"] * bool(training.epochs) + ["Gauss-Newton"] * bool(training.refinement)
    return {
        "model": config.model,
        "integrator": integrator_of(config),
        "No. of hidden layers": str(layers),
        "No. of nodes per hidden layer": str(getattr(settings, "width", "-")),
        "Max. epochs": f"{training.epochs:,}",
        "Initial learning rate": f"{training.learning_rate:g}",
        "Learning rate decay": f"{training.decay:g}",
        "Activation function": activation.capitalize(),
        "Loss function": "MSE",
        "Optimizer": ", ".join(stages),
        "Batch size": batch,
        "Precision": training.precision,
    }
