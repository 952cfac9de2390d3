"""Training without epochs: a closed form, its structure chosen by the recipe."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from mbdnode.identification.search import SegmentError, Tell, fit_closed_form
from mbdnode.models.library import Forces
from mbdnode.training.config import TrainingConfig
from mbdnode.training.engine import counted_compilation
from mbdnode.training.fit import Fit
from mbdnode.trajectory import Dataset


def fit_at_once(
    system: Any,
    data: Dataset,
    config: TrainingConfig,
    seed: int,
    more: Callable[[], Iterator[Dataset]] | None = None,
    chunks: int = 1,
    report: Callable[[dict[str, Any], int], None] | None = None,
    forces: Forces = "inputs",
) -> Fit:
    """Learn a system's accelerations in closed form.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `data`: the training range.
    - `config`: with a method other than "gradient".
    - `seed`: of drawn features.
    - `more`: gives further data, piece by piece, as often as it is called.
    - `chunks`: how many pieces there are, the first included.
    - `report`: called for every form that was tried and every further piece that was taken, with
        a row like that of an epoch, which has their number as its "epoch", the least error so far
        as its "loss" and "form" or "chunk" as its "stage"; and how many there are at most.
    - `forces`: "inputs" learns what the inputs do, "added" takes it from the system.

    **Returns:**

    A `Fit`; its model is of the kind that the recipe chose.
    """
    # The matrices are small, and threads that wait for each other made this ten times slower.
    with counted_compilation() as compilation, threadpool_limits(1, "blas"):
        choice = fit_closed_form(
            system,
            data,
            integrator=config.integrator,
            polished=config.method == "polished",
            seed=seed,
            structure=config.structure,
            known=config.known,
            forces=forces,
            more=more,
            chunks=chunks,
            tell=None if report is None else _teller(report),
        )
    found, error = choice.chosen.candidate, choice.chosen.error
    tried = f"of {len(choice.trials)} tried" if len(choice.trials) > 1 else "the first tried"
    return Fit(
        model=choice.model,
        history=[],
        status=f"chose a {found.name}, {tried}; {judged(choice.segments)}",
        outcome="completed",
        updates=0,
        train_seconds=max(choice.seconds - compilation.seconds, 0.0),
        compile_seconds=compilation.seconds,
        diagnostics={
            "structure": found.structure,
            "validation_nrmse": error,
            "noise": choice.noise.relative,
        },
    )


def judged(segments: tuple[SegmentError, ...]) -> str:
    """The error over the validation split, and what is to be doubted, for a status.

    **Arguments:**

    - `segments`: the errors of the chosen candidate, the longest segments first.

    **Returns:**

    A part of a sentence.
    """
    longest, last = segments[0], segments[-1]
    told = f"validation NRMSE {longest.error:.1e}"
    if longest.seconds:
        told += f" over {longest.seconds:.3g} s"
    if longest.good:
        return told
    if not last.good:
        return f"{told}; no law was found that predicts this motion well"
    return (
        f"{told}, {last.error:.1e} over {last.seconds:.3g} s: it predicts this motion well for "
        f"about {last.seconds:.3g} s, and not for {segments[-2].seconds:.3g} s"
    )


def _teller(report: Callable[[dict[str, Any], int], None]) -> Tell:
    start = time.perf_counter()

    def tell(stage: str, done: int, total: int, error: float) -> None:
        passed = time.perf_counter() - start
        row = {"epoch": done - 1, "loss": error, "learning_rate": 0.0, "seconds": passed}
        report({**row, "stage": stage}, total)

    return tell
