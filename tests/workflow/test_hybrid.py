"""A network beside a law that does not explain the data, and none where it would not help."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from toys import RubbingPendulum

from mbdnode.identification import Identified, identify
from mbdnode.models import LearnedMechanism, Library
from mbdnode.recipes import TrainingConfig, identification_config
from mbdnode.simulation import simulate
from mbdnode.trajectory import Dataset
from mbdnode.workflow.hybrid import BETTER, is_hybrid, try_hybrid

TIMES = np.arange(151) * 0.02
TRAINING = TrainingConfig(
    integrator="mp2",
    epochs=20,
    batch_size=64,
    shuffle=True,
    learning_rate=3e-3,
    scaled_loss=True,
    refinement=10,
    precision="float64",
)


@pytest.fixture(scope="module")
def found():
    """A pendulum without friction, as if that were all that a search had found."""
    law = Library.for_system(RubbingPendulum(), degree=1)
    weights = np.zeros((1, 9))
    weights[0, 2] = -9.81  # Of (1, v, v^2) times (1, cos, sin).
    law = eqx.tree_at(lambda m: m.network.weights, law, jnp.asarray(weights))
    told = {"explained": False, "validation_nrmse": 0.5}
    return Identified(law, (), "chose one", "completed", 1.0, 2.0, told, law)


@pytest.fixture(scope="module")
def data():
    return Dataset(simulate(RubbingPendulum(), TIMES, {"theta": 1.2}, integrator="mp2"))


@pytest.mark.slow
def test_law_that_misses_a_friction_is_corrected(found, data):
    trial = try_hybrid(found, data, TRAINING, width=8)
    assert trial.hybrid_nrmse * BETTER < trial.law_nrmse
    fit = trial.finish()
    assert is_hybrid(fit.model)
    assert fit.status.startswith("hybrid: law plus network, validation NRMSE")
    assert "the law: chose one" in fit.status
    assert fit.diagnostics["hybrid_validation_nrmse"] < 0.1
    run = data.trajectories[0]
    both = [
        np.asarray(simulate(model, TIMES, {"theta": 1.2}, integrator="mp2").q)
        for model in (found.model, fit.model)
    ]
    missed = [np.max(np.abs(q - np.asarray(run.q))) for q in both]
    assert missed[1] < 0.1 * missed[0]


@pytest.mark.slow
def test_law_with_a_mass_is_corrected_in_its_joints_and_the_friction_comes_out(found, data):
    class Frictionless(RubbingPendulum):
        def force(self, t, q, v, u, mu):
            return -9.81 * jnp.sin(q)

    run = simulate(Frictionless(), TIMES, {"theta": 1.2}, integrator="mp2")
    asked = {"integrator": "mp2", "structure": "lagrangian"}
    config = dataclasses.replace(identification_config("fast"), **asked)
    law = identify(RubbingPendulum(), run, config).model
    assert isinstance(law, LearnedMechanism)
    wrong = dataclasses.replace(found, model=law, before_validation=law)
    longer = dataclasses.replace(TRAINING, refinement=40)
    fit = try_hybrid(wrong, data, longer).finish()
    assert fit.model.settings.structure == "joints"
    assert fit.diagnostics["hybrid_validation_nrmse"] < 0.01
    # At speeds that the motion has, away from where the friction changes its sign. A step of
    # forward Euler is the acceleration.
    v = np.linspace(0.5, 2.5, 9)
    starts = [{"theta": 0.0, "theta_dot": speed} for speed in (0.0, *v)]
    steps = [simulate(fit.model, [0.0, 1.0], start, integrator="fe1") for start in starts]
    at_rest, *moving = (float(step.v[1, 0] - step.v[0, 0]) for step in steps)
    friction = (0.3 + 0.6 * np.exp(-((v / 0.8) ** 2))) * np.tanh(v / 0.2)
    np.testing.assert_allclose(at_rest - np.array(moving), friction, atol=0.03)


def test_network_that_learns_nothing_is_no_better(found, data):
    idle = TrainingConfig(integrator="mp2", epochs=1, batch_size=None, learning_rate=1e-12)
    trial = try_hybrid(found, data, idle, width=8)
    assert trial.hybrid_nrmse * BETTER >= trial.law_nrmse
