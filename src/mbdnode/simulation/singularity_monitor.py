"""Whether a singular configuration lies ahead of a motion.

A rollout remembers `det C_d` of the last step and by how much it changed. Only if it might vanish
soon is it evaluated along the path ahead, before the step is taken.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbdnode.multibody import (
    SPACING,
    AbstractSystem,
    MotionPath,
    Params,
    Partition,
    Tangent,
    exchange_factor,
    find_crossing,
    gamma,
)
from mbdnode.multibody.batching import any_of_batch
from mbdnode.simulation.steps import LONGEST_ARC, POOR, Arrival, Step, signs_differ, speed_of
from mbdnode.trajectory import State

# At a distance d the slope has an error of eps/d^2. Below this it does not tell to which branch a
# configuration belongs, and only a velocity does.
_UNDETERMINED = 1e-6


class Monitor(eqx.Module):
    """What a rollout remembers to be warned of singular configurations.

    **Arguments:**

    - `path`: the path ahead.
    - `determinant`: `det C_d` where it was last known.
    - `trend`: its change for each unit of distance in scaled coordinates.
    - `passing`: whether the state is so close to a singular configuration that `det C_d` is
        unknown.
    - `passages`: how many such configurations were passed.
    - `passed_t`: about when the first of them was reached; NaN if none was.
    """

    path: MotionPath
    determinant: Float[Array, ""]
    trend: Float[Array, ""]
    passing: Bool[Array, ""]
    passages: Int[Array, ""]
    passed_t: Float[Array, ""]

    def is_close(self, length: Float[Array, ""]) -> Bool[Array, ""]:
        """Whether `det C_d`, if it fell twice as fast as in the last step, would vanish soon."""
        falls = 2 * (length + 3 * SPACING) * self.trend
        return self.passing | ~(jnp.abs(self.determinant) > falls)

    def is_suspected(self, length: Float[Array, ""]) -> Bool[Array, ""]:
        """The same, but not before the first step, when no trend is known."""
        return self.is_close(length) & jnp.isfinite(self.trend)

    def exchanged(
        self, before: Partition, after: Partition, steepness: Float[Array, "nr ni"]
    ) -> "Monitor":
        """The monitor after an exchange of coordinates, given the steepness before it."""
        factor = exchange_factor(before.velocity, after.velocity, steepness)
        return eqx.tree_at(
            lambda w: (w.determinant, w.trend),
            self,
            (factor * self.determinant, jnp.abs(factor) * self.trend),
        )


def start_monitor(
    system: AbstractSystem,
    partition: Partition,
    t: Float[Array, ""],
    state: State,
    tangent: Tangent,
    mu: Params,
    regular_only: bool,
) -> tuple[Monitor, Bool[Array, ""], Bool[Array, ""]]:
    """The monitor at the start of a rollout.

    **Arguments:**

    - `regular_only`: whether a poor pivot is enough, without looking along the path.

    **Returns:**

    The monitor; whether a singular configuration is so close that the given state is more accurate
    than one that is solved from the constraints; and whether the state rests there, so that
    rounding would choose the branch.
    """
    split, scale = partition.velocity, partition.scale
    state, tangent, t, mu = jax.lax.stop_gradient((state, tangent, t, mu))
    zero, no = jnp.zeros(()), jnp.array(False)
    path = MotionPath(jnp.zeros_like(state.v), zero, zero)
    close = undetermined = no
    poor = tangent.pivot_ratio < POOR
    if not partition.may_branch:
        close = no
    elif regular_only:
        close = poor
    else:
        speed = speed_of(partition, state)
        moving = speed > 0
        offset = tangent.curve(gamma(system, t, state.q, state.v, mu))
        turning = jnp.linalg.norm(offset / scale[split.dependent]) / jnp.where(moving, speed, 1.0)
        rate = jnp.maximum(speed, jnp.where(poor, 0.0, turning))
        # At rest, the direction in which all independent coordinates increase.
        ones = scale[split.independent]
        some = split.merge(tangent.slope @ ones, ones)
        some = some / jnp.maximum(jnp.linalg.norm(some / scale), 1.0)
        direction = jnp.where(moving, state.v / jnp.where(moving, rate, 1.0), some)
        path = MotionPath(direction, rate, zero)
        crosses, place = find_crossing(system, partition, t, state.q, mu, path, zero)
        close = poor & crosses & (jnp.abs(place) < SPACING / 2)
        undetermined = close & ~moving & (tangent.pivot_ratio < _UNDETERMINED)
    return _first_monitor(path, tangent.determinant), close, undetermined


def unknown_monitor(v: Float[Array, " nq"]) -> Monitor:
    """The monitor of a rollout whose first state is still to be moved onto the constraints."""
    zero = jnp.zeros((), v.dtype)
    return _first_monitor(MotionPath(jnp.zeros_like(v), zero, zero), jnp.full((), jnp.nan))


def _first_monitor(path: MotionPath, determinant: Float[Array, ""]) -> Monitor:
    # A trend that is not known yet makes the first step look ahead.
    unknown, never = jnp.full((), jnp.inf), jnp.full((), jnp.nan)
    return Monitor(path, determinant, unknown, jnp.array(False), jnp.zeros((), int), never)


def look_ahead(
    system: AbstractSystem,
    partition: Partition,
    monitor: Monitor,
    origin: State,
    start: Float[Array, ""],
    dt: Float[Array, ""],
    mu: Params,
    *,
    checked: bool,
    regular_only: bool,
) -> Step:
    """The next step, and whether it leads to a singular configuration.

    **Arguments:**

    - `checked`: whether every step near such a configuration is checked. Where two branches come
        close without crossing the motion turns sharply, which a fixed step would not notice.
    """
    no = jnp.array(False)
    if not partition.may_branch:
        return Step(origin, start, dt, monitor.path, monitor.determinant, no, no)
    arc, length = dt * monitor.path.rate, dt * speed_of(partition, origin)
    short = (dt > 0) & (length < LONGEST_ARC)
    suspected = monitor.is_suspected(length) & short
    if regular_only:
        return Step(origin, start, dt, monitor.path, monitor.determinant, no, suspected)
    may = monitor.is_close(length) & short & (arc < LONGEST_ARC)
    # One condition for a whole batch, since under vmap a `cond` evaluates both of its branches.
    crosses, place = jax.lax.cond(
        any_of_batch(may),
        lambda: find_crossing(system, partition, start, origin.q, mu, monitor.path, arc),
        lambda: (no, jnp.full((), jnp.inf)),
    )
    crosses = may & crosses
    path = monitor.path._replace(crossing=place)
    suspect = crosses | suspected if checked else crosses
    return Step(origin, start, dt, path, monitor.determinant, crosses, suspect)


def update_monitor(
    partition: Partition, monitor: Monitor, step: Step, arrival: Arrival, good: Bool[Array, ""]
) -> Monitor:
    """The monitor after a step."""
    if not partition.may_branch:
        return monitor
    known = good & ~arrival.passing
    crossed = known & signs_differ(arrival.determinant, monitor.determinant)
    first = good & (crossed | arrival.passing) & jnp.isnan(monitor.passed_t)
    place = step.start + step.dt * jnp.where(step.crosses, step.place, 1.0)
    length = step.dt * speed_of(partition, step.origin)
    moved = length > 0
    change = jnp.abs(arrival.determinant - monitor.determinant)
    trend = change / jnp.where(moved, length, 1.0)
    return Monitor(
        path=_next_path(partition, monitor.path, step, arrival, good),
        determinant=jnp.where(known, arrival.determinant, monitor.determinant),
        trend=jnp.where(known & moved, trend, monitor.trend),
        passing=jnp.where(good, arrival.passing, monitor.passing),
        passages=monitor.passages + crossed.astype(int),
        passed_t=jnp.where(first, place, monitor.passed_t),
    )


def _next_path(
    partition: Partition, path: MotionPath, step: Step, arrival: Arrival, good
) -> MotionPath:
    """The path ahead after a step.

    Arc is distance in scaled coordinates or, if that is more, the angle by which the direction
    turns: the scale of a mechanism's lengths may be far from the radius of its path.
    """
    v = jax.lax.stop_gradient(jnp.where(good, arrival.v, step.origin.v))
    old, new = speed_of(partition, step.origin), jnp.linalg.norm(v / partition.scale)
    both = (old > 0) & (new > 0) & (step.dt > 0)
    unit = lambda x, size: x / partition.scale / jnp.where(both, size, 1.0)  # noqa: E731
    first, last = unit(jax.lax.stop_gradient(step.origin.v), old), unit(v, new)
    # A motion that reverses does not turn.
    turned = jnp.minimum(jnp.linalg.norm(last - first), jnp.linalg.norm(last + first))
    rate = jnp.maximum(new, jnp.where(both, turned / jnp.where(both, step.dt, 1.0), 0.0))
    direction = jnp.where(rate > 0, v / jnp.where(rate > 0, rate, 1.0), path.direction)
    return MotionPath(direction, rate, path.crossing)
