"""A mechanism of one's own: a ladder that slides down a wall.

The ladder's center is at `(x, y)`, and it leans at the angle `theta` from the floor. Two
constraints keep its upper end on the wall and its lower end on the floor. Gravity does the rest.

A real ladder leaves the wall at the moment when the wall would have to pull. Mechanics says that
this is when its center has fallen to two thirds of its first height, whatever its mass and length;
here the moment is read off the wall's reaction.

    python examples/own_mechanism.py [steps]
"""

import sys

import jax.numpy as jnp
import numpy as np

import mbdnode as mbd
from mbdnode.testing import check_mechanism


class Ladder(mbd.AbstractMechanism):
    """A uniform bar between a wall and a floor, without friction."""

    coordinates = (mbd.length("x"), mbd.length("y"), mbd.angle("theta"))
    parameters = (mbd.positive("m", 12.0, "kg"), mbd.positive("L", 4.0, "m"))
    # Near which configuration to assemble it when only some coordinates are given.
    reference = {"x": 1.0, "y": 1.7, "theta": 1.0}
    conservative = True

    def mass_matrix(self, q, mu):
        """Constant and diagonal, so the diagonal is enough."""
        inertia = mu["m"] * mu["L"] ** 2 / 12
        return [mu["m"], mu["m"], inertia]

    def force(self, t, q, v, u, mu):
        """Weight."""
        return [0.0, -9.81 * mu["m"], 0.0]

    def constraint(self, t, q, mu):
        """The upper end is on the wall `x = 0`, the lower end on the floor `y = 0`."""
        x, y, theta = q
        half = mu["L"] / 2
        return [x - half * jnp.cos(theta), y - half * jnp.sin(theta)]

    def potential_energy(self, q, mu):
        """The center's height, times the weight."""
        return 9.81 * mu["m"] * q[1]


def main(steps: int = 1_000) -> float:
    """Let it slide; return the height at which the wall lets go, as a part of the first height."""
    ladder = Ladder()
    check_mechanism(ladder)

    t = np.linspace(0.0, 1.0, steps + 1)
    fall = mbd.simulate(ladder, t, {"theta": 1.2}, integrator="rk4")
    wall = mbd.reactions(ladder, fall).forces[:, 0]
    leaves = int(np.argmax(np.asarray(wall) < 0))
    height = float(fall["y"][leaves] / fall["y"][0])

    energy = mbd.energy(ladder, fall)
    print(fall.status)
    print(f"largest residual   {float(jnp.max(fall.position_residual)):.1e} m")
    print(f"energy drift       {float(jnp.max(jnp.abs(energy - energy[0]))):.1e} J")
    print(f"leaves the wall at t = {t[leaves]:.3f} s, at {height:.4f} of its first height")
    return height


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
