"""`simulate`: truth and learned models alike."""

from mbdnode.simulation.domain import Domain, training_domain
from mbdnode.simulation.ensemble import AbstractEnsemble
from mbdnode.simulation.interpolation import INTERPOLATIONS, Interpolation
from mbdnode.simulation.simulate import simulate

__all__ = [
    "INTERPOLATIONS",
    "AbstractEnsemble",
    "Domain",
    "Interpolation",
    "simulate",
    "training_domain",
]
