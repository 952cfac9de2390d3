"""One step of a rollout: from where it starts, where it arrives, and the regular way to take it.

A step is regular if no singular configuration is near; the others are in `passage`.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbdnode.integrators import Tableau
from mbdnode.multibody import (
    AbstractSystem,
    MotionPath,
    Params,
    Partition,
    complete_position,
    complete_velocity,
)
from mbdnode.trajectory import State

# A step over a longer arc does not resolve the path.
LONGEST_ARC = 0.5
# A pivot ratio below this may mean that a singular configuration is close.
POOR = 1e-3


class Arrival(eqx.Module):
    """Where a step arrived.

    **Arguments:**

    - `z`, `s`: the independent positions and velocities.
    - `q`, `v`: the whole state that follows from them.
    - `steepness`, `determinant`: those of the tangent there.
    - `is_poor`: whether its pivots are so small that a singular configuration may be close.
    - `passing`: whether that is so close to a singular configuration that it was interpolated.
    - `solved`: whether the step's own equations were solved.
    - `closed`: whether the constraints were.
    """

    z: Float[Array, " nz"]
    s: Float[Array, " ns"]
    q: Float[Array, " nq"]
    v: Float[Array, " nq"]
    steepness: Float[Array, "nr ni"]
    determinant: Float[Array, ""]
    is_poor: Bool[Array, ""]
    passing: Bool[Array, ""]
    solved: Bool[Array, ""]
    closed: Bool[Array, ""]


class Step(eqx.Module):
    """A step that is to be taken.

    **Arguments:**

    - `origin`, `start`, `dt`: the state and time at its start, and its length.
    - `path`: the path ahead.
    - `determinant`: `det C_d` where it was last known.
    - `crosses`: whether it leads to a singular configuration, at the crossing of `path`.
    - `suspect`: whether it is taken, or checked, by a passage.
    """

    origin: State
    start: Float[Array, ""]
    dt: Float[Array, ""]
    path: MotionPath
    determinant: Float[Array, ""]
    crosses: Bool[Array, ""]
    suspect: Bool[Array, ""]

    @property
    def arc(self) -> Float[Array, ""]:
        """Its length along the path."""
        return self.dt * self.path.rate

    @property
    def place(self) -> Float[Array, ""]:
        """At which fraction of the step the crossing is; at its start if the motion rests."""
        known = self.crosses & (self.arc > 0)
        return jnp.where(known, self.path.crossing, 0.0) / jnp.where(known, self.arc, 1.0)

    def guess(
        self, time: Float[Array, ""], accelerations: Float[Array, " nq"] | float = 0.0
    ) -> Float[Array, " nq"]:
        """The configuration at a time, if accelerations stayed as they are."""
        elapsed = time - self.start
        return self.origin.q + elapsed * (self.origin.v + elapsed / 2 * accelerations)

    def independent(self, partition: Partition) -> Float[Array, " n"]:
        """The independent positions and velocities at its start, in one vector."""
        z = partition.position.take_independent(self.origin.q)
        return jnp.concatenate([z, partition.velocity.take_independent(self.origin.v)])

    def parted(self, partition: Partition, y: Float[Array, " n"]):
        """The independent positions and velocities of such a vector."""
        count = partition.position.independent.shape[0]
        return y[:count], y[count:]


class Stage(NamedTuple):
    """Where the whole state is to be completed.

    **Arguments:**

    - `number`: 0 is the start of the step.
    - `fraction`: of the step.
    - `y`: the independent positions and velocities, in one vector.
    - `accelerations`: of all coordinates since the start, as far as earlier stages tell.
    """

    number: Int[Array, ""]
    fraction: Float[Array, ""]
    y: Float[Array, " n"]
    accelerations: Float[Array, " nq"]


def run_stages(
    system: AbstractSystem,
    partition: Partition,
    step: Step,
    tableau: Tableau,
    inputs: Callable,
    mu: Params,
    complete_at: Callable,
    rows: Float[Array, "k n"],
    times: Float[Array, " k"],
) -> tuple[Float[Array, "n m"], Arrival]:
    """The stages of a step of an explicit Runge-Kutta method, in a loop.

    The stages' slopes, and the `Arrival` at each stage and each further evaluation.
    """
    y, count = step.independent(partition), len(tableau.times)

    def evaluate(carry, entry):
        slopes, accelerations = carry
        number, row, fraction = entry
        elapsed = fraction * step.dt
        time = step.start + elapsed
        stage = Stage(number, fraction, y + step.dt * (row @ slopes), accelerations)
        found, tangent = complete_at(stage)

        def slope_here():
            a = system.independent_acceleration(time, found.q, found.v, inputs(time), mu, tangent)
            slope = jnp.concatenate([partition.position.take_independent(found.v), a])
            return jnp.where((jnp.arange(count) == number)[:, None], slope.astype(y.dtype), slopes)

        if not partition.may_branch:
            # Nothing is to be guessed, and a branch would cost more than it saves.
            return (slope_here(), accelerations), found
        # A branch under vmap too, since the number is the same for all.
        slopes = jax.lax.cond(number < count, slope_here, lambda: slopes)
        moved = elapsed != 0
        change = jax.lax.stop_gradient(found.v - step.origin.v) / jnp.where(moved, elapsed, 1.0)
        # Near a singular configuration, or where the motion diverges, they lead nowhere.
        known = moved & jnp.all(jnp.abs(change) * step.dt**2 <= partition.scale)
        return (slopes, jnp.where(known, change, accelerations)), found

    # Of the precision of the motion: a tableau may have been made in another one.
    rows = jnp.concatenate([jnp.asarray(x, y.dtype) for x in (tableau.stages, rows)])
    times = jnp.concatenate([jnp.asarray(x, y.dtype) for x in (tableau.times, times)])
    entries = (jnp.arange(len(times)), rows, times)
    first = jnp.zeros((count, y.shape[0]), y.dtype), jnp.zeros_like(step.origin.v)
    (slopes, _), found = jax.lax.scan(evaluate, first, entries)
    return slopes, found


def regular_step(
    system: AbstractSystem,
    partition: Partition,
    step: Step,
    tableau: Tableau,
    inputs: Callable,
    mu: Params,
) -> Arrival:
    """A regular step of an explicit Runge-Kutta method."""

    def complete_at(stage: Stage):
        return _regular_at(system, partition, step, stage, mu)

    end = jnp.asarray(tableau.weights)[None], jnp.ones(1)
    _, found = run_stages(system, partition, step, tableau, inputs, mu, complete_at, *end)
    return jax.tree.map(lambda x: x[-1], found)


def regular_end(
    system: AbstractSystem,
    partition: Partition,
    step: Step,
    z: Float[Array, " nz"],
    s: Float[Array, " ns"],
    mu: Params,
) -> Arrival:
    """The end of a regular step, given its independent part."""
    unknown = jnp.zeros_like(step.origin.v)
    stage = Stage(jnp.ones((), int), jnp.ones(()), jnp.concatenate([z, s]), unknown)
    return _regular_at(system, partition, step, stage, mu)[0]


def _regular_at(system, partition: Partition, step: Step, stage: Stage, mu):
    """The whole state at a stage of a regular step, and the tangent there."""
    z, s = step.parted(partition, stage.y)
    time = step.start + stage.fraction * step.dt

    def solve():
        guess = step.guess(time, stage.accelerations)
        return complete_position(system, partition.position, time, z, guess, partition.scale, mu)

    def known():
        return step.origin.q, jnp.array(True)

    # The step before has solved for the configuration at the start. A step of no length, by which
    # a rollout begins, ends with another stage.
    q, closed = jax.lax.cond(stage.number == 0, known, solve) if partition.may_branch else solve()
    q, v, tangent = complete_velocity(system, partition, time, q, closed, s, mu)
    closed = closed & ~tangent.singular
    if partition.may_branch:
        # A change of sign means that a singular configuration was skipped.
        closed = closed & ~signs_differ(tangent.determinant, step.determinant)
    yes, no = jnp.array(True), jnp.array(False)
    found = (tangent.steepness, tangent.determinant, tangent.pivot_ratio < POOR)
    return Arrival(z, s, q, v, *found, no, yes, closed), tangent


def speed_of(partition: Partition, state: State) -> Float[Array, ""]:
    """The speed of a state, in scaled coordinates."""
    return jnp.linalg.norm(jax.lax.stop_gradient(state.v) / partition.scale)


def signs_differ(a: Float[Array, ""], b: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether two numbers differ in sign; their product might underflow."""
    return jnp.sign(a) * jnp.sign(b) < 0


def select(condition: Bool[Array, ""], yes, no):
    """One of two trees of arrays."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
