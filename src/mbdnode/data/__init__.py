"""Data in and out: files, samples of a mechanism, and streams of them.

Names are loaded when first used, so that logs can be looked at without loading JAX.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

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

__getattr__ = lazy_names(
    __name__,
    {
        "AbstractStream": "sampling",
        "StepStream": "sampling",
        "check_destination": "files",
        "sample_accelerations": "sampling",
        "write": "logs.trajectory_files",
    },
)
