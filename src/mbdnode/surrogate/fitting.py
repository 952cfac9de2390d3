"""Read, complete, hold out, fit, judge: one call from logs to a model with its measure of trust."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.data.logs import read
from mbdnode.errors import UserError
from mbdnode.multibody import AbstractSystem
from mbdnode.report.fit_story import HeldOut, Horizon
from mbdnode.simulation import Domain, training_domain
from mbdnode.surrogate.completing import complete_runs
from mbdnode.surrogate.configuration import FitConfig, make_model
from mbdnode.surrogate.holdout import Split, run_names, split
from mbdnode.surrogate.judging import error_of, judge, measure_horizon, spreads
from mbdnode.surrogate.large import are_large, open_stream
from mbdnode.surrogate.system import find_system, recorded_system
from mbdnode.training import Fit, fit
from mbdnode.trajectory import Dataset


@dataclass(frozen=True)
class Prepared:
    """What is to be learned, all of it checked.

    **Arguments:**

    - `config`: of the fit.
    - `system`: what moves.
    - `data`: training and held-out runs.
    - `recorded`: the coordinates that were measured.
    - `notes`: what was read and done, line by line.
    - `model`, `training`: untrained, and how to train it.
    - `rows`: how many are trained on.
    - `stream`: where they come from, if there are too many to hold; `data.training` is then a part.
    """

    config: FitConfig
    system: AbstractSystem
    data: Split
    recorded: tuple[str, ...]
    notes: tuple[str, ...]
    model: Any
    training: Any
    rows: int
    stream: AbstractStream | None = None


@dataclass(frozen=True)
class Fitted:
    """What came of it.

    **Arguments:**

    - `prepared`: what went in.
    - `fit`: of the model.
    - `domain`: where the training data lies.
    - `held_out`: the runs that were not trained on.
    - `horizon`: how far ahead it can be trusted.
    - `errors`: of each held-out run, in spreads; None for a prediction that ended early.
    """

    prepared: Prepared
    fit: Fit
    domain: Domain
    held_out: tuple[HeldOut, ...]
    horizon: Horizon | None
    errors: tuple[float | None, ...]

    def metrics(self) -> dict[str, Any]:
        """The content of metrics.json."""
        prepared = self.prepared
        known = [error for error in self.errors if error is not None]
        residuals = [float(np.nanmax(one.prediction.position_residual)) for one in self.held_out]
        outside = [float(np.mean(one.outside)) for one in self.held_out]
        return {
            "model": prepared.config.model,
            "recipe": prepared.config.recipe,
            "seed": prepared.config.seed,
            "training_runs": len(prepared.data.training.trajectories),
            "training_rows": prepared.rows,
            "held_out_runs": len(self.held_out),
            "error": float(np.median(known)) if len(known) == len(self.errors) and known else None,
            "errors": {
                one.name: error for one, error in zip(self.held_out, self.errors, strict=True)
            },
            "trusted_s": None if self.horizon is None else self.horizon.trusted_s,
            "outside": float(np.mean(outside)) if outside else None,
            "position_residual": max(residuals, default=None),
            "train_seconds": self.fit.train_seconds,
            "compile_seconds": self.fit.compile_seconds,
            "updates": self.fit.updates,
            "status": self.fit.status,
            "outcome": self.fit.outcome,
            "threshold": self.domain.threshold,
        }


def prepare(
    config: FitConfig, *, report: Callable[[int, int | None], None] | None = None
) -> Prepared:
    """Read the logs, and check everything that can be checked before training.

    **Arguments:**

    - `config`: of the fit.
    - `report`: called with the rows read, and those in all files, where they are too many to hold.

    **Returns:**

    A `Prepared`. Raises `UserError` for what cannot be done.
    """
    system = find_system(config.mechanism) if config.mechanism else None
    if are_large(config.logs):
        return _prepare_stream(config, system, report)
    data = read(list(config.logs), **config.columns)
    recorded = data.trajectories[0].coordinates
    notes = str(data.summary).splitlines()
    if system is None:
        angles = config.columns.get("angles")
        system = recorded_system(data, None if angles is None else tuple(angles))
    data, more = complete_runs(system, data)
    notes += [f"  {line}" for line in more]
    if config.holdout_logs:
        held = read(list(config.holdout_logs), **config.columns)
        notes += ["held out:", *str(held.summary).splitlines()]
        held, _ = complete_runs(system, held)
        rest = zip(run_names(held), held.trajectories, held.parameters, strict=True)
        parts = Split(data, tuple((name, run, dict(values)) for name, run, values in rest))
    else:
        parts = split(data, config.holdout, config.seed)
    model, training = make_model(config, system, _varied(data))
    rows = sum(len(run) for run in parts.training.trajectories)
    return Prepared(config, system, parts, recorded, tuple(notes), model, training, rows)


def _prepare_stream(config: FitConfig, system: AbstractSystem | None, report: Any) -> Prepared:
    """The same for logs that are read in parts; some windows are held out."""
    if config.holdout_logs:
        held_out_logs = ", ".join(config.holdout_logs)
        raise UserError(
            f"These logs are read in parts, of which some windows are held out; --holdout "
            f"{held_out_logs} cannot be added. Give a part, such as 0.1."
        )
    large = open_stream(config, report)
    recorded = large.sample.trajectories[0].coordinates
    if system is None:
        angles = config.columns.get("angles")
        system = recorded_system(large.sample, None if angles is None else tuple(angles))
    sample, more = complete_runs(system, large.sample)
    if recorded != system.coordinate_names or sample.trajectories[0].inputs != large.inputs:
        raise UserError(
            "Logs of this size are read in parts and must have every coordinate and input of the "
            f"system, in its order: {', '.join((*system.coordinate_names, *system.input_names))}. "
            "Thin the log, or name the columns so."
        )
    model, training = make_model(config, system, _varied(large.sample))
    notes = [*str(large.summary).splitlines(), *(f"  {line}" for line in more)]
    held = complete_runs(system, large.held_out)[0]
    named = zip(large.names, held.trajectories, held.parameters, strict=True)
    parts = Split(sample, tuple((name, run, dict(values)) for name, run, values in named))
    return Prepared(
        *(config, system, parts, recorded, tuple(notes), model, training, large.rows),
        stream=large.training,
    )


def _varied(data: Dataset) -> tuple[str, ...]:
    """The parameters that differ between runs."""
    names = data.parameters[0]
    return tuple(
        name for name in names if len({float(values[name]) for values in data.parameters}) > 1
    )


def carry_out(prepared: Prepared, *, report: Callable | None = None) -> Fitted:
    """Train, and judge by what was held out.

    **Arguments:**

    - `prepared`: as `prepare` made it.
    - `report`: as for `fit`.

    **Returns:**

    A `Fitted`.
    """
    config, training = prepared.config, prepared.data.training
    source = training if prepared.stream is None else prepared.stream
    found = fit(prepared.model, source, prepared.training, seed=config.seed, report=report)
    domain = training_domain(found.model, training.trajectories)
    held = tuple(
        judge(found.model, name, run, values, prepared.recorded, domain, config.integrator)
        for name, run, values in prepared.data.held_out
    )
    # The units of the errors: how much the motions that are to be predicted move.
    spread = spreads([one.truth for one in held], prepared.recorded) if held else {}
    values = [parameters for _, _, parameters in prepared.data.held_out]
    horizon = measure_horizon(found.model, held, values, spread, config.integrator)
    errors = tuple(error_of(one, spread) for one in held)
    return Fitted(prepared, found, domain, held, horizon, errors)
