"""`check_integrator` passes what is right, and catches what is wrong."""

import dataclasses
from typing import ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from mbdnode.integrators import (
    INTEGRATORS,
    AbstractIntegrator,
    Adaptive,
    Composition,
    ImplicitOneStage,
    RungeKutta4,
)
from mbdnode.integrators.base import add
from mbdnode.testing import check_integrator


# Implicit methods, and those that choose their own step, are the largest programs.
def _is_large(integrator):
    return isinstance(integrator, Adaptive | ImplicitOneStage)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * _is_large(INTEGRATORS[name]))
        for name in INTEGRATORS
    ],
)
def test_registered_integrator_keeps_the_contract(name):
    check_integrator(INTEGRATORS[name])


class Broken(AbstractIntegrator):
    """RK4 with one slip, chosen by name."""

    slip: str = eqx.field(static=True)
    order: int = eqx.field(static=True, default=4, kw_only=True)
    symplectic: bool = eqx.field(static=True, default=False, kw_only=True)

    def step(self, rate, t, dt, y):
        late = dt if self.slip == "stage time" else dt / 2
        k1 = rate(t, y)
        k2 = rate(t + dt / 2, add(y, dt / 2, k1))
        if self.slip == "old velocity":
            # The positions of the later stages move with the first stage's velocity.
            k3 = rate(t + dt / 2, (y[0] + dt / 2 * k1[0], y[1] + dt / 2 * k2[1]))
            k4 = rate(t + dt, (y[0] + dt * k1[0], y[1] + dt * k3[1]))
        else:
            k3 = rate(t + late, add(y, dt / 2, k2))
            k4 = rate(t + dt, add(y, dt, k3))
        weight = 2.001 if self.slip == "weight" else 2.0
        mean = jax.tree.map(lambda a, b, c, d: (a + 2 * b + weight * c + d) / 6, k1, k2, k3, k4)
        y = add(y, dt, mean)
        if self.slip == "moves at rest":
            y = jax.tree.map(lambda leaf, k: leaf + jnp.where(jnp.all(k == 0), 1e-9, 0.0), y, k1)
        if self.slip == "needs a freedom":
            y = (y[0] + 0 * y[0][0], y[1])
        if self.slip == "gradient":
            y = jax.lax.stop_gradient(y)
        if self.slip == "one size":
            y = (y[0], jnp.resize(y[1], y[0].shape))
        return y, jnp.array(self.slip != "reports failure")


@pytest.mark.parametrize(
    ("integrator", "message"),
    [
        (Broken("weight"), r"order 4, but converges with order 0\.0"),
        (Broken("stage time"), r"order 4, but converges with order 1\.0"),
        (Broken("old velocity"), "order 4, but converges with order"),
        (Broken("none", order=5), r"order 5, but converges with order 4\.0"),
        (Composition((1.0,), 4), r"order 4, but converges with order 2\.0"),
        (Composition((0.9, -0.8, 0.9), 4), r"order 4, but converges with order 2\.0"),
        (Adaptive(diffrax.Heun(), 3, 1e-6, 1e-6), r"order 3, but converges with order 2\.0"),
        (Broken("none", symplectic=True), r"Omega.*symplectic = False"),
        (ImplicitOneStage(1.0, 1, symplectic=True), r"Omega.*symplectic = False"),
        (Broken("moves at rest"), "field of zeros"),
        (Broken("reports failure"), "reports failure"),
        (Broken("gradient"), r"gradient 0\.0 by jax\.grad"),
        (Broken("one size"), "two positions and one velocity"),
    ],
)
def test_broken_integrator_is_caught(integrator, message):
    with pytest.raises(AssertionError, match=message):
        check_integrator(integrator)


def test_integrator_that_needs_a_freedom_is_caught():
    with pytest.raises((AssertionError, IndexError, TypeError, ValueError)):
        check_integrator(Broken("needs a freedom"))


def test_unbroken_twin_of_the_broken_ones_passes():
    check_integrator(Broken("none"))


class Uncoupled(Composition):
    """A leapfrog that does not say that it needs a separable system."""

    needs_separable: ClassVar[bool] = False


def test_composition_that_claims_every_system_is_caught():
    with pytest.raises(AssertionError, match="converges with order 1"):
        check_integrator(Uncoupled((1.0,), 2))


def test_integrators_compare_by_value():
    assert RungeKutta4() == RungeKutta4()
    assert dataclasses.replace(INTEGRATORS["ys4"]) == INTEGRATORS["ys4"]
