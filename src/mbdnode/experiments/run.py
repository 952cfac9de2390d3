"""One run: make the data, train, roll out, measure; all of it from one configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mbdnode.config import check_types
from mbdnode.config import replace as replace_text
from mbdnode.data.sampling import sample_steps
from mbdnode.evaluation import Metrics, evaluate
from mbdnode.experiments import get_case
from mbdnode.experiments.case import Case
from mbdnode.experiments.hyperparameters import SLIDER_CRANK_BOX, paper_hyperparameters
from mbdnode.integrators import get_integrator
from mbdnode.models import MBDNODE, MBDNODEConfig
from mbdnode.multibody import consistent_state
from mbdnode.naming import unknown_name
from mbdnode.simulation import simulate
from mbdnode.training import RECIPES, Checkpoint, Fit, TrainingConfig, check_training, fit
from mbdnode.trajectory import Dataset, Trajectory

MODELS: dict[str, dict] = {
    "mbd-node": {},
    "sonode": {"forces": "none"},
    "node": {"order": "first", "forces": "none"},
}


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run's result.

    **Arguments:**

    - `case`, `model`, `recipe`, `seed`: by name, and the seed of weights and order.
    - `settings`: the model's shape.
    - `training`: the recipe in full, with the case's hyper-parameters.
    - `samples`: how many draws, for a case that is trained on draws.
    """

    case: str
    model: str = "mbd-node"
    recipe: str = "paper"
    seed: int = 0
    settings: MBDNODEConfig = field(default_factory=MBDNODEConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    samples: int = 10_000

    def __post_init__(self):
        check_types(self)
        if self.seed < 0:
            raise ValueError(f"The seed is {self.seed}; it must not be negative.")
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}; it must be at least 1.")


@dataclass(frozen=True)
class RunResult:
    """What came of it."""

    config: RunConfig
    fit: Fit
    truth: Trajectory
    prediction: Trajectory
    metrics: Metrics

    def summary(self) -> dict:
        """The content of metrics.json."""
        return {
            "case": self.config.case,
            "model": self.config.model,
            "recipe": self.config.recipe,
            "integrator": self.config.training.integrator,
            "seed": self.config.seed,
            **self.metrics.as_dict(),
            "train_seconds": self.fit.train_seconds,
            "compile_seconds": self.fit.compile_seconds,
            "updates": self.fit.updates,
            "status": self.fit.status,
            "outcome": self.fit.outcome,
            "rollout": str(self.prediction.status),
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
    order = MODELS[model].get("order", "second")
    if integrator is not None:
        integrator = integrator.lower()
    elif (
        order == "first" and get_integrator(paper_hyperparameters(case).integrator).needs_separable
    ):
        integrator = "rk4"  # A first-order model is never separable.
    hyper = paper_hyperparameters(chosen.name, integrator)
    symplectic = _is_symplectic(hyper.integrator)
    settings = MBDNODEConfig(
        **MODELS[model],
        divisor=hyper.divisor if order == "second" else (),
        use_velocity=not symplectic or order == "first",
    )
    training = replace(
        RECIPES[recipe],
        integrator=hyper.integrator,
        epochs=hyper.epochs,
        learning_rate=hyper.learning_rate,
        decay=hyper.decay,
    )
    if chosen.train_steps == 0:
        # Draws have no order in time, and one update a draw would take days.
        training = replace(training, batch_size=256, shuffle=True)
    return RunConfig(chosen.name, model, recipe, seed, settings, training)


def _is_symplectic(integrator: str) -> bool:
    return get_integrator(integrator).needs_separable


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
        "settings": tuple(MBDNODEConfig.__dataclass_fields__),
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


def check(config: RunConfig) -> MBDNODE:
    """Raise `ValueError` for a run that could not be carried out, before anything is computed.

    **Arguments:**

    - `config`: of the run.

    **Returns:**

    The untrained model.
    """
    case = get_case(config.case)
    if config.model not in MODELS:
        raise unknown_name("model", config.model, MODELS)
    if config.recipe not in RECIPES:
        raise unknown_name("recipe", config.recipe, RECIPES)
    settings = {name: getattr(config.settings, name) for name in MBDNODEConfig.__dataclass_fields__}
    model = MBDNODE.for_system(case.mechanism, seed=config.seed, **settings)
    check_training(model, config.training)
    longest = case.train_steps or 1
    if config.training.window is not None and config.training.window > longest:
        raise ValueError(
            f"The window is {config.training.window} steps, but the training data of "
            f"{case.name!r} has {longest}. Shorten the window."
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
    trained = fit(
        model,
        training_data(case, truth, config),
        config.training,
        seed=config.seed,
        report=report,
        checkpoint=keeper,
    )
    prediction = simulate(
        trained.model,
        truth.t,
        consistent_state(case.mechanism, case.initial, parameters=case.parameters),
        inputs=truth.u if case.inputs is not None else None,
        parameters=case.parameters,
        integrator=config.training.integrator,
    )
    metrics = evaluate(
        prediction,
        truth,
        train_steps=case.train_steps,
        system=case.mechanism,
        parameters=case.parameters,
    )
    return RunResult(config, trained, truth, prediction, metrics)


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


def training_data(case: Case, truth: Trajectory, config: RunConfig) -> Dataset:
    """The training range of the truth, or draws where the paper draws."""
    if case.train_steps > 0:
        return Dataset(truth.rows(0, case.train_steps), case.parameters)
    drawn = sample_steps(
        case.mechanism,
        SLIDER_CRANK_BOX,
        config.samples,
        case.dt_s,
        integrator=case.integrator,
        seed=config.seed,
    )
    return Dataset(drawn)
