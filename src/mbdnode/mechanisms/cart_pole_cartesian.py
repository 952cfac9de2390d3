"""The cart-pole in Cartesian coordinates: three of them, and one constraint.

The cart is at `(x, 0)`, the pole's mass at `(x_pole, y_pole)`, `y` upwards:

    (x_pole - x)^2 + y_pole^2 - l^2 = 0.

The motion is that of `CartPole`, with `x_pole = x + l sin(theta)`, `y_pole = l cos(theta)`.
"""

from mbdnode.mechanisms.cart_pole import CartPole
from mbdnode.multibody import AbstractMechanism, length


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
