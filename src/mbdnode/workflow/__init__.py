"""From logs to a folder with a model and its report, and from the folder to predictions.

`fit_logs` is the work of `mbdnode fit`, `predict_like` that of `mbdnode predict`, and
`predict_from` that of `mbdnode simulate` with a fit. Names are loaded when first used.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.workflow.config import FitConfig
    from mbdnode.workflow.fit import Fitted
    from mbdnode.workflow.folder import StoredFit, read_folder
    from mbdnode.workflow.from_logs import fit_logs
    from mbdnode.workflow.predict import predict_from, predict_like

__all__ = [
    "FitConfig",
    "Fitted",
    "StoredFit",
    "fit_logs",
    "predict_from",
    "predict_like",
    "read_folder",
]

__getattr__ = lazy_names(
    __name__,
    {
        "FitConfig": "config",
        "Fitted": "fit",
        "StoredFit": "folder",
        "fit_logs": "from_logs",
        "predict_from": "predict",
        "predict_like": "predict",
        "read_folder": "folder",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
