"""Dry friction: forces that oppose slip, up to a limit, and hold what does not slip.

A contact k has the slip velocity `w_k . v`, and its force `f_k` along `-w_k` is set-valued:

    f_k = limit_k sign(w_k . v)   while it slips,      |f_k| <= limit_k   while it sticks.

So a force that holds is no function of the state; it is what keeps the slip at zero, if the limit
allows it. With the reduced mass `M_i = T^T M T` and `W_i = W T`, forces (over no time, for
accelerations) or impulses (over a step, for velocities) solve the box-constrained problem

    min  f^T G f / 2 - f^T W_i x      subject to  low <= f <= high,       G = W_i M_i^-1 W_i^T,

where `x` is what the independent accelerations or velocities would be without friction: of all that
the contacts can do, what leaves the least kinetic energy. So friction never gives energy.

A step (Moreau's time stepping, on top of any integrator) first moves with the contacts that slip
slipping on, which keeps the integrator's order where nothing changes; then the impulses are solved
for, and what differs from the forces that were applied is corrected at the end of the step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody.kinematics import vector

# Sweeps over the contacts; the last few digits come from a solve with the contacts that stick.
_SWEEPS = 40


class Contacts(eqx.Module):
    """The contacts of a mechanism at a state.

    **Arguments:**

    - `directions`: `W`, a row for each contact; `W v` are the slip velocities.
    - `backward`, `forward`: the largest force while the slip is negative, and positive.
    """

    directions: Float[Array, "contacts nq"]
    backward: Float[Array, " contacts"]
    forward: Float[Array, " contacts"]

    def slip(self, v: Float[Array, " nq"]) -> Float[Array, " contacts"]:
        """The slip velocities."""
        return self.directions @ v

    def sliding_force(self, signs: Float[Array, " contacts"]) -> Float[Array, " nq"]:
        """The generalized force of contacts that slip in these directions; zero for sign zero."""
        limits = jnp.where(signs > 0, self.forward, self.backward)
        return -(signs * limits) @ self.directions


def contacts_of(given: tuple[Any, Any] | None, size: int) -> Contacts | None:
    """What a mechanism's `dry_friction` returned, checked.

    **Arguments:**

    - `given`: directions and limits, or None.

    **Returns:**

    The `Contacts`; None if there are none.
    """
    if given is None:
        return None
    directions, limits = given
    if isinstance(directions, (tuple, list)):
        directions = jnp.stack([vector(row) for row in directions])
    if isinstance(limits, (tuple, list)):
        pairs = isinstance(limits[0], (tuple, list))
        limits = jnp.stack([vector(row) for row in limits]) if pairs else vector(limits)
    directions, limits = jnp.asarray(directions), jnp.asarray(limits)
    count = directions.shape[0]
    if directions.shape != (count, size) or limits.shape not in ((count,), (count, 2)):
        raise UserError(
            f"dry_friction returned directions of shape {directions.shape} and limits of shape "
            f"{limits.shape}; give a row of {size} numbers for each contact, and for each contact "
            "a limit, or two: backward and forward."
        )
    both = limits if limits.ndim == 2 else jnp.stack([limits, limits], axis=1)
    return Contacts(directions, both[:, 0], both[:, 1])


def held_forces(
    reduced: Float[Array, "contacts ni"],
    response: Float[Array, "ni contacts"],
    moving: Float[Array, " ni"],
    low: Float[Array, " contacts"],
    high: Float[Array, " contacts"],
    imposed: Float[Array, " contacts"] | None = None,
) -> Float[Array, " contacts"]:
    """Forces or impulses of the contacts, within their bounds.

    **Arguments:**

    - `reduced`: `W_i`.
    - `response`: `M_i^-1 W_i^T`.
    - `moving`: the independent accelerations or velocities without friction.
    - `low`, `high`: bounds of each.
    - `imposed`: slip that constraints impose, whatever the independent coordinates do; none if not
        given.

    **Returns:**

    One value for each contact, along the slip; it acts against it.
    """
    gram, free = reduced @ response, reduced @ moving
    free = free if imposed is None else free + imposed
    own = jnp.diag(gram)
    own = jnp.where(own > 0, own, 1.0)
    if gram.shape[0] == 1:
        return jnp.clip(free / own, low, high)

    def sweep(f, _):
        for k in range(gram.shape[0]):
            left = free[k] - gram[k] @ f
            f = f.at[k].set(jnp.clip(f[k] + left / own[k], low[k], high[k]))
        return f, None

    f, _ = jax.lax.scan(sweep, jnp.clip(free / own, low, high), None, length=_SWEEPS)
    # Those strictly inside their bounds stick: together they leave no slip at all.
    inside = (f > low) & (f < high)
    both = inside[:, None] & inside[None, :]
    matrix = jnp.where(both, gram, jnp.eye(gram.shape[0]))
    right = jnp.where(inside, free - gram @ jnp.where(inside, 0.0, f), f)
    return jnp.clip(jnp.linalg.solve(matrix, right), low, high)
