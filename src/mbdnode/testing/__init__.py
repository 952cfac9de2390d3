"""Contracts as code: checks that every mechanism, integrator and model must pass.

Our own tests run them over everything that is registered; run them on what you write.
"""

from mbdnode.testing.integrator import check_integrator, fixed_step, measured_order
from mbdnode.testing.mechanism import check_mechanism
from mbdnode.testing.model import check_model

__all__ = ["check_integrator", "check_mechanism", "check_model", "fixed_step", "measured_order"]
