"""Three masses in a row, from heavy to light, each tied to the one before by spring and damper.

As the paper prints it,

    m1 x1'' = -k1 x1        - d1 (v1 - v2) + k2 (x2 - x1) + d2 (v2 - v1)
    m2 x2'' = -k2 (x2 - x1) - d2 (v2 - v1) + k3 (x3 - x2) + d3 (v3 - v2)
    m3 x3'' = -k3 (x3 - x2) - d3 (v3 - v2).

The term `-d1 (v1 - v2)` is a slip: the first damper is drawn between the wall and mass 1, where it
would give `-d1 v1`. As printed it pushes mass 1 and nothing pushes back. The paper's figures belong
to the printed equation, so that is the default; `physical_wall_damper = 1` gives the drawn one.

The system is linear, so its motion is a matrix exponential.
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl

from mbdnode.multibody import AbstractMechanism, Parameter, length, nonnegative, positive


class TripleMassSpringDamper(AbstractMechanism):
    """Three masses, three springs, three dampers."""

    coordinates = (length("x1"), length("x2"), length("x3"))
    parameters = (
        positive("m1", 100.0, "kg"),
        positive("m2", 10.0, "kg"),
        positive("m3", 1.0, "kg"),
        nonnegative("k1", 50.0, "N/m", "spring between the wall and mass 1"),
        nonnegative("k2", 50.0, "N/m", "spring between masses 1 and 2"),
        nonnegative("k3", 50.0, "N/m", "spring between masses 2 and 3"),
        nonnegative("d1", 2.0, "N s/m", "damper on mass 1"),
        nonnegative("d2", 2.0, "N s/m", "damper between masses 1 and 2"),
        nonnegative("d3", 2.0, "N s/m", "damper between masses 2 and 3"),
        Parameter(
            "physical_wall_damper",
            0.0,
            at_least=0.0,
            at_most=1.0,
            meaning="0: d1 acts as printed, on v1 - v2; 1: it is tied to the wall",
        ),
    )

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        return [mu["m1"], mu["m2"], mu["m3"]]

    def force(self, t, q, v, u, mu):
        """Springs and dampers."""
        x1, x2, x3 = q
        v1, v2, v3 = v
        first = -mu["k1"] * x1 - mu["d1"] * (v1 - (1 - mu["physical_wall_damper"]) * v2)
        second = mu["k2"] * (x2 - x1) + mu["d2"] * (v2 - v1)
        third = mu["k3"] * (x3 - x2) + mu["d3"] * (v3 - v2)
        return [first + second, third - second, -third]

    def potential_energy(self, q, mu):
        """The springs'."""
        x1, x2, x3 = q
        stretch = mu["k1"] * x1**2 + mu["k2"] * (x2 - x1) ** 2 + mu["k3"] * (x3 - x2) ** 2
        return 0.5 * stretch

    def solution(self, elapsed, q, v, mu):
        """`exp(A t)` applied to the start."""
        mass = jnp.stack(self.mass_matrix(q, mu))[:, None]
        k1, k2, k3 = mu["k1"], mu["k2"], mu["k3"]
        d1, d2, d3 = mu["d1"], mu["d2"], mu["d3"]
        none, as_printed = jnp.zeros(()), d1 * (1 - mu["physical_wall_damper"])
        stiffness = [[k1 + k2, -k2, none], [-k2, k2 + k3, -k3], [none, -k3, k3]]
        damping = [[d1 + d2, -d2 - as_printed, none], [-d2, d2 + d3, -d3], [none, -d3, d3]]
        rows = lambda matrix: jnp.stack([jnp.stack(row) for row in matrix])  # noqa: E731
        matrix = jnp.block(
            [[jnp.zeros((3, 3)), jnp.eye(3)], [-rows(stiffness) / mass, -rows(damping) / mass]]
        )
        moved = jsl.expm(matrix * elapsed) @ jnp.concatenate([q, v])
        return moved[:3], moved[3:]
