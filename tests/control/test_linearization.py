"""Linearizations against printed matrices, finite differences and SciPy."""

import control
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import scipy.linalg as sl
from problems import slider_crank
from scipy.signal import cont2discrete
from toys import Pendulum

import mbdnode as mbd
from mbdnode.control.linearization import discretize_all
from mbdnode.mechanisms.cart_pole import CartPole
from mbdnode.mechanisms.knife_edge_sleigh import KnifeEdgeSleigh
from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import resolve_parameters


def test_upright_cart_pole_has_the_papers_matrices():
    A, B, _, _ = mbd.linearize(CartPole(), [0.0, 0.0, 0.0, 0.0], [0.0])
    g, m, M, length = 9.81, 1.0, 1.0, 0.5
    printed = np.zeros((4, 4))
    printed[0, 2] = printed[1, 3] = 1.0
    printed[2, 0], printed[3, 0] = g * (m + M) / (M * length), -m * g / M
    assert pytest.approx(printed, abs=1e-13) == A
    assert pytest.approx(np.array([[0], [0], [-1 / (M * length)], [1 / M]]), abs=1e-14) == B


def test_parameters_change_the_linearization():
    A = mbd.linearize(CartPole(), [0.0] * 4, parameters={"M": 3.0, "l": 2.0}).A
    assert A[2, 0] == pytest.approx(9.81 * 4.0 / (3.0 * 2.0), rel=1e-13)


def test_state_vector_and_names_mean_the_same_place():
    crank, where = SliderCrank(), {"theta1": 0.7, "theta1_dot": -1.2}
    ways = ([0.7, -1.2], where, mbd.consistent_state(crank, where))
    found = [mbd.linearize(crank, z, {"T": 3.0}) for z in ways]
    for other in found[1:]:
        assert pytest.approx(np.asarray(found[0].A), abs=1e-12) == other.A
        assert pytest.approx(np.asarray(found[0].B), abs=1e-12) == other.B


def test_python_control_takes_a_linearization_as_it_is():
    linear = mbd.linearize(CartPole(), [0.0] * 4)
    names = {"states": linear.states, "inputs": linear.inputs, "outputs": linear.states}
    model = control.ss(*linear, **names)
    assert model.state_labels == ["theta", "x", "theta_dot", "x_dot"]
    assert model.input_labels == ["u"]
    # Upright: theta'' = g (m + M) / (M l) theta, and a cart that nothing holds.
    fast = np.sqrt(9.81 * 2.0 / 0.5)
    assert np.sort(model.poles().real) == pytest.approx([-fast, 0.0, 0.0, fast], abs=1e-7)
    # Every state is an output, which no input reaches at once.
    np.testing.assert_array_equal(model.C, np.eye(4))
    np.testing.assert_array_equal(model.D, np.zeros((4, 1)))


def test_linearization_knows_its_point_and_its_names():
    linear = mbd.linearize(SliderCrank(), {"theta1": 0.7, "theta1_dot": -1.2}, {"T": 3.0})
    assert (linear.states, linear.inputs) == (("theta1", "theta1_dot"), ("F", "T"))
    assert linear.z == pytest.approx([0.7, -1.2], abs=1e-15)
    assert linear.u == pytest.approx([0.0, 3.0], abs=0.0)


@pytest.mark.parametrize("theta", [0.3, 2.0, 4.5])
def test_slider_crank_agrees_with_differences_of_its_one_equation(theta):
    def rate(z, u):
        return slider_crank(*u)(0.0, z)

    z, u, h = np.array([theta, 1.5]), np.array([2.0, -4.0]), 1e-5
    A, B, _, _ = mbd.linearize(SliderCrank(), z, u)
    for i, e in enumerate(np.eye(2)):
        # Central differences of a smooth function of order one, with steps of 1e-5.
        slope = (rate(z + h * e, u) - rate(z - h * e, u)) / (2 * h)
        assert A[:, i] == pytest.approx(slope, abs=1e-9)
        slope = (rate(z, u + h * e) - rate(z, u - h * e)) / (2 * h)
        assert B[:, i] == pytest.approx(slope, abs=1e-9)


def test_hanging_pendulum_in_cartesian_coordinates_swings_at_its_own_frequency():
    A, B, _, _ = mbd.linearize(Pendulum(), {"x": 0.0})
    assert np.sort(np.imag(np.linalg.eigvals(A))) == pytest.approx(
        np.array([-1, 1]) * np.sqrt(9.81 / 1.5), rel=1e-12
    )
    assert B.shape == (2, 0)


def test_nonholonomic_system_keeps_all_its_positions():
    sleigh = KnifeEdgeSleigh()
    A = mbd.linearize(sleigh, {}).A
    size = 2 * len(sleigh.coordinates) - 1
    assert A.shape == (size, size)


def test_learned_model_is_linearized_as_it_is():
    model = mbd.MBDNODE.for_system(CartPole(), width=8, seed=3)
    z, u, h = np.array([0.4, -0.2, 1.0, 0.5]), np.array([2.0]), 1e-5
    A, B, _, _ = mbd.linearize(model, z, u)
    mu = resolve_parameters(model)

    rates = eqx.filter_jit(model.minimal_rates)

    def rate(z, u):
        new = rates(jnp.zeros(()), jnp.asarray(z[:2]), jnp.asarray(z[2:]), u, mu)
        return np.concatenate([np.asarray(part) for part in new])

    slopes = [(rate(z + h * e, u) - rate(z - h * e, u)) / (2 * h) for e in np.eye(4)]
    # Weights of an untrained model are float64 here, so the difference has nine digits.
    assert pytest.approx(np.array(slopes).T, abs=1e-8) == A
    assert B[:, 0] == pytest.approx((rate(z, u + h) - rate(z, u - h)) / (2 * h), abs=1e-8)


def test_ensemble_has_the_mean_of_its_members_jacobians():
    members = [mbd.MBDNODE.for_system(CartPole(), width=4, seed=seed) for seed in range(3)]
    z, u = [0.4, -0.2, 1.0, 0.5], [2.0]
    A, B, _, _ = mbd.linearize(mbd.Ensemble(members), z, u)
    single = [mbd.linearize(member, z, u) for member in members]
    assert pytest.approx(np.mean([one.A for one in single], axis=0), abs=1e-12) == A
    assert pytest.approx(np.mean([one.B for one in single], axis=0), abs=1e-12) == B


def test_discretization_is_scipys():
    random = np.random.default_rng(0)
    A, B = random.normal(size=(4, 4)), random.normal(size=(4, 2))
    Ad, Bd = mbd.discretize(A, B, 0.3)
    expected = cont2discrete((A, B, np.eye(4), np.zeros((4, 2))), 0.3, "zoh")
    assert Ad == pytest.approx(expected[0], rel=1e-12)
    assert Bd == pytest.approx(expected[1], rel=1e-12)


def test_double_integrator_is_discretized_exactly():
    Ad, Bd = mbd.discretize([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], 0.1)
    assert Ad == pytest.approx(np.array([[1.0, 0.1], [0.0, 1.0]]), abs=1e-16)
    assert Bd == pytest.approx(np.array([[0.005], [0.1]]), abs=1e-16)


@pytest.mark.parametrize("size", [1e-4, 0.1, 1.0, 30.0])
def test_batch_is_discretized_as_by_scipys_exponential(size):
    random = np.random.default_rng(1)
    A, B = size * random.normal(size=(7, 3, 3)), size * random.normal(size=(7, 3, 2))
    Ad, Bd = discretize_all(jnp.asarray(A), jnp.asarray(B), 0.5)
    for k in range(7):
        exact = sl.expm(0.5 * np.block([[A[k], B[k]], [np.zeros((2, 5))]]))
        # Squaring doubles the relative error each time.
        scale = 1e-14 * max(1.0, 16 * size) * np.max(np.abs(exact))
        assert Ad[k] == pytest.approx(exact[:3, :3], abs=scale)
        assert Bd[k] == pytest.approx(exact[:3, 3:], abs=scale)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0.0, 0.0, 0.0], None), "shape"),
        (([0.0, 0.0, np.nan, 0.0], None), "finite"),
        (({"phi": 0.0}, None), "phi"),
        (([0.0] * 4, [1.0, 2.0]), "shape"),
        (([0.0] * 4, {"force": 1.0}), "force"),
    ],
)
def test_wrong_place_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        mbd.linearize(CartPole(), *arguments)


def test_model_that_gives_states_is_refused():
    with pytest.raises(ValueError, match="no rate to linearize"):
        mbd.linearize(mbd.FCNN.for_system(CartPole(), width=4), [0.0] * 4)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros((2, 3)), np.zeros((2, 1)), 0.1),
        (np.zeros((2, 2)), np.zeros((3, 1)), 0.1),
        (np.zeros((2, 2)), np.zeros((2, 1)), 0.0),
        (np.zeros((2, 2)), np.zeros((2, 1)), np.nan),
    ],
)
def test_wrong_matrices_and_steps_are_refused(arguments):
    with pytest.raises(ValueError, match="must"):
        mbd.discretize(*arguments)


def test_mechanism_has_no_jacobian_error_against_itself():
    error = mbd.jacobian_error(CartPole(), CartPole(), [0.3, 0.0, 1.0, 0.0])
    assert (error.A, error.B) == (0.0, 0.0)


class LightCart(CartPole):
    """Half the gravity, so that A is half as large but for its ones, and B the same."""

    def force(self, t, q, v, u, mu):
        return super().force(t, q, v, u, {**mu, "g": mu["g"] / 2})


def test_jacobian_error_is_relative_in_the_frobenius_norm():
    error = mbd.jacobian_error(LightCart(), CartPole(), [0.0] * 4)
    moved = np.hypot(39.24, 9.81)
    assert pytest.approx(0.5 * moved / np.sqrt(moved**2 + 2.0), rel=1e-12) == error.A
    assert pytest.approx(0.0, abs=1e-15) == error.B


def test_values_with_names_go_by_name_in_control():
    cart = CartPole()
    at = pandas.Series({"x_dot": 0.3, "theta": 0.2, "x": 0.0, "theta_dot": -0.1})
    values = pandas.DataFrame({"m": [0.2], "M": [1.5]})
    found = mbd.linearize(cart, at, pandas.Series({"u": 2.0}), parameters=values)
    vector = [float(at[name]) for name in found.states]
    expected = mbd.linearize(cart, vector, [2.0], parameters={"M": 1.5, "m": 0.2})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="Unknown state or input 'F'"):
        mbd.linearize(cart, at, pandas.Series({"F": 2.0}))


@pytest.mark.parametrize("t", ["now", None, [0.0, 1.0], np.nan])
def test_a_time_that_is_no_number_is_refused(t):
    with pytest.raises(ValueError, match="The time"):
        mbd.linearize(CartPole(), t=t)
