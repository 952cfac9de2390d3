"""Read, complete, hold out, fit, judge: one call from logs to a model with its measure of trust."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mbdnode.data.files import separate_files
from mbdnode.data.logs import find_files
from mbdnode.errors import UserError
from mbdnode.evaluation import (
    Holdout,
    measure_horizon,
    predict_runs,
    score,
)
from mbdnode.identification import learn
from mbdnode.identification.biased_rates import biased_rates
from mbdnode.identification.excitation import inputs_that_follow
from mbdnode.identification.parameters import IdentifiedParameters, identify_parameters
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint, searching
from mbdnode.multibody import AbstractSystem
from mbdnode.parallel import check_address
from mbdnode.recipes import RECIPES
from mbdnode.simulation import training_domain
from mbdnode.training import Fit
from mbdnode.trajectory import Dataset
from mbdnode.waiting_notice import doing
from mbdnode.workflow.config import (
    AUTO,
    PARAMETERS,
    FitConfig,
    make_model,
    unknown_parameters,
)
from mbdnode.workflow.fitted import Fitted, Prepared
from mbdnode.workflow.model_choice import ModelChoice, choose_model
from mbdnode.workflow.read_logs import read_logs
from mbdnode.workflow.systems import find_system, recorded_system
from mbdnode.workflow.unrecorded_coordinates import complete_runs, completion_of


def read_and_check(
    config: FitConfig,
    *,
    report: Callable[[int, int | None], None] | None = None,
    cluster: str | None = None,
) -> Prepared:
    """Read the logs, and check everything that can be checked before training.

    `report` is called with the rows read and those in all files, where they are too many to hold.
    Workers of the cluster read the logs for a law, whatever their size, and fit what is linear in
    its unknowns to all of them. Raises `UserError` for what cannot be done.
    """
    system = find_system(config.mechanism) if config.mechanism else None
    files, held_files = separate_files(
        find_files(list(config.logs)),
        find_files(list(config.holdout_logs)) if config.holdout_logs else [],
    )
    if cluster is not None:
        _check_cluster(config, cluster)
    sought = system is not None and unknown_parameters(config, system)
    finds_law = RECIPES[config.recipe].finds_law and not sought
    in_parts = cluster is not None and finds_law
    logs = read_logs(config, files, held_files, in_parts=in_parts, report=report, cluster=cluster)
    parts, summary, stream = logs.parts, logs.summary, logs.stream
    if system is None:
        system = recorded_system(parts.training, _angles_of(config, summary), summary.units)
    unknown = _unknown_of(config, system, parts.training)
    whole, done = _completed(system, parts)
    change = None if stream is None else completion_of(system, parts.training, whole.training)
    if stream is not None and change is not None:
        stream = stream.changed(change)
    notes = [*str(summary).splitlines(), *(f"  {line}" for line in done), *parts.notes]
    subject, training = make_model(config, system, _varied(whole.training))
    return Prepared(
        *(config, system, whole, tuple(notes), subject, training, logs.rows),
        stream=stream,
        unknown=unknown,
        cluster=cluster,
    )


def _check_cluster(config: FitConfig, cluster: str) -> None:
    """Raise `UserError` for what a cluster does not help with."""
    check_address(cluster)
    recipe = RECIPES[config.recipe]
    if recipe.finds_law or (len(recipe.structures) > 1 and not config.structure):
        return
    raise UserError(
        f"A cluster ({cluster}) is given, but what is to be learned is {config.model} by "
        f"{config.recipe!r}, one network in one process. Leave the cluster out, or ask for a law "
        "or unknown parameters (recipe fast or best), or the best of several networks (adam-lm)."
    )


def _angles_of(config: FitConfig, summary: Any) -> tuple[str, ...] | None:
    """As the roles say, else as the logs do by their units and names."""
    said = config.columns.angles
    return tuple(said) if said is not None else getattr(summary, "angles", None)


def _unknown_of(config: FitConfig, system: AbstractSystem, data: Dataset) -> dict[str, Any]:
    """The unknown parameters, none of which the logs give a value."""
    unknown = unknown_parameters(config, system)
    for name in unknown:
        if name in data.parameters[0]:
            raise UserError(
                f"Parameter {name!r} is unknown, and the logs' roles give its value. Leave one of "
                "the two out."
            )
    return unknown


def _completed(system: AbstractSystem, parts: Holdout) -> tuple[Holdout, list[str]]:
    """All runs with every coordinate and input of the system, and what was done."""
    training, count = parts.training, len(parts.training.trajectories)
    runs = [*training.trajectories, *(run for _, run, _ in parts.held_out)]
    values = [*training.parameters, *(mu for _, _, mu in parts.held_out)]
    # Together, so that one compiled program completes them.
    whole, notes = complete_runs(system, Dataset(runs, values, None, training.recorded))
    learned = Dataset(
        whole.trajectories[:count], training.parameters, training.summary, whole.recorded
    )
    named = zip(parts.held_out, whole.trajectories[count:], strict=True)
    held_out = tuple((name, run, mu) for (name, _, mu), run in named)
    return replace(parts, training=learned, held_out=held_out), notes


def _varied(data: Dataset) -> tuple[str, ...]:
    """The parameters that differ between runs."""
    names = data.parameters[0]
    return tuple(
        name for name in names if len({float(values[name]) for values in data.parameters}) > 1
    )


def fit_and_score(
    prepared: Prepared, *, report: Callable | None = None, kept: SearchCheckpoint = NO_CHECKPOINT
) -> Fitted:
    """Train, and judge by what was held out.

    `kept` has what the same fit finished before it was killed, and what it finishes now.
    """
    start = time.perf_counter()
    choice = _learned(prepared, report, kept)
    learned = time.perf_counter()
    found = choice if not isinstance(choice, ModelChoice) else choice.found
    if isinstance(found, Fit) and found.outcome == "interrupted" and not found.updates:
        raise KeyboardInterrupt  # A network that has learned nothing is no result.
    if isinstance(found, IdentifiedParameters):
        config = replace(prepared.config, integrator=found.integrator)
        prepared = replace(prepared, config=config)
    config, training = prepared.config, prepared.data.training
    domain = training_domain(found.model, training.trajectories)
    runs, recorded = prepared.data.held_out, training.recorded
    biased = biased_rates(prepared.system, training)
    given = found.model, runs, recorded
    with doing("predicting held-out runs"):
        held_out = predict_runs(*given, domain, config.integrator, biased=biased, check_step=True)
        scores = score(held_out, prepared.system.coordinates, training.trajectories)
        horizon = measure_horizon(
            *given, scores.scales, config.integrator, noise=scores.noise, biased=biased
        )
    told = choice if isinstance(choice, ModelChoice) else None
    # A mechanism whose parameters are found says itself what its inputs do.
    following = (
        ()
        if isinstance(found, IdentifiedParameters)
        else inputs_that_follow(prepared.system, training)
    )
    seconds = {
        "preparing": prepared.prepare_seconds,
        "learning": learned - start,
        "scoring": time.perf_counter() - learned,
    }
    return Fitted(prepared, found, domain, held_out, scores, horizon, told, following, seconds)


def _learned(prepared: Prepared, report: Callable | None, kept: SearchCheckpoint) -> Any:
    """The model that was asked for, or a `ModelChoice` of the data."""
    config, data, unknown = prepared.config, prepared.data.training, prepared.unknown
    if config.model == PARAMETERS or (unknown and prepared.stream is not None):
        # Of logs that are read in parts, those of the first part.
        with searching(kept, prepared.cluster) as kept:
            return identify_parameters(
                *(prepared.system, data, unknown),
                report=report,
                kept=kept,
                bootstrap=config.bootstrap,
                seed=config.seed,
            )
    if config.model == AUTO and prepared.stream is None:
        given = config, prepared.system, data, unknown, _varied(data), report
        with searching(kept, prepared.cluster) as kept:
            return choose_model(*given, kept)
    source = data if prepared.stream is None else prepared.stream
    options = {"seed": config.seed, "report": report, "kept": kept}
    options["checkpoint"] = kept.checkpoint("network")
    if not prepared.finds_law:  # A stream for a law has its own workers.
        options["cluster"] = prepared.cluster
    with doing("searching for a law" if prepared.finds_law else "training a network"):
        return learn(prepared.subject, source, prepared.training, **options)
