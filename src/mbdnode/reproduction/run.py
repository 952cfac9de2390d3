"""One run: make the data, train, roll out, measure; all of it from one configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.data import StepStream
from mbdnode.data.sampling import AbstractStream
from mbdnode.errors import UserError
from mbdnode.evaluation import Metrics, evaluate, nrmse, predict
from mbdnode.identification import Identified, check_identification, learn
from mbdnode.integrators import get_integrator
from mbdnode.models import KINDS, LAW, MBDNODE, AbstractModel, Capability, Network, check_capable
from mbdnode.recipes import get_recipe
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.cases.case import Case, Trial
from mbdnode.reproduction.cases.control_task import ControlTask, compare_with_truth
from mbdnode.reproduction.config import MODELS, NUMERICAL, RunConfig, integrator_of
from mbdnode.simulation import simulate
from mbdnode.training import Checkpoint, Fit, make_candidates
from mbdnode.trajectory import Dataset, Trajectory

# Samples that a regression holds in memory at once.
_LARGEST_CHUNK = 20_000


@dataclass(frozen=True)
class Probe:
    """A trained model on a motion that it has not seen; no errors if the prediction ended early."""

    name: str
    title: str
    truth: Trajectory
    prediction: Trajectory
    mse: float | None
    nrmse: float | None = None


@dataclass(frozen=True)
class RunResult:
    """What came of it.

    `probes` are the trials of the case that the model can be put to, `control` what
    `compare_with_truth` says of a case whose task is control, `by_affine_part` the prediction of a
    network whose layers contribute nothing, if an affine function stands beside them.
    """

    config: RunConfig
    fit: Fit | Identified
    truth: Trajectory
    prediction: Trajectory
    metrics: Metrics
    probes: tuple[Probe, ...] = ()
    control: Mapping[str, Any] = field(default_factory=dict)
    by_affine_part: Trajectory | None = None

    @property
    def ran(self) -> RunConfig:
        """The configuration, with the structure that was chosen."""
        if not isinstance(self.fit.model, MBDNODE):
            return self.config
        chosen = self.fit.model.settings.structure
        return replace(self.config, settings=replace(self.config.settings, structure=chosen))

    @property
    def model_name(self) -> str:
        """What the trained model is: a law, or the network that was asked for."""
        found = self.fit.model
        return LAW if isinstance(found, AbstractModel) and found.is_law else self.config.model

    def summary(self) -> dict:
        """The content of metrics.json."""
        case = get_case(self.config.case)
        probes = {probe.name: {"mse": probe.mse, "nrmse": probe.nrmse} for probe in self.probes}
        return {
            "case": self.config.case,
            "model": self.model_name,
            "recipe": self.config.recipe,
            "integrator": integrator_of(self.config),
            "seed": self.config.seed,
            **self.metrics.as_dict(),
            "nrmse": nrmse(self.truth, self.prediction, case.mechanism.coordinates),
            "train_seconds": self.fit.train_seconds,
            "compile_seconds": self.fit.compile_seconds,
            "updates": self.fit.updates,
            "status": self.fit.status,
            "outcome": self.fit.outcome,
            "rollout": str(self.prediction.status),
            **({"samples": self.config.samples} if case.bounds else {}),
            **self.fit.diagnostics,
            **_network(self.fit.model),
            **self._without_layers(),
            **({"probes": probes} if probes else {}),
            **({"control": dict(self.control)} if self.control else {}),
        }

    def _without_layers(self) -> dict[str, float]:
        """The errors that are left to the affine part of a network, as of the whole."""
        found = self.by_affine_part
        if found is None:
            return {}
        return {
            "mse_without_layers": evaluate(self.truth, found).mse,
            "nrmse_without_layers": nrmse(
                self.truth, found, get_case(self.config.case).mechanism.coordinates
            ),
        }


def _network(model: Any) -> dict[str, Any]:
    """What an MBD-NODE gives, and how many neurons each of its layers has, the inputs first."""
    if not isinstance(model, MBDNODE):
        return {}
    if not isinstance(model.network, Network):
        return {"structure": model.settings.structure}
    weights = model.network.weights
    layers = [weights[0].shape[1], *(w.shape[0] for w in weights)]
    return {"structure": model.settings.structure, "layers": layers}


def check(config: RunConfig) -> Any:
    """Raise `UserError` for a run that could not be carried out, before anything is computed.

    Returns the untrained model, or those to choose from; the mechanism itself where a law is to be
    found, or nothing is trained.
    """
    case = get_case(config.case)
    get_recipe(config.recipe)
    kind = MODELS[config.model][0]
    if kind == NUMERICAL:
        get_integrator(config.training.integrator)
        return case.mechanism
    driven = case.inputs is not None
    if config.finds_law:
        check_identification(case.mechanism, config.training, driven=driven)
        return case.mechanism
    check_capable(config.model, KINDS[kind].capabilities, case.mechanism, driven=driven)
    settings = {f.name: getattr(config.settings, f.name) for f in fields(config.settings)}
    models = make_candidates(
        KINDS[kind], case.mechanism, config.training, config.structures, config.seed, settings
    )
    longest = case.steps if case.training_parameters else case.train_steps or 1
    if config.training.window is not None and config.training.window > longest:
        raise UserError(
            f"The window is {config.training.window} steps, but the training data of "
            f"{case.name!r} has {longest}. Shorten the window."
        )
    if case.bounds and getattr(config.settings, "constraints", None) == "augmented":
        raise UserError(
            f"{case.name!r} is trained on a stream of samples, for which an augmented Lagrangian "
            "has no multipliers to keep. Use constraints=penalty."
        )
    if case.bounds and case.resample and config.samples < config.training.epochs:
        raise UserError(
            f"samples is {config.samples}, which leaves none for some of the "
            f"{config.training.epochs} epochs. Draw more, or take fewer epochs."
        )
    return models if len(models) > 1 else models[0]


def run_case(
    config: RunConfig,
    *,
    report: Callable | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> RunResult:
    """Carry out a run.

    Ctrl-C raises `KeyboardInterrupt` as soon as training has kept its state; without a checkpoint
    the run goes on with what was learned so far.
    """
    case, subject = get_case(config.case), check(config)
    truth = simulate_truth(case, config.seed, trial=case.control)
    keeper = None if checkpoint is None else Checkpoint(checkpoint, resume=resume)
    if config.model == NUMERICAL:
        trained = Fit(subject, [], "nothing to train", "completed", 0, 0.0, 0.0)
    else:
        data = training_data(case, truth, config)
        trained = learn(
            subject, data, config.training, seed=config.seed, report=report, checkpoint=keeper
        )
        if trained.outcome == "interrupted" and keeper is not None:
            # The state is kept, and who presses Ctrl-C does not wait for all that follows.
            raise KeyboardInterrupt
    model = trained.model
    prediction = _predicted(case, model, truth, config, case.control)
    affine = model.affine_part if isinstance(model, MBDNODE) else None
    metrics = evaluate(
        truth,
        prediction,
        train_steps=case.train_steps,
        system=case.mechanism,
        parameters=case.parameters,
    )
    control = {}
    if case.control:
        control = compare_with_truth(case.control, case.mechanism, model, truth, prediction)
    return RunResult(
        config,
        trained,
        truth,
        prediction,
        metrics,
        _probe(case, model, config),
        control,
        None if affine is None else _predicted(case, affine, truth, config, case.control),
    )


def _predicted(
    case: Case, model: Any, truth: Trajectory, config: RunConfig, trial: Trial | ControlTask | None
) -> Trajectory:
    """What is the truth of the case, or of a trial, by a model."""
    if isinstance(trial, ControlTask):
        return trial.run(case.mechanism, trial.controller(model))
    parameters = {**case.parameters, **({} if trial is None else trial.parameters)}
    return predict(model, truth, config.training.integrator, parameters)


def _probe(case: Case, model: Any, config: RunConfig) -> tuple[Probe, ...]:
    """The trials that this model can be put to."""
    can = model.capabilities if isinstance(model, AbstractModel) else frozenset(Capability)
    found = []
    for trial in case.trials:
        driven = isinstance(trial, ControlTask) or trial.inputs is not None
        if Capability.STARTS not in can or (driven and Capability.INPUTS not in can):
            continue
        if trial in case.control_trials and not config.control_trials:
            continue
        truth = simulate_truth(case, config.seed, trial=trial)
        prediction = _predicted(case, model, truth, config, trial)
        mse = evaluate(truth, prediction).mse
        error = nrmse(truth, prediction, case.mechanism.coordinates)
        found.append(Probe(trial.name, trial.title, truth, prediction, mse, error))
    return tuple(found)


def simulate_truth(
    case: Case,
    seed: int = 0,
    parameters: Mapping[str, float] | None = None,
    trial: Trial | ControlTask | None = None,
) -> Trajectory:
    """A motion of the case's mechanism, by the integrator that made the paper's data.

    It is the case's own, or that of a trial: of a control task the loop whose controller plans with
    the mechanism itself. `seed` is that of random inputs.
    """
    if isinstance(trial, ControlTask):
        return trial.run(case.mechanism, trial.controller(case.mechanism))
    asked, own = (case, {}) if trial is None else (trial, trial.parameters)
    inputs = asked.inputs and asked.inputs(asked.steps, np.random.default_rng(seed))
    return simulate(
        case.mechanism,
        case.times(asked.steps),
        asked.initial,
        inputs=inputs,
        parameters={**case.parameters, **own, **(parameters or {})},
        integrator=case.integrator,
        check_step=False,
    )


def training_motions(case: Case, truth: Trajectory) -> Dataset:
    """The training range of a case's truth, or its motions with other parameters."""
    if not case.training_parameters:
        return Dataset(truth.rows(0, case.train_steps), case.parameters)
    return Dataset(
        [simulate_truth(case, parameters=own) for own in case.training_parameters],
        [{**case.parameters, **own} for own in case.training_parameters],
    )


def training_data(case: Case, truth: Trajectory, config: RunConfig) -> Dataset | AbstractStream:
    """The training motions, or samples where the paper samples."""
    if not case.bounds:
        return training_motions(case, truth)
    if config.finds_law:
        # The form is chosen on the first chunk, and fitted to all of them.
        return _sample(case, config, -(-config.samples // _LARGEST_CHUNK))
    if not case.resample or config.training.refinement:
        # A refinement sees all of them again and again.
        return _sample(case, config, 1).chunk(0)
    return _sample(case, config, config.training.epochs)


def _sample(case: Case, config: RunConfig, count: int) -> StepStream:
    return StepStream(
        case.mechanism,
        case.bounds,
        config.samples // count,
        case.dt_s,
        count=count,
        integrator=case.integrator,
        seed=config.seed,
        parameters=case.parameters,
    )
