"""What a trajectory says: error, energy, reactions; and what a model is worth to a controller."""

from mbdnode.evaluation.control import JacobianError, jacobian_error, loop_difference
from mbdnode.evaluation.energy import energy
from mbdnode.evaluation.metrics import Metrics, evaluate, nrmse
from mbdnode.evaluation.reactions import Reactions, reactions

__all__ = [
    "JacobianError",
    "Metrics",
    "Reactions",
    "energy",
    "evaluate",
    "jacobian_error",
    "loop_difference",
    "nrmse",
    "reactions",
]
