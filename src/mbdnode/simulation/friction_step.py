"""Dry friction in a step: what slips slips on until it comes to rest, and what rests is held.

The integrator moves under the friction that the velocities at the start of the step decide, so it
keeps its order while nothing changes, and what is held does not move at all. A contact that comes
to rest within the step, at a fraction that its slip at both ends tells, sticks from there or slips
back: the impulses over the step are solved for (`mbdnode.multibody.friction_law`), within bounds
that allow for either. What they differ from those that acted is added to the velocities, and to the
positions as if it had acted evenly over the rest of the step.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    Inputs,
    Params,
    Split,
    Tangent,
    Time,
    held_forces,
    tangent_at,
)
from mbdnode.multibody.kinematics import vector
from mbdnode.trajectory import State

# What a held contact slips by rounding, as a part of what friction stops within a step.
_ROUNDING = 1e-9


class Sliding(AbstractSystem):
    """A mechanism with dry friction, over one step.

    **Arguments:**

    - `mechanism`: with dry friction.
    - `since`: the velocities at the start of the step, for limits that depend on them.
    - `signs`: of the slip at the start of the step; zero for what is held.
    """

    mechanism: AbstractMechanism
    since: Float[Array, " nq"]
    signs: Float[Array, " contacts"]
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """With friction as it is over the step."""
        own = self.mechanism
        friction = own.friction_force(t, q, v, u, mu, tangent, (self.signs, self.since))
        assert friction is not None
        force = vector(own.force(t, q, v, u, mu)) + friction
        return own.accelerations_under(t, q, v, mu, tangent, force)

    def constraint(self, t, q, mu):
        """That of the mechanism."""
        return self.mechanism.constraint(t, q, mu)

    def nonholonomic(self, t, q, mu):
        """Those of the mechanism."""
        return self.mechanism.nonholonomic(t, q, mu)


def sliding(
    system: Any, split: Split, t: Time, state: State, dt: Float[Array, ""], u: Inputs, mu: Params
) -> Sliding | None:
    """The mechanism as it moves over a step that starts at a state.

    A `Sliding`; None for a system without dry friction.
    """
    if not isinstance(system, AbstractMechanism):
        return None
    contacts = system.contacts(t, state.q, state.v, u, mu)
    if contacts is None:
        return None
    tangent = tangent_at(system, split, t, state.q, mu)
    reduced, response = system.mobility(contacts, t, state.q, mu, tangent)
    # What was put to rest slips by rounding, which is small beside what friction can stop.
    limit = jnp.maximum(contacts.backward, contacts.forward)
    stopped = dt * limit * jnp.sum(reduced * response.T, axis=1)
    slip = contacts.slip(state.v)
    signs = jnp.where(jnp.abs(slip) > _ROUNDING * stopped, jnp.sign(slip), 0.0)
    return Sliding(system, state.v, signs, system.coordinates)


def friction_change(
    moving: Sliding,
    tangent: Tangent,
    t: Time,
    state: State,
    dt: Float[Array, ""],
    u: Inputs,
    mu: Params,
) -> tuple[Float[Array, " ni"], Float[Array, " ni"]]:
    """By how much a step is to be corrected at its end.

    The change of the independent velocities, and the displacement that belongs to it, in the
    velocities' coordinates; zero if every contact went on as it began.
    """
    mechanism = moving.mechanism
    contacts = mechanism.contacts(t, state.q, moving.since, u, mu)
    assert contacts is not None
    before, after, signs = contacts.slip(moving.since), contacts.slip(state.v), moving.signs
    # The part of the step over which a contact slips on.
    reverses = signs * after < 0
    part = jnp.where(reverses, before / jnp.where(reverses, before - after, 1.0), 1.0)
    first = jnp.where(signs > 0, contacts.forward, contacts.backward)
    then = jnp.where(signs > 0, contacts.backward, contacts.forward)
    applied = dt * signs * first
    # From there on it may be held, or slip back against the other limit.
    least = dt * signs * (part * first - (1 - part) * then)
    reduced, response = mechanism.mobility(contacts, t, state.q, mu, tangent)
    rounding = _ROUNDING * dt * jnp.where(signs == 0, first + then, 0.0)
    low = jnp.minimum(applied, least) - rounding
    high = jnp.maximum(applied, least) + rounding
    without = tangent.split.take_independent(state.v) + response @ applied
    imposed = contacts.slip(tangent.velocity(jnp.zeros_like(without)))
    impulses = held_forces(reduced, response, without, low, high, imposed)
    # A held contact is put to rest within rounding, or has broken away and goes on.
    broken = (signs == 0) & ((impulses <= low) | (impulses >= high))
    difference = jnp.where(broken, 0.0, applied - impulses)
    return response @ difference, response @ (0.5 * dt * (1 - part) * difference)
