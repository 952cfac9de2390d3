"""Energy along a trajectory, `v.M(q).v/2 + V(q)`: of a mechanism, or of a learned one."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.models import AbstractRateModel
from mbdnode.multibody import AbstractMechanism, resolve_parameters
from mbdnode.trajectory import Trajectory, require_trajectory


def energy(
    mechanism: AbstractMechanism | AbstractRateModel,
    trajectory: Trajectory,
    parameters: Any = None,
) -> Float[Array, " n"]:
    """The energy at every time of a trajectory.

    **Arguments:**

    - `mechanism`: which defines the masses and the potential: a mechanism, or an MBD-NODE of
        structure "lagrangian", whose energy is known up to a factor and a constant.
    - `trajectory`: its states.
    - `parameters`: those of the rollout, if not the defaults.

    **Returns:**

    One value for each time. Raises `UserError` for what has no potential.
    """
    require_trajectory(trajectory, "energy")
    mu = resolve_parameters(mechanism, parameters)
    if not _has_potential(mechanism, trajectory, mu):
        way_out = "add `potential_energy`"
        if isinstance(mechanism, AbstractRateModel):
            way_out = "use an MBDNODE with structure='lagrangian', or the mechanism itself"
        raise UserError(f"{type(mechanism).__name__} defines no potential energy; {way_out}.")
    trajectory.require_columns_of(mechanism, "energy")
    return _energy(mechanism, trajectory.q, trajectory.v, mu)


def energy_drift(
    mechanism: AbstractMechanism | AbstractRateModel,
    trajectory: Trajectory,
    parameters: Any = None,
) -> float | None:
    """The largest distance from the energy at the start, where energy is conserved.

    **Arguments:**

    - `mechanism`, `trajectory`, `parameters`: as for `energy`.

    **Returns:**

    The drift; None for a mechanism that is not conservative or has no potential, and for one that
    inputs work on: what dissipation takes and inputs give is no error.
    """
    if not mechanism.conservative or np.any(np.asarray(trajectory.u)):
        return None
    mu = resolve_parameters(mechanism, parameters)
    if not _has_potential(mechanism, trajectory, mu):
        return None
    values = np.asarray(energy(mechanism, trajectory, parameters))
    return float(np.max(np.abs(values - values[0])))


def _has_potential(mechanism: Any, trajectory: Trajectory, mu) -> bool:
    # By shapes alone: nothing need be computed for it.
    start = jax.ShapeDtypeStruct(trajectory.q.shape[-1:], trajectory.q.dtype)
    return jax.eval_shape(mechanism.potential_energy, start, mu) is not None


@eqx.filter_jit
def _energy(mechanism, q, v, mu):
    def one(x, w):
        return 0.5 * w @ mechanism.mass(x, mu) @ w + mechanism.potential_energy(x, mu)

    return jax.vmap(one)(q, v)
