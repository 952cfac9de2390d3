"""The affine start, the loss's units and the refinement, against what is known of each."""

import dataclasses
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

from mbdnode.mechanisms import CartPole, SingleMassSpringDamper, SinglePendulum, SliderCrank
from mbdnode.models import FCNN, MBDNODE, load, save
from mbdnode.training import Checkpoint, TrainingConfig, check_training, fit, refine
from mbdnode.training.algorithms import StepObjective
from mbdnode.training.train import Task, batches, begin, run_epoch
from mbdnode.trajectory import Dataset

CONFIG = TrainingConfig(
    integrator="fe1",
    epochs=2,
    batch_size=4,
    shuffle=True,
    scaled_loss=True,
    refinement=6,
    precision="float64",
)


def motion_like(run, system, dt, states):
    """Another run with these states, at rest as to inputs."""
    q, v = np.split(np.asarray(states), 2, axis=1)
    return dataclasses.replace(
        run,
        t=jnp.asarray(np.arange(len(q)) * dt),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.zeros((len(q), len(system.inputs))),
        position_residual=jnp.zeros(len(q)),
        velocity_residual=jnp.zeros(len(q)),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model)]


@pytest.fixture(scope="module")
def small():
    return MBDNODE.for_system(SinglePendulum(), width=6, affine=True, scaling=True)


@pytest.fixture(scope="module")
def whole(swing):
    """The run that nobody stops."""
    model = MBDNODE.for_system(SinglePendulum(), width=6, affine=True, scaling=True)
    return fit(model, swing, CONFIG)


@pytest.fixture(scope="module")
def linear(swing):
    """A spring and damper by midpoint steps in NumPy, and its matrix."""
    matrix, dt = np.array([[0.0, 1.0], [-5.0, -0.2]]), 0.05
    states = [np.array([1.0, -0.5])]
    for _ in range(30):
        states.append(states[-1] + dt * matrix @ (states[-1] + dt / 2 * matrix @ states[-1]))
    system = SingleMassSpringDamper()
    return system, motion_like(swing, system, dt, states), matrix


@pytest.mark.slow
def test_affine_part_learns_a_linear_law_everywhere(linear):
    system, run, matrix = linear
    model = MBDNODE.for_system(system, width=2, affine=True, scaling=True, divisor=(10.0,))
    found = fit(
        model, run, dataclasses.replace(CONFIG, integrator="mp2", epochs=0, refinement=20)
    ).model
    for z, s in ((0.3, 0.1), (-20.0, 7.0)):
        u = jnp.zeros(len(system.inputs))
        rates = eqx.filter_jit(found.minimal_rates)(
            jnp.zeros(()), jnp.array([z]), jnp.array([s]), u, {}
        )
        assert rates[1][0] == pytest.approx(matrix[1] @ [z, s], rel=1e-6)


@pytest.mark.parametrize("width", [1, 7])
def test_layers_start_at_nothing_and_can_still_learn(swing, width):
    model = MBDNODE.for_system(SinglePendulum(), width=width, affine=True, scaling=True)
    network = StepObjective.prepare(model, Dataset(swing), CONFIG)[0].network
    layers = eqx.tree_at(lambda n: n.beside, network, jnp.zeros_like(network.beside))
    for x in np.random.default_rng(0).normal(size=(5, 3)):
        np.testing.assert_allclose(layers(jnp.asarray(x)), network.biases[-1], atol=1e-14)
    slopes = eqx.filter_grad(lambda n: n(jnp.ones(3))[0])(network)
    assert np.any(np.asarray(slopes.weights[-1]) != 0)
    assert bool(np.any(np.asarray(slopes.weights[-2]) != 0)) == (width > 1)


@pytest.mark.slow
def test_lagrangian_starts_as_uniform_motion(swing):
    """A constant mass and no potential; what damps starts at something that can grow or vanish."""
    settings = {"structure": "lagrangian", "width": 4, "affine": True}
    damped = StepObjective.prepare(
        MBDNODE.for_system(SinglePendulum(), **settings), Dataset(swing), CONFIG
    )[0]
    settings["damping"] = False
    model = StepObjective.prepare(
        MBDNODE.for_system(SinglePendulum(), **settings), Dataset(swing), CONFIG
    )[0]
    given = (jnp.array([0.3]), jnp.array([1.2]), jnp.zeros(1))
    found = eqx.filter_jit(model.minimal_rates)(jnp.zeros(()), *given, {})[1]
    assert abs(float(found[0])) < 1e-12
    slopes = eqx.filter_grad(lambda m: m.minimal_rates(jnp.zeros(()), *given, {})[1][0])(model)
    assert np.any(np.asarray(slopes.network.weights[-1]) != 0)
    slowed = eqx.filter_jit(damped.minimal_rates)(jnp.zeros(()), *given, {})[1]
    assert float(slowed[0]) < 0


def test_affine_part_is_fitted_first_and_what_it_leaves_sets_the_pace(swing, linear):
    system, run, matrix = linear
    model = MBDNODE.for_system(system, width=2, affine=True, scaling=True)
    config = dataclasses.replace(CONFIG, integrator="mp2")
    model, objective = StepObjective.prepare(model, Dataset(run), config)
    network, pace = objective.start(model)
    # Midpoint steps of a linear law are met to round-off, which Adam must not undo.
    assert pace < 1e-8
    found = eqx.tree_at(lambda m: m.network, model, network)
    given = (jnp.array([-20.0]), jnp.array([7.0]), jnp.zeros(len(system.inputs)))
    rates = eqx.filter_jit(found.minimal_rates)(jnp.zeros(()), *given, {})
    assert rates[1][0] == pytest.approx(matrix[1] @ [-20.0, 7.0], rel=1e-9)
    # Kicks that nothing explains leave Adam its rate.
    kicks = np.random.default_rng(3).normal(size=(31, 2))
    shaken = motion_like(swing, system, 0.05, kicks)
    model, objective = StepObjective.prepare(model, Dataset(shaken), config)
    assert objective.start(model)[1] == 1.0


@pytest.mark.slow
def test_adam_moves_weights_in_proportion_to_the_pace(small, swing):
    model, objective = StepObjective.prepare(small, Dataset(swing), CONFIG)
    table = batches(len(objective), CONFIG, 0, 0)[:1]
    moved = []
    for pace in (1.0, 1e-3):
        progress = eqx.tree_at(lambda p: p.pace, begin(model, objective), jnp.asarray(pace))
        first = [np.array(x) for x in jax.tree.leaves(progress.network)]
        task = Task(model, objective, CONFIG)
        last = jax.tree.leaves(run_epoch(task, table, [0.1], progress)[0].network)
        moved.append(np.concatenate([np.ravel(b - a) for a, b in zip(first, last, strict=True)]))
    assert np.max(np.abs(moved[0])) > 0.05
    # Differences of weights of size one, to round-off.
    np.testing.assert_allclose(moved[1], 1e-3 * moved[0], atol=1e-14)


def test_affine_part_is_saved_and_loaded(whole, tmp_path):
    save(whole.model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert bits(again) == bits(whole.model)
    assert np.any(np.asarray(again.network.beside) != 0)


def test_every_coordinate_counts_in_a_scaled_loss(swing):
    """Uniform motion is predicted; the data's accelerations are the errors, each over its spread.

    Cart and pole differ by a factor of 1,000. With spread one after scaling and no mean, the
    velocities' mean squared errors are one; the positions' are found by hand.
    """
    random, dt = np.random.default_rng(3), 0.1
    kicks = random.normal(size=(40, 2)) * [1.0, 1e-3]
    kicks -= kicks.mean(axis=0)
    v = np.cumsum([[0.5, 2e-3], *kicks], axis=0)
    q = random.normal(size=(41, 2))
    run = motion_like(swing, CartPole(), dt, np.hstack([q, v]))
    model = MBDNODE.for_system(CartPole(), width=1)
    still = jax.tree.map(jnp.zeros_like, model.network)
    model = eqx.tree_at(lambda m: m.network, model, still)
    objective = StepObjective.prepare(model, Dataset(run), CONFIG)[1]
    losses = jax.jit(jax.vmap(lambda x: objective.loss(model, x, jnp.zeros(0))))(objective.examples)
    # Every state but the ends begins one window and ends another.
    spread = np.concatenate([v[:-1], v[1:]]).std(axis=0)
    missed = (q[:-1] + dt * v[:-1] - q[1:]) / (dt * spread)
    assert float(jnp.mean(losses)) == pytest.approx((np.mean(missed**2) + 1.0) / 2)
    errors = jax.jit(jax.vmap(lambda x: objective.errors(model, x)))(objective.examples)
    np.testing.assert_allclose(np.mean(np.asarray(errors) ** 2, axis=0), 1.0)


def test_refinement_finds_a_minimum_that_scipy_finds(swing):
    """Euler steps of a network of one unit, written out in NumPy, on data that it cannot fit."""
    shaken = swing.v + 0.05 * jnp.asarray(np.random.default_rng(0).normal(size=(11, 1)))
    run = dataclasses.replace(swing, v=shaken)
    model = MBDNODE.for_system(SinglePendulum(), width=1, hidden_layers=1, scaling=True)
    found = fit(model, run, dataclasses.replace(CONFIG, epochs=0, refinement=200))
    rows = np.hstack([run.q, run.v, run.u])[:-1]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    slopes = np.diff(run.v[:, 0]) / 0.04
    slopes = (slopes - slopes.mean()) / slopes.std()

    def errors(w):
        return w[4] * np.tanh(rows @ w[:3] + w[3]) + w[5] - slopes

    starts = np.random.default_rng(1).normal(size=(20, 6))
    known = [2 / 10 * least_squares(errors, start, method="lm").cost for start in starts]
    losses = [row["loss"] for row in found.history]
    assert np.all(np.diff(losses) <= 0)
    assert np.min(np.abs(losses[-1] / np.array(known) - 1)) < 1e-3


@pytest.fixture(scope="module")
def regularized(swing, small):
    config = dataclasses.replace(CONFIG, refinement=25, regularization=1.0)
    return config, fit(small, swing, config)


@pytest.mark.slow
def test_regularized_refinement_fits_as_well_with_smaller_weights(swing, small, regularized):
    found = regularized[1]
    plain = fit(small, swing, dataclasses.replace(CONFIG, refinement=25))
    norms = [sum(float(jnp.sum(w**2)) for w in one.model.network.weights) for one in (found, plain)]
    assert norms[0] < 0.9 * norms[1]
    end = found.history[-1]["loss"]
    assert end < 1e-2 * plain.history[CONFIG.epochs - 1]["loss"]


def test_regularized_refinement_goes_on_to_the_same_bits(swing, small, regularized, tmp_path):
    config, whole = regularized
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)

    def stop(row, total):
        if row["epoch"] == CONFIG.epochs + 3:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fit(small, swing, config, checkpoint=keep, report=stop)
    again = fit(small, swing, config, checkpoint=dataclasses.replace(keep, resume=True))
    assert bits(again.model) == bits(whole.model)


@pytest.mark.parametrize("affine", [True, False])
def test_what_is_affine_is_not_regularized(affine):
    network = MBDNODE.for_system(SinglePendulum(), width=3, affine=affine).network
    held = refine._penalized(network)
    assert all(bool(np.all(np.asarray(x) == 1)) for x in (*held.weights, *held.biases[:-1]))
    free = (held.biases[-1], *([held.beside] if affine else []))
    assert not any(np.any(np.asarray(x)) for x in free)


def test_regularization_without_a_refinement_is_refused():
    with pytest.raises(ValueError, match=r"regularization is 0\.1.*Set refinement"):
        TrainingConfig(regularization=0.1)
    with pytest.raises(ValueError, match=r"regularization is -1"):
        TrainingConfig(regularization=-1.0)


def test_windows_that_fill_no_block_count_once(swing, small, whole, monkeypatch):
    weights = sum(x.size for x in jax.tree.leaves(eqx.filter(small.network, eqx.is_array)))
    made, plain = [], refine._blocks
    monkeypatch.setattr(refine, "_BLOCK_NUMBERS", 3 * weights)  # Three windows of one error.
    monkeypatch.setattr(refine, "_blocks", lambda *x: made.append(plain(*x)) or made[-1])
    found = fit(small, swing, dataclasses.replace(CONFIG, refinement=1))
    assert len(made[0]) > 1
    assert np.any(made[0] == -1)
    assert found.history[-1]["loss"] == pytest.approx(whole.history[CONFIG.epochs]["loss"])


def test_all_iterations_are_one_compiled_program(swing, monkeypatch):
    traced = []
    plain = refine.iterate
    monkeypatch.setattr(refine, "iterate", lambda *x, **y: traced.append(1) or plain(*x, **y))
    model = MBDNODE.for_system(SinglePendulum(), width=7, scaling=True)
    found = fit(model, swing, dataclasses.replace(CONFIG, refinement=4))
    assert len(found.history) > CONFIG.epochs + 1
    assert len(traced) == 1


def test_network_too_wide_for_the_data_is_refused(swing, small, monkeypatch):
    monkeypatch.setattr(refine, "_MOST_NUMBERS", 100)
    with pytest.raises(ValueError, match=r"weights on 10 errors.*Lower the network's width"):
        fit(small, swing, CONFIG)


def test_ctrl_c_keeps_the_best_weights_so_far(swing, small):
    def press(row, total):
        assert total == CONFIG.epochs + CONFIG.refinement
        if row["epoch"] == CONFIG.epochs:
            signal.raise_signal(signal.SIGINT)

    found = fit(small, swing, CONFIG, report=press)
    assert (found.outcome, len(found.history)) == ("interrupted", CONFIG.epochs + 1)
    assert "interrupted after 1 of 6 refinements" in found.status
    _, objective = StepObjective.prepare(small, Dataset(swing), CONFIG)
    errors = jax.jit(jax.vmap(lambda x: objective.errors(found.model, x)))(objective.examples)
    assert float(jnp.mean(errors**2)) == pytest.approx(found.history[-1]["loss"])


def test_stopped_refinement_goes_on_to_the_same_bits(swing, small, whole, tmp_path):
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)

    def stop(row, total):
        if row["epoch"] == CONFIG.epochs + 1:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fit(small, swing, CONFIG, checkpoint=keep, report=stop)
    seen = []
    again = dataclasses.replace(keep, resume=True)
    for _ in range(2):  # The second time nothing is left to do.
        result = fit(
            small, swing, CONFIG, checkpoint=again, report=lambda row, _: seen.append(row["epoch"])
        )
        assert bits(result.model) == bits(whole.model)
        assert (result.updates, result.status) == (whole.updates, whole.status)
    assert seen == list(range(CONFIG.epochs + 1, len(whole.history)))
    assert whole.updates == CONFIG.epochs * len(batches(10, CONFIG, 0, 0)) + (
        len(whole.history) - CONFIG.epochs
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingConfig(epochs=0), r"epochs is 0; it must be at least 1, or 0 with a ref"),
        (lambda: TrainingConfig(refinement=-1), r"refinement is -1; it must not be negative"),
        (lambda: TrainingConfig(refinement=1), r"precision is 'float32'.*precision='float64'"),
        (
            lambda: check_training(FCNN.for_system(SinglePendulum(), width=2), CONFIG),
            r"does not use it",
        ),
        (
            lambda: check_training(
                MBDNODE.for_system(SliderCrank(), width=2, constraints="augmented"), CONFIG
            ),
            r"raises no multipliers.*constraints='penalty' or 'hard'",
        ),
        (
            lambda: check_training(
                MBDNODE.for_system(SliderCrank(), width=2, constraints="penalty", order="first"),
                CONFIG,
            ),
            r"models of accelerations alone.*order='second'",
        ),
    ],
)
def test_refinement_of_what_has_no_such_errors_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
