"""Learned models: drop-in replacements for a mechanism."""

from mbdnode.models.base import LAW, AbstractModel, AbstractRateModel, Capability, check_capable
from mbdnode.models.ensemble import Ensemble
from mbdnode.models.fcnn import FCNN, FCNNConfig
from mbdnode.models.files import load, save
from mbdnode.models.hnn import HNN, HNNConfig
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.library import Library
from mbdnode.models.lnn import LNN, LNNConfig
from mbdnode.models.lstm import LSTM, LSTMConfig
from mbdnode.models.mbdnode import MBDNODE, MBDNODEConfig
from mbdnode.models.network import Network, make_network
from mbdnode.models.registry import KINDS, MODELS, check_trained_by, trained_by

__all__ = [
    "FCNN",
    "HNN",
    "KINDS",
    "LAW",
    "LNN",
    "LSTM",
    "MBDNODE",
    "MODELS",
    "AbstractModel",
    "AbstractRateModel",
    "Capability",
    "Ensemble",
    "FCNNConfig",
    "HNNConfig",
    "LNNConfig",
    "LSTMConfig",
    "LearnedMechanism",
    "Library",
    "MBDNODEConfig",
    "Network",
    "check_capable",
    "check_trained_by",
    "load",
    "make_network",
    "save",
    "trained_by",
]
