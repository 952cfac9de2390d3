"""Learning without gradient descent: in the right functions a mechanism is linear algebra."""

from mbdnode.identification.initial_states import estimate_state, estimate_states
from mbdnode.identification.search import fit_closed_form

__all__ = ["estimate_state", "estimate_states", "fit_closed_form"]
