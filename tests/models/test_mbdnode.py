"""What an MBD-NODE reads and gives, against the same thing written in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Oscillator

from mbdnode.mechanisms import (
    CartPole,
    DoublePendulum,
    DrivenCrank,
    KnifeEdgeSleigh,
    SingleMassSpring,
    SinglePendulum,
    SliderCrank,
)
from mbdnode.models import MBDNODE
from mbdnode.multibody import resolve_parameters
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

T = jnp.asarray(0.7)
TIMES = np.linspace(0.0, 0.5, 26)


def network(model, x):
    layers = model.network
    for weight, bias in zip(layers.weights[:-1], layers.biases[:-1], strict=True):
        x = np.tanh(np.asarray(weight) @ x + np.asarray(bias))
    return np.asarray(layers.weights[-1]) @ x + np.asarray(layers.biases[-1])


def rates(model, z, s, u=(), **parameters):
    mu = resolve_parameters(model, parameters)
    found = eqx.filter_jit(model.minimal_rates)(T, *(jnp.asarray(x, float) for x in (z, s, u)), mu)
    return tuple(np.asarray(x) for x in found)


def test_affine_part_stands_beside_the_layers():
    model = MBDNODE.for_system(CartPole(), width=3, affine=True)
    plain = MBDNODE.for_system(CartPole(), width=3)
    features = np.array([0.4, -0.9, 1.3, 0.2, 2.5])
    np.testing.assert_array_equal(rates(model, Z, S, U)[1], rates(plain, Z, S, U)[1])
    matrix = np.random.default_rng(0).normal(size=(2, 5))
    model = eqx.tree_at(lambda m: m.network.beside, model, jnp.asarray(matrix))
    expected = network(plain, features) + matrix @ features
    np.testing.assert_allclose(rates(model, Z, S, U)[1], expected, rtol=1e-12)
    alone = matrix @ features + np.asarray(model.network.biases[-1])
    np.testing.assert_allclose(rates(model.affine_part, Z, S, U)[1], alone, rtol=1e-12)
    assert plain.affine_part is None


Z, S, U = [0.4, -0.9], [1.3, 0.2], [2.5]
CART_POLE_FEATURES = {
    (): [0.4, -0.9, 1.3, 0.2, 2.5],
    ("angle_features",): [np.sin(0.4), np.cos(0.4), -0.9, 1.3, 0.2, 2.5],
    ("use_time",): [0.4, -0.9, 1.3, 0.2, 2.5, 0.7],
    ("use_parameters",): [0.4, -0.9, 1.3, 0.2, 2.5, 0.8, 3.0],
    ("no_velocity",): [0.4, -0.9, 2.5],
    ("no_forces", "use_time"): [0.4, -0.9, 1.3, 0.2, 0.7],
    ("added",): [0.4, -0.9, 1.3, 0.2],
}
SETTINGS = {
    "angle_features": {"angle_features": True},
    "use_time": {"use_time": True},
    "use_parameters": {"use_parameters": ("l", "M")},
    "no_velocity": {"use_velocity": False},
    "no_forces": {"forces": "none"},
    "added": {"forces": "added"},
}


@pytest.mark.parametrize("kinds", CART_POLE_FEATURES, ids=lambda k: " ".join(k) or "plain")
def test_network_reads_what_its_settings_say_in_that_order(kinds):
    settings = {k: v for kind in kinds for k, v in SETTINGS[kind].items()}
    model = MBDNODE.for_system(CartPole(), width=5, **settings)
    mu = resolve_parameters(model, {"l": 0.8, "M": 3.0})
    found = model.features(T, *map(jnp.asarray, (Z, S, U)), mu)
    assert np.array_equal(found, CART_POLE_FEATURES[kinds])
    assert model.network.weights[0].shape == (5, len(CART_POLE_FEATURES[kinds]))


def test_only_the_minimal_coordinates_of_a_constrained_system_are_read():
    model = MBDNODE.for_system(SliderCrank(), width=5, angle_features=True)
    assert model.independent == ("theta1",)
    mu = resolve_parameters(model)
    found = model.features(T, *map(jnp.asarray, ([0.4], [1.3], [2.0, 3.0])), mu)
    assert np.array_equal(found, [np.sin(0.4), np.cos(0.4), 1.3, 2.0, 3.0])


def test_sums_and_differences_of_angles_are_read():
    settings = {"angle_features": True, "angle_pairs": True}
    model = MBDNODE.for_system(DoublePendulum(), width=5, structure="lagrangian", **settings)
    mu = resolve_parameters(model)
    found = model.features(T, *map(jnp.asarray, ([0.4, -0.9], [1.3, 0.2], [])), mu)
    angles = [0.4, -0.9, 0.4 - 0.9, 0.4 + 0.9]
    expected = np.ravel([[np.sin(a), np.cos(a)] for a in angles])
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert model.network.weights[0].shape == (5, 8)
    alone = MBDNODE.for_system(CartPole(), width=5, **settings)
    assert alone.network.weights[0].shape == (5, 6)


@pytest.mark.parametrize("constraints", ["penalty", "augmented", "none"])
def test_soft_model_reads_every_coordinate_and_has_no_constraints(constraints):
    model = MBDNODE.for_system(SliderCrank(), width=5, constraints=constraints)
    assert model.network.weights[0].shape == (5, 9 + 9 + 2)
    assert model.network.weights[-1].shape == (9, 5)
    assert len(model.constraint(T, jnp.zeros(9), resolve_parameters(model))) == 0


def test_rates_are_velocities_and_the_network_over_the_divisor():
    model = MBDNODE.for_system(CartPole(), width=5, divisor=(4.0, 0.5))
    velocity, acceleration = rates(model, Z, S, U)
    assert np.array_equal(velocity, S)
    expected = network(model, np.concatenate([Z, S, U])) / [4.0, 0.5]
    # Five terms a layer, of size one.
    np.testing.assert_allclose(acceleration, expected, rtol=1e-13)


def test_scaling_shifts_and_spreads_what_goes_in_and_comes_out():
    plain = MBDNODE.for_system(CartPole(), width=5, scaling=True)
    center, spread = jnp.arange(5.0), jnp.arange(1.0, 6.0)
    out_center, out_spread = jnp.array([7.0, -2.0]), jnp.array([3.0, 0.1])
    model = eqx.tree_at(
        lambda m: (m.center, m.spread, m.out_center, m.out_spread),
        plain,
        (center, spread, out_center, out_spread),
    )
    scaled = (np.concatenate([Z, S, U]) - center) / spread
    expected = out_center + out_spread * network(model, scaled)
    np.testing.assert_allclose(rates(model, Z, S, U)[1], expected, rtol=1e-13)


def test_first_order_model_learns_both_rates():
    model = MBDNODE.for_system(CartPole(), width=5, order="first")
    found = np.concatenate(rates(model, Z, S, U))
    np.testing.assert_allclose(found, network(model, np.concatenate([Z, S, U])), rtol=1e-13)


def test_forces_act_on_the_network_or_not_at_all():
    fed = MBDNODE.for_system(CartPole(), width=5)
    assert not np.array_equal(rates(fed, Z, S, U)[1], rates(fed, Z, S, [0.0])[1])
    left_out = MBDNODE.for_system(CartPole(), width=5, forces="none")
    assert np.array_equal(rates(left_out, Z, S, U)[1], rates(left_out, Z, S, [0.0])[1])


def cart_pole_push(theta, u, cart=1.0, pole=1.0, arm=0.5):
    """`M^-1 (0, u)` of the cart-pole, by the inverse of a 2 x 2 matrix."""
    coupling = pole * arm * np.cos(theta)
    det = pole * arm**2 * (cart + pole) - coupling**2
    return np.array([-coupling, pole * arm**2]) * u / det


def test_added_force_causes_the_acceleration_of_the_true_mass():
    model = MBDNODE.for_system(CartPole(), width=5, forces="added")
    for heavy in (1.0, 4.0):
        caused = rates(model, Z, S, U, M=heavy)[1] - rates(model, Z, S, [0.0], M=heavy)[1]
        np.testing.assert_allclose(caused, cart_pole_push(Z[0], U[0], cart=heavy), rtol=1e-12)


def runge_kutta(right, y, dt, inputs):
    rows = [y]
    for u in inputs:
        k1 = right(y, u)
        k2 = right(y + dt / 2 * k1, u)
        k3 = right(y + dt / 2 * k2, u)
        k4 = right(y + dt * k3, u)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        rows.append(y)
    return np.stack(rows)


def test_model_without_forces_can_be_run_with_them():
    model = MBDNODE.for_system(CartPole(), width=5, forces="added")
    inputs = np.sin(np.arange(25.0))[:, None] * 5
    run = simulate(model, TIMES, {"theta": 0.4, "x_dot": 1.0}, inputs=inputs)

    def right(y, u):
        return np.concatenate([y[2:], network(model, y) + cart_pole_push(y[0], u[0])])

    expected = runge_kutta(right, np.array([0.4, 0.0, 0.0, 1.0]), TIMES[1], inputs)
    # Twenty-five steps of the same arithmetic in another order.
    np.testing.assert_allclose(np.concatenate([run.q, run.v], axis=1), expected, atol=1e-12)


def test_parameters_of_a_run_reach_the_network():
    model = MBDNODE.for_system(SinglePendulum(), width=5, use_parameters=("L", "c"))
    run = simulate(model, TIMES, {"theta": 0.4}, parameters={"L": 2.0, "m": 9.0})

    def right(y, u):
        return np.array([y[1], network(model, np.array([y[0], y[1], 0.0, 2.0, 0.1]))[0]])

    expected = runge_kutta(right, np.array([0.4, 0.0]), TIMES[1], np.zeros(25))
    np.testing.assert_allclose(np.concatenate([run.q, run.v], axis=1), expected, atol=1e-12)


def test_model_of_positions_alone_runs_with_the_leapfrog():
    model = MBDNODE.for_system(SingleMassSpring(), width=5, use_velocity=False, divisor=(10.0,))
    assert model.separable
    run = simulate(model, TIMES, {"x": 1.0}, integrator="lf2")
    x, v, dt = 1.0, 0.0, TIMES[1]
    rows = [(x, v)]
    for _ in TIMES[1:]:
        x = x + dt / 2 * v
        v = v + dt * network(model, np.array([x]))[0] / 10
        x = x + dt / 2 * v
        rows.append((x, v))
    np.testing.assert_allclose(np.concatenate([run.q, run.v], axis=1), rows, atol=1e-13)


@pytest.mark.parametrize("settings", [{}, {"order": "first"}])
def test_model_that_reads_velocities_does_not(settings):
    model = MBDNODE.for_system(SingleMassSpring(), width=5, **settings)
    assert not model.separable
    with pytest.raises(ValueError, match="separable"):
        simulate(model, TIMES, {"x": 1.0}, integrator="lf2")


BAD = {
    "width": (0, -3, 2.0, "8", None, True),
    "hidden_layers": (0, 1.5),
    "order": ("third", 2),
    "activation": ("thanh",),
    "initialization": ("xaver",),
    "forces": ("input", None),
    "constraints": ("sft", "Hard"),
    "use_velocity": ("no", 1),
    "use_time": (0.1,),
    "angle_features": ("theta",),
    "angle_pairs": ("theta", None),
    "scaling": ("yes", 1),
    "structure": ("fre", None),
    "use_parameters": ("L", ("L", "L"), (3,), "length"),
    "divisor": (10.0, (0.0,), (-1.0,), (float("nan"),), (float("inf"),), ("a",)),
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_setting_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=name):
        MBDNODE.for_system(SinglePendulum(), **{"width": 5, name: value})


@pytest.mark.parametrize(
    ("system", "settings", "message"),
    [
        (SinglePendulum(), {"wdth": 5}, "'wdth'.*Did you mean 'width'"),
        (SinglePendulum(), {"use_parameters": ("l",)}, "parameter 'l'.*Did you mean 'L'"),
        (SinglePendulum(), {"divisor": (1.0, 1.0)}, "divisor has 2 entries.*1 minimal"),
        (SliderCrank(), {"forces": "added"}, "without constraints.*forces='inputs'"),
        (SliderCrank(), {"forces": "added", "constraints": "none"}, "without constraints"),
        (KnifeEdgeSleigh(), {"forces": "added", "constraints": "none"}, "without constraints"),
        (KnifeEdgeSleigh(), {"order": "first"}, "nonholonomic.*order.*Leave order out"),
        (KnifeEdgeSleigh(), {"structure": "lagrangian"}, "nonholonomic.*structure"),
        (KnifeEdgeSleigh(), {"correction_of": KnifeEdgeSleigh()}, "nonholonomic.*parameters"),
        (DrivenCrank(), {}, "no freedom"),
    ],
)
def test_setting_that_does_not_fit_the_system_is_refused(system, settings, message):
    with pytest.raises(ValueError, match=message):
        MBDNODE.for_system(system, **settings)


def test_lists_are_as_good_as_tuples():
    model = MBDNODE.for_system(SinglePendulum(), width=5, divisor=[2], use_parameters=["L"])
    assert model.config.divisor == (2.0,)
    assert model.config.use_parameters == ("L",)


def test_bad_seed_is_refused():
    with pytest.raises(ValueError, match="seed"):
        MBDNODE.for_system(Oscillator(), width=5, seed=-1)


def test_model_has_the_names_of_its_system():
    crank = SliderCrank()
    model = MBDNODE.for_system(crank, width=5)
    for names in ("coordinate_names", "rate_names", "input_names", "parameter_names"):
        assert getattr(model, names) == getattr(crank, names)


def test_float32_weights_give_a_float64_rollout_of_float32_accelerations():
    model = MBDNODE.for_system(CartPole(), width=5, scaling=True)
    single = jax.tree.map(lambda x: x.astype(jnp.float32), model)
    acceleration = rates(single, Z, S, U)[1]
    assert acceleration.dtype == np.float64
    assert np.array_equal(acceleration, acceleration.astype(np.float32))
    state = State(jnp.asarray(Z), jnp.asarray(S))
    run = simulate(single, TIMES, state, inputs=np.zeros((25, 1)))
    assert run.q.dtype == jnp.float64
    # The first velocity step is no multiple of float32's, so the state was not rounded.
    assert not np.array_equal(run.q[1], np.asarray(run.q[1], np.float32))
