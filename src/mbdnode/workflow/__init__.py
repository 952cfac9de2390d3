"""From logs to a folder with a model and its report, and from the folder to predictions.

`fit_logs` is the work of `mbdnode fit`; `predict_like` and `predict_from` are that of
`mbdnode predict`. Names are loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mbdnode.workflow.config import FitConfig
    from mbdnode.workflow.fit import Fitted
    from mbdnode.workflow.folder import StoredFit, read_folder
    from mbdnode.workflow.from_logs import fit_logs
    from mbdnode.workflow.predict import predict_from, predict_like

_HOMES = {
    "FitConfig": "config",
    "Fitted": "fit",
    "StoredFit": "folder",
    "fit_logs": "from_logs",
    "predict_from": "predict",
    "predict_like": "predict",
    "read_folder": "folder",
}

__all__ = [
    "FitConfig",
    "Fitted",
    "StoredFit",
    "fit_logs",
    "predict_from",
    "predict_like",
    "read_folder",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"mbdnode.workflow.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mbdnode.workflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
