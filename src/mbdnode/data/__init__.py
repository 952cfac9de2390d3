"""Data in and out: files, samples of a mechanism, and streams of them."""

from mbdnode.data.files import check_destination, read_back, write
from mbdnode.data.sampling import sample_accelerations
from mbdnode.data.stream import AbstractStream, StepStream

__all__ = [
    "AbstractStream",
    "StepStream",
    "check_destination",
    "read_back",
    "sample_accelerations",
    "write",
]
