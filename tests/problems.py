"""The paper's cases a second time: plain NumPy, minimal coordinates, numbers typed from the text.

Nothing here comes from `mbdnode`. Where there is a choice, the equations are written in another
form than the package uses: Hamilton's equations for the double pendulum, one equation for the crank
angle of the slider-crank. SciPy's DOP853 at rtol 1e-12 integrates them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

Right = Callable[[float, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """One case: `y' = right(t, y)` from `start`; `state` turns rows of `y` into rows `(q, v)`."""

    right: Right
    start: list[float]
    dt_s: float
    steps: int
    state: Callable[[np.ndarray], np.ndarray] = lambda y: y

    def solve(self) -> np.ndarray:
        """Rows `(q, v)` at every step."""
        t = np.arange(self.steps + 1) * self.dt_s
        return self.state(solve(self.right, self.start, t))


def solve(right: Right, start, t: np.ndarray) -> np.ndarray:
    """Rows of `y` at the times `t`, by DOP853 at rtol 1e-12."""
    end = (t[0], t[-1])
    solution = solve_ivp(right, end, start, "DOP853", t_eval=t, rtol=1e-12, atol=1e-13)
    assert solution.success
    return solution.y.T


def mass_spring(t, y):
    x, v = y
    return np.array([v, -50 / 10 * x])


def mass_spring_damper(t, y):
    x, v = y
    return np.array([v, -50 / 10 * x - 2 / 10 * v])


def triple_mass_spring_damper(t, y):
    """As printed, the wall's damper between masses 1 and 2."""
    x1, x2, x3, v1, v2, v3 = y
    m1, m2, m3, k, d = 100, 10, 1, 50, 2
    a1 = -k / m1 * x1 - d / m1 * (v1 - v2) + k / m1 * (x2 - x1) + d / m1 * (v2 - v1)
    a2 = -k / m2 * (x2 - x1) - d / m2 * (v2 - v1) + k / m2 * (x3 - x2) + d / m2 * (v3 - v2)
    a3 = -k / m3 * (x3 - x2) - d / m3 * (v3 - v2)
    return np.array([v1, v2, v3, a1, a2, a3])


def pendulum(t, y):
    theta, omega = y
    return np.array([omega, -9.81 * np.sin(theta) - 0.1 * omega])


def double_pendulum_hamilton(g: float) -> Right:
    """The paper's four Hamilton equations, with unit masses and lengths."""

    def right(t, y):
        q1, q2, p1, p2 = y
        c, s = np.cos(q1 - q2), np.sin(q1 - q2)
        det = 1 + s**2
        h1 = p1 * p2 * s / det
        h2 = (p1**2 + 2 * p2**2 - 2 * p1 * p2 * c) / (2 * det**2)
        swing = h2 * np.sin(2 * (q1 - q2))
        return np.array(
            [
                (p1 - p2 * c) / det,
                (2 * p2 - p1 * c) / det,
                -2 * g * np.sin(q1) - h1 + swing,
                -g * np.sin(q2) + h1 - swing,
            ]
        )

    return right


def _velocities_of_momenta(y):
    q1, q2, p1, p2 = y.T
    c, s = np.cos(q1 - q2), np.sin(q1 - q2)
    return np.stack([q1, q2, (p1 - p2 * c) / (1 + s**2), (2 * p2 - p1 * c) / (1 + s**2)], axis=1)


def cart_pole(t, y, force=0.0):
    """The two equations solved for the accelerations by hand, with unit masses."""
    theta, _, omega, v = y
    length, g, c, s = 0.5, 9.81, np.cos(theta), np.sin(theta)
    cart = (force + length * omega**2 * s - g * s * c) / (1 + s**2)
    pole = (g * s - c * cart) / length
    return np.array([omega, v, pole, cart])


def crank_kinematics(theta):
    """Rod angle, rod center and slider position of the slider-crank, with two derivatives by theta.

    Returns `(value, first, second)` for each of phi, x2, y2, x3.
    """
    crank, rod = 2.0, 4.0
    c, s = np.cos(theta), np.sin(theta)
    phi = -np.arcsin(crank / rod * s)
    cp, sp = np.cos(phi), np.sin(phi)
    phi1 = -crank * c / (rod * cp)
    phi2 = (crank * s + rod * sp * phi1**2) / (rod * cp)

    def reach(part):
        """`crank cos(theta) + part cos(phi)` and its derivatives."""
        return (
            crank * c + part * cp,
            -crank * s - part * sp * phi1,
            -crank * c - part * (cp * phi1**2 + sp * phi2),
        )

    height = (crank * s + rod / 2 * sp, crank / 2 * c, -crank / 2 * s)
    return (phi, phi1, phi2), reach(rod / 2), height, reach(rod)


def crank_inertia(theta):
    """The inertia `J` that the crank angle feels, and `dJ/dtheta / 2`."""
    phi, x2, y2, x3 = crank_kinematics(theta)
    parts = ((6.0, x2), (6.0, y2), (32.0, phi), (1.0, x3))
    inertia = 3.0 * 1.0**2 + 4.0 + sum(m * f[1] ** 2 for m, f in parts)
    return inertia, sum(m * f[1] * f[2] for m, f in parts)


def slider_crank(force: float, torque: float) -> Right:
    """`J theta'' + J'/2 theta'^2 = T + F dx3/dtheta`."""

    def right(t, y):
        theta, omega = y
        inertia, half_slope = crank_inertia(theta)
        push = crank_kinematics(theta)[3][1] * force
        return np.array([omega, (torque + push - half_slope * omega**2) / inertia])

    return right


def slider_crank_state(y):
    """All nine coordinates and velocities from rows `(theta1, theta1_dot)`."""
    theta, omega = y.T
    phi, x2, y2, x3 = crank_kinematics(theta)
    zero = np.zeros_like(theta)
    q = [np.cos(theta), np.sin(theta), theta, x2[0], y2[0], phi[0], x3[0], zero, zero]
    slope = [-np.sin(theta), np.cos(theta), zero + 1, x2[1], y2[1], phi[1], x3[1], zero, zero]
    return np.concatenate([np.stack(q, axis=1), np.stack(slope, axis=1) * omega[:, None]], axis=1)


def held(right: Callable[..., Right], inputs, start, dt_s: float) -> np.ndarray:
    """Rows of `y`, one more than rows of inputs, each of which is held over a step."""
    y = [np.array(start, float)]
    for now in inputs:
        y.append(solve(right(*np.atleast_1d(now)), y[-1], np.array([0.0, dt_s]))[-1])
    return np.stack(y)


def solve_pendulum(forces, start, dt_s: float) -> np.ndarray:
    """Rows `(theta, theta_dot)` under forces on the bob."""
    push = lambda force: lambda t, y: pendulum(t, y) + np.array([0.0, force])  # noqa: E731
    return held(push, forces, start, dt_s)


def solve_slider_crank(inputs, start=(1.0, 1.0), dt_s: float = 0.01) -> np.ndarray:
    """Rows of the whole state under rows `(F, T)`."""
    return slider_crank_state(held(slider_crank, inputs, start, dt_s))


PI = np.pi
PROBLEMS = {
    "single-mass-spring": Problem(mass_spring, [1, 0], 0.01, 3000),
    "single-mass-spring-damper": Problem(mass_spring_damper, [1, 0], 0.01, 400),
    "triple-mass-spring-damper": Problem(triple_mass_spring_damper, [1, 2, 3, 0, 0, 0], 0.01, 400),
    "single-pendulum": Problem(pendulum, [0, PI], 0.01, 400),
    "double-pendulum": Problem(
        double_pendulum_hamilton(9.81),
        [3 * PI / 7, 3 * PI / 4, 0, 0],
        0.01,
        400,
        _velocities_of_momenta,
    ),
    "double-pendulum:released-low": Problem(
        double_pendulum_hamilton(9.8),
        [PI / 2, PI / 4, 0, 0],
        4 / 399,
        399,
        _velocities_of_momenta,
    ),
    "cart-pole": Problem(cart_pole, [PI / 6, 1, 0, 0], 0.005, 500),
}
