"""Trajectories in files, and samples of what a system does."""

from mbdnode.data.files import check_destination, write
from mbdnode.data.sampling import sample_accelerations

__all__ = ["check_destination", "sample_accelerations", "write"]
