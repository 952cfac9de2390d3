"""`simulate`: truth and learned models alike."""

from mbdnode.simulation.ensemble import AbstractEnsemble
from mbdnode.simulation.signals import Interpolation
from mbdnode.simulation.simulate import simulate

__all__ = ["AbstractEnsemble", "Interpolation", "simulate"]
