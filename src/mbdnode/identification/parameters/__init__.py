"""Parameters of a system whose structure is known, from recorded motion."""

from mbdnode.identification.parameters.bootstrap import Bootstrap, check_repetitions
from mbdnode.identification.parameters.identify_parameters import (
    Combination,
    IdentifiedParameters,
    identify_parameters,
)
from mbdnode.identification.parameters.unknowns import Unknown, make_unknowns

__all__ = [
    "Bootstrap",
    "Combination",
    "IdentifiedParameters",
    "Unknown",
    "check_repetitions",
    "identify_parameters",
    "make_unknowns",
]
