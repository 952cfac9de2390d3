"""Explicit Runge-Kutta methods with a fixed step: FE1, MP2, RK4."""

from typing import ClassVar

import jax
import jax.numpy as jnp

from mbdnode.integrators.base import AbstractIntegrator, add


class ForwardEuler(AbstractIntegrator):
    """FE1: `y + h f(t, y)`."""

    order: ClassVar[int] = 1

    def step(self, rate, t, dt, y):
        """One evaluation."""
        return add(y, dt, rate(t, y)), jnp.array(True)


class Midpoint(AbstractIntegrator):
    """MP2: the slope at a half step taken with the slope at the start."""

    order: ClassVar[int] = 2

    def step(self, rate, t, dt, y):
        """Two evaluations."""
        half = add(y, dt / 2, rate(t, y))
        return add(y, dt, rate(t + dt / 2, half)), jnp.array(True)


class RungeKutta4(AbstractIntegrator):
    """RK4, the classical one."""

    order: ClassVar[int] = 4

    def step(self, rate, t, dt, y):
        """Four evaluations."""
        k1 = rate(t, y)
        k2 = rate(t + dt / 2, add(y, dt / 2, k1))
        k3 = rate(t + dt / 2, add(y, dt / 2, k2))
        k4 = rate(t + dt, add(y, dt, k3))
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        return add(y, dt, mean), jnp.array(True)
