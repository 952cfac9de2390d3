"""A cart that carries a pole: the classic of control.

The pole is a point mass `m` on a rod without mass; `theta = 0` is upright, and positive toward
positive `x`, so that the mass is at `(x + l sin(theta), l cos(theta))`. A force `u` pushes the
cart:

    m l^2 theta''          + m l cos(theta) x'' - m g l sin(theta)        = 0
    m l cos(theta) theta'' + (M + m) x''        - m l theta'^2 sin(theta) = u.

The paper's order of the state is `(theta, x)`.

The cart-pole in Cartesian coordinates: three of them, and one constraint.

The cart is at `(x, 0)`, the pole's mass at `(x_pole, y_pole)`, `y` upwards:

    (x_pole - x)^2 + y_pole^2 - l^2 = 0.

The motion is that of `CartPole`, with `x_pole = x + l sin(theta)`, `y_pole = l cos(theta)`.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, angle, length, nonnegative, positive


class CartPole(AbstractMechanism):
    """A pole on a cart, with a force on the cart and no friction."""

    coordinates = (angle("theta"), length("x"))
    inputs = (Input("u", "N"),)
    parameters = (
        positive("M", 1.0, "kg", "mass of the cart"),
        positive("m", 1.0, "kg", "mass of the pole"),
        positive("l", 0.5, "m", "length of the pole"),
        nonnegative("g", 9.81, "m/s^2"),
    )
    conservative = True

    def mass_matrix(self, q, mu):
        """Coupled through the pole's inclination."""
        coupling = mu["m"] * mu["l"] * jnp.cos(q[0])
        return [[mu["m"] * mu["l"] ** 2, coupling], [coupling, mu["M"] + mu["m"]]]

    def force(self, t, q, v, u, mu):
        """The pole's weight and centrifugal force, and the push."""
        lever = mu["m"] * mu["l"] * jnp.sin(q[0])
        return [lever * mu["g"], lever * v[0] ** 2 + u[0]]

    def potential_energy(self, q, mu):
        """The pole's height above the cart, times its weight."""
        return mu["m"] * mu["g"] * mu["l"] * jnp.cos(q[0])


class CartPoleCartesian(AbstractMechanism):
    """A cart and a point mass, a rod's length apart, with a force on the cart."""

    coordinates = (length("x"), length("x_pole"), length("y_pole"))
    inputs = CartPole.inputs
    parameters = CartPole.parameters
    reference = {"y_pole": 0.5}
    conservative = True

    def mass_matrix(self, q, mu):
        """The masses of cart and pole."""
        return [mu["M"], mu["m"], mu["m"]]

    def force(self, t, q, v, u, mu):
        """The push on the cart and the pole's weight."""
        return [u[0], 0.0, -mu["m"] * mu["g"]]

    def constraint(self, t, q, mu):
        """The rod's length."""
        x, x_pole, y_pole = q
        return [(x_pole - x) ** 2 + y_pole**2 - mu["l"] ** 2]

    def potential_energy(self, q, mu):
        """The pole's height above the cart, times its weight."""
        return mu["m"] * mu["g"] * q[2]
