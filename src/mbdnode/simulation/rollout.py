"""The compiled rollout: one scan over the steps, for truth and learned models alike.

Only the independent coordinates are integrated. At every evaluation the whole state is completed
from them (positions by Newton from the state at the start of the step, moved along its velocity),
so constraints hold at round-off at every stage of every step, and the result is that of the same
integrator on the minimal equations of motion. Where the constraints lose a rank, the motion goes on
along its own branch (see `mbdnode.multibody.singular_configurations`), and the status tells.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbdnode.integrators import AbstractIntegrator
from mbdnode.integrators.base import stage_slopes
from mbdnode.multibody import (
    AbstractSystem,
    Params,
    Partition,
    complete,
    complete_position,
    exchange,
    exchange_gain,
    largest_residuals,
    position_jacobian,
    position_time_derivative,
    tangent_at,
    tangent_from,
)
from mbdnode.multibody.batching import any_of_batch
from mbdnode.simulation.friction_step import Sliding, friction_change, sliding
from mbdnode.simulation.signals import Signal
from mbdnode.simulation.singular_passage import passage_end, passage_step, take
from mbdnode.simulation.singularity_monitor import (
    Monitor,
    look_ahead,
    start_monitor,
    unknown_monitor,
    update_monitor,
)
from mbdnode.simulation.steps import (
    LONGEST_ARC,
    Arrival,
    Step,
    regular_end,
    regular_step,
    select,
    signs_differ,
    speed_of,
)
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import State, Trajectory

# Where an independent coordinate moves this many times slower than a dependent one, it is at its
# dead point, and a step cannot tell on which side it comes out. Exchanging coordinates keeps far
# from such points.
_STEEPEST = 50.0
# A step that moves a coordinate by this many times its scale (a thousand radians) is no motion that
# was followed: the rollout has diverged. Constraints could still be closed, in any branch, but only
# to the round-off of coordinates that are as large as that.
_FARTHEST = 1e3
# Below this, a rollout that ends where `det C_d` changes its sign ends at a singular configuration;
# above, at a dead point of its independent coordinates.
_STEEP = 5.0
# Tolerance of a passage in scaled coordinates, in place of a fixed step and of one that controls
# its error.
_ERROR_FIXED, _ERROR_CONTROLLED = 1e-4, 1e-8
# How far a given state near a singular configuration may be off the constraints, in scaled
# coordinates.
_CLOSE = 1e-4


class Carry(eqx.Module):
    """What a step hands to the next: the last good state and how it is partitioned."""

    state: State
    partition: Partition
    monitor: Monitor
    code: Int[Array, ""]
    step: Int[Array, ""]
    coordinate: Int[Array, ""]


class _Row(eqx.Module):
    """What a step leaves in the trajectory."""

    q: Float[Array, " nq"]
    v: Float[Array, " nq"]
    position_residual: Float[Array, ""]
    velocity_residual: Float[Array, ""]


# How a rollout of regular steps ends where one does not do: near a singular configuration, or where
# a step fails for a reason that is to be found; no outcome of `simulate`, unless it is asked for.
NEEDS_PASSAGE = Outcome.NEAR_SINGULAR.value


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
    regular_only: bool = False,
) -> Trajectory:
    """Integrate from `initial` through all times; `simulate` is its public face.

    With `regular_only` it is compiled in a fraction of the time, and ends with the code
    `NEEDS_PASSAGE` where a singular configuration is near or a step fails.
    """

    def advance(carry: Carry, start, dt, coefficients):
        inputs = lambda s: signal.at(s, start, coefficients)  # noqa: E731
        after, doubtful = rollout_step(
            system,
            integrator,
            carry,
            start,
            dt,
            inputs,
            mu,
            repartition,
            regular_only,
            diagnosed=not regular_only,
        )
        code = jnp.where(doubtful, NEEDS_PASSAGE, after.code)
        return eqx.tree_at(lambda c: c.code, after, code)

    coefficients = signal.coefficients
    if not (regular_only and integrator.tableau is not None and _is_whole(system, partition)):
        first = start_rollout(system, t[0], initial, partition, mu, repartition, regular_only)
        return _follow(system, t, first, signal, mu, advance, coefficients)
    # A step of no length moves the given state onto the constraints: what completes a state is then
    # compiled once, and not once more for the start.
    first = Carry(
        state=initial,
        partition=jax.lax.stop_gradient(partition),
        monitor=unknown_monitor(initial.v),
        code=jnp.array(Outcome.COMPLETED.value),
        step=jnp.zeros((), int),
        coordinate=jnp.array(-1),
    )
    coefficients = None if coefficients is None else _with_first_twice(coefficients)
    return _follow(system, t, first, signal, mu, advance, coefficients, starts_by_step=True)


@eqx.filter_jit
def rollout_given(
    system: AbstractSystem,
    t: Float[Array, " n"],
    initial: State,
    signal: Signal,
    mu: Params,
    partition: Partition,
    z: Float[Array, "n nz"],
    s: Float[Array, "n ns"],
) -> Trajectory:
    """The whole states of a motion whose independent coordinates are given."""

    def advance(carry: Carry, start, dt, given):
        z, s = given
        return given_step(system, carry, start, dt, z, s, mu, False)

    first = start_rollout(system, t[0], initial, partition, mu, False, False)
    return _follow(system, t, first, signal, mu, advance, (z[1:], s[1:]))


def given_step(system, carry: Carry, start, dt, z, s, mu, regular_only) -> Carry:
    """The step of a motion whose independent coordinates at its end are given."""
    partition, monitor, state = carry.partition, carry.monitor, carry.state
    step = look_ahead(
        system, partition, monitor, state, start, dt, mu, checked=False, regular_only=regular_only
    )
    arrival = _end(system, partition, step, z, s, mu, regular_only)
    return _judged(system, carry, step, arrival, mu, False)


def _with_first_twice(rows):
    return jnp.concatenate([rows[:1], rows])


def _is_whole(system, partition: Partition) -> bool:
    """Whether accelerations depend on the whole state, which is then completed at every stage."""
    return partition.velocity.dependent.shape[0] > 0 and not system.closed_on_minimal


def _follow(
    system, t, first: Carry, signal: Signal, mu, advance, given, *, starts_by_step: bool = False
) -> Trajectory:
    """One scan over the steps; each gets its row of `given`.

    With `starts_by_step` the first row follows from a step of no length, with a row of `given`.
    """

    def follow(carry: Carry, interval):
        number, start, dt, own = interval
        going = carry.code == Outcome.COMPLETED.value
        # After a failure the steps have no length, so that they cost little and change nothing. A
        # `cond` would skip them, but under vmap it would copy a model's weights for every lane.
        after = select(going, advance(carry, start, jnp.where(going, dt, 0.0), own), carry)
        good = after.code == Outcome.COMPLETED.value
        after = eqx.tree_at(lambda c: c.step, after, jnp.where(good, number + 1, carry.step))
        row = make_row(system, start + dt, after.state, mu)
        return after, jax.tree.map(lambda x: jnp.where(good, x, jnp.nan), row)

    if starts_by_step:
        starts = _with_first_twice(t[:-1])
        intervals = (jnp.arange(-1, t.shape[0] - 1), starts, t - starts, given)
        last, rows = jax.lax.scan(follow, first, intervals)
    else:
        intervals = (jnp.arange(t.shape[0] - 1), t[:-1], jnp.diff(t), given)
        last, rows = jax.lax.scan(follow, first, intervals)
        head = make_row(system, t[0], first.state, mu)
        rows = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), head, rows)
    names = system.coordinate_names
    status = Status(
        last.code,
        last.step,
        t[last.step],
        last.coordinate,
        names,
        last.monitor.passages,
        last.monitor.passed_t,
    )
    return Trajectory(
        t=t,
        q=rows.q,
        v=rows.v,
        u=signal.samples,
        position_residual=rows.position_residual,
        velocity_residual=rows.velocity_residual,
        status=status,
        coordinates=names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def start_rollout(
    system, t, initial: State, partition: Partition, mu, repartition, regular_only
) -> Carry:
    """Move the given state onto the manifold: a file's digits are not round-off."""
    # Scales do not move with what is differentiated.
    partition = jax.lax.stop_gradient(partition)
    z = partition.position.take_independent(initial.q)
    s = partition.velocity.take_independent(initial.v)
    q, closed = complete_position(system, partition.position, t, z, initial.q, partition.scale, mu)
    tangent = tangent_at(system, partition.velocity, t, q, mu)
    v = tangent.velocity(s)
    monitor, near, undetermined = start_monitor(
        system, partition, t, initial, tangent, mu, regular_only
    )
    # Near a singular configuration the given state is kept.
    moved = jnp.max(jnp.abs(q - initial.q) / partition.scale, initial=0.0)
    good = (closed | (near & (moved < _CLOSE))) & ~tangent.singular
    good = good & jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v))
    zero = jnp.zeros((), int)
    code = jnp.where(good, Outcome.COMPLETED.value, Outcome.START_UNSOLVED.value)
    code = jnp.where(undetermined, Outcome.SINGULAR.value, code)
    carry = Carry(
        state=select(good & ~near, State(q, v), initial),
        partition=partition,
        monitor=monitor,
        code=jnp.where(near, NEEDS_PASSAGE, code) if regular_only else code,
        step=zero,
        coordinate=zero - 1,
    )
    return _exchanged(system, carry, good, tangent.steepness, t, mu) if repartition else carry


def rollout_step(
    system,
    integrator,
    carry: Carry,
    start,
    dt,
    inputs,
    mu,
    repartition,
    regular_only,
    diagnosed: bool = True,
) -> tuple[Carry, Bool[Array, ""]]:
    """One step from the last good state, what became of it, and whether a passage was needed.

    What failed in it is only found if it is to be `diagnosed`.
    """
    partition = carry.partition
    whole = _is_whole(system, partition)
    checked = whole and not integrator.controls_error
    step = look_ahead(
        system,
        partition,
        carry.monitor,
        carry.state,
        start,
        dt,
        mu,
        checked=checked,
        regular_only=regular_only,
    )

    # Dry friction acts over the step as it does at its start, and is put right at its end.
    slips = sliding(system, partition.velocity, start, carry.state, dt, inputs(start), mu)
    moving = system if slips is None else slips

    def rate(time, y):
        z, s = y
        if system.closed_on_minimal:
            return system.minimal_rates(time, z, s, inputs(time), mu)
        q, v, tangent, _ = complete(system, partition, time, z, s, step.guess(time), mu)
        a = moving.independent_acceleration(time, q, v, inputs(time), mu, tangent)
        return partition.position.take_independent(v), a

    def integrate(complete_end):
        y = step.parted(partition, step.independent(partition))
        (z, s), solved = _advanced(integrator, rate, start, dt, y)
        return eqx.tree_at(lambda a: a.solved, complete_end(z, s), solved)

    def regular():
        if integrator.tableau is not None:
            return regular_step(moving, partition, step, integrator.tableau, inputs, mu)
        return integrate(lambda z, s: regular_end(system, partition, step, z, s, mu))

    if not whole:
        arrival = integrate(lambda z, s: _end(system, partition, step, z, s, mu, regular_only))
    elif regular_only or not partition.may_branch:
        arrival = regular()
    else:
        allowed = _ERROR_CONTROLLED if integrator.controls_error else _ERROR_FIXED
        passage = lambda: passage_step(moving, partition, step, inputs, mu, allowed)  # noqa: E731
        arrival = take(partition, step, regular, passage, integrator.order > 1)
    if slips is not None:
        arrival = _held(slips, partition, step, arrival, inputs(start + dt), mu)
    after = _judged(system, carry, step, arrival, mu, repartition, diagnosed)
    if not (regular_only and partition.may_branch):
        return after, jnp.array(False)
    close = after.monitor.is_suspected(dt * speed_of(partition, after.state))
    # Of a step of no length there is no trend to tell.
    close = close | ((dt == 0) & arrival.is_poor)
    return after, step.suspect | close | (after.code == Outcome.SINGULAR.value)


def _advanced(integrator: AbstractIntegrator, rate, start, dt, y):
    """The independent coordinates after a step; stages are a loop, so that one is compiled."""
    if integrator.tableau is None:
        return integrator.step(rate, start, dt, y)

    def slope(time, weights, found):
        moved = jax.tree.map(lambda x, k: x + weights.astype(k.dtype) @ k, y, found)
        return rate(time, moved)

    weights, slopes = stage_slopes(integrator.tableau, start, dt, slope, y)
    moved = jax.tree.map(lambda x, k: x + weights.astype(k.dtype) @ k, y, slopes)
    return moved, jnp.array(True)


def _end(system, partition: Partition, step: Step, z, s, mu, regular_only) -> Arrival:
    """The end of a step, given its independent part."""
    regular = lambda: regular_end(system, partition, step, z, s, mu)  # noqa: E731
    if regular_only or not partition.may_branch:
        return regular()
    passage = lambda: passage_end(system, partition, step, z, s, mu)  # noqa: E731
    return take(partition, step, regular, passage, False)


def _held(slips: Sliding, partition: Partition, step: Step, arrival: Arrival, u, mu) -> Arrival:
    """The end of a step after the contacts that came to rest in it were held."""
    system, end = slips.mechanism, step.start + step.dt
    tangent = tangent_at(system, partition.velocity, end, arrival.q, mu)
    state = State(arrival.q, arrival.v)
    change, shift = friction_change(slips, tangent, end, state, step.dt, u, mu)
    moved = tangent.velocity(shift) - tangent.velocity(jnp.zeros_like(shift))
    z = arrival.z + partition.position.take_independent(moved)
    held = regular_end(system, partition, step, z, arrival.s + change, mu)
    return eqx.tree_at(lambda a: a.solved, held, arrival.solved)


def _judged(
    system, carry: Carry, step: Step, arrival: Arrival, mu, repartition, diagnosed: bool = True
) -> Carry:
    """The carry after a step: its end if it is good, and otherwise why it is not."""
    q, v, steepness = arrival.q, arrival.v, arrival.steepness
    closed = arrival.closed & (repartition | _is_well_posed(carry.partition, steepness))
    finite = _is_followed(carry.partition, carry.state.q, q) & jnp.isfinite(v)
    good = jnp.all(finite) & closed & arrival.solved
    completed = (jnp.array(Outcome.COMPLETED.value), jnp.array(-1))
    found = (jnp.array(NEEDS_PASSAGE), jnp.array(-1))
    if diagnosed:
        found = jax.lax.cond(
            any_of_batch(~good),
            lambda: _diagnose(system, carry, step, arrival, closed, mu),
            lambda: completed,
        )
    code, coordinate = select(good, completed, found)
    after = Carry(
        state=select(good, State(q, v), carry.state),
        partition=carry.partition,
        monitor=update_monitor(carry.partition, carry.monitor, step, arrival, good),
        code=code,
        step=carry.step,
        coordinate=coordinate,
    )
    end = step.start + step.dt
    return _exchanged(system, after, good, steepness, end, mu) if repartition else after


def _diagnose(
    system, carry: Carry, step: Step, arrival: Arrival, closed: Bool[Array, ""], mu: Params
):
    """Which of the ways to fail it was, and in which coordinate.

    A stage whose constraints did not close leaves the step without numbers, as an overflow does;
    trying to close them where the motion was heading tells the two apart.
    """
    partition = carry.partition
    position, velocity = partition.position, partition.velocity
    z, s, end = arrival.z, arrival.s, step.start + step.dt
    heading = step.guess(end)
    target = jnp.where(jnp.all(jnp.isfinite(z)), z, position.take_independent(heading))
    near, ahead = complete_position(system, position, end, target, heading, partition.scale, mu)
    # The coordinate that Newton moved farthest, and the first that is no number.
    astray = jnp.argmax(jnp.nan_to_num(jnp.abs(near - heading) / partition.scale, nan=jnp.inf))
    followed = _is_followed(partition, step.origin.q, near)[position.independent] & jnp.isfinite(z)
    # Beyond, constraints may be closed in either branch, which tells nothing.
    numbers = jnp.all(followed) & jnp.all(jnp.isfinite(s))
    first_z = position.independent[jnp.argmin(followed)] if z.shape[0] else astray
    first_s = velocity.independent[jnp.argmin(jnp.isfinite(s))] if s.shape[0] else astray
    overflowed = jnp.where(jnp.all(jnp.isfinite(s)), first_z, first_s)
    # A passage that is not accurate found no smooth way on; the integrator has done its part.
    lost = step.suspect & ~arrival.solved
    closed = closed & ~lost
    outcome, where = select(
        ahead & (closed | ~numbers),
        (Outcome.NOT_FINITE.value, overflowed),
        (Outcome.CONSTRAINTS_UNSOLVED.value, astray),
    )
    if partition.may_branch:
        first = tangent_at(system, velocity, step.start, step.origin.q, mu)
        gain = jnp.max(exchange_gain(velocity, first.steepness, partition.scale), initial=0.0)
        skipped = ahead & numbers & signs_differ(arrival.determinant, step.determinant)
        length = step.dt * speed_of(partition, step.origin)
        close = skipped | carry.monitor.is_close(jnp.minimum(length, LONGEST_ARC))
        close = step.crosses | (close & (numbers | ~ahead))
        steep = ~carry.monitor.passing & (gain > _STEEP)
        close = close & ~steep
        # A step that does not resolve the path tells nothing of what lies on it.
        missed = close & (length >= LONGEST_ARC)
        outcome, where = select(missed, (Outcome.STEP_TOO_LONG.value, -1), (outcome, where))
        singular = first.singular | (close & ~missed)
        outcome, where = select(singular, (Outcome.SINGULAR.value, -1), (outcome, where))
    known = (outcome == Outcome.SINGULAR.value) | (outcome == Outcome.STEP_TOO_LONG.value)
    unsolved = numbers & ~arrival.solved & ~lost & ~known
    return select(unsolved, (Outcome.STEP_UNSOLVED.value, -1), (outcome, where))


def _exchanged(system, carry: Carry, good, steepness, t, mu: Params) -> Carry:
    """The carry with other independent coordinates where the present choice has become poor."""
    partition = carry.partition
    fresh = exchanged_partition(system, partition, t, carry.state.q, steepness, mu)
    if fresh.position is not fresh.velocity:
        position = select(carry.monitor.passing, partition.position, fresh.position)
        fresh = Partition(position, fresh.velocity, fresh.scale, fresh.redundant)
    fresh = select(good, fresh, partition)
    monitor = carry.monitor.exchanged(partition, fresh, steepness)
    return eqx.tree_at(lambda c: (c.partition, c.monitor), carry, (fresh, monitor))


def exchanged_partition(system, partition: Partition, t, q, steepness, mu: Params) -> Partition:
    """Other independent coordinates where the present ones are poor, by the tangent's steepness."""
    velocity = exchange(partition.velocity, steepness, partition.scale)
    if partition.position.rows.shape == partition.velocity.rows.shape:
        return Partition(velocity, velocity, partition.scale, partition.redundant)
    drift = position_time_derivative(system, t, q, mu)
    jacobian = position_jacobian(system, t, q, mu)
    steep = tangent_from(jacobian, -drift, partition.position).steepness
    position = exchange(partition.position, steep, partition.scale)
    return Partition(position, velocity, partition.scale, partition.redundant)


def _is_well_posed(partition: Partition, steepness: Float[Array, "nr ni"]) -> Bool[Array, ""]:
    """Whether the independent coordinates still determine the others, far from a dead point."""
    gain = exchange_gain(partition.velocity, steepness, partition.scale)
    return jnp.max(gain, initial=0.0) < _STEEPEST


def make_row(system, t, state: State, mu) -> _Row:
    """A state and how well it keeps the constraints."""
    return _Row(state.q, state.v, *largest_residuals(system, t, state.q, state.v, mu))


def _is_followed(partition: Partition, before, q) -> Bool[Array, " nq"]:
    """Which coordinates are finite and, under constraints, not too far from where they were."""
    if partition.position.dependent.shape[0] == 0:
        return jnp.isfinite(q)
    return jnp.abs(q - before) <= _FARTHEST * partition.scale
