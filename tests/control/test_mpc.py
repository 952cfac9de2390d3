"""The controller: what it decides, and what it refuses."""

import math
from dataclasses import fields

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg as sl
from toys import Pendulum

import mbdnode as mbd
from mbdnode.control import Decision, Limits, QuadraticCost
from mbdnode.control.quadratic_program import QuadraticProgram
from mbdnode.mechanisms.cart_pole import CartPole, CartPoleCartesian
from mbdnode.mechanisms.single_pendulum import SinglePendulumCartesian
from mbdnode.mechanisms.slider_crank import DrivenCrank

START = np.array([math.pi / 6, 1.0, 0.0, 0.0])


def gain_of(controller):
    """The row of a linear law, one unit of each state at a time."""
    rows = []
    for e in np.eye(len(controller.states)):
        controller.reset()
        rows.append(-controller(e).u)
    return np.array(rows).T


def model(dt):
    linear = mbd.linearize(CartPole(), [0.0] * 4)
    return tuple(np.asarray(x) for x in mbd.discretize(linear.A, linear.B, dt))


@pytest.mark.parametrize("dt", [0.005, 0.05])
def test_riccati_terminal_cost_gives_the_linear_quadratic_regulator(dt):
    A, B = model(dt)
    P = sl.solve_discrete_are(A, B, np.eye(4), np.eye(1))
    regulator = np.linalg.solve(np.eye(1) + B.T @ P @ B, B.T @ P @ A)
    controller = mbd.MPC(CartPole(), horizon=50, dt=dt)
    assert gain_of(controller) == pytest.approx(regulator, rel=1e-5)


@pytest.mark.parametrize(("dt", "modulus"), [(0.005, 1.02), (0.05, 0.98)])
def test_without_terminal_cost_fifty_steps_stabilize_the_cart_only_if_they_are_long(dt, modulus):
    A, B = model(dt)
    controller = mbd.MPC(CartPole(), horizon=50, dt=dt, cost=QuadraticCost(terminal=None))
    loop = np.max(np.abs(np.linalg.eigvals(A - B @ gain_of(controller))))
    assert loop == pytest.approx(modulus, abs=0.005)


def test_plan_along_the_motion_obeys_the_nonlinear_model():
    cart = CartPole()
    limits = Limits(u_bounds=(-20.0, 20.0))
    controller = mbd.MPC(cart, horizon=30, dt=0.04, relinearize="each", limits=limits)
    said = controller(START)
    t = 0.04 * np.arange(31)
    initial = mbd.State(jnp.asarray(START[:2]), jnp.asarray(START[2:]))
    rolled = mbd.simulate(cart, t, initial, inputs=said.plan_u)
    # The plan is improved until its gaps no longer matter to the cost.
    assert np.asarray(rolled.q) == pytest.approx(said.plan_z[:, :2], abs=1e-3)
    assert np.max(np.abs(said.plan_u)) <= 20.0 + 1e-6


def test_plan_from_the_upright_target_is_to_do_nothing():
    for mode in ("once", "each"):
        controller = mbd.MPC(CartPole(), horizon=10, dt=0.05, relinearize=mode)
        assert controller(np.zeros(4)).u == pytest.approx(0.0, abs=1e-7)


def test_bounds_and_limits_of_the_input_hold_in_every_decision():
    limits = Limits(u_bounds={"u": (-4.0, 6.0)}, u_rate={"u": 40.0})
    controller = mbd.MPC(CartPole(), horizon=20, dt=0.05, limits=limits)
    before = 0.0
    for k in range(6):
        u = controller(START * 0.9**k).u[0]
        assert -4.0 <= u <= 6.0
        assert abs(u - before) <= 2.0 + 1e-12
        before = u


def test_soft_bound_that_must_be_left_is_said():
    limits = Limits(z_bounds={"x": (-0.5, 0.5)})
    controller = mbd.MPC(CartPole(), horizon=20, dt=0.05, limits=limits)
    assert controller(START).decision == Decision.SOFTENED
    controller.reset()
    assert controller(0.01 * START).decision == Decision.SOLVED


@pytest.mark.parametrize("mode", ["once", "each"])
def test_failed_solve_carries_the_last_plan_on(mode, monkeypatch):
    controller = mbd.MPC(CartPole(), horizon=20, dt=0.05, relinearize=mode)
    planned = controller(START).plan_u
    monkeypatch.setattr(QuadraticProgram, "solve", lambda *_: None)
    for k in (1, 2):
        said = controller(START)
        assert said.decision == Decision.UNSOLVED
        assert said.u == pytest.approx(planned[k])


def test_failure_before_any_plan_applies_the_regulators_input_within_its_bounds(monkeypatch):
    monkeypatch.setattr(QuadraticProgram, "solve", lambda *_: None)
    free = mbd.MPC(CartPole(), horizon=5, dt=0.05)
    A, B = model(0.05)
    P = sl.solve_discrete_are(A, B, np.eye(4), np.eye(1))
    regulator = np.linalg.solve(np.eye(1) + B.T @ P @ B, B.T @ P @ A)
    assert free(0.1 * START).u == pytest.approx(-regulator @ (0.1 * START), rel=1e-6)
    bounded = mbd.MPC(CartPole(), horizon=5, dt=0.05, limits=Limits(u_bounds=(-1.0, 1.0)))
    assert bounded(START).u == pytest.approx(1.0)
    blind = mbd.MPC(CartPole(), horizon=5, dt=0.05, cost=QuadraticCost(terminal=None))
    assert blind(START).u == pytest.approx(0.0)


def test_program_that_fails_at_first_is_solved_with_its_cost_scaled():
    limits = Limits(u_bounds=(-10.0, 10.0), z_bounds={"x": (-1.0, 1.0)})
    controller = mbd.MPC(CartPole(), horizon=50, dt=0.02, limits=limits)
    # A cart that is 29 m beyond its bound: far, but every program has a solution.
    said = controller(np.array([0.0, 30.0, 0.0, 0.0]))
    assert said.decision == Decision.SOFTENED
    assert abs(said.u[0]) <= 10.0


def test_state_without_numbers_does_not_spoil_what_follows():
    cart = CartPoleCartesian()
    controller = mbd.MPC(cart, horizon=8, dt=0.05, relinearize="each")
    lost = mbd.State(jnp.full(3, jnp.nan), jnp.zeros(3))
    assert controller(lost).decision == Decision.UNMEASURED
    assert controller(np.zeros(4)).decision == Decision.SOLVED


def test_measurement_that_no_configuration_has_is_no_error():
    controller = mbd.MPC(SinglePendulumCartesian(), horizon=8, dt=0.05)
    assert np.all(np.isfinite(controller(np.array([5.0, 0.0])).u))


def test_measurement_that_is_no_number_carries_the_last_plan_on():
    controller = mbd.MPC(CartPole(), horizon=20, dt=0.05)
    planned = controller(START).plan_u
    said = controller(np.array([np.nan, 1.0, 0.0, 0.0]))
    assert said.decision == Decision.UNMEASURED
    assert said.u == pytest.approx(planned[1])
    assert controller(START).decision == Decision.SOLVED


def test_prediction_that_diverges_is_said():
    controller = mbd.MPC(CartPole(), horizon=5, dt=0.05, relinearize="each")
    assert controller(np.array([0.0, 0.0, 1e200, 0.0])).decision == Decision.UNPREDICTED


class CountingCart(CartPole):
    """A cart-pole that counts how often its forces are traced."""

    traces = [0]

    def force(self, t, q, v, u, mu):
        self.traces[0] += 1
        return super().force(t, q, v, u, mu)


def test_decisions_after_the_first_trace_nothing():
    controller = mbd.MPC(CountingCart(), horizon=10, dt=0.05, relinearize="each")
    controller(START)
    controller(0.9 * START)
    before = CountingCart.traces[0]
    for k in range(5):
        controller(0.8**k * START, 0.05 * k)
    controller.reset()
    controller(START)
    assert CountingCart.traces[0] == before


def controller_of(**settings):
    """A controller of the cart-pole; every setting goes where it belongs."""
    groups = {
        name: kind(**{f.name: settings.pop(f.name) for f in fields(kind) if f.name in settings})
        for name, kind in (("cost", QuadraticCost), ("limits", Limits))
    }
    return mbd.MPC(CartPole(), **{"horizon": 10, "dt": 0.05} | settings | groups)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, "whole number"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"dt": math.nan}, "finite"),
        ({"Q": np.eye(3)}, "4 by 4"),
        ({"Q": np.eye(4) + np.eye(4, k=1)}, "not symmetric"),
        ({"Q": np.diag([1.0, -1.0, 1.0, 1.0])}, "positive semi-definite"),
        ({"Q": [1.0, math.nan, 1.0, 1.0]}, "finite"),
        ({"Q": "identity"}, "a matrix of real numbers"),
        ({"R": [0.0]}, "positive definite"),
        ({"R": [[-1.0]]}, "positive definite"),
        ({"R": np.eye(2)}, "1 by 1"),
        ({"z_bounds": {"x": (1.0, -1.0)}}, "no room for x"),
        ({"z_bounds": {"y": (-1.0, 1.0)}}, "'y'"),
        ({"z_bounds": {"x": (0.5, 1.0)}}, "outside its own bounds"),
        ({"z_bounds": 3.0}, "min and the max"),
        ({"u_bounds": (5.0, -5.0)}, "no room for u"),
        ({"u_bounds": (1.0, 2.0)}, "outside its own bounds"),
        ({"u_bounds": ([-1.0, -1.0], [1.0, 1.0])}, "One side"),
        ({"u_rate": -1.0}, "above zero"),
        ({"u_rate": {"w": 1.0}}, "'w'"),
        ({"target": [0.0, 0.0]}, "shape"),
        ({"target": {"theta_dot": 1.0}}, "The target moves"),
        ({"target": {"theta": 0.5}}, "The target moves: theta_dot"),
        ({"u_target": [5.0]}, "The target moves"),
        ({"target": {"theta_dot": 1.0}, "relinearize": "each"}, "no infinite-horizon cost-to-go"),
        ({"dt": "fast"}, "finite number"),
        ({"dt": True}, "finite number"),
        ({"observer_gain": None}, "finite number"),
        ({"violation_cost": "much"}, "finite number"),
        ({"z_bounds": {"x": ("a", 1.0)}}, "One side"),
        ({"u_bounds": ("a", "b")}, "One side"),
        ({"actuated": 3}, "at least one"),
        ({"Q": np.eye(4) * 1j}, "a matrix of real numbers"),
        ({"terminal": "lqr"}, "lqr"),
        ({"terminal": -np.eye(4)}, "positive semi-definite"),
        ({"terminal": np.ones((2, 2))}, "4 by 4"),
        ({"Q": np.zeros((4, 4))}, "Q is zero"),
        ({"Q": [0.0, 0.0, 0.0, 1.0]}, "no Riccati"),
        ({"relinearize": "always"}, "always"),
        ({"iterations": 0, "relinearize": "each"}, "iterations is 0"),
        ({"iterations": 3}, "nothing to improve"),
        ({"observer_gain": 2.0}, "between 0 and 1"),
        ({"violation_cost": 0.0}, "violation_cost"),
        ({"actuated": ["torque"]}, "torque"),
        ({"actuated": []}, "at least one"),
        ({"parameters": {"mass": 1.0}}, "mass"),
    ],
)
def test_impossible_settings_are_refused_before_the_first_step(settings, says):
    with pytest.raises(ValueError, match=says):
        controller_of(**settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"cost": {"Q": [1.0] * 4}}, r"cost is a dict; give mbdnode\.QuadraticCost"),
        ({"limits": (-1.0, 1.0)}, r"limits is a tuple; give mbdnode\.Limits"),
    ],
)
def test_cost_and_limits_are_refused_as_anything_else(settings, says):
    with pytest.raises(TypeError, match=says):
        mbd.MPC(CartPole(), horizon=10, dt=0.05, **settings)


def test_start_from_which_the_limits_allow_no_input_is_refused():
    limits = Limits(u_bounds=(-1.0, 1.0), u_rate=2.0)
    controller = mbd.MPC(CartPole(), horizon=10, dt=0.05, limits=limits)
    with pytest.raises(ValueError, match="No input is feasible"):
        controller.reset(u=[5.0])


def test_state_of_the_wrong_shape_is_refused():
    controller = mbd.MPC(CartPole(), horizon=5, dt=0.05)
    with pytest.raises(ValueError, match="theta, x, theta_dot, x_dot"):
        controller(np.zeros(3))


def test_reference_of_the_wrong_shape_is_refused():
    controller = mbd.MPC(CartPole(), horizon=5, dt=0.05)
    with pytest.raises(ValueError, match="5 finite rows"):
        controller(np.zeros(4), reference=np.zeros((4, 4)))


@pytest.mark.parametrize("z", [{"theta": 1.0}, "upright", None])
def test_state_that_is_no_vector_is_refused(z):
    with pytest.raises(ValueError, match="theta, x, theta_dot, x_dot"):
        mbd.MPC(CartPole(), horizon=5, dt=0.05)(z)


def test_system_whose_motion_is_prescribed_is_refused():
    with pytest.raises(ValueError, match="no degrees of freedom"):
        mbd.MPC(DrivenCrank(), horizon=5, dt=0.05)


def test_system_without_inputs_is_refused():
    with pytest.raises(ValueError, match="no inputs"):
        mbd.MPC(Pendulum(), horizon=5, dt=0.05)
