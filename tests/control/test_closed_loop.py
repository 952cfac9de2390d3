"""Closed loops: that they settle, what disturbs them, and how they end."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_discrete_are

import mbdnode as mbd
from mbdnode.control import Decision, loop_difference
from mbdnode.mechanisms.cart_pole import CartPole
from mbdnode.mechanisms.single_pendulum import SinglePendulumCartesian
from mbdnode.mechanisms.slider_crank import SliderCrank

CART = CartPole()
START = {"theta": math.pi / 6, "x": 1.0}


@pytest.fixture(scope="module")
def regulator():
    return mbd.MPC(CART, horizon=50, dt=0.05)


def balance(controller, steps=400, plant=CART, **options):
    return mbd.closed_loop(
        plant=plant, controller=controller, initial=START, steps=steps, **options
    )


def test_cart_pole_settles_from_the_papers_start(regulator):
    run = balance(regulator)
    assert bool(run.status.ok)
    assert run.decisions.settled_at(1e-3) < 20.0
    assert "settled below 0.001" in run.decisions.verdict()
    assert run.decisions.fallbacks == 0
    assert set(run.decisions.statuses) == {"solved"}
    assert np.all(run.decisions.seconds > 0)
    # The last row has no step after it, and repeats the decision before it.
    assert run.decisions.seconds[-1] == run.decisions.seconds[-2]


def test_plant_moves_as_scipy_says_under_the_same_inputs(regulator):
    run = balance(regulator, steps=40, substeps=8)
    u = np.asarray(run.u)[:, 0]

    def right(t, y, force):
        theta, _, omega, v = y
        s, c = math.sin(theta), math.cos(theta)
        # The printed equations solved for the accelerations, with m = M = 1 and l = 1/2.
        a_x = (force + 0.5 * omega**2 * s - 9.81 * s * c) / (2.0 - c**2)
        return [omega, v, (9.81 * s - a_x * c) / 0.5, a_x]

    rows = np.concatenate([run.q, run.v], axis=1)
    for k in range(40):
        step = solve_ivp(right, (0.0, 0.05), rows[k], args=(u[k],), rtol=1e-11, atol=1e-13)
        # RK4 with steps of 6 ms.
        assert rows[k + 1] == pytest.approx(step.y[:, -1], abs=1e-6)


def test_swing_up_by_linearizing_along_the_motion():
    controller = mbd.MPC(
        CART,
        horizon=40,
        dt=0.05,
        cost=mbd.QuadraticCost(Q=[1.0, 1.0, 0.1, 0.1], R=[0.1]),
        limits=mbd.Limits(u_bounds=(-10.0, 10.0), z_bounds={"x": (-1.5, 1.5)}),
        relinearize="each",
    )
    hanging = {"theta": math.pi, "x": 0.0}
    run = mbd.closed_loop(plant=CART, controller=controller, initial=hanging, steps=200)
    assert run.decisions.settled_at(1e-2) is not None
    assert np.max(np.abs(run.u)) <= 10.0
    assert np.max(np.abs(run["x"])) <= 1.5


def test_delay_is_planned_for(regulator):
    run = balance(regulator, delay=1)
    assert run.decisions.settled_at(1e-3) is not None
    # The first input was decided before the loop began.
    assert float(run.u[0, 0]) == 0.0


def test_noise_is_borne_and_repeats_with_its_seed(regulator):
    runs = [balance(regulator, steps=200, noise=1e-3, seed=seed) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert not np.array_equal(runs[0].q, runs[2].q)
    assert np.max(runs[0].decisions.error[-40:]) < 0.1


def test_lasting_push_is_found_and_compensated():
    plain = mbd.MPC(CART, horizon=50, dt=0.05)
    aware = mbd.MPC(CART, horizon=50, dt=0.05, observer_gain=0.3)
    off = balance(plain, disturbance={"u": 2.0}).decisions.error[-1]
    run = balance(aware, disturbance={"u": 2.0})
    assert off > 0.1
    assert run.decisions.error[-1] < 2e-3
    assert aware.disturbance == pytest.approx([2.0], abs=1e-3)


def test_reference_is_tracked_with_preview(regulator):
    wanted = lambda t: {"x": 0.5 if t > 4.0 else 0.0}  # noqa: E731
    run = mbd.closed_loop(plant=CART, controller=regulator, initial={}, steps=400, reference=wanted)
    x = np.asarray(run["x"])
    assert x[-1] == pytest.approx(0.5, abs=1e-3)
    # It leans before the step comes.
    assert np.max(np.abs(x[:81])) > 1e-2
    rows = np.array([[0.0, wanted(0.05 * k)["x"], 0.0, 0.0] for k in range(120)])
    same = mbd.closed_loop(plant=CART, controller=regulator, initial={}, steps=400, reference=rows)
    assert np.asarray(same.q) == pytest.approx(np.asarray(run.q), abs=1e-9)


def test_reference_is_followed_in_time_in_spite_of_a_delay():
    cost = mbd.QuadraticCost(Q=[1, 100, 0.1, 0.1], R=[0.01])
    eager = mbd.MPC(CART, horizon=40, dt=0.05, cost=cost)
    wanted = lambda t: {"x": 0.5 * math.sin(t)}  # noqa: E731
    for delay in (0, 3):
        run = mbd.closed_loop(
            plant=CART, controller=eager, initial={}, steps=200, reference=wanted, delay=delay
        )
        late = np.asarray(run["x"]) - 0.5 * np.sin(np.asarray(run.t))
        # Of three steps of 0.05 s the lag alone would be 0.075.
        assert np.max(np.abs(late[100:])) < 0.01


def test_reference_by_name_leaves_the_rest_at_the_target():
    controller = mbd.MPC(CART, horizon=40, dt=0.05, cost=mbd.QuadraticCost(target={"x": 2.0}))
    run = mbd.closed_loop(
        plant=CART, controller=controller, initial={"x": 2.0}, steps=40, reference={"theta": 0.0}
    )
    assert np.asarray(run["x"]) == pytest.approx(2.0, abs=1e-6)


@pytest.mark.slow
def test_noise_beyond_what_the_mechanism_can_reach_is_borne():
    pendulum = SinglePendulumCartesian()
    run = mbd.closed_loop(
        plant=pendulum,
        controller=mbd.MPC(pendulum, horizon=8, dt=0.05),
        initial={"x": 0.99},
        steps=5,
        noise=0.05,
        seed=1,
    )
    assert len(run) == 6


@pytest.mark.slow
def test_constrained_plant_keeps_its_constraints_and_its_speed():
    crank = SliderCrank()
    controller = mbd.MPC(
        crank,
        horizon=15,
        dt=0.04,
        cost=mbd.QuadraticCost(
            Q=[0.0, 1.0], R=[1e-6], target={"theta1": 1.0, "theta1_dot": 0.8}, terminal=None
        ),
        limits=mbd.Limits(u_bounds=(-30.0, 30.0)),
        actuated=["T"],
        relinearize="each",
        observer_gain=0.3,
    )
    load = lambda t: {"T": -5.0 if t > 1.0 else 0.0}  # noqa: E731
    run = mbd.closed_loop(
        plant=crank, controller=controller, initial={"theta1": 1.0}, steps=90, disturbance=load
    )
    assert run.decisions.error[-20:] == pytest.approx(0.0, abs=5e-3)
    assert controller.disturbance == pytest.approx([-5.0], abs=1e-2)
    assert np.max(run.position_residual) < 1e-12
    assert np.all(np.asarray(run.u)[:, 0] == 0.0)


def test_two_inputs_drive_two_coordinates_as_one_drives_one():
    push = lambda t, q, v, u, mu: u  # noqa: E731
    plane = mbd.AccelerationFunction(
        push, (mbd.length("x"), mbd.length("y")), inputs=(mbd.Input("fx"), mbd.Input("fy"))
    )
    line = mbd.AccelerationFunction(push, (mbd.length("x"),), inputs=(mbd.Input("fx"),))
    runs = [
        mbd.closed_loop(
            plant=system,
            controller=mbd.MPC(system, horizon=20, dt=0.1, limits=mbd.Limits(u_bounds=(-1.0, 1.0))),
            initial=start,
            steps=80,
        )
        for system, start in ((plane, {"x": 1.0, "y": -2.0}), (line, {"x": 1.0}))
    ]
    assert np.asarray(runs[0]["x"]) == pytest.approx(np.asarray(runs[1]["x"]), abs=1e-6)
    assert float(np.max(runs[0]["fy"])) == pytest.approx(1.0, abs=1e-6)
    assert runs[0].decisions.settled_at(1e-2) is not None


def test_plant_that_fails_ends_in_a_status_and_keeps_what_came_before():
    run = mbd.closed_loop(
        plant=CART,
        controller=mbd.MPC(CART, horizon=5, dt=0.05),
        initial={"theta_dot": 1e140},
        steps=6,
    )
    assert not bool(run.status.ok)
    assert "plant failed" in run.decisions.verdict()
    assert run.decisions.code[-1] == Decision.NOT_REACHED
    assert len(run.kept) == int(run.status.step) + 1


def test_loop_that_cannot_be_won_says_that_it_did_not_settle():
    weak = mbd.MPC(CART, horizon=20, dt=0.05, limits=mbd.Limits(u_bounds=(-0.1, 0.1)))
    run = balance(weak, steps=100)
    assert run.decisions.settled_at() is None
    assert "did not settle" in run.decisions.verdict()


def test_rows_of_a_loop_keep_their_decisions(regulator):
    piece = balance(regulator, steps=20).rows(5, 10)
    assert len(piece.decisions.code) == len(piece) == 6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"substeps": 0}, "substeps is 0"),
        ({"delay": -1}, "delay is -1"),
        ({"delay": 0.5}, "whole number"),
        ({"initial": {"theta": math.nan}}, "theta"),
        (
            {"initial": mbd.State(jnp.array([0.0, math.inf]), jnp.zeros(2))},
            "must be a finite number",
        ),
        ({"initial": mbd.State(jnp.zeros(3), jnp.zeros(3))}, "shape"),
        ({"initial": {"phi": 1.0}}, "phi"),
        ({"noise": -1.0}, "must not be negative"),
        ({"noise": [1.0, 2.0]}, "shape"),
        ({"disturbance": {"F": 1.0}}, "F"),
        ({"disturbance": np.zeros((3, 2))}, "shape"),
        ({"disturbance": np.array([[math.nan]] * 3)}, "finite"),
        ({"reference": np.zeros((3, 2))}, "shape"),
        ({"reference": lambda t: [0.0, math.inf, 0.0, 0.0]}, "finite"),
        ({"plant": SliderCrank(), "initial": {}}, "Control a plant with a model of it"),
        ({"integrator": "rk5"}, "rk5"),
        ({"parameters": {"mass": 1.0}}, "mass"),
    ],
)
def test_impossible_loops_are_refused_before_the_first_step(options, says, regulator):
    settings = {"plant": CART, "controller": regulator, "initial": START, "steps": 5} | options
    with pytest.raises(ValueError, match=says):
        mbd.closed_loop(**settings)


def test_cost_of_a_regulated_mass_is_that_of_the_riccati_equation():
    # The sum from here to eternity is z' P z; a force and a mass of 1 kg leave no other error.
    h, start = 0.05, {"x": 1.0, "x_dot": -0.5}
    mass = mbd.multibody.AccelerationFunction(
        lambda t, q, v, u, mu: u, (mbd.multibody.length("x"),), inputs=(mbd.multibody.Input("F"),)
    )
    controller = mbd.MPC(mass, horizon=20, dt=h, cost=mbd.QuadraticCost(Q=(4.0, 1.0), R=(0.5,)))
    loop = mbd.closed_loop(plant=mass, controller=controller, initial=start, steps=800)
    A, B = np.array([[1.0, h], [0.0, 1.0]]), np.array([[h**2 / 2], [h]])
    P = solve_discrete_are(A, B, np.diag([4.0, 1.0]), np.array([[0.5]]))
    z = np.array([1.0, -0.5])
    assert controller.cost_of(loop) == pytest.approx(z @ P @ z, rel=1e-6)


def test_difference_of_loops_is_a_part_of_each_columns_range():
    cart = CartPole()
    truth = mbd.simulate(cart, np.linspace(0.0, 1.0, 21), {"theta": 0.1})
    shifted = eqx.tree_at(lambda run: run.q, truth, truth.q + np.array([[0.0, 0.02]]))
    found = loop_difference(shifted, truth)
    assert found["x"] == pytest.approx(0.02 / np.ptp(truth["x"]), rel=1e-12)
    assert found["theta"] == 0.0
    # The input was zero all the time, so it has no range.
    assert "u" not in found


def test_loop_that_ended_early_has_no_difference():
    truth = mbd.simulate(CartPole(), np.linspace(0.0, 1.0, 21), {"theta": 0.1})
    lost = eqx.tree_at(lambda run: run.q, truth, truth.q.at[15:].set(np.nan))
    assert loop_difference(lost, truth)["x"] is None


def test_a_reference_and_a_disturbance_with_names_go_by_name():
    controller = mbd.MPC(CartPole(), horizon=4, dt=0.02)
    rows = np.linspace(0.0, 1.0, 12)
    places = {"theta": 0.0 * rows, "x": rows, "theta_dot": 0.0 * rows, "x_dot": rows**2}
    ordered = np.stack([places[name] for name in controller.states], axis=1)
    pushed = {"u": rows}
    options = {"plant": CartPole(), "controller": controller, "initial": {"x": 0.1}, "steps": 3}
    expected = mbd.closed_loop(**options, reference=ordered, disturbance=rows[:, None])
    shuffled = pandas.DataFrame(places)[["x_dot", "theta", "x", "theta_dot"]]
    found = mbd.closed_loop(**options, reference=shuffled, disturbance=pandas.DataFrame(pushed))
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.u, expected.u)
    state = pandas.Series({"x_dot": 0.0, "theta": 0.0, "x": 0.2, "theta_dot": 0.1})
    controller.reset()
    by_name = controller(state).u
    controller.reset()
    np.testing.assert_array_equal(by_name, controller([state[n] for n in controller.states]).u)
    with pytest.raises(ValueError, match="Unknown state or input 'y'"):
        mbd.closed_loop(**options, reference=shuffled.assign(y=1.0))
    with pytest.raises(ValueError, match=r"reference has columns of different lengths"):
        mbd.closed_loop(**options, reference={**places, "x": rows[:4]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "one"}, "seed is 'one'; it must be a whole number"),
        ({"seed": -1}, "seed is -1; it must be a whole number"),
    ],
)
def test_what_is_no_number_is_refused_in_a_sentence(options, message):
    given = {"initial": {"x": 0.1}, "steps": 1, **options}
    controller = mbd.MPC(CartPole(), horizon=4, dt=0.02)
    with pytest.raises(ValueError, match=message):
        mbd.closed_loop(plant=CartPole(), controller=controller, **given)
