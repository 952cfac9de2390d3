"""The slider-crank with its crank driven at a prescribed angle: constraints that depend on time.

To the eight joint equations of `SliderCrank` comes a ninth,

    theta1 - theta0 - omega t = 0,

which leaves no freedom: positions, velocities and accelerations follow from the time alone. What is
left to ask is the torque that the drive must give. It is minus the last multiplier,
`-reactions(...).multipliers[:, -1]`, because the constraints' force is `-C^T lambda`.
"""

import jax.numpy as jnp

from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import AbstractMechanism, Input, Parameter

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
