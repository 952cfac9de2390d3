"""The functions of a model that an importer's own integrator needs: FMI's Model Exchange.

An importer integrates an ordinary differential equation `x' = f(t, x, u)`, knows nothing of
constraints, and looks at outputs wherever it likes. So `x` is the minimal state, the independent
coordinates and velocities, and everything else is completed from it by the constraints at every
evaluation: there is nothing that could drift, and outputs keep the constraints to round-off.

    evaluate             t, x, u, p, guess, order, scale  ->  (q, v, y, x'), closed
    evaluate_derivative  the same and a direction (x, u, p)  ->  the derivative of (q, v, y, x')
    exchange             t, q, p, order, scale  ->  order, exchanged

`order` lists the dependent coordinates, then the independent ones; then the velocities in the same
way. `scale` are the coordinates' sizes. The order is fixed for a model without constraints, and for
one that names its independent coordinates: the states then bear these names. For the others the
choice is made along the motion, as `simulate` does: `exchange` tells, after a step that was
accepted, whether another one is due.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.exports.entries import Plant
from mbdnode.exports.functions import PlainFunction
from mbdnode.multibody import Partition, tangent_at
from mbdnode.simulation.rollout import exchanged_partition


@dataclass(frozen=True)
class Motion:
    """A model as an importer's integrator sees it."""

    partition: Partition  # where the model is assembled
    exchanges: bool  # whether independent coordinates are chosen again along the motion
    # Not so under dry friction, where what sticks is decided by steps.
    has_rates: bool
    functions: dict[str, PlainFunction]

    @property
    def positions(self) -> int:
        """How many states are coordinates; the others are velocities."""
        return self.partition.position.independent.shape[0]

    @property
    def size(self) -> int:
        """How many states there are."""
        return self.positions + self.partition.velocity.independent.shape[0]

    @property
    def order(self) -> np.ndarray:
        """Dependent and independent coordinates, then velocities, by index."""
        splits = self.partition.position, self.partition.velocity
        return np.concatenate([np.concatenate([s.dependent, s.independent]) for s in splits])


def motion_of(plant: Plant, p: np.ndarray) -> Motion:
    """What an importer's integrator needs of a model with default parameters `p`."""
    system, partition = plant.system, plant.partition
    exchanges = plant.is_constrained and plant.repartition and system.independent is None
    nq, nu = len(system.coordinates), len(system.inputs)
    sized = partition.position.independent.shape[0], partition.velocity.independent.shape[0]

    def split_by(order, scale):
        if not exchanges:
            return partition
        halves, index = [], order.astype(int)
        for old, own in ((partition.position, index[:nq]), (partition.velocity, index[nq:])):
            count = old.dependent.shape[0]
            halves.append(old.replaced(old.rows, own[:count], own[count:]))
        return Partition(halves[0], halves[1], scale, partition.redundant)

    def everything(t, x, u, p, guess, order, scale):
        mu, now = plant.mu(p), split_by(order, scale)
        found = plant.minimal_motion(now, t[0], x, guess, u, mu)
        y = plant.quantities(t[0], found.q, found.v, mu)
        return jnp.concatenate([found.q, found.v, y, found.rates]), found.closed

    def evaluate(t, x, u, p, guess, order, scale):
        """The whole state, the outputs and the rates of x; whether the constraints are closed."""
        values, closed = everything(t, x, u, p, guess, order, scale)
        closed = closed & jnp.all(jnp.isfinite(values))
        return values, closed.astype(float)[None]

    def evaluate_derivative(t, x, u, p, guess, order, scale, x_seed, u_seed, p_seed):
        """The derivative of what `evaluate` gives, along a direction of x, u and p."""
        at = lambda x, u, p: everything(t, x, u, p, guess, order, scale)[0]  # noqa: E731
        return jax.jvp(at, (x, u, p), (x_seed, u_seed, p_seed))[1]

    def exchange_order(t, q, p, order, scale):
        """Independent coordinates after one exchange, if one is due; whether it was."""
        before, mu = split_by(order, scale), plant.mu(p)
        steepness = tangent_at(system, before.velocity, t[0], q, mu).steepness
        fresh = exchanged_partition(system, before, t[0], q, steepness, mu)
        halves = (fresh.position, fresh.velocity)
        now = [jnp.concatenate([half.dependent, half.independent]) for half in halves]
        found = jnp.concatenate(now).astype(float)
        return found, jnp.any(found != order).astype(float)[None]

    state = [np.zeros(n) for n in (1, sum(sized), nu, len(p), nq, 2 * nq, nq)]
    t, x, u, _, q, order, scale = state
    functions: dict[str, PlainFunction] = {
        "evaluate": (evaluate, state),
        "evaluate_derivative": (evaluate_derivative, [*state, x, u, p]),
    }
    if exchanges:
        functions["exchange"] = (exchange_order, [t, q, p, order, scale])
    return Motion(partition, exchanges, not _has_dry_friction(plant, p), functions)


def _has_dry_friction(plant: Plant, p: np.ndarray) -> bool:
    dry_friction = getattr(plant.system, "dry_friction", None)
    if dry_friction is None:
        return False
    q, u = (jnp.zeros(len(x)) for x in (plant.system.coordinates, plant.system.inputs))
    return dry_friction(jnp.zeros(()), q, q, u, plant.mu(jnp.asarray(p, float))) is not None
