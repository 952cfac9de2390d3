"""Hybrids: a law or a mechanism, and a network for what it misses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Oscillator, Pendulum, RubbingPendulum

from mbdnode.control import linearize
from mbdnode.mechanisms import CartPole, SinglePendulum
from mbdnode.models import MBDNODE, Library, load, save
from mbdnode.multibody import (
    AbstractMechanism,
    angle,
    choose_partition,
    resolve_parameters,
    tangent_at,
)
from mbdnode.multibody.kinematics import vector
from mbdnode.recipes import TrainingConfig
from mbdnode.simulation import simulate
from mbdnode.testing import check_model
from mbdnode.training import fit
from mbdnode.trajectory import Dataset

TIMES = np.arange(151) * 0.02
NAMES = ("theta", "theta_dot")
T = jnp.zeros(())
CONFIG = TrainingConfig(
    integrator="mp2",
    epochs=30,
    batch_size=64,
    shuffle=True,
    learning_rate=3e-3,
    scaled_loss=True,
    refinement=15,
    precision="float64",
)


class SmoothPendulum(AbstractMechanism):
    """The same without friction."""

    coordinates = (angle("theta"),)

    def mass_matrix(self, q, mu):
        return [1.0]

    def force(self, t, q, v, u, mu):
        return -9.81 * jnp.sin(q) - 0.1 * v


def law_of(system, gravity, viscous):
    """`gravity sin(theta) + viscous theta_dot`, among `(1, v, v^2)` times `(1, cos, sin)`."""
    law = Library.for_system(system, degree=1)
    weights = np.zeros((1, 9))
    weights[0, 2], weights[0, 3] = gravity, viscous
    return eqx.tree_at(lambda m: m.network.weights, law, jnp.asarray(weights))


def fitted_law(system, runs):
    """The best of such laws, by least squares on central differences."""
    z, s = (np.concatenate([np.asarray(run[n])[1:-1] for run in runs]) for n in NAMES)
    a = np.concatenate([(np.asarray(r.v)[2:, 0] - np.asarray(r.v)[:-2, 0]) / 0.04 for r in runs])
    found = np.linalg.lstsq(np.stack([np.sin(z), s], axis=1), a, rcond=None)[0]
    return law_of(system, *found)


def error(model, truth):
    start = {"theta": float(truth.q[0, 0]), "theta_dot": float(truth.v[0, 0])}
    found = simulate(model, TIMES, start, integrator="mp2")
    return float(np.mean((np.asarray(found.q) - np.asarray(truth.q)) ** 2))


@pytest.mark.slow
def test_hybrid_beats_its_law_and_a_network_where_the_law_misses_a_friction():
    pendulum = RubbingPendulum()
    starts = ({"theta": 1.2}, {"theta": -0.6, "theta_dot": 2.5})
    runs = [simulate(pendulum, TIMES, start, integrator="mp2") for start in starts]
    held_out = simulate(pendulum, TIMES, {"theta": 0.9, "theta_dot": -1.0}, integrator="mp2")
    law = fitted_law(pendulum, runs)
    settings = {"width": 16, "angle_features": True, "scaling": True}
    network = fit(MBDNODE.for_system(pendulum, **settings), Dataset(runs), CONFIG).model
    hybrid = MBDNODE.for_system(pendulum, correction_of=law, **settings)
    assert error(hybrid, held_out) == error(law, held_out)
    hybrid = fit(hybrid, Dataset(runs), CONFIG).model
    errors = [error(model, held_out) for model in (law, network, hybrid)]
    assert errors[2] < 1e-2 * errors[0]
    assert errors[2] < 0.5 * errors[1]


@pytest.mark.slow
def test_correction_stays_at_nothing_where_the_law_suffices():
    pendulum = SmoothPendulum()
    runs = [simulate(pendulum, TIMES, {"theta": 1.2}, integrator="mp2")]
    # A law that is off by as little as a good regression.
    law = law_of(pendulum, -9.81 * (1 + 1e-8), -0.1)
    hybrid = fit(MBDNODE.for_system(pendulum, correction_of=law, width=16), Dataset(runs), CONFIG)
    mu = resolve_parameters(pendulum)
    corrections = jax.vmap(
        lambda q, v: hybrid.model.learned_acceleration(T, q, v, jnp.zeros(0), mu)
    )(runs[0].q, runs[0].v)
    accelerations = np.diff(np.asarray(runs[0].v), axis=0) / 0.02
    assert np.max(np.abs(corrections)) < 1e-6 * np.std(accelerations)


def test_training_begins_at_the_law_to_the_bit():
    system = SinglePendulum()
    law = Library.for_system(system, degree=2)
    weights = np.random.default_rng(0).normal(size=law.network.weights.shape)
    law = eqx.tree_at(lambda m: m.network.weights, law, jnp.asarray(weights))
    hybrid = MBDNODE.for_system(system, correction_of=law, width=8, seed=3)
    mu = resolve_parameters(system)
    z, s, u = jnp.array([0.4]), jnp.array([-1.3]), jnp.array([2.0])
    expected = law.minimal_rates(T, z, s, u, mu)
    found = hybrid.minimal_rates(T, z, s, u, mu)
    assert np.array_equal(found[1], expected[1])
    assert np.any(np.asarray(hybrid.network.weights[0]) != 0)


class RubbingRod(Pendulum):
    """The pendulum in Cartesian coordinates, in a thick fluid."""

    def force(self, t, q, v, u, mu):
        return vector(super().force(t, q, v, u, mu)) - 0.5 * v


# It swings over sixty degrees, so that the coordinate that is integrated is exchanged on the way.
SWING = {"x": 1.3}
SHORT = np.arange(61) * 0.02


@pytest.mark.slow
def test_untrained_hybrid_of_a_constrained_mechanism_moves_like_it_to_the_bit():
    model = MBDNODE.for_system(Pendulum(), correction_of=Pendulum(), width=6)
    assert model.independent == ("x",)
    # A mechanism would choose another coordinate to begin with.
    expected = simulate(Pendulum(), SHORT, SWING, integrator="mp2", independent=("x",))
    run = simulate(model, SHORT, SWING, integrator="mp2")
    assert np.array_equal(run.q, expected.q)
    assert np.array_equal(run.v, expected.v)


@pytest.mark.slow
def test_hybrid_of_a_constrained_mechanism_learns_what_that_misses():
    truth = simulate(RubbingRod(), SHORT, {"x": 0.8}, integrator="mp2")
    model = MBDNODE.for_system(
        Pendulum(), correction_of="mechanism", structure="mechanical", width=6
    )
    assert model.settings.damping
    few = TrainingConfig(
        integrator="mp2",
        epochs=2,
        batch_size=60,
        scaled_loss=True,
        refinement=12,
        precision="float64",
    )
    found = fit(model, Dataset(truth), few).model
    held_out = simulate(RubbingRod(), SHORT, {"x": 0.7, "x_dot": 0.3}, integrator="mp2")
    plain, corrected = (
        simulate(m, SHORT, {"x": 0.7, "x_dot": 0.3}, integrator="mp2") for m in (Pendulum(), found)
    )
    missed = [np.max(np.abs(run["x"] - held_out["x"])) for run in (plain, corrected)]
    assert missed[1] < 0.02 * missed[0]
    assert np.max(corrected.position_residual) < 1e-14


def test_correction_is_the_same_whatever_coordinate_is_integrated():
    model = MBDNODE.for_system(Pendulum(), correction_of="mechanism", width=6)
    model = eqx.tree_at(lambda m: m.network.biases[-1], model, jnp.array([0.7]))
    x, y = 1.2, -0.9  # On a rod of 1.5 m.
    q, v = jnp.array([x, y]), jnp.array([y, -x]) * 0.3
    mu = resolve_parameters(model)
    found = []
    for system in (Pendulum(), model):
        for name in ("x", "y"):
            split = choose_partition(Pendulum(), T, q, mu, (name,)).velocity
            tangent = tangent_at(Pendulum(), split, T, q, mu)
            own = system.independent_acceleration(T, q, v, jnp.zeros(0), mu, tangent)
            found.append(float(own[0]))
    # Along the rod x x'' + y y'' does not change, so 0.7 of x'' takes -0.7 x/y of y''.
    assert found[2] - found[0] == pytest.approx(0.7, rel=1e-12)
    assert found[3] - found[1] == pytest.approx(-0.7 * x / y, rel=1e-12)


def with_forces(model, springs, resistances):
    """Joint forces that are affine: of each coordinate an offset and a slope."""
    values = np.array([*springs, *resistances])
    return eqx.tree_at(
        lambda m: (m.network.biases[-1], m.network.beside),
        model,
        (jnp.asarray(values[:, :1]), jnp.asarray(values[:, 1:, None])),
    )


JOINTS = {"structure": "joints", "affine": True, "width": 4}


def test_forces_in_the_joints_are_accelerations_by_the_mass_of_the_mechanism():
    model = MBDNODE.for_system(CartPole(), correction_of="mechanism", **JOINTS)
    model = with_forces(model, [(0.2, -3.0), (0.0, 0.5)], [(0.0, -0.7), (0.1, -0.4)])
    z, s, u = jnp.array([0.4, -0.9]), jnp.array([1.3, 0.2]), jnp.array([2.5])
    mu = resolve_parameters(model)
    torque = 0.2 - 3.0 * 0.4 - 0.7 * 1.3
    push = 0.5 * -0.9 + 0.1 - 0.4 * 0.2
    # A pole of 1 kg and 0.5 m on a cart of 1 kg.
    mass = np.array([[0.25, 0.5 * np.cos(0.4)], [0.5 * np.cos(0.4), 2.0]])
    expected = np.linalg.solve(mass, [torque, push])
    found = model.learned_acceleration(T, z, s, u, mu)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    known = MBDNODE.for_system(CartPole(), correction_of="mechanism", width=4)
    whole, plain = (m.minimal_rates(T, z, s, u, mu)[1] for m in (model, known))
    np.testing.assert_allclose(whole - plain, expected, rtol=1e-12)


def test_force_in_a_joint_moves_all_that_the_constraints_tie_to_it():
    model = MBDNODE.for_system(Pendulum(), correction_of="mechanism", **JOINTS)
    model = with_forces(model, [(0.7, 0.0)], [(0.0, 0.0)])
    x, y = 1.2, -0.9  # On a rod of 1.5 m, with 2 kg.
    q, v = jnp.array([x, y]), jnp.array([y, -x]) * 0.3
    mu = resolve_parameters(model)
    split = choose_partition(Pendulum(), T, q, mu, ("x",)).velocity
    tangent = tangent_at(Pendulum(), split, T, q, mu)
    plain, pushed = (
        float(m.independent_acceleration(T, q, v, jnp.zeros(0), mu, tangent)[0])
        for m in (Pendulum(), model)
    )
    # As y' = -(x/y) x', the mass that x moves is 2 (1 + x^2/y^2).
    assert pushed - plain == pytest.approx(0.7 / (2 * (1 + (x / y) ** 2)), rel=1e-12)


def test_functions_of_joints_read_their_own_coordinate_and_nothing_else():
    model = MBDNODE.for_system(
        CartPole(), correction_of="mechanism", angle_features=True, use_parameters=("m",), **JOINTS
    )
    assert model.network.reads == ((0, 1, 5), (2, 2, 5), (3, 3, 5), (4, 4, 5))
    # theta as sine and cosine, x, their rates, m.
    mu = resolve_parameters(model)
    place = jnp.array([0.4, -0.9]), jnp.array([1.3, 0.2])
    found = model.features(T, *place, jnp.ones(1), mu)
    expected = [np.sin(0.4), np.cos(0.4), -0.9, 1.3, 0.2, 1.0]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_joint_forces_keep_the_contract_and_come_back_from_their_file(tmp_path):
    model = MBDNODE.for_system(CartPole(), correction_of="mechanism", **JOINTS)
    check_model(model)
    model = with_forces(model, [(0.2, -3.0), (0.0, 0.5)], [(0.0, -0.7), (0.1, -0.4)])
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.settings == model.settings
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(again.network), jax.tree.leaves(model.network), strict=True)
    )


@pytest.mark.slow
def test_joint_forces_go_on_where_a_free_correction_does_not():
    """A cart-pole with friction, from one motion; the other starts elsewhere."""

    class Rubbing(CartPole):
        def force(self, t, q, v, u, mu):
            return vector(super().force(t, q, v, u, mu)) - 0.3 * jnp.tanh(2 * v)

    def runs(system):
        starts = ({"theta": 2.5, "x": 1.0}, {"theta": 3.6, "x": 0.0, "x_dot": 0.8})
        return [simulate(system, TIMES, start, integrator="mp2") for start in starts]

    seen, held_out = runs(Rubbing())
    errors = []
    for settings in ({"width": 12}, {**JOINTS, "width": 6}):
        model = MBDNODE.for_system(CartPole(), correction_of="mechanism", **settings)
        found = fit(model, Dataset(seen), CONFIG).model
        errors.append(float(np.mean((runs(found)[1].q - held_out.q) ** 2)))
    assert errors[1] < 0.1 * errors[0]


def test_hybrid_keeps_the_contract_and_its_law_comes_with_its_file(tmp_path):
    system = SinglePendulum()
    law = eqx.tree_at(
        lambda m: m.network.weights,
        Library.for_system(system, degree=1),
        jnp.linspace(-1.0, 1.0, 12)[None],
    )
    model = MBDNODE.for_system(system, correction_of=law, width=6)
    check_model(model)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.known.law.network.weights, law.network.weights)
    assert np.all(np.isfinite(linearize(again, [0.3, 0.0]).A))


def test_hybrid_of_a_mechanism_with_constraints_keeps_the_contract():
    check_model(MBDNODE.for_system(Pendulum(), correction_of=Pendulum(), width=6))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"correction_of": "law"}, "correction_of is 'law'.*a law, such as"),
        (
            {"correction_of": CartPole()},
            "CartPole of a CartPole, but the system is another Oscillator",
        ),
        ({"correction_of": "mechanism", "order": "first"}, "order is 'first'"),
        ({"correction_of": "mechanism", "forces": "added"}, "forces is 'added'"),
        ({"correction_of": "mechanism", "structure": "lagrangian"}, "structure is 'lagrangian'"),
        ({"correction_of": "mechanism", "constraints": "none"}, "constraints='hard'"),
        ({"correction_of": "mechanism", "correction_weight": -1.0}, "correction_weight is -1"),
        ({"structure": "joints"}, "no mass is known"),
        (
            {"correction_of": Library.for_system(Oscillator(), degree=1), "structure": "joints"},
            "no mass is known",
        ),
    ],
)
def test_what_cannot_be_corrected_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MBDNODE.for_system(Oscillator(), width=6, **settings)


def test_a_network_is_no_law():
    with pytest.raises(ValueError, match="it must be a law"):
        MBDNODE.for_system(Oscillator(), correction_of=MBDNODE.for_system(Oscillator(), width=6))
