"""The cost of going on for ever after the horizon: the Riccati equation's solution.

With it as the terminal weight, a plan without active bounds is that of the infinite horizon, and
so is the closed loop: it is stable for any step and any horizon.
"""

import numpy as np
import scipy.linalg as sl

from mbdnode.errors import UserError


def riccati(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """The stabilising solution of the discrete algebraic Riccati equation.

    **Arguments:**

    - `A`, `B`: the discrete model.
    - `Q`, `R`: the weights.

    **Returns:**

    `P`. Raises `UserError` if there is none, because the inputs cannot stabilise the model, or
    because a state that does not decay has no weight.
    """
    reason = "the inputs cannot stabilise it there, or a state that does not decay has no weight"
    try:
        P = sl.solve_discrete_are(A, B, Q, R)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise UserError(_sentence(reason)) from error
    gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    modulus = float(np.max(np.abs(np.linalg.eigvals(A - B @ gain))))
    if not modulus < 1:
        raise UserError(_sentence(f"{reason}: the loop's largest modulus is {modulus:.6g}"))
    return (P + P.T) / 2


def _sentence(reason: str) -> str:
    return (
        f"The model at the target has no Riccati terminal cost: {reason}. Choose another target or "
        "Q, or give terminal=None or a matrix of your own."
    )
