"""What a trajectory says about the mechanism: energy, reactions."""

from mbdnode.evaluation.energy import energy
from mbdnode.evaluation.reactions import Reactions, reactions

__all__ = ["Reactions", "energy", "reactions"]
