"""Parameters of a system whose structure is known, from recorded motion."""

from mbdnode.identification.parameters.identify_parameters import (
    Combination,
    IdentifiedParameters,
    identify_parameters,
)
from mbdnode.identification.parameters.unknowns import Unknown, make_unknowns

__all__ = [
    "Combination",
    "IdentifiedParameters",
    "Unknown",
    "identify_parameters",
    "make_unknowns",
]
