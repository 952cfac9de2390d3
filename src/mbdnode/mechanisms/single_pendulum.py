"""A damped pendulum: a bob on a rod without mass.

With `theta` from the downward vertical,

    theta'' + g/L sin(theta) + c/(m L) theta' = F/(m L).

Times `m L^2` this is a balance of torques: weight, damper and a force `F` on the bob, square to
the rod. As the paper prints it, the damping force on the bob is `c theta'`, not `c L theta'`; at
its length of one metre they are equal.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, angle, nonnegative, positive


class SinglePendulum(AbstractMechanism):
    """One bob, damped, with a force across the rod."""

    coordinates = (angle("theta"),)
    inputs = (Input("F", "N"),)
    parameters = (
        positive("m", 1.0, "kg"),
        positive("L", 1.0, "m"),
        nonnegative("c", 0.1, "N s/m"),
        nonnegative("g", 9.81, "m/s^2"),
    )

    def mass_matrix(self, q, mu):
        """The bob's inertia about the pivot."""
        return [mu["m"] * mu["L"] ** 2]

    def force(self, t, q, v, u, mu):
        """Torques of weight, damper and force."""
        return mu["L"] * (-mu["m"] * mu["g"] * jnp.sin(q) - mu["c"] * v + u)

    def potential_energy(self, q, mu):
        """The bob's height above the pivot, times its weight."""
        return -mu["m"] * mu["g"] * mu["L"] * jnp.cos(q[0])
