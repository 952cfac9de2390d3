"""Training without epochs: a closed form, its structure chosen by the recipe."""

from collections.abc import Callable, Iterator
from typing import Any

from threadpoolctl import threadpool_limits

from mbdnode.training.closed_form import fit_closed_form
from mbdnode.training.compilation import counted_compilation
from mbdnode.training.config import TrainingConfig
from mbdnode.training.fitted import Fit
from mbdnode.trajectory import Dataset

# An error of this part of the motion is no prediction to rely on.
_POOR = 0.1


def fit_at_once(
    system: Any,
    data: Dataset,
    config: TrainingConfig,
    seed: int,
    more: Callable[[], Iterator[Dataset]] | None = None,
) -> Fit:
    """Learn a system's accelerations in closed form.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `data`: the training range.
    - `config`: with a method other than "gradient".
    - `seed`: of drawn features.
    - `more`: gives further data, piece by piece, as often as it is called.

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
            more=more,
        )
    found, error = choice.chosen.candidate, choice.chosen.error
    doubt = "" if error < _POOR else "; no law was found that predicts this motion well"
    tried = f"of {len(choice.trials)} tried" if len(choice.trials) > 1 else "the first tried"
    return Fit(
        model=choice.model,
        history=[],
        status=f"chose a {found.name}, {tried}; error on the held-out part {error:.1e}{doubt}",
        outcome="completed",
        updates=0,
        train_seconds=max(choice.seconds - compilation.seconds, 0.0),
        compile_seconds=compilation.seconds,
        diagnostics={
            "structure": found.structure,
            "held_out_error": error,
            "noise": choice.noise.relative,
        },
    )
