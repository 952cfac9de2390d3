"""Gradients of every loss through every integrator, against central differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from mbdnode.integrators import INTEGRATORS, Adaptive
from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE
from mbdnode.training import TrainingConfig
from mbdnode.training.algorithms import StepObjective
from mbdnode.trajectory import Dataset

# Fourth-order differences over 1e-3 of weights of size one leave 1e-12 of the fifth derivative and
# 1e-13 of round-off, each over slopes of a thousandth of the loss at the least.
WIDTH = 1e-3
TOLERANCE = 1e-6


def loss_of(model, run, config, multipliers=None):
    """The loss of the first window as a function of the network's numbers in one vector."""
    model, objective = StepObjective.prepare(model, Dataset(run), config)
    window = jax.tree.map(lambda x: x[0], objective.examples)
    start, unravel = ravel_pytree(model.network)
    multipliers = jnp.zeros(0) if multipliers is None else multipliers

    def loss(numbers):
        changed = eqx.tree_at(lambda m: m.network, model, unravel(numbers))
        return objective.loss(changed, window, multipliers)

    # Each is called a dozen times, so it need not be fast.
    options = {"xla_backend_optimization_level": 0}
    return jax.jit(jax.value_and_grad(loss), compiler_options=options), start


def check_slopes(loss, start, tolerance=TOLERANCE):
    _, slope = loss(start)
    directions = np.random.default_rng(0).normal(size=(3, start.shape[0]))
    for direction in map(jnp.asarray, directions):
        values = [float(loss(start + k * WIDTH * direction)[0]) for k in (-2, -1, 1, 2)]
        expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * WIDTH)
        assert float(slope @ direction) == pytest.approx(expected, rel=tolerance)


def config_for(integrator, window, **changes):
    return TrainingConfig(integrator=integrator, window=window, precision="float64", **changes)


FIXED = [name for name, method in INTEGRATORS.items() if not isinstance(method, Adaptive)]


@pytest.mark.parametrize(("integrator", "window"), [*((name, 3) for name in FIXED), ("rk4", 1)])
def test_slopes_through_fixed_steps(integrator, window, swing):
    separable = INTEGRATORS[integrator].needs_separable
    model = MBDNODE.for_system(SinglePendulum(), width=4, use_velocity=not separable)
    check_slopes(*loss_of(model, swing, config_for(integrator, window)))


# Compiling the derivative of a solver that chooses its own step takes long.
@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["dopri8", "kvaerno5"])
def test_slopes_through_an_adaptive_step(integrator, swing, pendulum_model):
    loss, start = loss_of(pendulum_model, swing, config_for(integrator, 1))
    # The solver's own error, 1e-8 of a step at the most, comes and goes with its step size.
    check_slopes(loss, start, 1e-5 if integrator == "kvaerno5" else TOLERANCE)


def test_every_integrator_is_tried():
    assert set(INTEGRATORS) == {*FIXED, "dopri5", "dopri8", "kvaerno5"}


@pytest.mark.parametrize("window", [1, 5])
def test_slopes_through_the_completion_of_the_state(window, crank):
    model = MBDNODE.for_system(SliderCrank(), width=4)
    check_slopes(*loss_of(model, crank, config_for("rk4", window, loss="full")))


@pytest.mark.parametrize("constraints", ["penalty", "augmented"])
def test_slopes_of_soft_constraints(constraints, crank):
    model = MBDNODE.for_system(SliderCrank(), width=4, constraints=constraints)
    # Eight residuals of position and eight of velocity, at each of five states.
    multipliers = jnp.linspace(-1.0, 1.0, 80) if constraints == "augmented" else None
    config = config_for("rk4", 5, penalty=3.0)
    check_slopes(*loss_of(model, crank, config, multipliers))


@pytest.mark.slow
def test_adjoint_agrees_with_backpropagation(swing, pendulum_model):
    # One force for the whole window: at a jump inside it both solvers lose digits of their own.
    still = eqx.tree_at(lambda run: run.u, swing, jnp.ones_like(swing.u))
    found = [
        loss_of(pendulum_model, still, config_for("dopri5", 5, gradient=gradient))
        for gradient in ("backprop", "adjoint")
    ]
    (value, slope), (other_value, other_slope) = (loss(start) for loss, start in found)
    # Both solve to 1e-9, relative to states of size one, whose error enters the slopes twice.
    assert float(value) == pytest.approx(float(other_value), rel=1e-7)
    np.testing.assert_allclose(slope, other_slope, atol=1e-6 * float(jnp.max(jnp.abs(slope))))
    check_slopes(*found[0])
