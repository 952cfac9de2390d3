"""A mass on a spring: the simplest conservative system.

`m x'' = -k x`, so with `w = sqrt(k/m)` the motion is `x = x0 cos(w t) + v0/w sin(w t)`. The
Hamiltonian `p^2/(2m) + k x^2/2` is separable.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, length, positive


class SingleMassSpring(AbstractMechanism):
    """One mass, one spring, no damping."""

    coordinates = (length("x"),)
    parameters = (positive("m", 10.0, "kg"), positive("k", 50.0, "N/m"))
    separable = True
    conservative = True

    def mass_matrix(self, q, mu):
        """The mass."""
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        """The spring's."""
        return -mu["k"] * q

    def potential_energy(self, q, mu):
        """The spring's."""
        return 0.5 * mu["k"] * q[0] ** 2

    def solution(self, elapsed, q, v, mu):
        """Harmonic motion."""
        w = jnp.sqrt(mu["k"] / mu["m"])
        c, s = jnp.cos(w * elapsed), jnp.sin(w * elapsed)
        return q * c + v / w * s, v * c - q * w * s
