"""Multipliers and constraint forces along a trajectory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.multibody import (
    AbstractMechanism,
    accelerations,
    choose_partition,
    resolve_parameters,
    velocity_constraints,
)
from mbdnode.trajectory import Trajectory, require_trajectory


class Reactions(eqx.Module):
    """What the joints carry.

    **Arguments:**

    - `accelerations`: of every coordinate.
    - `multipliers`: one for each constraint, holonomic ones first; of
        redundant ones those of the least norm.
    - `forces`: the constraints' generalized force on each coordinate, `-C^T lambda`.
    """

    accelerations: Float[Array, "*n nq"]
    multipliers: Float[Array, "*n nc"]
    forces: Float[Array, "*n nq"]


def reactions(
    mechanism: AbstractMechanism,
    trajectory: Trajectory,
    parameters: Any = None,
) -> Reactions:
    """Accelerations, multipliers and constraint forces at every time of a trajectory.

    **Arguments:**

    - `mechanism`: which made the trajectory.
    - `trajectory`: its states and inputs.
    - `parameters`: those of the rollout, if not the defaults.

    **Returns:**

    A `Reactions` with a row for each time.
    """
    require_trajectory(trajectory, "reactions")
    mu = resolve_parameters(mechanism, parameters)
    trajectory.require_columns_of(mechanism, "reactions", inputs=True)
    # The multipliers do not depend on which columns are called dependent, so any good choice
    # serves; the traced one is made anew at every state and cannot become singular.
    used = choose_partition(mechanism, trajectory.t[0], trajectory.q[0], mu).used
    rows = (trajectory.t, trajectory.q, trajectory.v, trajectory.u)
    return _reactions(mechanism, used, *rows, mu)


@eqx.filter_jit
def _reactions(mechanism, used, t, q, v, u, mu):
    def one(time, x, w, load):
        split = choose_partition(mechanism, time, x, mu, used=used).velocity
        a, multipliers = accelerations(mechanism, split, time, x, w, load, mu)
        jacobian, _ = velocity_constraints(mechanism, time, x, mu)
        if len(used.velocity) < len(multipliers):
            # Statically indeterminate: of all that give these accelerations, the least.
            multipliers = jnp.linalg.lstsq(jacobian.T, jacobian.T @ multipliers, rcond=1e-10)[0]
        return Reactions(a, multipliers, -jacobian.T @ multipliers)

    return jax.vmap(one)(t, q, v, u)
