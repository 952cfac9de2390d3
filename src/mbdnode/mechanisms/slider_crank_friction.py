"""A slider-crank whose slider rubs in its guide: friction by the force that the guide bears.

Crank, rod and slider as in `SliderCrank`, now with weight, a torque `T` on the crank, a damper
`d` between crank and rod, a spring `k` from the slider to `x0`, and in the guide

    f = c |lambda| sign(x3'),

where `lambda` is the multiplier of `y3 = 0`: the force of the guide on the slider. Friction loads
the rod, and so it changes `lambda`. Both are affine in `f`; of one solve of the paper's first
equation with two right-hand sides,

    lambda = n0 - n1 f s,    s = sign(x3'),    so    f = c |n0| / (1 + c n1 s sign(n0)).

That is the only solution while `c |n1| < 1`. Beyond it (the paradox of Painleve) there is none or
more than one; `f` is not a number then, and the simulation ends as diverged.

At rest the guide holds what is below the friction of either direction.
"""

import jax.numpy as jnp

from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import (
    AbstractMechanism,
    Input,
    Parameter,
    kkt,
    nonnegative,
    positive,
    small_solve,
)

_FREE = SliderCrank()
_THETA1, _Y1, _Y2, _THETA2, _X3, _Y3 = 2, 1, 4, 5, 6, 7
# Of the constraints, the one that keeps the slider in its guide.
_GUIDE = 6


class SliderCrankFriction(AbstractMechanism):
    """Crank, rod and slider under their weight, with dry friction in the slider's guide."""

    coordinates = SliderCrank.coordinates
    inputs = (Input("T", "N m"),)
    parameters = (
        positive("m1", 1.0, "kg", "mass of the crank"),
        positive("I1", 0.1, "kg m^2", "inertia of the crank"),
        positive("m2", 1.0, "kg", "mass of the rod"),
        positive("I2", 0.1, "kg m^2", "inertia of the rod"),
        positive("m3", 1.0, "kg", "mass of the slider"),
        positive("I3", 0.1, "kg m^2", "inertia of the slider"),
        positive("l", 2.0, "m", "length of the crank"),
        positive("r", 4.0, "m", "length of the rod"),
        nonnegative("g", 9.81, "m/s^2"),
        nonnegative("c", 0.4, meaning="coefficient of friction in the guide"),
        nonnegative("d", 0.05, "N m s", "damper between crank and rod"),
        nonnegative("k", 1.0, "N/m", "spring on the slider"),
        Parameter("x0", 6.5, "m", meaning="where the spring is at rest"),
    )
    independent = SliderCrank.independent

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        return _FREE.mass_matrix(q, mu)

    def force(self, t, q, v, u, mu):
        """Weight, torque, damper and spring; the friction is in `dry_friction`."""
        damper = mu["d"] * (v[_THETA1] - v[_THETA2])
        forces = jnp.zeros(9).at[_Y1].set(-mu["m1"] * mu["g"]).at[_Y2].set(-mu["m2"] * mu["g"])
        forces = forces.at[_Y3].set(-mu["m3"] * mu["g"])
        forces = forces.at[_THETA1].set(u[0] - damper).at[_THETA2].set(damper)
        return forces.at[_X3].set(mu["k"] * (mu["x0"] - q[_X3]))

    def dry_friction(self, t, q, v, u, mu):
        """Along `x3`, up to what the guide bears, which friction itself changes."""
        matrix, right = kkt(self, t, q, v, u, mu)
        along = jnp.zeros_like(right).at[_X3].set(1.0)
        guide = small_solve(matrix, jnp.stack([right, along], axis=1))[9 + _GUIDE]
        borne, gained = guide
        c = mu["c"]
        limits = [
            jnp.where(
                c * jnp.abs(gained) < 1,
                c * jnp.abs(borne) / (1 + c * gained * sign * jnp.sign(borne)),
                jnp.nan,
            )
            for sign in (-1.0, 1.0)
        ]
        return [jnp.zeros(9).at[_X3].set(1.0)], [limits]

    def constraint(self, t, q, mu):
        """The eight joint equations of the slider-crank."""
        return _FREE.constraint(t, q, mu)

    def potential_energy(self, q, mu):
        """Of the weights and of the spring."""
        weights = mu["m1"] * q[_Y1] + mu["m2"] * q[_Y2] + mu["m3"] * q[_Y3]
        return mu["g"] * weights + mu["k"] * (q[_X3] - mu["x0"]) ** 2 / 2
