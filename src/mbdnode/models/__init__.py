"""Learned models: drop-in replacements for a mechanism."""

from mbdnode.models.base import LAW, AbstractModel, AbstractRateModel, Capability, check_capable
from mbdnode.models.ensemble import Ensemble
from mbdnode.models.fcnn import FCNN, FCNNConfig
from mbdnode.models.files import load, save
from mbdnode.models.hnn import HNN, HNNConfig
from mbdnode.models.lnn import LNN, LNNConfig
from mbdnode.models.lstm import LSTM, LSTMConfig
from mbdnode.models.mbdnode import MBDNODE, MBDNODEConfig
from mbdnode.models.network import Network, make_network
from mbdnode.models.registry import KINDS

__all__ = [
    "FCNN",
    "HNN",
    "KINDS",
    "LAW",
    "LNN",
    "LSTM",
    "MBDNODE",
    "AbstractModel",
    "AbstractRateModel",
    "Capability",
    "Ensemble",
    "FCNNConfig",
    "HNNConfig",
    "LNNConfig",
    "LSTMConfig",
    "MBDNODEConfig",
    "Network",
    "check_capable",
    "load",
    "make_network",
    "save",
]
