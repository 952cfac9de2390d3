"""Explicit Runge-Kutta methods with a fixed step: FE1, MP2, RK4."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.integrators.base import AbstractIntegrator, Tableau, add


class ForwardEuler(AbstractIntegrator):
    """FE1: `y + h f(t, y)`."""

    order: ClassVar[int] = 1
    tableau: ClassVar[Tableau] = Tableau(np.zeros((1, 1)), np.ones(1), np.zeros(1))

    def step(self, rate, t, dt, y):
        """One evaluation."""
        return add(y, dt, rate(t, y)), jnp.array(True)


class Midpoint(AbstractIntegrator):
    """MP2: the slope at a half step taken with the slope at the start."""

    order: ClassVar[int] = 2
    tableau: ClassVar[Tableau] = Tableau(
        np.array([[0.0, 0.0], [0.5, 0.0]]), np.array([0.0, 1.0]), np.array([0.0, 0.5])
    )

    def step(self, rate, t, dt, y):
        """Two evaluations."""
        half = add(y, dt / 2, rate(t, y))
        return add(y, dt, rate(t + dt / 2, half)), jnp.array(True)


class RungeKutta4(AbstractIntegrator):
    """RK4, the classical one."""

    order: ClassVar[int] = 4
    tableau: ClassVar[Tableau] = Tableau(
        np.diag([0.5, 0.5, 1.0], -1), np.array([1, 2, 2, 1]) / 6, np.array([0.0, 0.5, 0.5, 1.0])
    )

    def step(self, rate, t, dt, y):
        """Four evaluations."""
        k1 = rate(t, y)
        k2 = rate(t + dt / 2, add(y, dt / 2, k1))
        k3 = rate(t + dt / 2, add(y, dt / 2, k2))
        k4 = rate(t + dt, add(y, dt, k3))
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        return add(y, dt, mean), jnp.array(True)
