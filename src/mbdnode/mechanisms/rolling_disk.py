"""A thin disk that rolls on a level plane without slipping, and may lean and turn.

`(x, y)` is its center seen from above, `heading` the direction in which it rolls, `lean` its
inclination from upright, `roll` its turn about its own axis. With `k` upwards and

    e = (cos(heading), sin(heading), 0),     f = k x e,
    m = cos(lean) k - sin(lean) f            from the contact to the center,
    n = cos(lean) f + sin(lean) k            the axis of the disk,

its angular velocity is `lean' e + heading' cos(lean) m + w n`, `w = roll' + heading' sin(lean)`.
The point that touches the plane stands still, so the center moves at

    v = R w e - R lean' n.

Its horizontal components are the constraints; the vertical one is the rate of `R cos(lean)`. With
the moments of inertia `A = m R^2/4` across and `C = m R^2/2` along the axis,

    2 T = m (x'^2 + y'^2) + (A + m R^2 sin(lean)^2) lean'^2 + A cos(lean)^2 heading'^2 + C w^2,
    V = m g R cos(lean).

A disk runs in a circle at a steady lean `a` and turning rate `W = heading'` if

    A W^2 sin(a) cos(a) - (C + m R^2) w W cos(a) = m g R sin(a)

(Neimark and Fufaev, Dynamics of Nonholonomic Systems, 1972).
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, angle, length, nonnegative, positive


class RollingDisk(AbstractMechanism):
    """A disk on a plane: five coordinates, three of whose velocities are free."""

    coordinates = (length("x"), length("y"), angle("heading"), angle("lean"), angle("roll"))
    parameters = (
        positive("m", 1.0, "kg"),
        positive("R", 0.5, "m"),
        nonnegative("g", 9.81, "m/s^2"),
    )
    conservative = True

    def mass_matrix(self, q, mu):
        """Turning and rolling are coupled by the lean."""
        m, s, c = mu["m"], jnp.sin(q[3]), jnp.cos(q[3])
        mr2 = m * mu["R"] ** 2
        return [
            [m, 0.0, 0.0, 0.0, 0.0],
            [0.0, m, 0.0, 0.0, 0.0],
            [0.0, 0.0, mr2 * (c**2 / 4 + s**2 / 2), 0.0, mr2 * s / 2],
            [0.0, 0.0, 0.0, mr2 * (1 / 4 + s**2), 0.0],
            [0.0, 0.0, mr2 * s / 2, 0.0, mr2 / 2],
        ]

    def force(self, t, q, v, u, mu):
        """Weight, and what is quadratic in the velocities."""
        mr2, s, c = mu["m"] * mu["R"] ** 2, jnp.sin(q[3]), jnp.cos(q[3])
        turning, leaning, rolling = v[2], v[3], v[4]
        w = rolling + turning * s
        toppling = -s * c * leaning**2 - s * c * turning**2 / 4 + c * w * turning / 2
        return [
            0.0,
            0.0,
            -mr2 * c * leaning * (turning * s / 2 + rolling / 2),
            mr2 * toppling + mu["m"] * mu["g"] * mu["R"] * s,
            -mr2 * c * leaning * turning / 2,
        ]

    def nonholonomic(self, t, q, mu):
        """The center moves as the disk rolls."""
        radius, cos, sin = mu["R"], jnp.cos(q[2]), jnp.sin(q[2])
        s, c = jnp.sin(q[3]), jnp.cos(q[3])
        return [
            [1.0, 0.0, -radius * s * cos, -radius * c * sin, -radius * cos],
            [0.0, 1.0, -radius * s * sin, radius * c * cos, -radius * sin],
        ], [0.0, 0.0]

    def potential_energy(self, q, mu):
        """The height of the center, times the weight."""
        return mu["m"] * mu["g"] * mu["R"] * jnp.cos(q[3])
