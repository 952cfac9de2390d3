"""Training: losses, the compiled engine, recipes, fit."""

from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.config import RECIPES, TrainingConfig, get_recipe
from mbdnode.training.fit import fit
from mbdnode.training.fitted import Fit
from mbdnode.training.objectives import check_training

__all__ = ["RECIPES", "Checkpoint", "Fit", "TrainingConfig", "check_training", "fit", "get_recipe"]
