"""How well a learned model serves a controller: its Jacobians, and the loops that it closes.

Good rollouts with bad Jacobians are the known way in which control with a learned model fails: a
small ripple in `f` is a small error in the motion and a large one in `df/dz`. So both are measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.control.linearization import linearize
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class JacobianError:
    """The relative errors, in the Frobenius norm, of a model's `A = df/dz` and `B = df/du`."""

    A: float
    B: float


def jacobian_error(
    model: Any,
    truth: Any,
    z: Any = None,
    u: Any = None,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> JacobianError:
    """Compare a learned model's linearization with that of the mechanism.

    **Arguments:**

    - `model`: what was learned.
    - `truth`: the mechanism.
    - `z`, `u`, `parameters`: where, as for `linearize`.

    **Returns:**

    A `JacobianError`.
    """
    found = linearize(model, z, u, parameters=parameters)
    exact = linearize(truth, z, u, parameters=parameters)
    error = lambda a, b: float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))  # noqa: E731
    return JacobianError(error(found.A, exact.A), error(found.B, exact.B))


def loop_difference(found: Trajectory, truth: Trajectory) -> dict[str, float | None]:
    """The largest difference between two closed loops, column by column.

    **Arguments:**

    - `found`, `truth`: at the same times.

    **Returns:**

    By the column's name, as a part of its range in `truth`; a column that does not move there is
    left out. None where a loop ended early.
    """
    result = {}
    for name in truth.columns[1:]:
        expected = np.asarray(truth[name])
        width = float(np.nanmax(expected) - np.nanmin(expected))
        # What only round-off moves has no range to compare with.
        if width > 1e-9 * max(1.0, float(np.nanmax(np.abs(expected)))):
            part = float(np.max(np.abs(np.asarray(found[name]) - expected)) / width)
            result[name] = part if np.isfinite(part) else None
    return result
