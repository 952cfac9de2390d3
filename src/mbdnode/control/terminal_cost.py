"""The cost at the end of the horizon, and the equilibrium that it is for.

The infinite-horizon cost-to-go `z' P z` of the linear model at the target solves the discrete
algebraic Riccati equation,

    P = Q + A' P A - A' P B K,    K = (R + B' P B)^-1 B' P A.

With `P` as the terminal weight, a plan without active bounds is that of the infinite horizon, and
so is the closed loop: it is stable for any step and any horizon.
"""

from typing import Any

import numpy as np
import scipy

from mbdnode.control.checks import symmetric
from mbdnode.control.problem import ControlProblem
from mbdnode.control.state_space import StateSpace
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# The rate that a learned model may have at its target, in displacements of one unit.
_STILL = 0.05
# A loop whose modulus is closer to 1 than this does not decay: rounding moves a double eigenvalue
# at 1 by the square root of its own size, to either side.
_MARGIN = 1e-6


def terminal_weight(given: Any, A: np.ndarray, B: np.ndarray, problem: ControlProblem):
    """The weight `P` at the end of the horizon: "riccati", None for none, or a matrix."""
    if given is None:
        return np.zeros_like(A)
    if not isinstance(given, str):
        return symmetric("terminal", given, A.shape[0])
    if given != "riccati":
        raise unknown_name("terminal cost", given, ("riccati",))
    return riccati(A, B, problem.Q, problem.R)


def riccati(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The stabilizing solution of the discrete algebraic Riccati equation; refused without one."""
    reason = "the inputs cannot stabilize it there, or a state that does not decay has no weight"
    try:
        P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise UserError(_sentence(reason)) from error
    modulus = float(np.max(np.abs(np.linalg.eigvals(A - B @ regulator_gain(A, B, P, R)))))
    if not modulus < 1 - _MARGIN:
        raise UserError(_sentence(f"{reason}: the loop's largest modulus is {modulus:.6g}"))
    return (P + P.T) / 2


def _sentence(reason: str) -> str:
    return (
        f"The model at the target has no Riccati terminal cost: {reason}. Choose another target or "
        "Q, or give terminal=None or a matrix of your own."
    )


def regulator_gain(A: np.ndarray, B: np.ndarray, P: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The gain `K` of `u = -K z` that is best one step before the end; zero where `P` is."""
    return np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)


def check_equilibrium(
    space: StateSpace,
    A: np.ndarray,
    B: np.ndarray,
    rate: np.ndarray,
    *,
    relinearize: str,
    terminal: Any,
) -> None:
    """Refuse a moving target where only an equilibrium will do.

    One linearization, and the infinite-horizon cost-to-go, are for where nothing moves. `A`, `B`
    and `rate` are those of continuous time.
    """
    moves = _moving(space, A, B, rate)
    if moves and relinearize == "once":
        raise UserError(
            f"{moves} there. One linearization is only good at an equilibrium: choose one and its "
            "u_target, or use relinearize='each'."
        )
    if moves and isinstance(terminal, str):
        raise UserError(
            f"{moves} there, so it has no infinite-horizon cost-to-go. Give terminal=None, or a "
            "matrix of your own."
        )


def _moving(space: StateSpace, A: np.ndarray, B: np.ndarray, rate: np.ndarray) -> str | None:
    """What changes at the target, as a sentence; None where the model stands still.

    A learned model never stands quite still. It does well enough where its rate is less than a
    displacement or an input of a twentieth of a unit would make.
    """
    allowed = _STILL * np.linalg.norm(np.concatenate([A, B], axis=1), axis=1)
    allowed[: space.positions] = 1e-9
    found = np.flatnonzero(~(np.abs(rate) <= allowed))
    if not found.size:
        return None
    return f"The target moves: {space.names[found[0]]} changes by {rate[found[0]]:.3g} a second"
