"""Learning without gradient descent: in the right functions a mechanism is linear algebra."""

from mbdnode.training.closed_form.estimation import estimate_state, estimate_states
from mbdnode.training.closed_form.recipe import fit_closed_form

__all__ = ["estimate_state", "estimate_states", "fit_closed_form"]
