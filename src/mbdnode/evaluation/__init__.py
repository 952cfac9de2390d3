"""What a trajectory says: error, energy, reactions."""

from mbdnode.evaluation.energy import energy
from mbdnode.evaluation.metrics import Metrics, evaluate
from mbdnode.evaluation.reactions import Reactions, reactions

__all__ = ["Metrics", "Reactions", "energy", "evaluate", "reactions"]
