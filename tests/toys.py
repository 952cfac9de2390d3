"""Small mechanisms with known answers, for the tests of the core."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Input,
    Parameter,
    angle,
    length,
    nonnegative,
    positive,
)

# A rollout is compiled for each system and number of times: one grid for all keeps them few.
TIMES = np.linspace(0.0, 1.0, 41)


class Pendulum(AbstractMechanism):
    """A point mass on a massless rod, in Cartesian coordinates with `y` up: scleronomic."""

    coordinates = (length("x"), length("y"))
    parameters = (positive("m", 2.0, "kg"), positive("L", 1.5, "m"), positive("g", 9.81, "m/s^2"))
    reference: ClassVar = {"y": -1.0}
    conservative = True

    def mass_matrix(self, q, mu):
        return [mu["m"], mu["m"]]

    def force(self, t, q, v, u, mu):
        return [jnp.zeros(()), -mu["m"] * mu["g"]]

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - mu["L"] ** 2]

    def potential_energy(self, q, mu):
        return mu["m"] * mu["g"] * q[1]


class TwiceHeldPendulum(Pendulum):
    """The same pendulum with its rod written down twice, in two ways."""

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - mu["L"] ** 2, jnp.hypot(q[0], q[1]) - mu["L"]]


class TwiceHeldPendulumAllowed(TwiceHeldPendulum):
    """The same, on purpose."""

    allow_redundant = True


class ShakenPendulum(Pendulum):
    """A pendulum whose pivot moves as `0.3 sin(2 t)` along x: rheonomic."""

    def constraint(self, t, q, mu):
        pivot = 0.3 * jnp.sin(2 * t)
        return [(q[0] - pivot) ** 2 + q[1] ** 2 - mu["L"] ** 2]


class TurningBlade(AbstractMechanism):
    """A point in the plane on a blade that turns at 0.7 rad/s and is dragged sideways at `0.2 t`.

    The velocity across the blade is prescribed: `-sin(phi) x' + cos(phi) y' = 0.2 t + 0.1 x` with
    `phi = 0.7 t + theta`, and `theta` turns freely: nonholonomic, with `A` and `b` that depend
    on time and place.
    """

    coordinates = (length("x"), length("y"), angle("theta"))
    parameters = (positive("m", 2.0, "kg"), positive("J", 0.5, "kg m^2"))
    inputs = (Input("torque", "N m"),)

    def mass_matrix(self, q, mu):
        return [mu["m"], mu["m"], mu["J"]]

    def force(self, t, q, v, u, mu):
        return [jnp.ones(()), jnp.zeros(()), u[0]]

    def nonholonomic(self, t, q, mu):
        phi = 0.7 * t + q[2]
        return [[-jnp.sin(phi), jnp.cos(phi), 0.0]], [0.2 * t + 0.1 * q[0]]


class Elbow(AbstractMechanism):
    """Two massless links of length `L` with masses at elbow and tip, and the tip as coordinates."""

    coordinates = (angle("shoulder"), angle("elbow"), length("x"), length("y"))
    parameters = (positive("m1", 1.0, "kg"), positive("m2", 2.0, "kg"), positive("L", 1.0, "m"))
    independent = ("x", "y")
    reference: ClassVar = {"elbow": 1.0}

    def mass_matrix(self, q, mu):
        return [mu["m1"] * mu["L"] ** 2, jnp.zeros(()), mu["m2"], mu["m2"]]

    def force(self, t, q, v, u, mu):
        return jnp.zeros(4)

    def constraint(self, t, q, mu):
        shoulder, elbow, x, y = q
        return [
            mu["L"] * (jnp.cos(shoulder) + jnp.cos(shoulder + elbow)) - x,
            mu["L"] * (jnp.sin(shoulder) + jnp.sin(shoulder + elbow)) - y,
        ]


class Parallelogram(AbstractMechanism):
    """A four-bar linkage with equal cranks (length 1) and equal ground and coupler (length 2).

    At `crank = 0` and `pi` all bars are in line and the constraints lose rank: a change point.
    """

    coordinates = (angle("crank"), angle("coupler"), angle("rocker"))
    parameters = (positive("J", 1.0, "kg m^2"),)
    reference: ClassVar = {"crank": 1.0, "rocker": 1.0}

    def mass_matrix(self, q, mu):
        return [mu["J"], mu["J"], mu["J"]]

    def force(self, t, q, v, u, mu):
        return jnp.zeros(3)

    def constraint(self, t, q, mu):
        crank, coupler, rocker = q
        return [
            jnp.cos(crank) + 2 * jnp.cos(coupler) - jnp.cos(rocker) - 2.0,
            jnp.sin(crank) + 2 * jnp.sin(coupler) - jnp.sin(rocker),
        ]


class EvenCrank(AbstractSystem):
    """The same linkage as a model has it: its crank turns evenly, and the rest follows."""

    coordinates = Parallelogram.coordinates
    parameters = Parallelogram.parameters
    independent = ("crank",)
    closed_on_minimal = True

    def constraint(self, t, q, mu):
        return Parallelogram().constraint(t, q, mu)

    def minimal_rates(self, t, z, s, u, mu):
        return s, jnp.zeros_like(s)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        return jnp.zeros(1)


class FoldedChain(AbstractMechanism):
    """Four links of length 1 in a ring whose ends are `gap` apart, with 1 kg at the inner hinges.

    The angles are absolute. Closed to a rhombus, with `gap = 0`, it folds flat: there a branch on
    which opposite links turn alike crosses one on which neighbors do. With `gap = 2` the links in
    line are the apex of a cone.
    """

    coordinates = (angle("a"), angle("b"), angle("c"), angle("d"))
    parameters = (nonnegative("gap", 0.0, "m"),)
    conservative = True

    def _hinges(self, q):
        return jnp.cumsum(jnp.stack([jnp.cos(q), jnp.sin(q)], axis=1), axis=0)

    def mass_matrix(self, q, mu):
        slope = jax.jacfwd(lambda x: self._hinges(x)[:3].ravel())(q)
        return slope.T @ slope

    def force(self, t, q, v, u, mu):
        return self.quadratic_velocity_force(q, v, mu)

    def constraint(self, t, q, mu):
        x, y = self._hinges(q)[3]
        return [x - mu["gap"], y]

    def potential_energy(self, q, mu):
        return jnp.zeros(())


class RubbingPendulum(AbstractMechanism):
    """A pendulum of 1 m whose bearing rubs more when it turns slowly (Stribeck)."""

    coordinates = (angle("theta"),)

    def mass_matrix(self, q, mu):
        return [1.0]

    def force(self, t, q, v, u, mu):
        friction = (0.3 + 0.6 * jnp.exp(-((v / 0.8) ** 2))) * jnp.tanh(v / 0.2)
        return -9.81 * jnp.sin(q) - friction


class Oscillator(AbstractMechanism):
    """`m x'' = -k x - c x' + u`; counts how often its force is traced."""

    coordinates = (length("x"),)
    inputs = (Input("u"),)
    parameters = (
        positive("m", 1.0, "kg"),
        nonnegative("k", 4.0, "N/m"),
        nonnegative("c", 0.0, "N s/m"),
        Parameter("bias", 0.0, "N", at_most=5.0),
    )
    traces: ClassVar[list[int]] = [0]

    def mass_matrix(self, q, mu):
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        self.traces[0] += 1
        return u - mu["k"] * q - mu["c"] * v + mu["bias"]

    def potential_energy(self, q, mu):
        return 0.5 * mu["k"] * q[0] ** 2


class BlowUp(AbstractMechanism):
    """`y'' = y^3` beside a mass at rest: `y = sqrt(2)/(1 - t)` leaves every bound at t = 1."""

    coordinates = (length("x"), length("y"))

    def mass_matrix(self, q, mu):
        return [1.0, 1.0]

    def force(self, t, q, v, u, mu):
        return [jnp.zeros(()), q[1] ** 3]


class LinearRows(AbstractMechanism):
    """Four angles tied by `matrix @ q = 0`: a constraint set of any rank and size."""

    matrix: Array
    coordinates = (angle("a"), angle("b"), angle("c"), angle("d"))

    def mass_matrix(self, q, mu):
        return [1.0, 1.0, 1.0, 1.0]

    def force(self, t, q, v, u, mu):
        return jnp.arange(1.0, 5.0)

    def constraint(self, t, q, mu):
        return self.matrix @ q


class GaugedPendulum(Pendulum):
    """The pendulum with a massless gauge `z = 1e-7 x^2`: curvatures of 1.5 m and 5,000 km."""

    coordinates = (length("x"), length("y"), length("z"))

    def mass_matrix(self, q, mu):
        return [mu["m"], mu["m"], 0.0]

    def force(self, t, q, v, u, mu):
        return [0.0, -mu["m"] * mu["g"], 0.0]

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - mu["L"] ** 2, q[2] - 1e-7 * q[0] ** 2]


class BottomPendulum(Pendulum):
    """The pendulum with its origin at the lowest point, where all its lengths are zero."""

    reference: ClassVar = {}

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + (q[1] - mu["L"]) ** 2 - mu["L"] ** 2]


def bars(count: int, before: dict[int, int] | None = None, **changes):
    """Bars of one meter, each pinned to the end of the last, or of the one that is named."""
    before = before or {}
    bodies, joints = {}, {}
    ends = {0: np.zeros(2)}
    for n in range(1, count + 1):
        first = before.get(n, n - 1)
        angle = 0.4 * np.sin(2.0 * n)
        along = np.array([np.cos(angle), np.sin(angle)])
        ends[n] = ends[first] + along
        bodies[f"bar{n}"] = {
            "center": list(map(float, ends[first] + along / 2)),
            "angle": float(angle),
            "mass": 1.0 + 0.1 * n,
            "inertia": changes.get("inertia", 0.2),
        }
        joints[f"pin{n}"] = {
            "type": "revolute",
            "bodies": ["ground" if first == 0 else f"bar{first}", f"bar{n}"],
            "points": [[0.0, 0.0] if first == 0 else [0.5, 0.0], [-0.5, 0.0]],
        }
    return {"name": "bars", "gravity": [0.0, -9.81], "bodies": bodies, "joints": joints}, ends
