"""Contracts as code: checks that every mechanism and every integrator must pass.

Our own tests run them over everything that is registered; run them on what you write.
"""

from mbdnode.testing.integrator import check_integrator, fixed_step, measured_order
from mbdnode.testing.mechanism import check_mechanism

__all__ = ["check_integrator", "check_mechanism", "fixed_step", "measured_order"]
