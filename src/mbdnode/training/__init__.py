"""Training: losses, the compiled engine, recipes, fit."""

from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.config import RECIPES, TrainingConfig, get_recipe
from mbdnode.training.fit import Fit, check_training, fit

__all__ = ["RECIPES", "Checkpoint", "Fit", "TrainingConfig", "check_training", "fit", "get_recipe"]
