"""Identification: the law of a system, found in data by regression and shooting refinement."""

from mbdnode.identification.identify import (
    Identified,
    TriedCandidate,
    check_identification,
    identify,
    learn,
)
from mbdnode.identification.initial_states import estimate_state, estimate_states
from mbdnode.identification.law_search import choose_law
from mbdnode.identification.parameters import (
    Bootstrap,
    Combination,
    IdentifiedParameters,
    Unknown,
)
from mbdnode.recipes import IdentificationConfig

__all__ = [
    "Bootstrap",
    "Combination",
    "IdentificationConfig",
    "Identified",
    "IdentifiedParameters",
    "TriedCandidate",
    "Unknown",
    "check_identification",
    "choose_law",
    "estimate_state",
    "estimate_states",
    "identify",
    "learn",
]
