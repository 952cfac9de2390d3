"""The value of every loss, written out in NumPy."""

import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import slider_crank_state

from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE, Network
from mbdnode.training import TrainingConfig, fit
from mbdnode.training.algorithms import StepObjective
from mbdnode.trajectory import Dataset


def found_loss(model, run, multipliers=(), **changes):
    """The loss of the second window."""
    config = TrainingConfig(**changes)
    model, objective = StepObjective.prepare(model, Dataset(run), config)
    window = jax.tree.map(lambda x: x[1], objective.examples)
    return float(objective.loss(model, window, jnp.asarray(multipliers, float)))


def network(model, x):
    layers = model.network
    for weight, bias in zip(layers.weights[:-1], layers.biases[:-1], strict=True):
        x = np.tanh(np.asarray(weight) @ x + np.asarray(bias))
    return np.asarray(layers.weights[-1]) @ x + np.asarray(layers.biases[-1])


def rates(model, y, u):
    half = len(y) // 2
    return np.concatenate([y[half:], network(model, np.concatenate([y, u]))])


def rows(run):
    return np.concatenate([run.q, run.v], axis=1), np.asarray(run.u)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize(
    ("integrator", "stage"), [("backward-euler", 1), ("implicit-midpoint", 0.5)]
)
def test_implicit_step_uses_the_known_next_state(integrator, stage, window, swing, pendulum_model):
    y, u = rows(swing)
    state, errors = y[window], []
    for row in range(window, 2 * window):
        inside = state + stage * (y[row + 1] - state)
        state = state + 0.04 * rates(pendulum_model, inside, u[row])
        errors.append((state - y[row + 1]) ** 2)
    found = found_loss(pendulum_model, swing, integrator=integrator, window=window)
    assert found == pytest.approx(np.mean(errors), rel=1e-12)


def test_explicit_step_starts_from_its_own_prediction(swing, pendulum_model):
    y, u = rows(swing)
    state, errors = y[3], []
    for row in range(3, 6):
        half = state + 0.02 * rates(pendulum_model, state, u[row])
        state = state + 0.04 * rates(pendulum_model, half, u[row])
        errors.append((state - y[row + 1]) ** 2)
    found = found_loss(pendulum_model, swing, integrator="mp2", window=3)
    assert found == pytest.approx(np.mean(errors), rel=1e-12)


def test_parameters_of_the_run_are_those_of_the_loss(swing):
    model = MBDNODE.for_system(SinglePendulum(), width=4, use_parameters=("L",))
    y, u = rows(swing)
    data, config = Dataset(swing, {"L": 2.5}), TrainingConfig(integrator="fe1")
    model, objective = StepObjective.prepare(model, data, config)
    window = jax.tree.map(lambda x: x[0], objective.examples)
    found = objective.loss(model, window, jnp.zeros(0))
    step = np.array([y[0, 1], network(model, np.array([*y[0], *u[0], 2.5]))[0]])
    assert float(found) == pytest.approx(np.mean((y[0] + 0.04 * step - y[1]) ** 2), rel=1e-12)


def crank_step(model, run):
    """Crank angle and rate one Euler step after row 1."""
    y, u = rows(run)
    minimal = y[1, [2, 11]]
    return minimal + 0.01 * rates(model, minimal, u[1]), y[2]


def test_minimal_loss_compares_the_independent_coordinate(crank):
    model = MBDNODE.for_system(SliderCrank(), width=4)
    predicted, truth = crank_step(model, crank)
    expected = np.mean((predicted - truth[[2, 11]]) ** 2)
    found = found_loss(model, crank, integrator="fe1", loss="minimal")
    assert found == pytest.approx(expected, rel=1e-10)


def test_full_loss_compares_the_completed_state(crank):
    model = MBDNODE.for_system(SliderCrank(), width=4)
    predicted, truth = crank_step(model, crank)
    expected = np.mean((slider_crank_state(predicted[None])[0] - truth) ** 2)
    found = found_loss(model, crank, integrator="fe1", loss="full")
    # Newton's method leaves 1e-16 beside errors of 1e-3, squared.
    assert found == pytest.approx(expected, rel=1e-10)


def crank_residual(q, v):
    """The eight joint equations and their rates, by hand."""
    x1, y1, a, x2, y2, b, x3, y3, c = q
    dx1, dy1, da, dx2, dy2, db, dx3, dy3, dc = v
    position = [
        x1 - np.cos(a),
        y1 - np.sin(a),
        x1 + np.cos(a) - x2 + 2 * np.cos(b),
        y1 + np.sin(a) - y2 + 2 * np.sin(b),
        x2 + 2 * np.cos(b) - x3,
        y2 + 2 * np.sin(b) - y3,
        y3,
        c,
    ]
    velocity = [
        dx1 + np.sin(a) * da,
        dy1 - np.cos(a) * da,
        dx1 - np.sin(a) * da - dx2 - 2 * np.sin(b) * db,
        dy1 + np.cos(a) * da - dy2 + 2 * np.cos(b) * db,
        dx2 - 2 * np.sin(b) * db - dx3,
        dy2 + 2 * np.cos(b) * db - dy3,
        dy3,
        dc,
    ]
    return np.array(position + velocity)


@pytest.mark.parametrize("constraints", ["none", "penalty", "augmented"])
def test_soft_loss_adds_the_constraints_of_the_predicted_state(constraints, crank):
    model = MBDNODE.for_system(SliderCrank(), width=4, constraints=constraints)
    y, u = rows(crank)
    predicted = y[1] + 0.01 * rates(model, y[1], u[1])
    residual = crank_residual(predicted[:9], predicted[9:])
    assert np.max(np.abs(residual)) > 1e-3
    multipliers = np.linspace(-1, 1, 16)
    expected = np.mean((predicted - y[2]) ** 2)
    if constraints != "none":
        expected += 7.0 * np.mean(residual**2)
    if constraints == "augmented":
        expected += np.mean(multipliers * residual)
    given = multipliers if constraints == "augmented" else ()
    found = found_loss(model, crank, given, integrator="fe1", penalty=7.0)
    assert found == pytest.approx(expected, rel=1e-11)


def test_refined_penalty_counts_as_in_the_loss(crank):
    model = MBDNODE.for_system(SliderCrank(), width=4, constraints="penalty")
    y, u = rows(crank)
    predicted = y[1] + 0.01 * rates(model, y[1], u[1])
    residual = crank_residual(predicted[:9], predicted[9:])
    config = TrainingConfig(
        integrator="fe1", penalty=7.0, refinement=1, epochs=0, precision="float64"
    )
    model, objective = StepObjective.prepare(model, Dataset(crank), config)
    found = objective.errors(model, jax.tree.map(lambda x: x[1], objective.examples))
    expected = np.mean((predicted - y[2])[9:] ** 2) + 7.0 * np.mean(residual**2)
    assert jnp.sum(found**2) / 9 == pytest.approx(expected, rel=1e-11)


def test_from_fit_to_the_network_it_is_five_files(swing, pendulum_model, monkeypatch):
    """Besides the integrator, which calls back what it is given."""
    stacks, plain = [], Network.__call__

    def noted(self, x):
        stacks.append([frame.filename for frame in traceback.extract_stack()])
        return plain(self, x)

    jax.clear_caches()  # A program that is there already calls nothing.
    monkeypatch.setattr(Network, "__call__", noted)
    fit(pendulum_model, swing, TrainingConfig(integrator="fe1", epochs=1))
    ours = [path.partition("/mbdnode/")[2] for path in stacks[0] if "/mbdnode/" in path]
    passed = [path for path in dict.fromkeys(ours) if path.startswith(("training", "models"))]
    expected = [f"training/{name}.py" for name in ("fit", "train", "algorithms")]
    assert passed == [
        *expected,
        "models/mbdnode.py",
        "models/network_structures.py",
    ]  # And then the network's own.
