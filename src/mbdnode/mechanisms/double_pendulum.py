"""Two point masses on two rods without mass, the classic of chaos.

Both angles are measured from the downward vertical. With `d = theta1 - theta2`,

    T = m1 l1^2 w1^2 / 2 + m2 (l1^2 w1^2 + l2^2 w2^2 + 2 l1 l2 w1 w2 cos(d)) / 2
    V = -(m1 + m2) g l1 cos(theta1) - m2 g l2 cos(theta2),

and Lagrange's equations are

    [ (m1 + m2) l1^2     m2 l1 l2 cos(d) ] [ w1' ]   [ -m2 l1 l2 w2^2 sin(d) ]
    [ m2 l1 l2 cos(d)    m2 l2^2         ] [ w2' ] = [ +m2 l1 l2 w1^2 sin(d) ] - dV/dtheta.

The Hamiltonian that the paper writes in closed form is not the sum of these energies; the four
Hamilton equations that it prints below it do agree with them.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, angle, nonnegative, positive


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
