"""A damped pendulum: a bob on a rod without mass.

With `theta` from the downward vertical,

    theta'' + g/L sin(theta) + c/(m L) theta' = F/(m L).

Times `m L^2` this is a balance of torques: weight, damper and a force `F` on the bob, square to
the rod. As the paper prints it, the damping force on the bob is `c theta'`, not `c L theta'`; at
its length of one meter they are equal.

The damped pendulum in Cartesian coordinates: two of them, and one constraint.

The bob is at `(x, y)`, `y` upwards, the pivot at the origin, so

    x^2 + y^2 - L^2 = 0,      x = L sin(theta),   y = -L cos(theta).

The force `F` and the damping `c theta'` act along the tangent `(-y, x)/L`, and the angular velocity
is `theta' = (x y' - y x')/L^2`. The motion is that of `SinglePendulum`, which makes it a check on
the coordinate partition: neither `x` nor `y` is a good independent coordinate all the way round.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, angle, length, nonnegative, positive


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


class SinglePendulumCartesian(AbstractMechanism):
    """One bob on a circle, damped, with a force along the circle."""

    coordinates = (length("x"), length("y"))
    inputs = SinglePendulum.inputs
    parameters = SinglePendulum.parameters
    reference = {"y": -1.0}

    def mass_matrix(self, q, mu):
        """The bob's mass."""
        return [mu["m"], mu["m"]]

    def force(self, t, q, v, u, mu):
        """Weight, and what acts along the circle."""
        x, y = q
        spin = (x * v[1] - y * v[0]) / mu["L"] ** 2
        along = (u[0] - mu["c"] * spin) / mu["L"]
        return [-y * along, x * along - mu["m"] * mu["g"]]

    def constraint(self, t, q, mu):
        """The rod's length."""
        return [jnp.sum(q**2) - mu["L"] ** 2]

    def potential_energy(self, q, mu):
        """The bob's height above the pivot, times its weight."""
        return mu["m"] * mu["g"] * q[1]
