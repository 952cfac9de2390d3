"""A planar four-bar linkage in joint angles: crank, coupler and rocker on a fixed ground link.

The crank turns about the origin, the rocker about `(l_ground, 0)`; every angle is that of its link
against the ground, and the linkage closes:

    l_crank e(crank) + l_coupler e(coupler) = (l_ground, 0) + l_rocker e(rocker),   e = (cos, sin).

Each link has its mass center in the middle, and an inertia of its own about it. The coupler's
center is at `l_crank e(crank) + l_coupler e(coupler)/2`, which couples the two angles through
`h = m_coupler l_crank l_coupler / 2`:

    M = [ I1 + m1 l1^2/4 + m2 l1^2    h cos(crank - coupler)   0              ]
        [ h cos(crank - coupler)      I2 + m2 l2^2/4           0              ]
        [ 0                           0                        I3 + m3 l3^2/4 ],

with centrifugal torques `-h sin(crank - coupler) coupler'^2` on the crank and
`+h sin(crank - coupler) crank'^2` on the coupler. Gravity acts along negative `y`, the torque `T`
on the crank.

The default is a crank-rocker (shortest plus longest link less than the other two): the crank turns
round, while the rocker swings between two dead points, where it is no independent coordinate. With
opposite links equal the linkage is a parallelogram; when it lies flat, the constraints lose rank
and a second branch crosses.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, angle, nonnegative, positive


class FourBar(AbstractMechanism):
    """Crank, coupler and rocker, with gravity and a torque on the crank."""

    coordinates = (angle("crank"), angle("coupler"), angle("rocker"))
    inputs = (Input("T", "N m"),)
    parameters = (
        positive("l_ground", 1.0, "m"),
        positive("l_crank", 0.4, "m"),
        positive("l_coupler", 0.9, "m"),
        positive("l_rocker", 0.8, "m"),
        positive("m_crank", 0.4, "kg"),
        positive("m_coupler", 0.9, "kg"),
        positive("m_rocker", 0.8, "kg"),
        nonnegative("I_crank", 0.4 * 0.4**2 / 12, "kg m^2", "about the mass center"),
        nonnegative("I_coupler", 0.9 * 0.9**2 / 12, "kg m^2", "about the mass center"),
        nonnegative("I_rocker", 0.8 * 0.8**2 / 12, "kg m^2", "about the mass center"),
        nonnegative("g", 9.81, "m/s^2"),
    )
    reference = {"crank": 1.0, "coupler": 0.54, "rocker": 1.59}
    conservative = True

    def mass_matrix(self, q, mu):
        """Coupled through the angle between crank and coupler."""
        about_end = lambda k: mu[f"I_{k}"] + mu[f"m_{k}"] * mu[f"l_{k}"] ** 2 / 4  # noqa: E731
        carried = mu["m_coupler"] * mu["l_crank"] ** 2
        coupling = _coupling(mu) * jnp.cos(q[0] - q[1])
        return [
            [about_end("crank") + carried, coupling, 0.0],
            [coupling, about_end("coupler"), 0.0],
            [0.0, 0.0, about_end("rocker")],
        ]

    def force(self, t, q, v, u, mu):
        """Centrifugal torques, weight and the drive."""
        coupling = _coupling(mu) * jnp.sin(q[0] - q[1])
        levers = jnp.stack(_levers(mu)) * jnp.cos(q)
        centrifugal = jnp.stack([-coupling * v[1] ** 2, coupling * v[0] ** 2, 0 * coupling])
        return (centrifugal - mu["g"] * levers).at[0].add(u[0])

    def constraint(self, t, q, mu):
        """The loop closes."""
        crank, coupler, rocker = mu["l_crank"], mu["l_coupler"], mu["l_rocker"]
        c, s = jnp.cos(q), jnp.sin(q)
        return [
            crank * c[0] + coupler * c[1] - rocker * c[2] - mu["l_ground"],
            crank * s[0] + coupler * s[1] - rocker * s[2],
        ]

    def potential_energy(self, q, mu):
        """The links' heights above the ground, times their weights."""
        return mu["g"] * jnp.sum(jnp.stack(_levers(mu)) * jnp.sin(q))


def _coupling(mu):
    return mu["m_coupler"] * mu["l_crank"] * mu["l_coupler"] / 2


def _levers(mu):
    """Mass times lever of what each angle lifts."""
    return [
        (mu["m_crank"] / 2 + mu["m_coupler"]) * mu["l_crank"],
        mu["m_coupler"] * mu["l_coupler"] / 2,
        mu["m_rocker"] * mu["l_rocker"] / 2,
    ]
