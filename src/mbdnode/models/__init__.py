"""Learned models: drop-in replacements for a mechanism.

Names are loaded when first used.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.models.base import AbstractModel, AbstractRateModel, Capability, check_capable
    from mbdnode.models.baselines import (
        FCNN,
        HNN,
        LNN,
        LSTM,
        FCNNConfig,
        HNNConfig,
        LNNConfig,
        LSTMConfig,
    )
    from mbdnode.models.ensemble import Ensemble
    from mbdnode.models.files import load, save
    from mbdnode.models.fitted_mechanism import FittedMechanism
    from mbdnode.models.function_library import Library
    from mbdnode.models.hybrid import Hybrid
    from mbdnode.models.learned_mechanism import LearnedMechanism
    from mbdnode.models.mbdnode import MBDNODE, MBDNODEConfig
    from mbdnode.models.network import Network, make_network
    from mbdnode.models.network_structures import (
        STRUCTURES,
        AbstractStructure,
        Scales,
        get_structure,
    )
    from mbdnode.models.objective import AbstractObjective
    from mbdnode.models.registry import KINDS, LAW, MODELS

__all__ = [
    "FCNN",
    "HNN",
    "KINDS",
    "LAW",
    "LNN",
    "LSTM",
    "MBDNODE",
    "MODELS",
    "STRUCTURES",
    "AbstractModel",
    "AbstractObjective",
    "AbstractRateModel",
    "AbstractStructure",
    "Capability",
    "Ensemble",
    "FCNNConfig",
    "FittedMechanism",
    "HNNConfig",
    "Hybrid",
    "LNNConfig",
    "LSTMConfig",
    "LearnedMechanism",
    "Library",
    "MBDNODEConfig",
    "Network",
    "Scales",
    "check_capable",
    "get_structure",
    "load",
    "make_network",
    "save",
]

__getattr__ = lazy_names(
    __name__,
    {
        "FCNN": "baselines",
        "HNN": "baselines",
        "KINDS": "registry",
        "LAW": "registry",
        "LNN": "baselines",
        "LSTM": "baselines",
        "MBDNODE": "mbdnode",
        "MODELS": "registry",
        "STRUCTURES": "network_structures",
        "AbstractModel": "base",
        "AbstractObjective": "objective",
        "AbstractRateModel": "base",
        "AbstractStructure": "network_structures",
        "Capability": "base",
        "Ensemble": "ensemble",
        "FCNNConfig": "baselines",
        "FittedMechanism": "fitted_mechanism",
        "HNNConfig": "baselines",
        "Hybrid": "hybrid",
        "LNNConfig": "baselines",
        "LSTMConfig": "baselines",
        "LearnedMechanism": "learned_mechanism",
        "Library": "function_library",
        "MBDNODEConfig": "mbdnode",
        "Network": "network",
        "Scales": "network_structures",
        "check_capable": "base",
        "get_structure": "network_structures",
        "load": "files",
        "make_network": "network",
        "save": "files",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
