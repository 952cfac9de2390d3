"""Training of networks: losses, the compiled engine, `fit`."""

from mbdnode.recipes import TrainingConfig
from mbdnode.training.ensemble import fit_ensemble
from mbdnode.training.epoch_checkpoint import Checkpoint
from mbdnode.training.fit import Fit, fit
from mbdnode.training.network_selection import make_candidates
from mbdnode.training.objectives import check_training

__all__ = [
    "Checkpoint",
    "Fit",
    "TrainingConfig",
    "check_training",
    "fit",
    "fit_ensemble",
    "make_candidates",
]
