"""What a trajectory says, and how far predictions are from it.

Runs are held out by `split` and `hold_out_runs`, predictions of them are scored by `score`, and
`measure_horizon` says how far ahead they are valid.

Names are loaded when first used.
"""

from typing import TYPE_CHECKING

# These share their names with their modules, which would take their places.
from mbdnode.evaluation.energy import energy, energy_drift
from mbdnode.evaluation.reactions import Reactions, reactions
from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.evaluation.held_out_runs import (
        Holdout,
        hold_out_runs,
        separate_files,
        split,
        split_runs,
    )
    from mbdnode.evaluation.metrics import Metrics, evaluate, nrmse
    from mbdnode.evaluation.scores import (
        ColumnScore,
        HeldOut,
        RunScore,
        Scores,
        predict,
        predict_runs,
        score,
    )
    from mbdnode.evaluation.valid_prediction_time import Horizon, measure_horizon

__all__ = [
    "ColumnScore",
    "HeldOut",
    "Holdout",
    "Horizon",
    "Metrics",
    "Reactions",
    "RunScore",
    "Scores",
    "energy",
    "energy_drift",
    "evaluate",
    "hold_out_runs",
    "measure_horizon",
    "nrmse",
    "predict",
    "predict_runs",
    "reactions",
    "score",
    "separate_files",
    "split",
    "split_runs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "ColumnScore": "scores",
        "HeldOut": "scores",
        "Holdout": "held_out_runs",
        "Horizon": "valid_prediction_time",
        "Metrics": "metrics",
        "RunScore": "scores",
        "Scores": "scores",
        "evaluate": "metrics",
        "hold_out_runs": "held_out_runs",
        "measure_horizon": "valid_prediction_time",
        "nrmse": "metrics",
        "predict": "scores",
        "predict_runs": "scores",
        "score": "scores",
        "separate_files": "held_out_runs",
        "split": "held_out_runs",
        "split_runs": "held_out_runs",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
