"""Control: linearize any mechanism or learned model, and plan with it."""

from mbdnode.control.closed_loop import closed_loop, loop_difference
from mbdnode.control.decisions import Decision, Decisions
from mbdnode.control.episodes import EpisodeTask, gym
from mbdnode.control.linearization import (
    JacobianError,
    Linearization,
    discretize,
    jacobian_error,
    linearize,
)
from mbdnode.control.mpc import MPC, Control
from mbdnode.control.problem import Limits, QuadraticCost
from mbdnode.control.state_space import StateSpace, state_space

__all__ = [
    "MPC",
    "Control",
    "Decision",
    "Decisions",
    "EpisodeTask",
    "JacobianError",
    "Limits",
    "Linearization",
    "QuadraticCost",
    "StateSpace",
    "closed_loop",
    "discretize",
    "gym",
    "jacobian_error",
    "linearize",
    "loop_difference",
    "state_space",
]
