"""The damped pendulum in Cartesian coordinates: two of them, and one constraint.

The bob is at `(x, y)`, `y` upwards, the pivot at the origin, so

    x^2 + y^2 - L^2 = 0,      x = L sin(theta),   y = -L cos(theta).

The force `F` and the damping `c theta'` act along the tangent `(-y, x)/L`, and the angular velocity
is `theta' = (x y' - y x')/L^2`. The motion is that of `SinglePendulum`, which makes it a check on
the coordinate partition: neither `x` nor `y` is a good independent coordinate all the way round.
"""

import jax.numpy as jnp

from mbdnode.mechanisms.single_pendulum import SinglePendulum
from mbdnode.multibody import AbstractMechanism, length


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
