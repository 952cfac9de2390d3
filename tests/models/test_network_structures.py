"""Networks that give the parts of equations of motion, against the equations written otherwise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Oscillator

from mbdnode.control import linearize
from mbdnode.evaluation import energy, energy_drift
from mbdnode.mechanisms import CartPole, DoublePendulum, SingleMassSpring, SliderCrank
from mbdnode.models import LNN, MBDNODE, STRUCTURES, Scales, load, save
from mbdnode.multibody import resolve_parameters
from mbdnode.recipes import TrainingConfig
from mbdnode.simulation import simulate
from mbdnode.testing import check_model
from mbdnode.training import fit
from mbdnode.trajectory import Dataset, State

TIMES = np.arange(101) * 0.01
# Those that give accelerations by themselves; the forces of "joints" are in test_hybrid.
WHOLE = [name for name, kind in STRUCTURES.items() if not kind.gives_forces]
STRUCTURED = [name for name in WHOLE if name != "free"]


def rates(model, z, s, u=(), **parameters):
    mu = resolve_parameters(model, parameters)
    found = model.minimal_rates(jnp.zeros(()), *(jnp.asarray(x, float) for x in (z, s, u)), mu)
    return np.asarray(found[1])


def by_hand(mass, potential):
    """Two links whose mass and potential are the given outputs of a network of raw angles.

    One hidden layer of sines: cos(a - b), cos(a), cos(b), of which the outputs are combinations.
    """
    settings = {"angle_features": False, "scaling": False}
    model = MBDNODE.for_system(
        DoublePendulum(),
        structure="lagrangian",
        width=3,
        hidden_layers=1,
        activation="sin",
        **settings,
    )
    assert model.settings.damping is False  # The mechanism is declared conservative.
    first = jnp.array([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    last = jnp.zeros((8, 3)).at[1, 0].set(mass).at[7].set(jnp.array(potential))
    return eqx.tree_at(
        lambda m: (m.network.weights, m.network.biases),
        model,
        ((first, last), (jnp.full(3, np.pi / 2), jnp.zeros(8))),
    )


def test_lagrangian_with_weights_set_by_hand_has_the_accelerations_of_two_links():
    # L = [[1, 0], [k cos(a - b), 1]], so M = [[1, k c], [k c, 1 + k^2 c^2]]; V = p cos a + r cos b.
    k, p, r = 0.6, -2.0, -0.7
    model = by_hand(k, [0.0, p, r])
    a, b, x, y = 0.4, -0.9, 1.3, 0.2
    c, sine = np.cos(a - b), np.sin(a - b)
    mass = np.array([[1.0, k * c], [k * c, 1 + (k * c) ** 2]])
    # With T = x^2/2 + k c x y + (1 + k^2 c^2) y^2/2 and d = a - b, by pencil:
    #   d/dt dT/dx = x' + k c y' - k s (x - y) y,   dT/da = -k s x y - k^2 c s y^2 = -dT/db,
    #   d/dt dT/dy = k c x' - k s (x - y) x + M22 y' - 2 k^2 c s (x - y) y.
    slope = -k * sine * x * y - k**2 * c * sine * y**2
    force = [
        slope + k * sine * (x - y) * y + p * np.sin(a),
        -slope + k * sine * (x - y) * x + 2 * k**2 * c * sine * (x - y) * y + r * np.sin(b),
    ]
    found = rates(model, [a, b], [x, y])
    np.testing.assert_allclose(found, np.linalg.solve(mass, force), rtol=1e-12)
    mu = resolve_parameters(model)
    np.testing.assert_allclose(model.mass(jnp.array([a, b]), mu), mass, rtol=1e-13)
    stored = model.potential_energy(jnp.array([a, b]), mu)
    np.testing.assert_allclose(stored, p * np.cos(a) + r * np.cos(b), rtol=1e-13)


def test_affine_part_can_be_the_whole_of_a_double_pendulum():
    # P = [[2 cos a, 2 sin a], [cos b, sin b]] and L = 1: a mass of [[5, 2 c], [2 c, 2]], which is
    # that of rods of 1 m with masses of 3 kg and 2 kg.
    model = MBDNODE.for_system(
        DoublePendulum(),
        structure="lagrangian",
        width=2,
        affine=True,
        scaling=False,
    )
    beside = np.zeros((8, 4))  # Of sin a, cos a, sin b, cos b: L, P row by row, V.
    beside[3, 1], beside[4, 0], beside[5, 3], beside[6, 2] = 2.0, 2.0, 1.0, 1.0
    beside[7, [1, 3]] = -9.81 * 5, -9.81 * 2
    model = eqx.tree_at(
        lambda m: (m.network.weights[-1], m.network.biases[-1], m.network.beside),
        model,
        (jnp.zeros((8, 2)), jnp.zeros(8), jnp.asarray(beside)),
    )
    z, s = jnp.array([0.4, -0.9]), jnp.array([1.3, 0.2])
    mu = resolve_parameters(DoublePendulum(), {"m1": 3.0, "m2": 2.0})
    mass = np.array(DoublePendulum().mass_matrix(z, mu))
    force = np.array(DoublePendulum().force(0.0, z, s, (), mu))
    np.testing.assert_allclose(model.mass(z, mu), mass, rtol=1e-13)
    np.testing.assert_allclose(rates(model, z, s), np.linalg.solve(mass, force), rtol=1e-12)


def in_numpy(model, z):
    """Mass factor, potential, damping factor and input map of a cart-pole's network."""
    x = np.array([np.sin(z[0]), np.cos(z[0]), z[1]])
    layers = model.network
    for weight, bias in zip(layers.weights[:-1], layers.biases[:-1], strict=True):
        x = np.tanh(np.asarray(weight) @ x + np.asarray(bias))
    out = np.asarray(layers.weights[-1]) @ x + np.asarray(layers.biases[-1])
    # One at zero: log(1 + exp(x + log(e^0.999 - 1))) + 0.001.
    positive = lambda o: np.log1p(np.exp(o + np.log(np.expm1(0.999)))) + 1e-3  # noqa: E731
    triangle = np.array([[positive(out[0]), 0.0], [out[1], positive(out[2])]])
    factor = np.hstack([triangle, out[3:7].reshape(2, 2)])
    return factor, out[7], np.array([[out[8], 0.0], [out[9], out[10]]]), out[11:13]


def test_random_lagrangian_has_the_accelerations_of_differences_of_its_lagrangian():
    model = MBDNODE.for_system(CartPole(), structure="lagrangian", width=6, damping=True, seed=3)
    z, s, u = np.array([0.4, -0.9]), np.array([1.3, 0.2]), 2.5

    def lagrangian(q, v):
        factor, stored, _, _ = in_numpy(model, q)
        return 0.5 * np.sum((factor.T @ v) ** 2) - stored

    def slope(function, x, h=1e-4):
        # Central differences of the fourth order.
        steps = h * np.eye(2)
        near = [(function(x + e) - function(x - e)) / (2 * h) for e in steps]
        far = [(function(x + 2 * e) - function(x - 2 * e)) / (4 * h) for e in steps]
        return (4 * np.array(near) - np.array(far)) / 3

    momentum = lambda q: slope(lambda v: lagrangian(q, v), s)  # noqa: E731
    turned = slope(momentum, z).T @ s
    factor, _, damper, drive = in_numpy(model, z)
    force = slope(lambda q: lagrangian(q, s), z) - turned - damper @ damper.T @ s + drive * u
    expected = np.linalg.solve(factor @ factor.T, force)
    # Differences of differences with a step of 1e-4 have about 1e-8 of round-off.
    np.testing.assert_allclose(rates(model, z, s, [u]), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_mass_is_positive_definite_whatever_the_weights(seed):
    model = MBDNODE.for_system(CartPole(), structure="lagrangian", width=6, seed=seed)
    model = eqx.tree_at(
        lambda m: m.network.weights, model, tuple(20.0 * w for w in model.network.weights)
    )
    mu = resolve_parameters(model)
    places = np.random.default_rng(seed).normal(size=(50, 2)) * 5
    masses = np.asarray(jax.vmap(lambda q: model.mass(q, mu))(jnp.asarray(places)))
    assert np.array_equal(masses, masses.transpose(0, 2, 1))
    # Of numbers up to 100, whose determinant is the square of the product of the diagonals.
    assert np.all(np.linalg.det(masses) > 0)
    assert np.all(masses[:, 0, 0] > 0)


def drift(model, steps):
    t = np.linspace(0.0, 1.0, steps + 1)
    run = simulate(model, t, {"theta1": 0.8, "theta2": -0.3, "theta2_dot": 1.0})
    values = np.asarray(energy(model, run))
    assert energy_drift(model, run) == np.max(np.abs(values - values[0]))
    assert np.ptp(np.asarray(run.v)) > 0.5
    return np.max(np.abs(values - values[0]))


@pytest.mark.slow
def test_rollout_keeps_the_learned_energy_to_the_order_of_the_integrator():
    model = MBDNODE.for_system(DoublePendulum(), structure="lagrangian", width=6, seed=1)
    assert model.conservative
    coarse, fine = drift(model, 25), drift(model, 100)
    assert fine < 1e-5
    # RK4 four times as fine: at least 4^4 = 256 less, and its energy's own order is five.
    assert coarse / fine > 200


def test_damping_takes_energy_and_never_gives_any():
    model = MBDNODE.for_system(
        DoublePendulum(), structure="lagrangian", width=6, seed=1, damping=True
    )
    assert not model.conservative
    run = simulate(model, TIMES, {"theta1": 0.8, "theta2_dot": 1.0})
    values = np.asarray(energy(model, run))
    # RK4's own error a step is 1e-10 here.
    assert np.all(np.diff(values) < 1e-9)
    assert values[-1] < values[0] - 1e-3


def test_terms_of_the_mechanical_form_have_their_parity_in_the_velocities():
    model = MBDNODE.for_system(CartPole(), structure="mechanical", width=6, seed=2, damping=True)
    z, s = np.array([0.4, -0.9]), np.array([1.3, 0.2])
    parts = model.structure.parts(model.outputs(jnp.zeros(()), None, None, {})(jnp.asarray(z)))
    damping = np.asarray(parts["D"]).reshape(2, 2)
    squares = np.asarray(parts["Gamma"]).reshape(2, 3) @ [s[0] ** 2, s[0] * s[1], s[1] ** 2]
    rest, drive = np.asarray(parts["g"]), np.asarray(parts["G"])
    forward, back = rates(model, z, s, [2.5]), rates(model, z, -s, [2.5])
    # A few products of size one.
    np.testing.assert_allclose((forward - back) / 2, damping @ s, atol=1e-13)
    np.testing.assert_allclose((forward + back) / 2, rest + squares + 2.5 * drive, atol=1e-13)
    np.testing.assert_allclose(rates(model, z, 0 * s, [0.0]), rest, atol=1e-13)


def test_lagrangian_without_inputs_and_damping_is_reversible():
    model = MBDNODE.for_system(DoublePendulum(), structure="lagrangian", width=6)
    z, s = [0.4, -0.9], np.array([1.3, 0.2])
    np.testing.assert_allclose(rates(model, z, s), rates(model, z, -s), atol=1e-13)


@pytest.mark.parametrize("structure", STRUCTURED)
def test_constraints_are_kept_to_round_off(structure):
    model = MBDNODE.for_system(SliderCrank(), structure=structure, width=6, seed=4)
    inputs = np.random.default_rng(0).uniform(-10, 10, (100, 2))
    run = simulate(model, TIMES, {"theta1": 1.0, "theta1_dot": 1.0}, inputs=inputs)
    assert bool(run.status.ok)
    assert np.ptp(run["theta1"]) > 0.5
    # Coordinates up to 6 m and velocities of a few m/s, to a few units in the last place.
    assert np.max(run.position_residual) < 1e-14
    assert np.max(run.velocity_residual) < 1e-12


@pytest.mark.parametrize("structure", STRUCTURED)
def test_gradient_is_finite_at_rest_at_the_origin(structure):
    model = MBDNODE.for_system(CartPole(), structure=structure, width=6)
    mu, zero = resolve_parameters(model), jnp.zeros(2)

    def size(network):
        own = eqx.tree_at(lambda m: m.network, model, network)
        return jnp.sum(own.minimal_rates(jnp.zeros(()), zero, zero, jnp.zeros(1), mu)[1] ** 2)

    slopes = jax.tree.leaves(eqx.filter_grad(size)(model.network))
    assert all(np.all(np.isfinite(x)) for x in slopes)
    assert any(np.any(np.asarray(x) != 0) for x in slopes)


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURED)
def test_separable_model_keeps_the_contract_and_runs_with_the_leapfrog(structure):
    model = MBDNODE.for_system(
        SingleMassSpring(), structure=structure, width=6, use_velocity=False, divisor=(10.0,)
    )
    assert model.settings.damping is False
    check_model(model)
    assert bool(simulate(model, TIMES, {"x": 1.0}, integrator="lf2").status.ok)
    assert np.array_equal(rates(model, [0.3], [2.0]), rates(model, [0.3], [-7.0]))


def test_divisor_divides_the_accelerations_of_every_structure():
    # At rest: what turns a moving mass does not depend on its size.
    for structure in WHOLE:
        plain, heavy = (
            MBDNODE.for_system(SingleMassSpring(), structure=structure, width=6, divisor=d)
            for d in ((), (10.0,))
        )
        expected = rates(plain, [0.3], [0.0]) / 10
        np.testing.assert_allclose(rates(heavy, [0.3], [0.0]), expected, rtol=1e-13)


def test_parameters_reach_mass_and_potential():
    model = MBDNODE.for_system(
        CartPole(), structure="lagrangian", width=6, use_parameters=("l", "M")
    )
    plain, other = (rates(model, [0.4, -0.9], [1.3, 0.2], [0.0], M=m) for m in (1.0, 3.0))
    assert not np.allclose(plain, other)
    # They are read in any case, but not by a model that was not told to.
    deaf = MBDNODE.for_system(CartPole(), structure="lagrangian", width=6)
    plain, other = (rates(deaf, [0.4, -0.9], [1.3, 0.2], [0.0], M=m) for m in (1.0, 3.0))
    assert np.array_equal(plain, other)


@pytest.mark.parametrize("structure", STRUCTURED)
def test_accelerations_do_not_depend_on_the_units_of_the_data(structure):
    """A cart-pole recorded in millimeters gives the same network the same task."""
    model = MBDNODE.for_system(CartPole(), structure=structure, width=6, seed=1)
    z, s, u = np.array([0.4, -0.9]), np.array([1.3, 0.2]), np.array([2.5])
    unit = np.array([1.0, 1000.0])
    found = []
    for size in (np.ones(2), unit):
        scales = Scales(
            rate_mean=jnp.zeros(2),
            rate_spread=jnp.asarray(size * [2.0, 3.0]),
            position=jnp.asarray(size * [1.0, 0.5]),
            velocity=jnp.asarray(size * [0.7, 1.5]),
            inputs=jnp.array([10.0]),
        )
        spread = jnp.concatenate([jnp.ones(2), scales.position[1:]])
        scaled = eqx.tree_at(
            lambda m: (m.spread, m.out_center, m.out_spread),
            model,
            (spread, *model.structure.units(scales)),
        )
        found.append(rates(scaled, z * size, s * size, u) / size)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)


@pytest.mark.parametrize(
    ("structure", "system"),
    [
        ("mechanical", Oscillator()),
        pytest.param("lagrangian", SingleMassSpring(), marks=pytest.mark.slow),
    ],
)
def test_structured_model_learns_a_motion_and_comes_back_from_its_file(structure, system, tmp_path):
    run = simulate(system, TIMES, {"x": 1.0}, integrator="mp2")
    model = MBDNODE.for_system(system, structure=structure, width=8)
    config = TrainingConfig(
        integrator="mp2",
        epochs=2,
        batch_size=32,
        shuffle=True,
        scaled_loss=True,
        refinement=20,
        precision="float64",
    )
    found = fit(model, Dataset(run), config)
    again = simulate(found.model, TIMES, {"x": 1.0}, integrator="mp2")
    # Positions of size one; an untrained model is one off.
    assert np.max(np.abs(again.q - run.q)) < 1e-3
    save(found.model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors", system)
    same = simulate(loaded, TIMES, {"x": 1.0}, integrator="mp2")
    assert np.array_equal(same.q, again.q)
    linear = linearize(loaded, [0.0, 0.0])
    assert np.all(np.isfinite(linear.A))


def test_rollouts_of_other_weights_are_not_traced_again():
    traces = []

    @eqx.filter_jit
    def last(model, state):
        traces.append(1)
        return simulate(model, TIMES[:11], state).q[-1]

    for seed in range(3):
        model = MBDNODE.for_system(Oscillator(), structure="lagrangian", width=6, seed=seed)
        last(model, State(jnp.ones(1), jnp.zeros(1)))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"structure": "lagrangain"}, "'lagrangain'.*Did you mean 'lagrangian'"),
        ({"structure": "lagrangian", "order": "first"}, "order is 'first'.*order='second'"),
        ({"structure": "lagrangian", "use_time": True}, "use_time is True.*use_time=False"),
        ({"damping": True}, "damping is True, which structure='free'"),
        (
            {"structure": "lagrangian", "use_velocity": False, "damping": True},
            "damping forces depend on the velocities",
        ),
    ],
)
def test_settings_that_do_not_go_with_the_structure_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MBDNODE.for_system(CartPole(), width=6, **settings)


def test_model_without_a_mass_has_no_energy():
    run = simulate(SingleMassSpring(), TIMES, {"x": 1.0})
    for model in (
        MBDNODE.for_system(SingleMassSpring(), width=6),
        LNN.for_system(SingleMassSpring(), width=6),
    ):
        with pytest.raises(ValueError, match="structure='lagrangian', or the mechanism"):
            energy(model, run)
    with pytest.raises(ValueError, match="no mass"):
        MBDNODE.for_system(SingleMassSpring(), width=6).mass(run.q[0], {})
