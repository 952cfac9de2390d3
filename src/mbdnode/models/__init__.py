"""Learned models: drop-in replacements for a mechanism."""

from mbdnode.models.base import AbstractModel
from mbdnode.models.files import load, save
from mbdnode.models.mbdnode import MBDNODE, MBDNODEConfig
from mbdnode.models.network import Network, make_network

__all__ = [
    "MBDNODE",
    "AbstractModel",
    "MBDNODEConfig",
    "Network",
    "load",
    "make_network",
    "save",
]
