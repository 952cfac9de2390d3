"""Short rollouts whose inputs are held: the step of a plant under control, or of many samples.

As in `simulate`, most motions meet no singular configuration, and the program that knows none is
compiled in half the time; the other one is made where it is needed.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.integrators import AbstractIntegrator
from mbdnode.multibody import AbstractSystem, Params, Partition
from mbdnode.simulation.rollout import NEEDS_PASSAGE, rollout
from mbdnode.simulation.signals import Signal
from mbdnode.trajectory import State, Trajectory


def rollout_held(
    system: AbstractSystem,
    integrator: AbstractIntegrator,
    t,
    initial: State,
    u,
    mu: Params,
    partition: Partition,
    repartition: bool,
) -> Trajectory:
    """Integrate from `initial` through the times `t`, with the inputs `u` all the way."""
    asked = (system.core, integrator, jnp.asarray(t, float), initial, jnp.asarray(u, float), mu)
    run = _rollout_held(*asked, partition, repartition, True)
    if np.any(np.asarray(run.status.code) == NEEDS_PASSAGE):
        return _rollout_held(*asked, partition, repartition, False)
    return run


@eqx.filter_jit
def _rollout_held(
    system, integrator, t, initial, u, mu, partition, repartition, regular_only
) -> Trajectory:
    def one(state: State, acting) -> Trajectory:
        held = jnp.broadcast_to(acting[None], (t.shape[0], acting.shape[0]))
        signal = Signal(held, held[:-1, None, :])
        return rollout(
            system, integrator, t, state, signal, mu, partition, repartition, regular_only
        )

    return one(initial, u) if u.ndim == 1 else jax.vmap(one)(initial, u)
