"""Data in and out: files, and samples of a mechanism."""

from mbdnode.data.files import check_destination, write
from mbdnode.data.sampling import sample_accelerations, sample_steps

__all__ = ["check_destination", "sample_accelerations", "sample_steps", "write"]
