"""A network beside a law that does not explain the data, where the data says that it helps.

The law is one that `identify` found and that does not predict the validation split well. As it was
fitted to what comes before that split, it is corrected by a network that is trained on the same
part (`MBDNODE.for_system(system, correction_of=law)`), and both predict the split. Where the hybrid
is better by a tenth at least, the law of all of the training data is corrected in the same way.
Nothing that was held out is looked at.

Of a law that has a mass, forces in the joints are tried first: each of one coordinate, or of one
velocity, so they say something of states that no run has been to. One network of everything is for
what they do not explain.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbdnode.evaluation import predict_runs, score
from mbdnode.evaluation.predictions import rows_before
from mbdnode.formatting import percent
from mbdnode.identification import Identified
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.models import MBDNODE, Hybrid, LearnedMechanism
from mbdnode.recipes import TrainingConfig
from mbdnode.simulation import training_domain
from mbdnode.training import Fit, fit
from mbdnode.training.choose import split
from mbdnode.trajectory import Dataset

# The last part of the training data that is predicted, and by which factor a model must be better
# there than one that is simpler.
VALIDATION, BETTER = 0.2, 1.1
# Below this part of the motion there is nothing left to explain.
_GOOD = 0.01
# Of runs with fewer steps no part can be held back, and a part of that part for the network.
_SHORTEST = 50
# Forces in the joints are small networks of one variable each.
_JOINTS = {"structure": "joints", "width": 8, "affine": True}
# Steps of the pieces that are taken of runs with too many.
_PIECE = 200


@dataclass(frozen=True)
class HybridTrial:
    """The NRMSE on the validation split without and with a network; `finish` trains it on all.

    The NRMSE is infinite where a prediction ended early.
    """

    law_nrmse: float
    hybrid_nrmse: float
    finish: Callable[[], Fit]


def are_long(data: Dataset) -> bool:
    """Whether a part of every run can be held back to choose by."""
    return min(len(run) - 1 for run in data.trajectories) >= _SHORTEST


def thin_runs(data: Dataset, steps: int) -> Dataset:
    """The data as it is, or evenly spaced pieces of equal length with at most so many steps."""
    runs = list(zip(data.trajectories, data.parameters, strict=True))
    if sum(len(run) - 1 for run, _ in runs) <= steps or any(run.t.ndim > 1 for run, _ in runs):
        return data
    length = min(_PIECE, *(len(run) - 1 for run, _ in runs))
    pieces = [
        (run, first, values)
        for run, values in runs
        for first in range(0, len(run) - length, length)
    ]
    count = max(1, min(steps // length, len(pieces)))
    chosen = [pieces[i] for i in np.linspace(0, len(pieces) - 1, count).astype(int)]
    cut = [run.rows(first, first + length) for run, first, _ in chosen]
    return Dataset(cut, [values for _, _, values in chosen], recorded=data.recorded)


def try_hybrid(
    found: Identified,
    data: Dataset,
    training: TrainingConfig,
    *,
    trial: TrainingConfig | None = None,
    most: int | None = None,
    width: int = 32,
    parameters: tuple[str, ...] = (),
    seed: int = 0,
    report: Callable | None = None,
    kept: SearchCheckpoint = NO_CHECKPOINT,
) -> HybridTrial:
    """Train a network beside a law on what comes before the validation split.

    `trial` is the training of the network that only predicts the split; the same if None. Networks
    are trained on at most so many steps. They read the `parameters` that differ between the runs.
    `kept` has what the same trial finished before it was killed, and what it finishes now.
    """
    start = time.perf_counter()
    early = split(data, VALIDATION)[0]
    given = data, data.recorded, training.integrator, found.biased_rates

    def trained(law: Any, on: Dataset, name: str, how: TrainingConfig, form: dict) -> Fit:
        settings = {"width": width, "use_parameters": parameters, **form}
        model = MBDNODE.for_system(law.body, seed=seed, correction_of=law, **settings)
        options = {"seed": seed, "report": report, "checkpoint": kept.checkpoint(name)}
        return fit(model, on if most is None else thin_runs(on, most), how, **options)

    def attempt(form: dict[str, Any]) -> tuple[float, Fit]:
        name = form.get("structure", "free")
        network = trained(found.before_validation, early, f"early-{name}", trial or training, form)
        error = lambda: validation_error(network.model, *given)[0]  # noqa: E731
        return kept.value(f"validation error of {name}", error), network

    law_error = lambda: validation_error(found.before_validation, *given)[0]  # noqa: E731
    law = kept.value("validation error of the law", law_error)
    hybrid, chosen, compile_s = float("inf"), {}, 0.0
    for form in ([_JOINTS] if isinstance(found.model, LearnedMechanism) else []) + [{}]:
        error, network = attempt(form)
        compile_s += network.compile_seconds
        if error * BETTER < hybrid:
            hybrid, chosen = error, form
        if hybrid < _GOOD:
            break
    seconds = time.perf_counter() - start - compile_s
    alone = percent(law) if law < float("inf") else "diverged"

    def finish() -> Fit:
        whole = trained(found.model, data, "network", training, chosen)
        return replace(
            whole,
            status=(
                f"hybrid: law plus network, validation NRMSE {percent(hybrid)}, the law alone "
                f"{alone}; the law: {found.status}; the network: {whole.status}"
            ),
            train_seconds=found.train_seconds + seconds + whole.train_seconds,
            compile_seconds=found.compile_seconds + compile_s + whole.compile_seconds,
            diagnostics={
                **found.diagnostics,
                **whole.diagnostics,
                "hybrid_validation_nrmse": hybrid,
            },
        )

    return HybridTrial(law, hybrid, finish)


def is_hybrid(model: Any) -> bool:
    """Whether a model is a law or a mechanism with a network beside it."""
    return isinstance(model, Hybrid)


def validation_error(
    model: Any, data: Dataset, recorded: Any, integrator: str, biased: Sequence[str] = ()
) -> tuple[float, float]:
    """The NRMSE over the validation split, and that which noise alone would make.

    The model was fitted to what comes before the split, of all of the training `data`. The NRMSE is
    infinite where a prediction ends early.
    """
    early, late = split(data, VALIDATION)
    domain = training_domain(model, early.trajectories)
    # A piece that is cut from a run has rows before it, which were trained on: its initial state is
    # estimated from them, and all of the piece is predicted.
    cut = len(late.trajectories) == len(data.trajectories)
    runs, begins = [], []
    for number, (run, values) in enumerate(zip(late.trajectories, late.parameters, strict=True)):
        whole = data.trajectories[number] if cut and run.t.ndim == 1 else run
        before = rows_before(model, whole, recorded)
        if whole is not run:
            before = min(before, len(whole) - len(run))
            run = whole.rows(len(whole) - len(run) - before, len(whole) - 1)
        runs.append((str(number), run, values))
        begins.append(before)
    given = model, runs, recorded, domain, integrator
    predicted = predict_runs(*given, biased=biased, begins=begins)
    scores = score(predicted, model.body.coordinates, early.trajectories)
    known = not scores.ended and scores.nrmse is not None
    return (scores.nrmse if known and scores.nrmse is not None else float("inf")), scores.noise
