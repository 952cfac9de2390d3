"""Several models at once: the mean of their motions, and the spread between them.

Every member is rolled out by itself, all of them in one compiled scan. Averaging whole states would
leave the constraints, so the mean is taken of the independent coordinates and the others are
completed from it, row by row. The spread is the standard deviation of the members' own states.

The mean goes as far as its members: it ends, with the status of the member that failed first,
where that member ends. Leaving the failed one out from there on would bend the mean without a word.
"""

import abc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.integrators import AbstractIntegrator
from mbdnode.multibody import AbstractSystem, Params, Partition
from mbdnode.simulation.rollout import rollout, rollout_given
from mbdnode.simulation.signals import Signal
from mbdnode.status import Status
from mbdnode.trajectory import State, Trajectory


class AbstractEnsemble(eqx.Module):
    """Systems or forecasters of one kind, which differ in their numbers alone."""

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> Any: ...

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @abc.abstractmethod
    def map(self, function: Callable[[Any], Any]) -> Any:
        """The function's value for every member; its arrays have the members as leading axis."""


@eqx.filter_jit
def rollout_members(
    ensemble: AbstractEnsemble,
    integrator: AbstractIntegrator,
    t: Any,
    initial: State,
    signal: Signal,
    mu: Params,
    partition: Partition,
) -> Trajectory:
    """Integrate every member from `initial`; `simulate` is its public face.

    The members are closed on their minimal coordinates, so that all keep one partition.
    """
    runs = ensemble.map(
        lambda member: rollout(member, integrator, t, initial, signal, mu, partition, False)
    )
    # The least step is that of the first to fail or, if none has, of any.
    first = jnp.argmin(runs.status.step)
    status = jax.tree.map(lambda x: x[first], runs.status)
    return _mean(ensemble[0], runs, status, t, signal, mu, partition)


def spread_of(values: Any) -> Any:
    """The standard deviation over the leading axis; of one member it is not a number."""
    return jnp.std(values, axis=0, ddof=1)


def _mean(
    system: AbstractSystem, runs: Trajectory, status: Status, t, signal, mu, partition: Partition
) -> Trajectory:
    """Complete the mean of the independent coordinates at every time."""
    z = jnp.mean(jax.vmap(jax.vmap(partition.position.take_independent))(runs.q), axis=0)
    s = jnp.mean(jax.vmap(jax.vmap(partition.velocity.take_independent))(runs.v), axis=0)

    # All start from the same state, which is the mean's as well.
    start = State(runs.q[0, 0], runs.v[0, 0])
    mean = rollout_given(system, t, start, signal, mu, partition, z, s)
    kept = (jnp.arange(t.shape[0]) <= mean.status.step)[:, None]
    spread = State(*(jnp.where(kept, spread_of(x), jnp.nan) for x in (runs.q, runs.v)))
    return replace(mean, status=_ending(status, mean.status), spread=spread)


def _ending(members: Status, mean: Status) -> Status:
    """That of the first member to fail, unless their mean could not be completed before."""
    earlier = mean.step < members.step
    return jax.tree.map(lambda a, b: jnp.where(earlier, a, b), mean, members)
