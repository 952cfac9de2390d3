"""The steps that lead to, through and away from a singular configuration.

They are few. Whatever the integrator, each is one explicit Runge-Kutta step of order eight
(Dormand and Prince, with its embedded error estimate) whose stages are completed by
`complete_across`. The stages run in a loop, so that their evaluation is compiled once. The crossing
itself is evaluated after them: a step leads over it only if it is smooth.

A model that is closed on its minimal coordinates moves without the constraints, so it keeps its
integrator, and only the dependent coordinates are completed by `complete_across`.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbdnode.integrators import Tableau
from mbdnode.multibody import AbstractSystem, Params, Partition, Tangent, complete_across
from mbdnode.multibody.batching import any_of_batch
from mbdnode.simulation.steps import (
    Arrival,
    Stage,
    Step,
    run_stages,
    select,
    signs_differ,
    speed_of,
)
from mbdnode.trajectory import State

# By how much the slope may change in a step: a constant, and for each unit of arc. Linkages stay
# below; a sharper turn is one that the step does not resolve.
_TURN, _TURN_PER_ARC = 0.5, 5.0
# How far a regular step may end from the passage, besides the square of its length.
_APART = 1e-3


@functools.cache
def _dormand_prince() -> tuple[Tableau, np.ndarray]:
    """The method of order eight, and the weights of its error estimate."""
    import diffrax  # Slow to load, and most motions meet no singular configuration.

    table = diffrax.Dopri8.tableau
    count = len(table.b_sol)
    stages = np.zeros((count, count))
    for row, lower in enumerate(table.a_lower):
        stages[row + 1, : row + 1] = lower
    times = np.concatenate([[0.0], table.c])
    return Tableau(stages, np.array(table.b_sol), times), np.array(table.b_error)


def passage_step(
    system: AbstractSystem,
    partition: Partition,
    step: Step,
    inputs: Callable,
    mu: Params,
    allowed: float,
) -> Arrival:
    """One step near a singular configuration.

    An `Arrival`, which is not `closed` if no smooth branch leads on, or a step of this length does
    not resolve it.
    """
    place = step.place[None]

    def complete_at(stage: Stage):
        return _across(system, partition, step, stage.fraction, stage.y, mu)

    # The last stage is the end of the step; the further evaluation is the crossing.
    method, estimate = _dormand_prince()
    aside = place[:, None] * jnp.eye(1, len(method.times))
    slopes, found = run_stages(
        system, partition, step, method, inputs, mu, complete_at, aside, place
    )
    split, scale = partition.velocity, partition.scale
    speed = jnp.where(step.path.rate > 0, step.path.rate, 1.0)
    units = [scale[partition.position.independent], scale[split.independent] * speed]
    error = jnp.abs(step.dt * (jnp.asarray(estimate) @ slopes)) / jnp.concatenate(units)
    stages, crossing = jax.tree.map(lambda x: x[:-1], found), jax.tree.map(lambda x: x[-1], found)
    accurate = jnp.max(error, initial=0.0) < allowed
    return _checked(partition, step, stages, crossing, accurate)


def passage_end(
    system: AbstractSystem,
    partition: Partition,
    step: Step,
    z: Float[Array, " nz"],
    s: Float[Array, " ns"],
    mu: Params,
) -> Arrival:
    """What `regular_end` is for a regular step, with the same arguments, near a singular
    configuration.
    """
    y = step.independent(partition)
    change = jnp.concatenate([z, s]) - y

    def at(fraction):
        return _across(system, partition, step, fraction, y + fraction * change, mu)[0]

    found = jax.lax.map(at, jnp.stack([jnp.zeros(()), step.place, jnp.ones(())]))
    ends, crossing = jax.tree.map(lambda x: x[::2], found), jax.tree.map(lambda x: x[1], found)
    return _checked(partition, step, ends, crossing, jnp.array(True))


def _across(system, partition: Partition, step: Step, fraction, y, mu) -> tuple[Arrival, Tangent]:
    z, s = step.parted(partition, y)
    time, path = step.start + fraction * step.dt, step.path
    path = path._replace(crossing=path.crossing - fraction * step.arc)
    found = complete_across(system, partition, time, z, s, step.guess(time), mu, path)
    q, v, tangent, determinant, passing, closed = found
    yes = jnp.array(True)
    return Arrival(
        z, s, q, v, tangent.steepness, determinant, passing, passing, yes, closed
    ), tangent


def _checked(
    partition: Partition, step: Step, found: Arrival, crossing: Arrival, accurate
) -> Arrival:
    """The last arrival, and whether the step there was accurate and smooth."""
    first, last = (jax.tree.map(lambda x, i=i: x[i], found) for i in (0, -1))
    crossed = ~last.passing & signs_differ(last.determinant, step.determinant)
    closed = jnp.all(found.closed) & (~crossed | crossing.passing)
    closed = closed & _continues(partition, first.steepness, last.steepness, step.arc)
    return eqx.tree_at(lambda a: (a.solved, a.closed), last, (accurate, closed))


def _continues(partition: Partition, first, last, arc) -> Bool[Array, ""]:
    """Whether the steepness at the end is that of the start, up to what curvature does."""
    split, scale = partition.velocity, partition.scale
    units = scale[split.independent][None, :] / scale[split.dependent[split.eliminated :]][:, None]
    change = jnp.max(jnp.abs(last - first) * units, initial=0.0)
    size = jnp.maximum(1.0, jnp.max(jnp.abs(first) * units, initial=0.0))
    return change < (_TURN + _TURN_PER_ARC * arc) * size


def take(
    partition: Partition,
    step: Step,
    regular: Callable[[], Arrival],
    passage: Callable[[], Arrival],
    compared: bool,
) -> Arrival:
    """The end of a step: of a passage over a singular configuration, or else of a regular step.

    **Arguments:**

    - `partition`, `step`: the step.
    - `regular`, `passage`: what evaluates it; neither is called if no step of a batch needs it.
    - `compared`: whether a regular step near a singular configuration must agree with a passage.

    **Returns:**

    An `Arrival`.
    """
    nothing = _not_taken(partition, step)
    passed = jax.lax.cond(any_of_batch(step.suspect), jax.checkpoint(passage), lambda: nothing)
    arrival = jax.lax.cond(any_of_batch(~step.crosses), regular, lambda: nothing)
    same = passed.closed & passed.solved
    if compared:
        same = same & _agree(partition, step, arrival, passed)
    closed = arrival.closed & (same | ~step.suspect)
    return select(step.crosses, passed, eqx.tree_at(lambda a: a.closed, arrival, closed))


def _agree(partition: Partition, step: Step, regular: Arrival, passed: Arrival) -> Bool[Array, ""]:
    """Whether a regular step arrived where the passage did, up to its own error."""
    scale = partition.scale
    ends = step.origin, State(passed.q, passed.v)
    speed = jnp.maximum(*(speed_of(partition, state) for state in ends))
    apart = jnp.max(jnp.abs(regular.q - passed.q) / scale, initial=0.0)
    faster = jnp.max(jnp.abs(regular.v - passed.v) / scale, initial=0.0)
    allowed = _APART + (step.dt * speed) ** 2
    return (apart < allowed) & (faster <= allowed * speed)


def _not_taken(partition: Partition, step: Step) -> Arrival:
    """In place of an arrival that no step of a batch needs."""
    position, velocity = partition.position, partition.velocity
    q, v, none = step.origin.q, step.origin.v, jnp.array(False)
    steepness = jnp.zeros((velocity.unknowns, velocity.independent.shape[0]), q.dtype)
    z, s = position.take_independent(q), velocity.take_independent(v)
    return Arrival(z, s, q, v, steepness, jnp.zeros((), q.dtype), none, none, none, none)
