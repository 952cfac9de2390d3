"""The slider-crank of the paper: three bodies, nine coordinates, eight constraints, one freedom.

Each body has its center of mass `(x, y)` and its angle `theta`. With half lengths `a` of the crank
and `b` of the rod, and `c = cos`, `s = sin`,

    ground-crank   x1 = a c1,               y1 = a s1
    crank-rod      x1 + a c1 = x2 - b c2,   y1 + a s1 = y2 - b s2
    rod-slider     x2 + b c2 = x3,          y2 + b s2 = y3
    slider-ground  y3 = 0,                  theta3 = 0.

Torque `T` turns the crank, force `F` pushes the slider along `x`; there is no gravity. Since
`sin(theta2) = -(a/b) sin(theta1)` and the rod is the longer one, there is no dead center, and
`theta1` is a good independent coordinate everywhere.

The slider-crank with its crank driven at a prescribed angle: constraints that depend on time.

To the eight joint equations of `SliderCrank` comes a ninth,

    theta1 - theta0 - omega t = 0,

which leaves no freedom: positions, velocities and accelerations follow from the time alone. What is
left to ask is the torque that the drive must give. It is minus the last multiplier,
`-reactions(...).multipliers[:, -1]`, because the constraints' force is `-C^T lambda`.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, Parameter, angle, length, positive


class SliderCrank(AbstractMechanism):
    """Crank, rod and slider, with a force on the slider and a torque on the crank."""

    coordinates = (
        length("x1"),
        length("y1"),
        angle("theta1"),
        length("x2"),
        length("y2"),
        angle("theta2"),
        length("x3"),
        length("y3"),
        angle("theta3"),
    )
    inputs = (Input("F", "N"), Input("T", "N m"))
    parameters = (
        positive("m1", 3.0, "kg", "mass of the crank"),
        positive("I1", 4.0, "kg m^2", "inertia of the crank"),
        positive("m2", 6.0, "kg", "mass of the rod"),
        positive("I2", 32.0, "kg m^2", "inertia of the rod"),
        positive("m3", 1.0, "kg", "mass of the slider"),
        positive("I3", 1.0, "kg m^2", "inertia of the slider"),
        positive("l", 2.0, "m", "length of the crank"),
        positive("r", 4.0, "m", "length of the rod"),
    )
    independent = ("theta1",)
    conservative = True

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        names = ("m1", "m1", "I1", "m2", "m2", "I2", "m3", "m3", "I3")
        return [mu[name] for name in names]

    def force(self, t, q, v, u, mu):
        """`T` on `theta1`, `F` on `x3`."""
        slider, crank = u
        return jnp.zeros(9).at[2].set(crank).at[6].set(slider)

    def constraint(self, t, q, mu):
        """The eight joint equations, in the paper's order and signs."""
        x1, y1, theta1, x2, y2, theta2, x3, y3, theta3 = q
        a, b = mu["l"] / 2, mu["r"] / 2
        return [
            x1 - a * jnp.cos(theta1),
            y1 - a * jnp.sin(theta1),
            x1 + a * jnp.cos(theta1) - x2 + b * jnp.cos(theta2),
            y1 + a * jnp.sin(theta1) - y2 + b * jnp.sin(theta2),
            x2 + b * jnp.cos(theta2) - x3,
            y2 + b * jnp.sin(theta2) - y3,
            y3,
            theta3,
        ]

    def potential_energy(self, q, mu):
        """None stored: only the inputs do work."""
        return jnp.zeros(())


_FREE = SliderCrank()


class DrivenCrank(AbstractMechanism):
    """Crank at a prescribed angle, rod and slider, with a force on the slider."""

    coordinates = SliderCrank.coordinates
    inputs = (Input("F", "N"),)
    parameters = (
        *SliderCrank.parameters,
        Parameter("theta0", 0.0, "rad", meaning="angle of the crank at t = 0"),
        Parameter("omega", 1.0, "rad/s", meaning="angular velocity of the crank"),
    )
    reference = SliderCrank.reference

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        return _FREE.mass_matrix(q, mu)

    def force(self, t, q, v, u, mu):
        """`F` on the slider; the drive's torque is a reaction, not a force."""
        return _FREE.force(t, q, v, jnp.append(u, 0.0), mu)

    def constraint(self, t, q, mu):
        """The eight joint equations, then the drive."""
        return [*_FREE.constraint(t, q, mu), q[2] - mu["theta0"] - mu["omega"] * t]

    def potential_energy(self, q, mu):
        """None stored: only the drive and the inputs do work."""
        return _FREE.potential_energy(q, mu)
