"""A sleigh on a knife edge, on an inclined plane: a velocity constraint that no position satisfies.

The plane falls along `x` with inclination `alpha`; the blade is under the mass center `(x, y)`, at
the angle `theta` from `x`, and lets the sleigh slide along itself but not across:

    x' sin(theta) - y' cos(theta) = 0.

The constraint force acts through the mass center, so the sleigh turns uniformly, and the speed `s`
along the blade obeys `s' = A cos(theta)` with `A = g sin(alpha)`. With `theta = theta0 + w t`,

    s = s0 + A D,      D = (sin(theta) - sin(theta0))/w,   E = (cos(theta0) - cos(theta))/w,
    x = x0 + s0 D + A D^2/2,
    y = y0 + s0 E + A (2 (w t - sin(w t)) + 2 sin(2 theta0 + w t) (1 - cos(w t)))/(4 w^2).

A spinning sleigh does not slide down the plane: it drifts across it at the mean speed `A/(2 w)`
(Neimark and Fufaev, Dynamics of Nonholonomic Systems, 1972).
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Parameter, angle, length, nonnegative, positive


class KnifeEdgeSleigh(AbstractMechanism):
    """A rigid body on a blade under its mass center."""

    coordinates = (length("x"), length("y"), angle("theta"))
    parameters = (
        positive("m", 1.0, "kg"),
        positive("I", 1.0, "kg m^2", "about the mass center"),
        nonnegative("g", 9.81, "m/s^2"),
        Parameter("alpha", 0.5, "rad", meaning="inclination of the plane"),
    )
    conservative = True

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        return [mu["m"], mu["m"], mu["I"]]

    def force(self, t, q, v, u, mu):
        """The part of the weight that lies in the plane."""
        return [mu["m"] * _downhill(mu), 0.0, 0.0]

    def nonholonomic(self, t, q, mu):
        """No sliding across the blade."""
        return [[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0]], [0.0]

    def potential_energy(self, q, mu):
        """Falls along the plane."""
        return -mu["m"] * _downhill(mu) * q[0]

    def solution(self, elapsed, q, v, mu):
        """The closed form, written so that it holds without spin as well."""
        fall, start, spin = _downhill(mu), q[2], v[2]
        speed = v[0] * jnp.cos(start) + v[1] * jnp.sin(start)
        turned = spin * elapsed
        middle, end = start + turned / 2, start + turned
        chord = elapsed * jnp.sinc(turned / (2 * jnp.pi))
        d, e = chord * jnp.cos(middle), chord * jnp.sin(middle)
        drift = 2 * elapsed**2 * _lag(turned) + chord**2 * jnp.sin(2 * middle)
        position = [q[0] + speed * d + fall * d**2 / 2, q[1] + speed * e + fall * drift / 4, end]
        now = speed + fall * d
        return jnp.stack(position), jnp.stack([now * jnp.cos(end), now * jnp.sin(end), spin])


def _downhill(mu):
    return mu["g"] * jnp.sin(mu["alpha"])


def _lag(z):
    """`(z - sin z)/z^2`, by its series where the difference would cancel."""
    small = jnp.abs(z) < 0.1
    series = z / 6 * (1 - z**2 / 20 * (1 - z**2 / 42 * (1 - z**2 / 72)))
    far = jnp.where(small, 1.0, z)
    return jnp.where(small, series, (far - jnp.sin(far)) / far**2)
