"""Training: losses, the compiled engine, recipes, fit."""

from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.closed_form import estimate_state, estimate_states
from mbdnode.training.config import RECIPE_LINES, RECIPES, TrainingConfig, get_recipe
from mbdnode.training.ensemble import fit_ensemble
from mbdnode.training.fit import fit
from mbdnode.training.fitted import Fit
from mbdnode.training.objectives import check_training

__all__ = [
    "RECIPES",
    "RECIPE_LINES",
    "Checkpoint",
    "Fit",
    "TrainingConfig",
    "check_training",
    "estimate_state",
    "estimate_states",
    "fit",
    "fit_ensemble",
    "get_recipe",
]
