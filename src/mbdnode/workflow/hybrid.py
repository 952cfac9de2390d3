"""A network beside a law that does not explain the data, where the data says that it helps.

The law is one that `identify` found and that does not predict the validation split well. As it was
fitted to what comes before that split, it is corrected by a network that is trained on the same
part (`MBDNODE.for_system(system, correction_of=law)`), and both predict the split. Where the hybrid
is better by a tenth at least, the law of all of the training data is corrected in the same way.
Nothing that was held out is looked at.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mbdnode.evaluation import predict_runs, score
from mbdnode.formatting import percent
from mbdnode.identification import Identified
from mbdnode.models import MBDNODE
from mbdnode.recipes import TrainingConfig
from mbdnode.simulation import training_domain
from mbdnode.training import Fit, fit
from mbdnode.training.selection import split
from mbdnode.trajectory import Dataset

# The last part of the training data that is predicted, and by which factor the error must fall.
_VALIDATION, _BETTER = 0.2, 1.1
# Of runs with fewer steps no part can be held back, and a part of that part for the network.
_SHORTEST = 50


def correct(
    found: Identified,
    data: Dataset,
    training: TrainingConfig,
    *,
    width: int = 32,
    parameters: tuple[str, ...] = (),
    seed: int = 0,
    report: Callable | None = None,
) -> Fit | None:
    """The law with a network for what it misses.

    **Arguments:**

    - `found`: the law.
    - `data`: that it was found in.
    - `training`: of the network.
    - `width`: of its hidden layers.
    - `parameters`: that differ between the runs, by name: the network reads them.
    - `seed`: of its first weights and of the order of the updates.
    - `report`: as for `fit`.

    **Returns:**

    The hybrid; None where the law explains the data, the runs are too short to tell, or the hybrid
    does not predict the validation split better by a tenth at least.
    """
    shortest = min(len(run) - 1 for run in data.trajectories)
    if found.diagnostics["explained"] or shortest < _SHORTEST:
        return None
    start = time.perf_counter()
    early, late = split(data, _VALIDATION)

    def trained(law: Any, on: Dataset) -> Fit:
        settings = {"width": width, "use_parameters": parameters}
        model = MBDNODE.for_system(law.body, seed=seed, correction_of=law, **settings)
        return fit(model, on, training, seed=seed, report=report)

    trial = trained(found.before_validation, early)
    law, hybrid = (
        _error(model, early, late, data.recorded, training.integrator)
        for model in (found.before_validation, trial.model)
    )
    if not hybrid * _BETTER < law:
        return None
    seconds = time.perf_counter() - start - trial.compile_seconds
    alone = percent(law) if law < float("inf") else "diverged"
    whole = trained(found.model, data)
    return replace(
        whole,
        status=(
            f"hybrid: law plus network, validation NRMSE {percent(hybrid)}, the law alone {alone}; "
            f"the law: {found.status}; the network: {whole.status}"
        ),
        train_seconds=found.train_seconds + seconds + whole.train_seconds,
        compile_seconds=found.compile_seconds + trial.compile_seconds + whole.compile_seconds,
        diagnostics={**found.diagnostics, **whole.diagnostics, "hybrid_validation_nrmse": hybrid},
    )


def is_hybrid(model: Any) -> bool:
    """Whether a model is a law or a mechanism with a network beside it."""
    return isinstance(model, MBDNODE) and model.known is not None


def _error(model: Any, early: Dataset, late: Dataset, recorded: Any, integrator: str) -> float:
    """The NRMSE over the validation split; infinite where a prediction ends early."""
    domain = training_domain(model, early.trajectories)
    runs = [
        (str(number), run, values)
        for number, (run, values) in enumerate(zip(late.trajectories, late.parameters, strict=True))
    ]
    held = predict_runs(model, runs, recorded, domain, integrator)
    scores = score(held, model.body.coordinates, early.trajectories)
    return float("inf") if scores.ended or scores.nrmse is None else scores.nrmse
