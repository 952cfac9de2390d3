"""The compiled rollout: one scan over the steps, for truth and learned models alike.

Only the independent coordinates are integrated. At every evaluation the whole state is completed
from them (positions by Newton from the state at the start of the step, moved along its velocity),
so constraints hold at round-off at every stage of every step, and the result is that of the same
integrator on the minimal equations of motion.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbdnode.integrators import AbstractIntegrator
from mbdnode.multibody import (
    AbstractSystem,
    Params,
    Partition,
    Tangent,
    complete,
    complete_position,
    exchange,
    exchange_gain,
    position_jacobian,
    position_residual,
    position_time_derivative,
    tangent_from,
    velocity_residual,
)
from mbdnode.simulation.signals import Signal
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import State, Trajectory

# Where an independent coordinate moves this many times slower than a dependent one, it is at its
# dead point, and a step cannot tell on which side it comes out. Exchanging coordinates keeps far
# from such points, but for those where every choice is bad (a change point): these are passed at
# speed.
_STEEPEST = 50.0
# A step that moves a coordinate by this many times its scale (a thousand radians) is no motion that
# was followed: the rollout has diverged. Constraints could still be closed, in any branch, but only
# to the round-off of coordinates that are as large as that.
_FARTHEST = 1e3


class _Carry(eqx.Module):
    """What a step hands to the next: the last good state and how it is partitioned."""

    state: State
    partition: Partition
    code: Int[Array, ""]
    step: Int[Array, ""]
    coordinate: Int[Array, ""]


class _Row(eqx.Module):
    """What a step leaves in the trajectory."""

    q: Float[Array, " nq"]
    v: Float[Array, " nq"]
    position_residual: Float[Array, ""]
    velocity_residual: Float[Array, ""]


@eqx.filter_jit
def rollout(
    system: AbstractSystem,
    integrator: AbstractIntegrator,
    t: Float[Array, " n"],
    initial: State,
    signal: Signal,
    mu: Params,
    partition: Partition,
    repartition: bool,
) -> Trajectory:
    """Integrate from `initial` through all times; `simulate` is its public face."""

    def advance(carry: _Carry, interval):
        number, start, dt, coefficients = interval
        going = carry.code == Outcome.COMPLETED.value
        # After a failure the steps have no length, so that they cost little and change nothing. A
        # `cond` would skip them, but under vmap it would copy a model's weights for every lane.
        state, partition, code, coordinate = _step(
            system,
            integrator,
            carry,
            start,
            jnp.where(going, dt, 0.0),
            lambda s: signal.at(s, start, coefficients),
            mu,
            repartition,
        )
        state, partition = _select(going, (state, partition), (carry.state, carry.partition))
        code = jnp.where(going, code, carry.code)
        coordinate = jnp.where(going, coordinate, carry.coordinate)
        good = code == Outcome.COMPLETED.value
        step = jnp.where(good, number + 1, carry.step)
        row = make_row(system, start + dt, state, mu)
        row = jax.tree.map(lambda x: jnp.where(good, x, jnp.nan), row)
        return _Carry(state, partition, code, step, coordinate), row

    first, partition, code = _start(system, t[0], initial, partition, mu, repartition)
    zero = jnp.zeros((), int)
    carry = _Carry(first, partition, code, zero, zero - 1)
    intervals = (jnp.arange(t.shape[0] - 1), t[:-1], jnp.diff(t), signal.coefficients)
    carry, rows = jax.lax.scan(advance, carry, intervals)
    head = make_row(system, t[0], first, mu)
    rows = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), head, rows)
    status = Status(
        carry.code, carry.step, t[carry.step], carry.coordinate, system.coordinate_names
    )
    return Trajectory(
        t=t,
        q=rows.q,
        v=rows.v,
        u=signal.samples,
        position_residual=rows.position_residual,
        velocity_residual=rows.velocity_residual,
        status=status,
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def _start(system, t, initial: State, partition: Partition, mu, repartition):
    """Move the given state onto the manifold: a file's digits are not round-off."""
    z = partition.position.take_independent(initial.q)
    s = partition.velocity.take_independent(initial.v)
    q, v, tangent, closed = complete(system, partition, t, z, s, initial.q, mu)
    finite = jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
    good = closed & finite & ~tangent.singular
    if repartition:
        partition = _select(good, _refresh(system, partition, tangent, t, q, mu), partition)
    failed = Outcome.START_UNSOLVED.value
    code = jnp.where(good, Outcome.COMPLETED.value, failed)
    return _select(good, State(q, v), initial), partition, code


def _step(system, integrator, carry: _Carry, start, dt, inputs, mu, repartition):
    """One step from the last good state, and what became of it."""
    origin, partition = carry.state, carry.partition

    def ahead(time):
        return origin.q + (time - start) * origin.v

    def rate(time, y):
        z, s = y
        if system.closed_on_minimal:
            return system.minimal_rates(time, z, s, inputs(time), mu)
        q, v, tangent, _ = complete(system, partition, time, z, s, ahead(time), mu)
        a = system.independent_acceleration(time, q, v, inputs(time), mu, tangent)
        return partition.position.take_independent(v), a

    y = (
        partition.position.take_independent(origin.q),
        partition.velocity.take_independent(origin.v),
    )
    (z, s), step_solved = integrator.step(rate, start, dt, y)
    q, v, tangent, closed = complete(system, partition, start + dt, z, s, ahead(start + dt), mu)
    finite = _is_followed(partition, origin.q, q) & jnp.isfinite(v)
    closed = closed & (repartition | is_well_posed(partition, tangent))
    good = jnp.all(finite) & closed & step_solved
    code, coordinate = jax.lax.cond(
        good,
        lambda: (jnp.array(Outcome.COMPLETED.value), jnp.array(-1)),
        lambda: _diagnose(system, partition, origin, start + dt, dt, z, s, step_solved, closed, mu),
    )
    if repartition:
        fresh = _refresh(system, partition, tangent, start + dt, q, mu)
        partition = _select(good, fresh, partition)
    return _select(good, State(q, v), origin), partition, code, coordinate


def _diagnose(
    system,
    partition,
    origin: State,
    end,
    dt,
    z,
    s,
    step_solved: Bool[Array, ""],
    closed: Bool[Array, ""],
    mu,
):
    """Which of the ways to fail it was, and in which coordinate.

    A stage whose constraints did not close leaves the step without numbers, as an overflow does;
    trying to close them where the motion was heading tells the two apart.
    """
    position, velocity = partition.position, partition.velocity
    heading = origin.q + dt * origin.v
    numbers = jnp.all(jnp.isfinite(z)) & jnp.all(jnp.isfinite(s))
    target = jnp.where(jnp.all(jnp.isfinite(z)), z, position.take_independent(heading))
    near, ahead = complete_position(system, position, end, target, heading, partition.scale, mu)
    # The coordinate that Newton moved farthest, and the first that is no number.
    astray = jnp.argmax(jnp.nan_to_num(jnp.abs(near - heading) / partition.scale, nan=jnp.inf))
    followed = _is_followed(partition, origin.q, near)[position.independent] & jnp.isfinite(z)
    first_z = position.independent[jnp.argmin(followed)] if z.shape[0] else astray
    first_s = velocity.independent[jnp.argmin(jnp.isfinite(s))] if s.shape[0] else astray
    overflowed = jnp.where(jnp.all(jnp.isfinite(s)), first_z, first_s)
    outcome, where = _either(
        ahead & (closed | ~numbers),
        (Outcome.NOT_FINITE.value, overflowed),
        (Outcome.CONSTRAINTS_UNSOLVED.value, astray),
    )
    return _either(numbers & ~step_solved, (Outcome.STEP_UNSOLVED.value, -1), (outcome, where))


def _either(condition, yes, no):
    return tuple(jnp.where(condition, a, b) for a, b in zip(yes, no, strict=True))


def _refresh(
    system, partition: Partition, tangent: Tangent, t, q: Float[Array, " nq"], mu: Params
) -> Partition:
    """Choose again where the present choice has become poor."""
    velocity = exchange(partition.velocity, tangent.slope, partition.scale)
    if partition.position.rows.shape == partition.velocity.rows.shape:
        return Partition(velocity, velocity, partition.scale, partition.redundant)
    jacobian = position_jacobian(system, t, q, mu)
    drift = position_time_derivative(system, t, q, mu)
    slope = tangent_from(jacobian, -drift, partition.position).slope
    position = exchange(partition.position, slope, partition.scale)
    return Partition(position, velocity, partition.scale, partition.redundant)


def is_well_posed(partition: Partition, tangent: Tangent) -> Bool[Array, ""]:
    """Whether the independent coordinates still determine the others, far from a dead point."""
    gain = exchange_gain(tangent.split, tangent.slope, partition.scale)
    return (jnp.max(gain, initial=0.0) < _STEEPEST) & ~tangent.singular


def make_row(system, t, state: State, mu) -> _Row:
    """A state and how well it keeps the constraints."""
    position = position_residual(system, t, state.q, mu)
    velocity = velocity_residual(system, t, state.q, state.v, mu)
    largest = lambda x: jnp.max(jnp.abs(x), initial=0.0)  # noqa: E731
    return _Row(state.q, state.v, largest(position), largest(velocity))


def _is_followed(partition: Partition, before, q) -> Bool[Array, " nq"]:
    """Which coordinates are finite and, under constraints, not too far from where they were."""
    if partition.position.dependent.shape[0] == 0:
        return jnp.isfinite(q)
    return jnp.abs(q - before) <= _FARTHEST * partition.scale


def _select(condition, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
