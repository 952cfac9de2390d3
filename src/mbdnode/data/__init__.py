"""Data in and out: files, samples of a mechanism, and streams of them.

Names are loaded when first used, so that logs can be looked at without loading JAX.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode.data.files import check_destination
    from mbdnode.data.logs.trajectory_files import write
    from mbdnode.data.sampling import AbstractStream, StepStream, sample_accelerations

__all__ = [
    "AbstractStream",
    "StepStream",
    "check_destination",
    "sample_accelerations",
    "write",
]

_HOMES = {
    "AbstractStream": "sampling",
    "StepStream": "sampling",
    "check_destination": "files",
    "sample_accelerations": "sampling",
    "write": "logs.trajectory_files",
}


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'mbdnode.data' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mbdnode.data.{_HOMES[name]}"), name)
