"""Two point masses on two rods without mass, the classic of chaos.

Both angles are measured from the downward vertical. With `d = theta1 - theta2`,

    T = m1 l1^2 w1^2 / 2 + m2 (l1^2 w1^2 + l2^2 w2^2 + 2 l1 l2 w1 w2 cos(d)) / 2
    V = -(m1 + m2) g l1 cos(theta1) - m2 g l2 cos(theta2),

and Lagrange's equations are

    [ (m1 + m2) l1^2     m2 l1 l2 cos(d) ] [ w1' ]   [ -m2 l1 l2 w2^2 sin(d) ]
    [ m2 l1 l2 cos(d)    m2 l2^2         ] [ w2' ] = [ +m2 l1 l2 w1^2 sin(d) ] - dV/dtheta.

The Hamiltonian that the paper writes in closed form is not the sum of these energies; the four
Hamilton equations that it prints below it do agree with them.

The double pendulum in Cartesian coordinates: four of them, and two constraints.

The bobs are at `(x1, y1)` and `(x2, y2)`, `y` upwards, the pivot at the origin:

    x1^2 + y1^2 - l1^2 = 0,      (x2 - x1)^2 + (y2 - y1)^2 - l2^2 = 0.

Mass and forces are as simple as they can be; all the coupling is in the constraints. The motion is
that of `DoublePendulum`.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, angle, length, nonnegative, positive


class DoublePendulum(AbstractMechanism):
    """Two bobs, no damping."""

    coordinates = (angle("theta1"), angle("theta2"))
    parameters = (
        positive("m1", 1.0, "kg"),
        positive("m2", 1.0, "kg"),
        positive("l1", 1.0, "m"),
        positive("l2", 1.0, "m"),
        nonnegative("g", 9.81, "m/s^2"),
    )
    conservative = True

    def mass_matrix(self, q, mu):
        """Coupled through the angle between the rods."""
        m1, m2, l1, l2 = mu["m1"], mu["m2"], mu["l1"], mu["l2"]
        coupling = m2 * l1 * l2 * jnp.cos(q[0] - q[1])
        return [[(m1 + m2) * l1**2, coupling], [coupling, m2 * l2**2]]

    def force(self, t, q, v, u, mu):
        """Centrifugal torques and weight."""
        m1, m2, l1, l2, g = mu["m1"], mu["m2"], mu["l1"], mu["l2"], mu["g"]
        coupling = m2 * l1 * l2 * jnp.sin(q[0] - q[1])
        return [
            -coupling * v[1] ** 2 - (m1 + m2) * g * l1 * jnp.sin(q[0]),
            coupling * v[0] ** 2 - m2 * g * l2 * jnp.sin(q[1]),
        ]

    def potential_energy(self, q, mu):
        """The bobs' heights above the pivot, times their weights."""
        upper, lower = mu["l1"] * jnp.cos(q[0]), mu["l2"] * jnp.cos(q[1])
        return -mu["g"] * ((mu["m1"] + mu["m2"]) * upper + mu["m2"] * lower)


class DoublePendulumCartesian(AbstractMechanism):
    """Two bobs on two rods, no damping."""

    coordinates = (length("x1"), length("y1"), length("x2"), length("y2"))
    parameters = DoublePendulum.parameters
    reference = {"y1": -1.0, "y2": -2.0}
    conservative = True

    def mass_matrix(self, q, mu):
        """The bobs' masses."""
        return [mu["m1"], mu["m1"], mu["m2"], mu["m2"]]

    def force(self, t, q, v, u, mu):
        """Weight."""
        return [0.0, -mu["m1"] * mu["g"], 0.0, -mu["m2"] * mu["g"]]

    def constraint(self, t, q, mu):
        """The rods' lengths."""
        x1, y1, x2, y2 = q
        return [
            x1**2 + y1**2 - mu["l1"] ** 2,
            (x2 - x1) ** 2 + (y2 - y1) ** 2 - mu["l2"] ** 2,
        ]

    def potential_energy(self, q, mu):
        """The bobs' heights above the pivot, times their weights."""
        return mu["g"] * (mu["m1"] * q[1] + mu["m2"] * q[3])
