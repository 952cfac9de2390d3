"""Planar mechanisms from TOML files: bodies, joints, springs, dampers, loads and drives."""

from mbdnode.mechanisms.planar.analysis import Analysis, Redundancy, analyze
from mbdnode.mechanisms.planar.description import Description
from mbdnode.mechanisms.planar.mechanism import AbstractPlanar, PlanarKinematics, PlanarMechanism
from mbdnode.mechanisms.planar.reading import from_dict, from_text, read_mechanism

__all__ = [
    "AbstractPlanar",
    "Analysis",
    "Description",
    "PlanarKinematics",
    "PlanarMechanism",
    "Redundancy",
    "analyze",
    "from_dict",
    "from_text",
    "read_mechanism",
]
