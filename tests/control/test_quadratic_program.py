"""The quadratic program against recursions and optimizers that know nothing of PIQP."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize as so

from mbdnode.control.problem import Limits, QuadraticCost, make_problem
from mbdnode.control.quadratic_program import QuadraticProgram
from mbdnode.control.terminal_cost import riccati

A = np.array([[1.0, 0.1], [0.3, 1.1]])
B = np.array([[0.0], [0.2]])
Z = np.array([1.0, -0.5])
Q, R = np.diag([2.0, 0.5]), np.array([[0.3]])


COST = QuadraticCost(Q=Q, R=R)


def problem(horizon=8, cost=COST, **limits):
    names, zero = (("a", "b"), ("u",)), (np.zeros(2), np.zeros(1))
    limits = Limits(**limits)
    return make_problem(*names, *zero, horizon=horizon, dt=0.1, cost=cost, limits=limits)


def plan(made, terminal=None, previous=0.0, reference=None):
    count = made.horizon
    terminal = np.zeros((2, 2)) if terminal is None else terminal
    return QuadraticProgram(made, terminal).solve(
        np.repeat(A[None], count, axis=0),
        np.repeat(B[None], count, axis=0),
        np.zeros((count, 2)),
        Z,
        np.array([previous]),
        np.zeros((count, 2)) if reference is None else reference,
        np.zeros((count, 1)),
    )


def follow(u):
    """The states of inputs, by recursion."""
    states = [Z]
    for value in u:
        states.append(A @ states[-1] + B[:, 0] * value)
    return np.array(states[1:])


def cost(u, terminal):
    states = follow(u)
    running = sum(z @ Q @ z for z in states[:-1]) + R[0, 0] * float(u @ u)
    return running + states[-1] @ terminal @ states[-1]


def test_free_plan_is_that_of_the_riccati_recursion():
    terminal = np.diag([3.0, 1.0])
    found = plan(problem(), terminal)
    P, gains = terminal, []
    for _ in range(8):
        gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        gains.append(gain)
        P = Q + A.T @ P @ (A - B @ gain)
    z = Z
    for k, gain in enumerate(reversed(gains)):
        u = -gain @ z
        z = A @ z + B @ u
        assert found.u[k] == pytest.approx(u, abs=1e-7)
        assert found.z[k] == pytest.approx(z, abs=1e-7)


def test_bounded_plan_is_that_of_a_bounded_least_squares_problem():
    terminal = np.diag([3.0, 1.0])
    found = plan(problem(u_bounds=(-1.0, 1.0)), terminal)
    # Stacked, the cost is |M u + c|^2.
    weights = np.kron(np.eye(8), np.sqrt(Q))
    weights[-2:, -2:] = np.sqrt(terminal)
    columns = [weights @ (follow(e) - follow(np.zeros(8))).ravel() for e in np.eye(8)]
    M = np.vstack([np.array(columns).T, np.sqrt(R[0, 0]) * np.eye(8)])
    c = np.concatenate([weights @ follow(np.zeros(8)).ravel(), np.zeros(8)])
    expected = so.lsq_linear(M, -c, bounds=(-1.0, 1.0), tol=1e-14).x
    assert np.any(np.isclose(np.abs(expected), 1.0))
    assert found.u[:, 0] == pytest.approx(expected, abs=1e-6)


def test_limits_on_the_change_are_kept_and_best():
    terminal = np.diag([3.0, 1.0])
    found = plan(problem(5, u_rate=2.0), terminal, previous=0.4)
    changes = np.diff(np.concatenate([[0.4], found.u[:, 0]]))
    assert np.max(np.abs(changes)) <= 0.2 + 1e-7
    limits = so.LinearConstraint(
        np.eye(5) - np.eye(5, k=-1), np.array([0.2] + [-0.2] * 4), np.array([0.6] + [0.2] * 4)
    )
    best = so.minimize(
        cost, np.zeros(5), args=(terminal,), method="SLSQP", constraints=limits, tol=1e-13
    )
    assert cost(found.u[:, 0], terminal) == pytest.approx(best.fun, rel=1e-6)


def test_bound_on_a_state_is_kept_where_it_can_be():
    free, bound = plan(problem(12)), plan(problem(12, z_bounds={"b": (-0.6, None)}))
    assert np.min(free.z[:, 1]) < -0.7
    assert np.min(bound.z[:, 1]) >= -0.6 - 1e-6
    assert bound.violation < 1e-6


def test_bound_that_cannot_be_kept_is_left_as_little_as_can_be():
    found = plan(problem(6, z_bounds={"a": (None, 0.2)}, u_bounds=(-1.0, 1.0)))
    states = follow(found.u[:, 0])
    assert found.violation == pytest.approx(np.max(states[:, 0]) - 0.2, abs=1e-6)
    # The first states are out of reach of any input, so they are no one's fault.
    assert states[0, 0] == pytest.approx((A @ Z)[0], abs=1e-12)


def test_reference_is_followed_at_little_cost():
    wanted = np.column_stack([np.zeros(30), np.linspace(0, 1, 30)])
    cheap = problem(30, QuadraticCost(Q=np.diag([0.0, 1.0]), R=[1e-9]))
    found = plan(cheap, reference=wanted)
    assert found.z[:-1, 1] == pytest.approx(wanted[:-1, 1], abs=1e-6)


def test_two_inputs_share_the_work_by_their_weights():
    two = make_problem(
        ("a", "b"),
        ("u", "w"),
        np.zeros(2),
        np.zeros(2),
        horizon=6,
        dt=0.1,
        cost=QuadraticCost(Q=Q, R=[1.0, 4.0]),
        limits=Limits(),
    )
    both = np.hstack([B, B])
    count = np.zeros((6, 2))
    found = QuadraticProgram(two, np.eye(2)).solve(
        np.repeat(A[None], 6, 0), np.repeat(both[None], 6, 0), count, Z, np.zeros(2), count, count
    )
    assert found.u[:, 0] == pytest.approx(4 * found.u[:, 1], abs=1e-7)


def test_program_without_numbers_has_no_solution():
    made = problem(4)
    four = np.zeros((4, 2))
    bad = np.full((4, 2, 2), np.nan)
    program = QuadraticProgram(made, np.eye(2))
    arguments = (np.repeat(B[None], 4, 0), four, Z, np.zeros(1), four, np.zeros((4, 1)))
    assert program.solve(bad, *arguments) is None
    again = program.solve(np.repeat(A[None], 4, 0), *arguments)
    assert np.all(np.isfinite(again.u))


def test_riccati_weight_makes_any_horizon_the_infinite_one():
    P = riccati(A, B, Q, R)
    gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    for horizon in (1, 3, 20):
        assert plan(problem(horizon), P).u[0] == pytest.approx(-gain @ Z, abs=1e-7)


def test_model_that_inputs_cannot_stabilize_has_no_riccati_weight():
    with pytest.raises(ValueError, match="cannot stabilize"):
        riccati(np.diag([2.0, 0.5]), np.array([[0.0], [1.0]]), np.eye(2), np.eye(1))


def test_limited_input_is_the_nearest_allowed():
    made = dataclasses.replace(problem(2, u_bounds=(-1.0, 1.0)), u_change=np.array([0.3]))
    assert made.limited(np.array([5.0]), np.array([0.9])) == pytest.approx([1.0])
    assert made.limited(np.array([-5.0]), np.array([0.9])) == pytest.approx([0.6])
