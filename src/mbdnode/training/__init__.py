"""Training of networks: `fit`, its losses, the compiled epoch, what follows it."""

from mbdnode.models import AbstractObjective
from mbdnode.recipes import TrainingConfig
from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.choose import make_candidates, structures_to_try
from mbdnode.training.fit import Fit, fit, fit_ensemble
from mbdnode.training.loss import check_training

__all__ = [
    "AbstractObjective",
    "Checkpoint",
    "Fit",
    "TrainingConfig",
    "check_training",
    "fit",
    "fit_ensemble",
    "make_candidates",
    "structures_to_try",
]
