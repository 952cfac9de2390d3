"""Control: linearise any mechanism or learned model, and plan with it."""

from mbdnode.control.closed_loop import closed_loop
from mbdnode.control.linearization import discretize, linearize
from mbdnode.control.mpc import MPC, Control
from mbdnode.control.state_space import StateSpace, state_space

__all__ = ["MPC", "Control", "StateSpace", "closed_loop", "discretize", "linearize", "state_space"]
