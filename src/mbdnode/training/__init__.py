"""Training: losses, the compiled engine, recipes, fit."""

from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.config import RECIPE_LINES, RECIPES, TrainingConfig, get_recipe
from mbdnode.training.ensemble import fit_ensemble
from mbdnode.training.fit import Fit, fit
from mbdnode.training.objectives import check_training

__all__ = [
    "RECIPES",
    "RECIPE_LINES",
    "Checkpoint",
    "Fit",
    "TrainingConfig",
    "check_training",
    "fit",
    "fit_ensemble",
    "get_recipe",
]
