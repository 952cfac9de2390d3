"""The double pendulum in Cartesian coordinates: four of them, and two constraints.

The bobs are at `(x1, y1)` and `(x2, y2)`, `y` upwards, the pivot at the origin:

    x1^2 + y1^2 - l1^2 = 0,      (x2 - x1)^2 + (y2 - y1)^2 - l2^2 = 0.

Mass and forces are as simple as they can be; all the coupling is in the constraints. The motion is
that of `DoublePendulum`.
"""

from mbdnode.mechanisms.double_pendulum import DoublePendulum
from mbdnode.multibody import AbstractMechanism, length


class DoublePendulumCartesian(AbstractMechanism):
    """Two bobs on two rods, no damping."""

    coordinates = (length("x1"), length("y1"), length("x2"), length("y2"))
    parameters = DoublePendulum.parameters
    reference = {"y1": -1.0, "y2": -2.0}
    conservative = True

    def mass_matrix(self, q, mu):
        """The bobs' masses."""
        return [mu["m1"], mu["m1"], mu["m2"], mu["m2"]]

    def force(self, t, q, v, u, mu):
        """Weight."""
        return [0.0, -mu["m1"] * mu["g"], 0.0, -mu["m2"] * mu["g"]]

    def constraint(self, t, q, mu):
        """The rods' lengths."""
        x1, y1, x2, y2 = q
        return [
            x1**2 + y1**2 - mu["l1"] ** 2,
            (x2 - x1) ** 2 + (y2 - y1) ** 2 - mu["l2"] ** 2,
        ]

    def potential_energy(self, q, mu):
        """The bobs' heights above the pivot, times their weights."""
        return mu["g"] * (mu["m1"] * q[1] + mu["m2"] * q[3])
