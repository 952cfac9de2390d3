"""What a run is, as data: case, model, recipe, and every number that decides its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mbdnode.config import check_types, from_dict
from mbdnode.config import replace as replace_text
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.models import KINDS, LAW, MBDNODE
from mbdnode.models.library import Library
from mbdnode.multibody import AbstractForecaster
from mbdnode.naming import unknown_name
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.cases.case import Case
from mbdnode.reproduction.report.chapters import NUMERICAL
from mbdnode.simulation.simulate import ANALYTIC
from mbdnode.training import RECIPES, TrainingConfig

# The kind of each model, and what tells it from others of that kind. A law is a library until the
# data has shown its form.
MODELS: dict[str, tuple[str, dict]] = {
    "mbd-node": ("mbd-node", {}),
    LAW: (Library.kind, {}),
    "sonode": ("mbd-node", {"forces": "none"}),
    "node": ("mbd-node", {"order": "first", "forces": "none"}),
    **{kind: (kind, {}) for kind in ("hnn", "lnn", "lstm", "fcnn")},
    NUMERICAL: (NUMERICAL, {}),
}
# The recipe that trains every network as its own table says; the others have one setting for all
# cases.
PAPER = "paper"
# What the paper's network is given by a recipe that trains it well.
_WELL_POSED = {"affine": True, "angle_features": True, "scaling": True}
# Samples in all, for a case that is trained on samples; the paper takes 10^7.
_DRAWS = {"fast": 2_000, "best": 10_000, "free": 20_000}


@dataclass(frozen=True)
class LawSettings:
    """Of a law, which otherwise finds its own form.

    **Arguments:**

    - `forces`: "inputs" learns what the inputs do, "added" takes it from the mechanism.
    """

    forces: Literal["inputs", "added"] = "inputs"

    def __post_init__(self):
        check_types(self)


@dataclass(frozen=True)
class NoSettings:
    """Of a model that has none."""


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run's result.

    **Arguments:**

    - `case`, `model`, `recipe`, `seed`: by name, and the seed of weights and order. The model of
        a regression is a law, that of any other training is not.
    - `settings`: the model's shape.
    - `training`: the recipe in full, with the case's hyper-parameters.
    - `samples`: how many in all, for a case that is trained on samples.
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
        if not isinstance(self.settings, _settings_type(self.model)):
            raise UserError(
                f"settings is {self.settings!r}; it must hold the settings of {self.model!r} by "
                "name."
            )
        if (self.model == LAW) != self.training.is_regression:
            raise UserError(
                f"The model is {self.model!r} and the method of training {self.training.method!r}; "
                f"a regression finds a {LAW!r}, and nothing else does. Use recipe 'fast' or 'best' "
                f"for a law, 'paper' or 'free' for a network."
            )
        if self.seed < 0:
            raise UserError(f"The seed is {self.seed}; it must not be negative.")
        if self.samples < 1:
            raise UserError(f"samples is {self.samples}; it must be at least 1.")


def _settings_type(model: str) -> type:
    if model == LAW:
        return LawSettings
    kind = MODELS[model][0]
    return KINDS[kind].settings_type if kind in KINDS else NoSettings


def configure(
    case: str,
    *,
    model: str | None = None,
    recipe: str = "paper",
    integrator: str | None = None,
    seed: int = 0,
) -> RunConfig:
    """The configuration of a run, from the names that a user gives.

    **Arguments:**

    - `case`, `model`, `recipe`: by name; the recipe's own model if None.
    - `integrator`: in place of the recipe's.
    - `seed`: of weights and order.

    **Returns:**

    A `RunConfig`, complete: every number that it needs is in it.
    """
    chosen = get_case(case)
    if recipe not in RECIPES:
        raise unknown_name("recipe", recipe, RECIPES)
    model = trained_by(recipe)[0] if model is None else model
    check_trained_by(recipe, model)
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
    if recipe != PAPER:
        return _configured_alike(chosen, model, recipe, integrator, seed)
    column = chosen.column(kind, integrator)
    settings = {**column.settings, **own}
    if kind == MBDNODE.kind:
        symplectic = get_integrator(column.integrator).needs_separable
        settings["use_velocity"] = not symplectic or own.get("order") == "first"
        if own.get("order") == "first":
            settings.pop("divisor", None)
    printed = ("epochs", "learning_rate", "decay")
    fields = {name: getattr(column, name) for name in printed} | dict(column.training)
    if uses_integrator(model):
        fields["integrator"] = column.integrator
    training = replace(RECIPES[recipe], **fields)
    if chosen.bounds:
        # Draws have no order in time, and one update a draw would take days.
        training = replace(training, batch_size=64)
    return RunConfig(chosen.name, model, recipe, seed, settings, training, samples=chosen.samples)


def trained_by(recipe: str) -> tuple[str, ...]:
    """The models, by name, that come of a recipe; the usual one first."""
    if RECIPES[recipe].is_regression:
        return (LAW,)
    networks = tuple(name for name in MODELS if name != LAW)
    return networks if recipe == PAPER else networks[:1]


def check_trained_by(recipe: str, model: str) -> None:
    """Raise `UserError` unless a recipe gives models of this name.

    **Arguments:**

    - `recipe`: a key of `RECIPES`.
    - `model`: what was asked for.
    """
    if model not in MODELS:
        raise unknown_name("model", model, MODELS)
    if model in trained_by(recipe):
        return
    if RECIPES[recipe].is_regression:
        raise UserError(
            f"The recipe {recipe!r} finds a {LAW} by regression; it does not train {model!r}. "
            f"Leave --model out, or use --recipe {PAPER}."
        )
    if model == LAW:
        found = [name for name, training in RECIPES.items() if training.is_regression]
        raise UserError(
            f"The recipe {recipe!r} trains a network; a {LAW} is found by "
            f"{' and '.join(map(repr, found))}. Use one of these, or leave --model out."
        )
    raise UserError(
        f"The recipe {recipe!r} trains {', '.join(trained_by(recipe))}, not {model!r}. Leave "
        f"--model out, or use --recipe {PAPER}."
    )


def _configured_alike(
    case: Case, model: str, recipe: str, integrator: str | None, seed: int
) -> RunConfig:
    """Of a recipe with one setting for all cases."""
    # The steps that are fitted are those of the integrator that made the data.
    made_by = "rk4" if case.integrator == ANALYTIC else case.integrator
    training = replace(RECIPES[recipe], integrator=integrator or made_by)
    if training.is_regression:
        # It chooses its own structure and needs little data. Forces that the case's network is
        # not trained on are added to either.
        added = case.column(MBDNODE.kind).settings.get("forces") == "added"
        settings = {"forces": "added"} if added else {}
        return RunConfig(case.name, model, recipe, seed, settings, training, samples=_DRAWS[recipe])
    if case.bounds:
        # A refinement sees at once what fits in memory; a pass over all samples comes first.
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


def table_column(config: RunConfig) -> dict[str, str]:
    """The column of a hyper-parameter table, under the paper's own headings.

    **Arguments:**

    - `config`: of a run of a network.

    **Returns:**

    Text by heading. With the paper's recipe, a value that differs from the printed one says so.
    """
    settings, training = config.settings, config.training
    layers = getattr(settings, "hidden_layers", getattr(settings, "layers", "-"))
    activation = getattr(settings, "activation", "-").capitalize()
    stages = ["Adam"] * bool(training.epochs) + ["Gauss-Newton"] * bool(training.refinement)
    ours = {
        "No. of hidden layers": str(layers),
        "No. of nodes per hidden layer": str(getattr(settings, "width", "-")),
        "Max. epochs": f"{training.epochs:,}",
        "Initial learning rate": f"{training.learning_rate:g}",
        "Learning rate decay": f"{training.decay:.4g}",
        # The gates of an LSTM are what they are.
        "Activation function": "Sigmoid, Tanh" if config.model == "lstm" else activation,
        "Loss function": "MSE",
        "Optimizer": ", ".join(stages),
    }
    if config.recipe == PAPER:
        integrator = training.integrator if uses_integrator(config.model) else None
        column = get_case(config.case).column(MODELS[config.model][0], integrator)
        ours = {
            name: value if value == (paper := column.printed[name]) else f"{value} (paper: {paper})"
            for name, value in ours.items()
        }
    return {
        "model": config.model,
        "integrator": integrator_of(config),
        **ours,
        "Batch size": "all" if training.batch_size is None else str(training.batch_size),
        "Precision": training.precision,
    }
