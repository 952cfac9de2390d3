"""Motions through singular configurations, where the constraints lose a rank: none may be decided
by rounding, and none may come out wrong without a word.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from toys import EvenCrank, FoldedChain, Parallelogram

from mbdnode.evaluation import energy
from mbdnode.mechanisms.four_bar import FourBar
from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import consistent_state
from mbdnode.simulation import simulate
from mbdnode.status import Outcome
from mbdnode.trajectory import State

# How far grids are stretched, so that a time falls upon the singular configuration, a rounding
# beside it, and at every distance up to a step.
STRETCHES = [0.0] + [
    sign * size * 10.0**power
    for power in (-16, -15, -14, -12, -10, -9, -8, -7, -6, -5, -4, -3)
    for sign, size in ((1, 1), (-1, 1), (-1, 3))
]
FEW_STRETCHES = [0.0, 1e-15, -1e-12, 1e-8, -3e-6, 1e-4, -2e-3]

# The bars are in line when the crank has turned by pi - 1: at row 200 of 800.
IN_LINE = np.pi - 1
LEVEL = {"crank": 1.0, "coupler": 0.0, "rocker": 1.0, "crank_dot": 1.0, "rocker_dot": 1.0}
ALL_TURN = State(jnp.array([1.0, 0.0, 1.0]), jnp.array([1.0, 0.0, 1.0]))


def compiled(system, **options):
    """`simulate` as one program for all grids of a length, initial states and parameters."""

    def run(t, start, parameters):
        return simulate(system, t, start, parameters=parameters, **options)

    return jax.jit(run)


RUN_FOUR_BAR = compiled(FourBar())
RUN_FOUR_BAR_ADAPTIVE = compiled(FourBar(), integrator="dopri8")
RUN_SLIDER_CRANK = compiled(SliderCrank(), integrator="dopri8")
RUN_CHAIN = compiled(FoldedChain())


def check_even_turning(run, t, speed=1.0, tolerance=1e-9):
    """Equal bars without load keep turning evenly, and the coupler stays level."""
    assert bool(run.status.ok), str(run.status)
    turning = 1 + speed * np.asarray(t)
    np.testing.assert_allclose(run.q, np.stack([turning, 0 * turning, turning], 1), atol=tolerance)
    # The speed is that of the start: nothing drives the linkage.
    expected = np.broadcast_to([speed, 0.0, speed], run.v.shape)
    np.testing.assert_allclose(run.v, expected, atol=tolerance)


@pytest.mark.slow
def test_parallelogram_passes_its_change_points_on_every_grid():
    for stretch in STRETCHES:
        t = np.linspace(0.0, 4 * IN_LINE * (1 + stretch), 801)
        run = simulate(Parallelogram(), t, LEVEL)
        check_even_turning(run, t)
        # At pi, 2 pi and 3 pi, of which the last is at the end, or just beyond it.
        assert int(run.status.passages) in (2, 3)
        assert float(run.status.passed_t) == pytest.approx(IN_LINE, abs=1e-6)
        assert float(run.position_residual.max()) < 1e-13
        assert float(run.velocity_residual.max()) < 1e-12


@pytest.mark.parametrize("row", [200.5, 200.25, 20, 20.5, 7.3, 2000])
def test_parallelogram_passes_with_long_and_short_steps_and_at_stages(row):
    # From a third of a radian a step down to a thousandth; halves are where RK4 has its stages.
    t = np.linspace(0.0, 800 / row * IN_LINE, 801)
    # Up to a hundred passages, of about 1e-11 each.
    check_even_turning(simulate(Parallelogram(), t, LEVEL), t, tolerance=1e-8)


@pytest.mark.slow
def test_implicit_integrator_of_one_fixed_coordinate_passes_as_well():
    # Even turning is a straight line in the crank's angle, which any integrator follows.
    fixed = {"integrator": "implicit-midpoint", "independent": "crank", "repartition": False}
    run = compiled(Parallelogram(), **fixed)
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 4 * IN_LINE * (1 + stretch), 801)
        check_even_turning(run(t, ALL_TURN, {}), t)


def test_dependent_coordinates_of_a_model_pass_with_it():
    run = compiled(EvenCrank())
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 4 * IN_LINE * (1 + stretch), 801)
        check_even_turning(run(t, ALL_TURN, {}), t)


@pytest.mark.parametrize("before", [1e-2, 1e-4, 1e-6, 1e-8, -1e-5])
def test_start_beside_a_change_point_is_one_like_others(before):
    crank = np.pi - before
    t = np.linspace(0.0, 4.0, 801)
    start = State(jnp.array([crank, 0.0, crank]), ALL_TURN.v)
    run = simulate(Parallelogram(), t, start)
    assert bool(run.status.ok), str(run.status)
    np.testing.assert_allclose(run["crank"], crank + t, atol=1e-9)
    np.testing.assert_allclose(run["rocker"], crank + t, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 2], 1.0, atol=1e-9)


def test_status_says_that_singular_configurations_were_passed():
    t = np.linspace(0.0, 4 * IN_LINE, 801)
    run = simulate(Parallelogram(), t, LEVEL)
    assert "past 3 singular configurations, the first near t = 2.14159 s" in str(run.status)
    short = simulate(Parallelogram(), t / 4 * 1.1, LEVEL)
    assert str(short.status).endswith(
        "(step 800), past a singular configuration near t = 2.14159 s"
    )
    before = simulate(Parallelogram(), t / 8, LEVEL)
    assert int(before.status.passages) == 0
    assert "singular" not in str(before.status)


@pytest.mark.slow
def test_batch_and_its_derivatives_pass_at_different_times():
    t = np.linspace(0.0, 4 * IN_LINE, 801)
    speeds = jnp.array([1.0, 0.7, 0.0, 1.3])

    def end(speed):
        run = simulate(Parallelogram(), t, State(ALL_TURN.q, speed * ALL_TURN.v))
        return run.q[-1, 2], run

    slopes, run = jax.jit(jax.vmap(jax.grad(end, has_aux=True)))(speeds)
    for lane, speed in enumerate(speeds):
        check_even_turning(jax.tree.map(lambda x: x[lane], run), t, float(speed))  # noqa: B023
    assert run.status.passages.tolist() == [3, 2, 0, 3]
    np.testing.assert_allclose(run.status.passed_t[3], IN_LINE / 1.3, rtol=1e-6)
    # The rocker is at 1 + speed * t.
    np.testing.assert_allclose(slopes, 4 * IN_LINE, rtol=1e-8)


def reference(right, start, t):
    """Rows at the times `t`, to about 1e-12."""
    tight = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
    return solve_ivp(right, (0.0, t[-1]), start, t_eval=t, **tight).y


def time_of(right, start, event, until):
    """When `event(y)` vanishes for the first time, to round-off."""
    tight = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
    y = solve_ivp(right, (0.0, until), start, dense_output=True, **tight).sol
    times = np.linspace(0.0, until, 1000)
    first = np.argmax(np.diff(np.sign(event(y(times)))) != 0)
    return brentq(lambda t: event(y(t)), times[first], times[first + 1], xtol=1e-15)


ALIKE = {"l_ground": 1.0, "l_crank": 0.4, "l_coupler": 1.0, "l_rocker": 0.4}


def swinging(t, y):
    """The crank of a parallelogram of 0.4 m cranks, under gravity: a pendulum."""
    inertia = 0.4 * 0.4**2 / 12 + 0.8 * 0.8**2 / 12 + (0.4 / 4 + 0.9 + 0.8 / 4) * 0.4**2
    weight = (0.4 / 2 + 0.9 + 0.8 / 2) * 0.4 * 9.81
    return [y[1], -weight * np.cos(y[0]) / inertia]


@pytest.mark.slow
def test_loaded_parallelogram_passes_with_its_energy():
    # A crank turning at 12 rad/s is at pi for the first time after 0.18 s.
    start = State(ALL_TURN.q, 12 * ALL_TURN.v)
    first = time_of(swinging, [1.0, 12.0], lambda y: y[0] - np.pi, 0.5)
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 8 * first * (1 + stretch), 401)
        run = RUN_FOUR_BAR_ADAPTIVE(t, start, ALIKE)
        assert bool(run.status.ok), str(run.status)
        crank, rate = reference(swinging, [1.0, 12.0], t)
        np.testing.assert_allclose(run["crank"], crank, atol=1e-9)
        np.testing.assert_allclose(run["rocker"], crank, atol=1e-9)
        np.testing.assert_allclose(run["crank_dot"], rate, atol=1e-8)
        total = energy(FourBar(), run, parameters=ALIKE)
        np.testing.assert_allclose(total, total[0], rtol=1e-9)


@pytest.mark.slow
def test_linkage_that_swings_back_within_a_singular_configuration_is_followed():
    # Released a thousandth above the horizontal, it comes to rest as far above the other side.
    t = np.linspace(0.0, 3.0, 401)
    start = State(jnp.array([1e-3, 0.0, 1e-3]), jnp.zeros(3))
    run = RUN_FOUR_BAR_ADAPTIVE(t, start, ALIKE)
    assert bool(run.status.ok), str(run.status)
    np.testing.assert_allclose(run["crank"], reference(swinging, [1e-3, 0.0], t)[0], atol=1e-9)


def equal_arms(t, y):
    """The crank of a slider-crank with arms of 2 m: twice its kinetic energy is `J(y) y'^2`."""
    inertia = 3 + 4 + 32 + 6 * (9 * np.sin(y[0]) ** 2 + np.cos(y[0]) ** 2) + 16 * np.sin(y[0]) ** 2
    slope = (6 * 16 + 32) * np.sin(y[0]) * np.cos(y[0])
    return [y[1], -slope * y[1] ** 2 / (2 * inertia)]


EQUAL = {"l": 2.0, "r": 2.0}


@pytest.mark.slow
def test_slider_crank_with_equal_arms_passes_over_its_pivot():
    # With both arms upright over the pivot, the slider may go on, or stay and let both turn.
    level = {"theta1": 0.3, "theta2": -0.3, "theta1_dot": 1.0, "theta2_dot": -1.0}
    start = consistent_state(SliderCrank(), level, parameters=EQUAL)
    upright = time_of(equal_arms, [0.3, 1.0], lambda y: y[0] - np.pi / 2, 3.0)
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 4 * upright * (1 + stretch), 401)
        run = RUN_SLIDER_CRANK(t, start, EQUAL)
        assert bool(run.status.ok), str(run.status)
        assert float(run.status.passed_t) == pytest.approx(upright, abs=1e-4)
        crank = reference(equal_arms, [0.3, 1.0], t)[0]
        np.testing.assert_allclose(run["theta1"], crank, atol=1e-9)
        np.testing.assert_allclose(run["theta2"], -crank, atol=1e-9)
        np.testing.assert_allclose(run["x3"], 4 * np.cos(crank), atol=1e-9)


@pytest.mark.slow
def test_slider_that_stays_over_the_pivot_stays_there():
    # The other branch: both arms turn together about the pivot, evenly.
    turned = {"theta1": 0.3, "theta2": 0.3 + np.pi, "theta1_dot": 1.0, "theta2_dot": 1.0}
    start = consistent_state(SliderCrank(), turned, parameters=EQUAL)
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 4 * (np.pi / 2 - 0.3) * (1 + stretch), 401)
        run = RUN_SLIDER_CRANK(t, start, EQUAL)
        assert bool(run.status.ok), str(run.status)
        np.testing.assert_allclose(run["theta1"], 0.3 + t, atol=1e-9)
        np.testing.assert_allclose(run["x3"], 0.0, atol=1e-9)


def rhombus(t, y):
    """Two sides of a rhombus of rods without mass, with 1 kg at its three free corners."""
    a, b, da, db = y
    c, s = np.cos(a - b), np.sin(a - b)
    return [da, db, *np.linalg.solve([[2, c], [c, 2]], [-s * db**2, s * da**2])]


@pytest.mark.slow
def test_chain_of_two_degrees_of_freedom_folds_flat_and_opens_again():
    sides = [1.0, 0.2, 0.3, 1.1]
    flat = time_of(rhombus, sides, lambda y: y[0] - y[1], 2.0)
    start = State(jnp.array([1.0, 0.2, 1.0 + np.pi, 0.2 + np.pi]), jnp.array([0.3, 1.1, 0.3, 1.1]))
    for stretch in FEW_STRETCHES:
        t = np.linspace(0.0, 4 * flat * (1 + stretch), 401)
        run = RUN_CHAIN(t, start, {"gap": 0.0})
        assert bool(run.status.ok), str(run.status)
        assert int(run.status.passages) == 1
        a, b, da, db = reference(rhombus, sides, t)
        # RK4 at 0.008 s is good to 1e-10 here.
        expected = np.stack([a, b, a + np.pi, b + np.pi], 1)
        np.testing.assert_allclose(run.q, expected, atol=1e-9)
        np.testing.assert_allclose(run.v, np.stack([da, db, da, db], 1), atol=1e-9)


def energy_change(mechanism, run, parameters):
    """The largest of the kept rows, as a part of the energy at the start."""
    total = np.asarray(energy(mechanism, run.kept, parameters=parameters))
    return np.max(np.abs(total / total[0] - 1))


@pytest.mark.slow
@pytest.mark.parametrize("step", [0.01, 0.15])
def test_branches_that_come_close_without_crossing_are_not_mistaken_for_a_crossing(step):
    # The ground is longer or shorter than the coupler: instead of crossing, each branch turns
    # into the other, within the square root of the difference.
    t = step * np.arange(401)
    passed, ended = [], []
    for difference in (1e-16, 1e-8, -1e-8, 1e-6, 1e-4, -1e-4, 1e-2, -1e-2):
        uneven = {"l_ground": 1 + difference, "l_crank": 0.5, "l_rocker": 0.5, "l_coupler": 1.0}
        uneven["g"] = 0.0
        known = {"crank": 1.0, "crank_dot": 1.0}
        guess = {"coupler": 0.0, "rocker": 1.0}
        start = consistent_state(FourBar(), known, guess=guess, parameters=uneven)
        run = RUN_FOUR_BAR(t, start, uneven)
        (passed if run.status.ok else ended).append(difference)
        assert bool(run.status.ok) or int(run.status.code) == Outcome.SINGULAR
        # Energy comes from nowhere; what RK4 itself loses in a turn is small, or was refused.
        assert energy_change(FourBar(), run, uneven) < 2e-2, difference
    # Rounding in a length is no obstacle, a millionth of it is one.
    assert 1e-16 in passed
    assert {1e-8, -1e-8, 1e-6} <= set(ended)


@pytest.mark.slow
def test_apex_of_a_cone_is_not_passed():
    # Aimed at the apex of a cone, the motion has no one way on: the slightest miss turns it.
    gap = {"gap": 2.0}
    aim = np.array([1.0, 1.0, -0.5, 1.5])
    place = np.array([0.0, 0.0, 0.0, np.pi]) - 0.5 * aim
    known = {"a": place[0], "b": place[1], "a_dot": 1.0}
    t = 0.002 * np.arange(401)
    for miss in (0.0, 1e-9, 1e-4, 1e-2):
        start = consistent_state(
            FoldedChain(),
            {**known, "b_dot": 1.0 + miss},
            guess={"c": place[2], "d": place[3]},
            parameters=gap,
        )
        run = RUN_CHAIN(t, start, gap)
        assert int(run.status.code) == Outcome.SINGULAR
        assert int(run.status.step) > 200
        assert energy_change(FoldedChain(), run, gap) < 1e-2


def test_linkage_at_rest_in_line_says_that_nothing_leads_on():
    # Rest has no direction, and so close to the crossing rounding would choose the branch.
    t, gravity = np.linspace(0.0, 3.0, 401), {**ALIKE, "g": 9.81}
    for turned in (0.0, 1e-14, -1e-10, 3e-10, 1e-9, -3e-9, 1e-8, 1e-7, -1e-6, 1e-5, -1e-4):
        run = RUN_FOUR_BAR(t, State(turned * ALL_TURN.q, jnp.zeros(3)), gravity)
        if abs(turned) < 1e-7:
            assert int(run.status.code) == Outcome.SINGULAR, turned
        if run.status.ok:
            np.testing.assert_allclose(run["rocker"], run["crank"], atol=1e-9)
        else:
            assert int(run.status.step) == 0
            assert "came to a bifurcation" in str(run.status)
            assert "what came before is kept" in str(run.status)


def test_motion_that_may_not_cross_ends_before_the_singular_configuration():
    alike = {"l_ground": 1.0, "l_crank": 0.4, "l_coupler": 1.0, "l_rocker": 0.4, "g": 0.0}
    t = np.linspace(0.0, 4.0, 401)
    given = {"parameters": alike, "cross_singular": False}
    alone = simulate(FourBar(), t, ALL_TURN, **given)
    batch = jax.jit(jax.vmap(lambda v: simulate(FourBar(), t, State(ALL_TURN.q, v), **given)))
    for status in (alone.status, jax.tree.map(lambda x: x[0], batch(ALL_TURN.v[None]).status)):
        assert int(status.code) == Outcome.NEAR_SINGULAR
        # From where the determinant, falling twice as fast, would vanish within three spacings.
        assert IN_LINE - 0.25 < float(status.t) < IN_LINE
        assert "came close to a singular configuration" in str(status)
    # The rows before are those of the motion that goes on.
    before = int(alone.status.step) + 1
    whole = simulate(FourBar(), t, ALL_TURN, parameters=alike)
    np.testing.assert_allclose(alone.q[:before], whole.q[:before], atol=1e-12)


def test_gradient_without_crossings_is_that_of_finite_differences():
    crank, t = SliderCrank(), 0.01 * np.arange(11)
    start = consistent_state(crank, {"theta1": 1.0, "theta1_dot": 1.0})

    def last(factor):
        state = State(start.q, factor * start.v)
        return simulate(crank, t, state, cross_singular=False, check_step=False).q[-1, 0]

    near = (last(1 + 1e-5) - last(1 - 1e-5)) / 2e-5
    assert float(jax.grad(last)(1.0)) == pytest.approx(float(near), rel=1e-8)
