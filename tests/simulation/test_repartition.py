"""Motions along which the choice of independent coordinates must change, against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from toys import (
    TIMES,
    BottomPendulum,
    Elbow,
    GaugedPendulum,
    Pendulum,
    TurningBlade,
    TwiceHeldPendulum,
    TwiceHeldPendulumAllowed,
)

from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import choose_partition, consistent_state, resolve_parameters
from mbdnode.simulation import simulate
from mbdnode.status import Outcome
from mbdnode.trajectory import State


def solve(right, start, t):
    """Rows at the times `t`, to about 1e-12."""
    found = solve_ivp(
        right, (t[0], t[-1]), start, method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13
    )
    return found.y


def free_arm(t, y):
    """Two links of 1 m in their absolute angles, with 1 kg at the elbow and 2 kg at the tip."""
    a, b, da, db = y
    c, s = np.cos(a - b), np.sin(a - b)
    matrix = np.array([[3.0, 2 * c], [2 * c, 2.0]])
    return [da, db, *np.linalg.solve(matrix, [-2 * s * db**2, 2 * s * da**2])]


REACHING = {"shoulder": 0.2, "elbow": 0.8, "shoulder_dot": 0.0, "elbow_dot": -1.0}


@pytest.mark.slow
def test_elbow_that_stretches_passes_without_a_jump():
    t = np.linspace(0.0, 3.0, 301)
    run = simulate(Elbow(), t, REACHING, integrator="dopri8")
    assert bool(run.status.ok)
    a, b, da, db = solve(free_arm, [0.2, 1.0, 0.0, -1.0], t)
    np.testing.assert_allclose(run["shoulder"], a, atol=1e-10)
    np.testing.assert_allclose(run["elbow"], b - a, atol=1e-10)
    np.testing.assert_allclose(run["elbow_dot"], db - da, atol=1e-10)
    np.testing.assert_allclose(run["x"], np.cos(a) + np.cos(b), atol=1e-10)
    # The arm did stretch, and bent to the other side.
    assert float(run["elbow"].min()) < -1.0
    # Between neighbors the trapezoid is good to h^3 v''/12; a jump would show at once.
    h = 0.01
    jump = run.q[1:] - run.q[:-1] - h / 2 * (run.v[1:] + run.v[:-1])
    assert float(jnp.max(jnp.abs(jump))) < h**3 * 10
    assert float(run.position_residual.max()) < 1e-15
    assert float(run.velocity_residual.max()) < 1e-13


@pytest.mark.slow
def test_elbow_that_may_not_repartition_stops_where_it_stretches():
    t = np.linspace(0.0, 3.0, 301)
    run = simulate(Elbow(), t, REACHING, repartition=False)
    assert int(run.status.code) == Outcome.CONSTRAINTS_UNSOLVED
    a, b, _, _ = solve(free_arm, [0.2, 1.0, 0.0, -1.0], t)
    straight = t[np.argmax(b - a < 0)]
    # It gives up in the last hundredths of a radian before the arm is straight.
    assert straight - 0.05 < float(run.status.t) <= straight
    assert "Newton iteration for the dependent coordinates did not converge" in str(run.status)
    assert "name other independent coordinates" in str(run.status)


def rocker_inertia(rod, l=2.0, r=1.0):  # noqa: E741
    """Generalized inertia of the slider-crank in its rod's angle, and the crank's angle."""
    crank = np.arcsin(-r / l * np.sin(rod))
    slope = -r / l * np.cos(rod) / np.cos(crank)
    s1, c1, s2, c2 = np.sin(crank), np.cos(crank), np.sin(rod), np.cos(rod)
    first = (l / 2 * slope) ** 2
    second = (l * s1 * slope + r / 2 * s2) ** 2 + (l * c1 * slope + r / 2 * c2) ** 2
    slider = (l * s1 * slope + r * s2) ** 2
    return 3 * first + 4 * slope**2 + 6 * second + 32 + 1 * slider, crank


SHORT_ROD = {"l": 2.0, "r": 1.0}


def test_crank_that_runs_into_its_lock_swings_back_while_the_rod_turns():
    t = np.linspace(0.0, 8.0, 401)
    start = {"theta2": 0.3, "theta1": float(rocker_inertia(0.3)[1]), "theta2_dot": 1.0}
    # The crank cannot be independent: it stops at 30 degrees each way, where the rod goes on.
    run = simulate(SliderCrank(), t, start, parameters=SHORT_ROD, integrator="dopri8")
    assert bool(run.status.ok)
    energy = rocker_inertia(0.3)[0]
    rod = solve(lambda _, y: np.sqrt(energy / rocker_inertia(y)[0]), [0.3], t)[0]
    np.testing.assert_allclose(run["theta2"], rod, atol=1e-9)
    np.testing.assert_allclose(run["theta1"], rocker_inertia(rod)[1], atol=1e-9)
    # Its turning points lie between output times, less than h^2/8 short of 30 degrees.
    assert float(run["theta1"].max()) == pytest.approx(np.pi / 6, abs=1e-4)


def test_crank_that_may_not_repartition_stops_at_its_lock():
    t = np.linspace(0.0, 8.0, 401)
    start = {"theta2": 0.3, "theta1": float(rocker_inertia(0.3)[1]), "theta2_dot": 1.0}
    run = simulate(SliderCrank(), t, start, parameters=SHORT_ROD, repartition=False)
    assert int(run.status.code) == Outcome.CONSTRAINTS_UNSOLVED
    energy = rocker_inertia(0.3)[0]
    rod = solve(lambda _, y: np.sqrt(energy / rocker_inertia(y)[0]), [0.3], t)[0]
    lock = t[np.argmax(rod > np.pi / 2)]
    assert lock - 0.1 < float(run.status.t) <= lock
    # What came before is right: this close to the lock RK4 at 0.02 s is good to 1e-4.
    last = int(run.status.step)
    np.testing.assert_allclose(run["theta2"][:last], rod[:last], atol=1e-3)


def blade(t, y):
    """The turning blade by its KKT equations, with `gamma` derived by hand."""
    _, _, theta, vx, vy, w = y
    phi, turning = 0.7 * t + theta, 0.7 + w
    row = np.array([-np.sin(phi), np.cos(phi), 0.0])
    changing = -turning * np.array([np.cos(phi), np.sin(phi), 0.0])
    gamma = 0.2 + 0.1 * vx - changing @ [vx, vy, w]
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3], matrix[3, :3] = np.diag([2.0, 2.0, 0.5]), row, row
    return [vx, vy, w, *np.linalg.solve(matrix, [1.0, 0.0, 0.4, gamma])[:3]]


def test_blade_that_turns_round_exchanges_velocities_only():
    t = np.linspace(0.0, 4.0, 201)
    start = consistent_state(TurningBlade(), {"x": 0.5, "x_dot": 0.3})
    force = np.full(201, 0.4)
    run = simulate(TurningBlade(), t, start, inputs=force, integrator="dopri8")
    expected = solve(blade, [*map(float, start.q), *map(float, start.v)], t)
    # The blade turns by more than one revolution: neither x nor y is good throughout.
    assert 0.7 * 4 + float(run["theta"][-1]) > 2 * np.pi
    np.testing.assert_allclose(run.q.T, expected[:3], atol=1e-9)
    np.testing.assert_allclose(run.v.T, expected[3:], atol=1e-9)
    assert float(run.velocity_residual.max()) < 1e-13


@pytest.fixture(scope="module")
def swing():
    return simulate(Pendulum(), TIMES, {"x": 0.9, "x_dot": 0.4})


@pytest.mark.slow
def test_allowed_redundant_constraint_leaves_the_motion_as_it_is(swing):
    run = simulate(TwiceHeldPendulumAllowed(), TIMES, {"x": 0.9, "x_dot": 0.4})
    np.testing.assert_allclose(run.q, swing.q, atol=1e-13)
    assert float(run.position_residual.max()) < 1e-14
    assert float(run.velocity_residual.max()) < 1e-13


@pytest.mark.slow
def test_redundant_constraints_in_a_batch_use_the_rows_of_the_assembled_system(swing):
    system = TwiceHeldPendulumAllowed()
    start = State(swing.q[:1], swing.v[:1])
    run = jax.vmap(lambda s: simulate(system, TIMES, s))(start)
    np.testing.assert_allclose(run.q[0], swing.q, atol=1e-13)
    mu = resolve_parameters(system)
    partition = choose_partition(system, jnp.zeros(()), start.q[0], mu)
    run = jax.vmap(lambda s: simulate(system, TIMES, s, independent=partition))(start)
    np.testing.assert_allclose(run.q[0], swing.q, atol=1e-13)


def test_a_traced_system_with_redundant_constraints_is_refused_with_a_way_out(swing):
    class Sized(TwiceHeldPendulumAllowed):
        size: jax.Array

    start = State(swing.q[0], swing.v[0])
    with pytest.raises(ValueError, match=r"redundant.*traced.*choose_partition.*independent"):
        jax.jit(lambda size: simulate(Sized(size), TIMES, start).q)(jnp.ones(()))


@pytest.mark.slow
def test_redundant_constraints_that_nobody_allowed_do_not_pass_unseen_in_a_batch(swing):
    start = State(swing.q[:1], swing.v[:1])
    run = jax.vmap(lambda s: simulate(TwiceHeldPendulum(), TIMES, s))(start)
    assert not bool(run.status.ok[0])
    one = jax.tree.map(lambda x: x[0], run)
    assert "redundant" in str(one.status)
    np.testing.assert_allclose(one.kept.q, swing.q[:1])


@pytest.mark.slow
def test_slightly_bent_constraint_does_not_loosen_the_others(swing):
    run = simulate(GaugedPendulum(), TIMES, {"x": 0.9, "x_dot": 0.4})
    assert float(run.position_residual.max()) < 1e-14
    np.testing.assert_allclose(run.q[:, :2], swing.q, atol=1e-13)


def test_start_near_the_origin_moves_like_a_start_at_the_origin():
    at_origin = simulate(BottomPendulum(), TIMES, {"x": 0.0, "x_dot": 3.0})
    for x in (1e-6, 1e-9, 1e-12):
        run = simulate(BottomPendulum(), TIMES, {"x": x, "x_dot": 3.0})
        assert bool(run.status.ok), str(run.status)
        np.testing.assert_allclose(run.q, at_origin.q, atol=3 * x + 1e-14)


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_motion_does_not_depend_on_the_unit_of_length(swing, unit):
    run = simulate(
        Pendulum(),
        TIMES,
        {"x": 0.9 * unit, "x_dot": 0.4 * unit},
        parameters={"L": 1.5 * unit, "g": 9.81 * unit},
    )
    np.testing.assert_allclose(run.q / unit, swing.q, atol=1e-13)


def test_named_start_and_automatic_start_give_the_same_motion(swing):
    for names in ("x", ("y",)):
        run = simulate(Pendulum(), TIMES, {"x": 0.9, "x_dot": 0.4}, independent=names)
        # RK4 in other coordinates has another error, of order h^4 = 4e-7 at this step.
        np.testing.assert_allclose(run.q, swing.q, atol=1e-5)
