"""One run: make the data, train, roll out, measure; all of it from one configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.config import check_types, from_dict
from mbdnode.config import replace as replace_text
from mbdnode.data import StepStream
from mbdnode.data.stream import AbstractStream
from mbdnode.evaluation import Metrics, evaluate
from mbdnode.experiments import get_case
from mbdnode.experiments.case import Case, Trial
from mbdnode.integrators import get_integrator
from mbdnode.models import KINDS, MBDNODE, AbstractModel, Capability, check_capable
from mbdnode.multibody import AbstractForecaster, AbstractSystem
from mbdnode.naming import unknown_name
from mbdnode.report.chapters import Probe
from mbdnode.simulation import simulate
from mbdnode.simulation.simulate import ANALYTIC
from mbdnode.training import RECIPES, Checkpoint, Fit, TrainingConfig, check_training, fit
from mbdnode.trajectory import Dataset, State, Trajectory

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
    - `samples`: how many draws in all, for a case that is trained on draws; each is seen once.
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
            raise ValueError(f"The seed is {self.seed}; it must not be negative.")
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; it must be at least 1.")


def _settings_type(model: str) -> type:
    kind = MODELS[model][0]
    return KINDS[kind].settings_type if kind in KINDS else NoSettings


@dataclass(frozen=True)
class RunResult:
    """What came of it; `probes` are the trials of the case that the model can be put to."""

    config: RunConfig
    fit: Fit
    truth: Trajectory
    prediction: Trajectory
    metrics: Metrics
    probes: tuple[Probe, ...] = ()

    def summary(self) -> dict:
        """The content of metrics.json."""
        return {
            "case": self.config.case,
            "model": self.config.model,
            "recipe": self.config.recipe,
            "integrator": integrator_of(self.config),
            "seed": self.config.seed,
            **self.metrics.as_dict(),
            "train_seconds": self.fit.train_seconds,
            "compile_seconds": self.fit.compile_seconds,
            "updates": self.fit.updates,
            "status": self.fit.status,
            "outcome": self.fit.outcome,
            "rollout": str(self.prediction.status),
            **({"samples": self.config.samples} if get_case(self.config.case).box else {}),
            **self.fit.diagnostics,
            **({"probes": {p.name: p.mse for p in self.probes}} if self.probes else {}),
        }


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
        raise ValueError(
            f"{model} gives states directly and has no integrator, so {integrator!r} would change "
            "nothing. Leave it out."
        )
    if own.get("order") == "first" and integrator is None:
        first = chosen.column(kind).integrator
        # A first-order model is never separable.
        integrator = "rk4" if get_integrator(first).needs_separable else None
    if RECIPES[recipe].method != "gradient":
        return _configured_at_once(chosen, model, recipe, integrator, seed)
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
    return RunConfig(chosen.name, model, recipe, seed, settings, training)


def _configured_at_once(
    case: Case, model: str, recipe: str, integrator: str | None, seed: int
) -> RunConfig:
    """Of a recipe without gradient descent: it chooses its own structure and needs little data."""
    if model != "mbd-node":
        raise ValueError(
            f"The recipe {recipe!r} chooses the structure of an mbd-node itself; it cannot train "
            f"{model!r}. Leave --model out, or use recipe 'paper'."
        )
    # The steps that are fitted are those of the integrator that made the data.
    made_by = "rk4" if case.integrator == ANALYTIC else case.integrator
    training = replace(RECIPES[recipe], integrator=integrator or made_by)
    return RunConfig(case.name, model, recipe, seed, {}, training, samples=10_000)


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

    A new configuration. Raises `ValueError` for an unknown field or a value of the wrong type.
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


def check(config: RunConfig) -> Any:
    """Raise `ValueError` for a run that could not be carried out, before anything is computed.

    **Arguments:**

    - `config`: of the run.

    **Returns:**

    The untrained model; the mechanism itself where nothing is to be trained.
    """
    case = get_case(config.case)
    if config.recipe not in RECIPES:
        raise unknown_name("recipe", config.recipe, RECIPES)
    kind = MODELS[config.model][0]
    if kind == NUMERICAL:
        get_integrator(config.training.integrator)
        return case.mechanism
    driven = case.inputs is not None
    check_capable(config.model, KINDS[kind].capabilities, case.mechanism, driven=driven)
    settings = {f.name: getattr(config.settings, f.name) for f in fields(config.settings)}
    model = KINDS[kind].for_system(case.mechanism, seed=config.seed, **settings)
    check_training(model, config.training)
    longest = case.train_steps or 1
    if config.training.window is not None and config.training.window > longest:
        raise ValueError(
            f"The window is {config.training.window} steps, but the training data of "
            f"{case.name!r} has {longest}. Shorten the window."
        )
    if case.box and getattr(config.settings, "constraints", None) == "augmented":
        raise ValueError(
            f"{case.name!r} is trained on a stream of draws, for which an augmented Lagrangian has "
            "no multipliers to keep. Use constraints=penalty."
        )
    gradient = config.training.method == "gradient"
    if case.box and gradient and config.samples < config.training.epochs:
        raise ValueError(
            f"samples is {config.samples}, which leaves none for some of the "
            f"{config.training.epochs} epochs. Draw more, or take fewer epochs."
        )
    return model


def run(
    config: RunConfig,
    *,
    report: Callable | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> RunResult:
    """Carry out a run.

    **Arguments:**

    - `config`: what to do.
    - `report`: called after every epoch, as by `fit`.
    - `checkpoint`: where training keeps its state.
    - `resume`: go on from there.

    **Returns:**

    A `RunResult`.
    """
    case, model = get_case(config.case), check(config)
    truth = simulate_truth(case, config.seed)
    keeper = None if checkpoint is None else Checkpoint(checkpoint, resume=resume)
    if isinstance(model, AbstractModel):
        data = training_data(case, truth, config)
        trained = fit(
            model, data, config.training, seed=config.seed, report=report, checkpoint=keeper
        )
    else:
        trained = Fit(model, [], "nothing to train", "completed", 0, 0.0, 0.0)
    prediction = predict(trained.model, truth, config.training.integrator, case.parameters)
    metrics = evaluate(
        prediction,
        truth,
        train_steps=case.train_steps,
        system=case.mechanism,
        parameters=case.parameters,
    )
    probes = _probe(case, trained.model, config)
    return RunResult(config, trained, truth, prediction, metrics, probes)


def predict(model: Any, truth: Trajectory, integrator: str, parameters: Mapping) -> Trajectory:
    """What a model says of a motion, from the part of it that the model may see.

    **Arguments:**

    - `model`: a trained model, or a mechanism.
    - `truth`: the motion: its times, its inputs, its first state, or its first few.
    - `integrator`: for a model that has one.
    - `parameters`: of the system, if not the defaults.

    **Returns:**

    A `Trajectory` at the same times.
    """
    past = model.history if isinstance(model, AbstractModel) else 1
    initial = truth.rows(0, past - 1) if past > 1 else State(truth.q[0], truth.v[0])
    driven = bool(np.any(np.asarray(truth.u)))
    options = {"inputs": truth.u if driven else None, "parameters": parameters}
    if isinstance(model, AbstractSystem):
        options["integrator"] = integrator
    return simulate(model, truth.t, initial, **options)


def _probe(case: Case, model: Any, config: RunConfig) -> tuple[Probe, ...]:
    """The trials that this model can be put to."""
    can = model.capabilities if isinstance(model, AbstractModel) else frozenset(Capability)
    possible = [
        trial
        for trial in case.trials
        if Capability.STARTS in can and (trial.inputs is None or Capability.INPUTS in can)
    ]
    return tuple(_try(case, trial, model, config) for trial in possible)


def _try(case: Case, trial: Trial, model: Any, config: RunConfig) -> Probe:
    random = np.random.default_rng(config.seed)
    truth = simulate(
        case.mechanism,
        case.times(trial.steps),
        trial.initial,
        inputs=None if trial.inputs is None else trial.inputs(trial.steps, random),
        parameters=case.parameters,
        integrator=case.integrator,
    )
    found = predict(model, truth, config.training.integrator, case.parameters)
    return Probe(trial.name, trial.title, truth, found, evaluate(found, truth).mse)


def simulate_truth(case: Case, seed: int = 0) -> Trajectory:
    """The case's own trajectory, by the integrator that made the paper's data."""
    return simulate(
        case.mechanism,
        case.times(),
        case.initial,
        inputs=case.make_inputs(case.steps, seed),
        parameters=case.parameters,
        integrator=case.integrator,
    )


def training_data(case: Case, truth: Trajectory, config: RunConfig) -> Dataset | AbstractStream:
    """The training range of the truth, or draws where the paper draws."""
    if not case.box:
        return Dataset(truth.rows(0, case.train_steps), case.parameters)
    epochs = config.training.epochs if config.training.method == "gradient" else 1
    return StepStream(
        case.mechanism,
        case.box,
        config.samples // epochs,
        case.dt_s,
        integrator=case.integrator,
        seed=config.seed,
        parameters=case.parameters,
    )


def printed(config: RunConfig) -> dict[str, str]:
    """The column of a hyper-parameter table, under the paper's own headings."""
    settings, training = config.settings, config.training
    layers = getattr(settings, "hidden_layers", getattr(settings, "layers", "-"))
    activation = "Sigmoid, Tanh" if config.model == "lstm" else getattr(settings, "activation", "-")
    batch = "all" if training.batch_size is None else str(training.batch_size)
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
        "Optimizer": "Adam",
        "Batch size": batch,
        "Precision": training.precision,
    }
