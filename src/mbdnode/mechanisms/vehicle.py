"""A four-wheel vehicle of four coordinates, driven and steered: FNODE's reduced vehicle.

`(x, y)` is the middle of the rear axle, `theta` the heading, `steer` the angle of the front wheels.
No wheel slips sideways, so with the wheelbase `l`

    -x' sin(theta) + y' cos(theta) = 0,
    -x' sin(theta + steer) + y' cos(theta + steer) + l theta' cos(steer) = 0,

of which follows `theta' = v tan(steer)/l` with the speed `v = x' cos(theta) + y' sin(theta)`. The
motor turns at `w = v/(gamma R)` and gives, with the throttle `alpha` from 0 to 1, the torque

    T = alpha tau0 (1 - w/omega0) - c1 w - c0,

of which the gear leaves `gamma T` at the wheels. What resists is the inertia `I` of the wheels, as
a mass `I/R^2` at the road:

    v' = gamma T R/I.

The front wheels follow the steering `beta`, from -1 to 1, as a critically damped servo does:

    steer'' = s^2 (delta beta - steer) - 2 s steer'.

FNODE (arXiv 2509.00183) has front wheels that obey at once, the limit of a large `s`.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, Input, angle, length, nonnegative, positive


class Vehicle(AbstractMechanism):
    """Wheels that roll and do not slip, behind a motor and under a steering servo."""

    coordinates = (length("x"), length("y"), angle("theta"), angle("steer"))
    inputs = (Input("alpha", ""), Input("beta", ""))
    parameters = (
        positive("l", 2.8, "m", "wheelbase"),
        positive("R", 0.335, "m", "radius of the wheels"),
        positive("I", 1.1, "kg m^2", "inertia of the wheels"),
        nonnegative("tau0", 300.0, "N m", "torque of the motor at rest and full throttle"),
        positive("omega0", 1350.0, "rad/s", "speed at which the motor gives no torque"),
        nonnegative("c0", 0.02, "N m", "constant drag of the motor"),
        nonnegative("c1", 0.035, "N m s", "drag of the motor by its speed"),
        nonnegative("delta", 0.675, "rad", "angle of the front wheels at full steering"),
        positive("gamma", 0.2, meaning="speed of the wheels over that of the motor"),
        positive("s", 10.0, "rad/s", "natural frequency of the steering servo"),
    )

    def mass_matrix(self, q, mu):
        """Of the wheels' turn, and 1 for the servo; turning costs nothing beside it."""
        mass = mu["I"] / mu["R"] ** 2
        return [mass, mass, 0.0, 1.0]

    def force(self, t, q, v, u, mu):
        """The motor's, along the heading, and the servo's."""
        cos, sin = jnp.cos(q[2]), jnp.sin(q[2])
        speed = v[0] * cos + v[1] * sin
        turning = speed / (mu["gamma"] * mu["R"])
        torque = u[0] * mu["tau0"] * (1 - turning / mu["omega0"]) - mu["c1"] * turning - mu["c0"]
        push = mu["gamma"] * torque / mu["R"]
        servo = mu["s"] ** 2 * (mu["delta"] * u[1] - q[3]) - 2 * mu["s"] * v[3]
        return [push * cos, push * sin, 0.0, servo]

    def nonholonomic(self, t, q, mu):
        """No slip across the rear wheels, nor across the front wheels."""
        front = q[2] + q[3]
        return [
            [-jnp.sin(q[2]), jnp.cos(q[2]), 0.0, 0.0],
            [-jnp.sin(front), jnp.cos(front), mu["l"] * jnp.cos(q[3]), 0.0],
        ], [0.0, 0.0]
