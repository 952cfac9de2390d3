"""Steps that are too long: the status says so, how far off the motion is, and what step to take."""

import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import BlowUp, Oscillator, Pendulum

from mbdnode.evaluation import energy
from mbdnode.mechanisms import (
    FourBar,
    SingleMassSpring,
    SingleMassSpringDamper,
    SliderCrank,
    read_mechanism,
)
from mbdnode.models import FCNN, LSTM, MBDNODE, Ensemble
from mbdnode.multibody import consistent_state
from mbdnode.simulation import simulate
from mbdnode.status import Outcome
from mbdnode.trajectory import State

CHAIN = Path(__file__).parents[2] / "examples/mechanisms/five_link_chain.toml"
OMEGA = np.sqrt(50.0 / 10.0)  # Of a mass of 10 kg on a spring of 50 N/m.


def spring(dt, steps=300, integrator="rk4", **options):
    t = dt * np.arange(steps + 1)
    run = simulate(SingleMassSpring(), t, {"x": 1.0}, integrator=integrator, **options)
    exact = np.cos(OMEGA * t)
    return run, np.max(np.abs(np.asarray(run["x"]) - exact)) / np.ptp(exact)


@pytest.mark.parametrize(
    ("integrator", "dt"),
    [
        ("fe1", 1e-4),
        ("fe1", 0.1),
        ("mp2", 0.01),
        ("mp2", 0.2),
        ("rk4", 0.01),
        ("rk4", 0.2),
        ("rk4", 0.5),
        ("rk4", 1.0),
        ("fk6", 0.1),
        ("implicit-midpoint", 0.05),
    ],
)
def test_estimate_is_within_a_factor_of_three_of_the_closed_form(integrator, dt):
    run, error = spring(dt, integrator=integrator)
    assert error / 3 < float(run.status.error) < 3 * error
    assert ("the step is too long" in str(run.status)) == (float(run.status.error) > 0.01)


def test_energy_that_is_lost_by_a_long_step_is_told():
    # By the closed form of RK4's amplification, its energy falls by 25 orders of magnitude.
    run, _ = spring(1.0)
    assert float(run["x"][-1] ** 2) < 1e-20
    assert bool(run.status.ok)
    assert re.search(
        r"completed .*too long: error about 50 % of the motion, take dt", str(run.status)
    )


def test_step_that_is_advised_is_short_enough():
    dt, steps = 0.5, 240
    run, error = spring(dt, steps)
    assert error > 0.1
    advised = float(re.search(r"take dt below (\S+) s", str(run.status))[1])
    again, error = spring(advised, int(steps * dt / advised))
    assert error < 0.01
    assert "too long" not in str(again.status)


def test_motion_that_leaves_all_bounds_by_its_step_is_no_completed_one():
    run, _ = spring(10.0, 60)
    assert abs(float(run["x"][-1])) > 1e100
    assert "error as large as the motion" in str(run.status)
    run, _ = spring(10.0, 300)
    assert int(run.status.code) == Outcome.STEP_TOO_LONG
    assert "could not follow the motion, since the step is too long" in str(run.status)


@pytest.mark.parametrize(
    "interpolation", ["constant", "linear", "cubic", "band-limited", "function"]
)
def test_inputs_go_between_samples_as_they_do_in_the_rollout(interpolation):
    t = 0.3 * np.arange(61)
    options = {"inputs": lambda s: 50 * jnp.sin(3 * s), "integrator": "mp2"}
    if interpolation != "function":
        options["interpolation"] = interpolation
        options["inputs"] = 50 * np.random.default_rng(0).normal(size=(61, 1))
    run = simulate(Oscillator(), t, {"x": 1.0}, **options)
    exact = simulate(Oscillator(), t, {"x": 1.0}, **{**options, "integrator": "dopri8"})
    error = np.max(np.abs(np.asarray(run.q - exact.q))) / np.ptp(exact["x"])
    assert error / 3 < float(run.status.error) < 3 * error
    assert np.isnan(exact.status.error)


def test_closed_loop_that_loses_energy_is_told_although_its_residuals_are_round_off():
    start, t = {"crank": 1.0, "crank_dot": 5.0}, 0.2 * np.arange(101)
    run = simulate(FourBar(), t, start)
    # The coordinates are exchanged at output times alone, so the reference has ten times as many.
    fine = simulate(FourBar(), 0.02 * np.arange(1001), start, integrator="dopri8")
    exact = np.asarray(fine.q)[::10]
    assert float(np.max(run.position_residual)) < 1e-13
    assert float(energy(FourBar(), run)[-1]) < 0.2 * float(energy(FourBar(), fine)[-1])
    gap = np.max(np.abs(np.asarray(run.q) - exact) / np.ptp(exact, axis=0))
    assert gap / 3 < float(run.status.error) < 3 * gap
    assert "the step is too long" in str(run.status)


@pytest.mark.parametrize("dt", [0.2, 0.3, 0.5, 0.7])
def test_crank_that_turns_far_in_a_step_meets_no_singular_configuration(dt):
    # By up to 8.8 rad; 0.5 s are a whole turn.
    t = dt * np.arange(21)
    start = consistent_state(SliderCrank(), {"theta1": 1.0, "theta1_dot": 12.6})
    run = simulate(SliderCrank(), t, start)
    assert int(run.status.code) == Outcome.STEP_TOO_LONG
    assert "singular" not in str(run.status)
    assert float(run.status.short_enough) < dt
    assert re.search(r"take dt below \S+ s$", str(run.status))
    if dt == 0.5:
        traced = jax.jit(lambda v: simulate(SliderCrank(), t, State(start.q, v)))(start.v)
        assert int(traced.status.code) == Outcome.STEP_TOO_LONG
        assert str(traced.status).endswith("take a smaller step, that is, closer times")


def test_pole_of_the_motion_stays_what_it_is():
    start = {"x": 1.0, "y": np.sqrt(2), "y_dot": np.sqrt(2)}
    run = simulate(BlowUp(), np.linspace(0.0, 1.2, 61), start)
    assert int(run.status.code) == Outcome.NOT_FINITE


@pytest.mark.parametrize("system", [Pendulum(), read_mechanism(CHAIN)], ids=["pendulum", "chain"])
def test_what_rests_has_no_error(system):
    # The chain hangs in equilibrium and is moved by rounding.
    rest = consistent_state(system, {})
    run = simulate(system, 0.016 * np.arange(4001), rest)
    assert np.max(np.abs(np.asarray(run.q) - np.asarray(rest.q))) < 1e-10
    assert float(run.status.error) < 1e-3
    assert "too long" not in str(run.status)


def test_small_motion_about_zero_is_measured_by_itself():
    # A nanometer of a linear spring is as well resolved as a meter.
    t = 0.5 * np.arange(241)
    large, small = (simulate(SingleMassSpring(), t, {"x": x}).status.error for x in (1.0, 1e-9))
    assert float(small) == pytest.approx(float(large), rel=1e-6)


def test_passage_through_a_singular_configuration_is_no_error_of_the_step():
    # A parallelogram turns uniformly, and half of the time ends at its change point.
    alike = {"l_ground": 1.0, "l_crank": 0.4, "l_coupler": 1.0, "l_rocker": 0.4, "g": 0.0}
    level = {"crank": 1.0, "coupler": 0.0, "rocker": 1.0, "crank_dot": 8.0, "rocker_dot": 8.0}
    start = consistent_state(FourBar(), level, parameters=alike)
    end = 2 * (np.pi - 1.0) / 8
    for steps in (50, 51, 100):
        t = np.linspace(0.0, end, steps + 1)
        run = simulate(FourBar(), t, start, parameters=alike)
        assert np.max(np.abs(np.asarray(run["crank"]) - (1.0 + 8.0 * t))) < 1e-8
        assert bool(run.status.ok)
        assert "too long" not in str(run.status)
        # Where half of the time ends in the middle of the passage there is no estimate.
        assert not float(run.status.error) > 1e-6


class Tuned(Oscillator):
    """A learned law whose stiffness makes up for the implicit midpoint rule at one step."""

    learned = True


def test_model_that_makes_up_for_its_step_is_not_told_to_take_another_one():
    # The rule turns by `2 atan(w dt / 2)` a step, so another stiffness is exact at this one.
    dt, omega = 1.0, 1.5
    t, start = dt * np.arange(61), {"x": 1.0}
    tuned = {"k": float((2 / dt * np.tan(omega * dt / 2)) ** 2)}
    given = {"parameters": tuned, "integrator": "implicit-midpoint"}
    run = simulate(Tuned(), t, start, **given)
    assert np.max(np.abs(np.asarray(run["x"]) - np.cos(omega * t))) < 1e-10
    assert float(run.status.error) > 0.3
    assert "keep to that of its training" in str(run.status)
    assert "too long" not in str(run.status)
    assert not run.status.too_long
    plain = simulate(Oscillator(), t, start, **given)
    assert "too long" in str(plain.status)
    assert plain.status.too_long
    assert float(plain.status.error) == float(run.status.error)


def test_estimate_can_be_left_out_and_is_not_made_of_traced_values():
    run, _ = spring(1.0, check_step=False)
    assert np.isnan(run.status.error)
    assert "too long" not in str(run.status)
    several = jax.vmap(lambda q: simulate(SingleMassSpring(), run.t, State(q, 0 * q)))(
        jnp.ones((2, 1))
    )
    assert np.all(np.isnan(several.status.error))


def refused(function, *values):
    """The outcomes of a batch, each of which is refused outside of it."""
    run = jax.jit(jax.vmap(function))(*values)
    assert np.all(np.isnan(run.q[:, 1:])), "What is refused has no motion."
    assert run.status.step.tolist() == [0] * len(run.status.step)
    return run.status


def test_start_off_the_constraints_is_told_in_a_batch():
    crank, t = SliderCrank(), 0.01 * np.arange(6)
    count = len(crank.coordinates)
    good = consistent_state(crank, {"theta1": 1.0, "theta1_dot": 1.0})
    off = State(jnp.zeros((1, count)), jnp.full((1, count), 3.0))
    with pytest.raises(ValueError, match="off the constraint manifold"):
        simulate(crank, t, State(off.q[0], off.v[0]))
    status = refused(lambda s: simulate(crank, t, s), off)
    assert status.code.tolist() == [Outcome.START_OFF_CONSTRAINTS]
    shifted = State(good.q[None], (good.v * jnp.linspace(1.0, 1.1, count))[None])
    status = refused(lambda s: simulate(crank, t, s), shifted)
    assert status.code.tolist() == [Outcome.START_OFF_CONSTRAINTS]
    one = jax.tree.map(lambda x: x[0], status)
    assert "off the constraint manifold" in str(one)
    run = jax.vmap(lambda s: simulate(crank, t, s))(jax.tree.map(lambda x: x[None], good))
    assert run.status.ok.tolist() == [True]


def test_parameter_out_of_its_bounds_is_told_in_a_batch():
    t, start = 0.01 * np.arange(6), State(jnp.ones(1), jnp.zeros(1))
    run = lambda k: simulate(SingleMassSpringDamper(), t, start, parameters={"k": k})  # noqa: E731
    with pytest.raises(ValueError, match="'k' is -1"):
        run(-1.0)
    status = refused(run, jnp.array([-1.0, np.nan, np.inf]))
    assert set(status.code.tolist()) == {Outcome.PARAMETER_OUT_OF_BOUNDS}
    assert jax.vmap(run)(jnp.array([1.0])).status.ok.tolist() == [True]


def test_times_that_do_not_increase_are_told_in_a_batch():
    start = State(jnp.ones(1), jnp.zeros(1))
    run = lambda t: simulate(SingleMassSpring(), t, start)  # noqa: E731
    times = jnp.array([[0.0, 0.2, 0.1], [0.0, 0.0, 0.1], [0.0, 0.1, np.nan]])
    status = refused(run, times)
    assert set(status.code.tolist()) == {Outcome.TIMES_NOT_INCREASING}
    assert "the times do not increase" in str(jax.tree.map(lambda x: x[0], status))


SPRING_LAWS = [MBDNODE.for_system(SingleMassSpring(), width=2, seed=seed) for seed in (0, 1)]
SPRING_TIME = eqx.tree_at(
    lambda m: m.start,
    FCNN.for_system(SingleMassSpring(), hidden_layers=1, width=2),
    jnp.array([1.0, 0.0]),
)


@pytest.mark.parametrize(
    ("system", "options"),
    [
        (SingleMassSpring(), {"integrator": "analytic"}),
        (Ensemble(SPRING_LAWS), {}),
        (SPRING_TIME, {}),
    ],
    ids=["closed form", "ensemble", "FCNN"],
)
def test_all_that_is_simulated_tells_of_times_that_do_not_increase(system, options):
    start = State(jnp.ones(1), jnp.zeros(1))
    run = lambda t: simulate(system, t, start, **options)  # noqa: E731
    times = jnp.array([[0.0, 0.2, 0.1], [0.0, 0.0, 0.1], [0.0, 0.1, np.nan]])
    assert set(refused(run, times).code.tolist()) == {Outcome.TIMES_NOT_INCREASING}
    good = jax.vmap(run)(jnp.array([[0.0, 0.1, 0.2]]))
    assert good.status.ok.tolist() == [True]
    alone = run(jnp.array([0.0, 0.1, 0.2]))
    np.testing.assert_allclose(good.q[0], alone.q, atol=1e-14)


def test_forecasters_tell_in_a_batch_of_a_start_or_step_they_have_not_learned():
    t = 0.1 * jnp.arange(7.0)
    status = refused(
        lambda q: simulate(SPRING_TIME, t, State(q, jnp.zeros(1))), jnp.full((1, 1), 2.0)
    )
    assert status.code.tolist() == [Outcome.START_NOT_LEARNED]
    model = LSTM.for_system(SingleMassSpring(), width=2, layers=1, past=4)
    model = eqx.tree_at(lambda m: m.dt_s, model, jnp.array(0.1))
    past = simulate(SingleMassSpring(), t[:4], {"x": 1.0}, check_step=False)
    run = lambda times: simulate(model, times, past)  # noqa: E731
    assert refused(run, 2 * t[None]).code.tolist() == [Outcome.START_NOT_LEARNED]
    assert jax.vmap(run)(t[None]).status.ok.tolist() == [True]


def test_gradient_passes_the_refusals_and_is_that_of_the_closed_form():
    t, start = 0.01 * np.arange(101), State(jnp.ones(1), jnp.zeros(1))

    def last(k):
        return simulate(SingleMassSpring(), t, start, parameters={"k": k})["x"][-1]

    # Of cos(t sqrt(k / m)) at t = 1 and m = 10.
    omega = np.sqrt(50.0 / 10.0)
    exact = -np.sin(omega) / (20.0 * omega)
    assert float(jax.grad(last)(50.0)) == pytest.approx(exact, rel=1e-6)
    # What is refused has no motion, and no gradient either.
    assert float(jax.grad(last)(-1.0)) == 0.0


def test_state_as_a_file_of_seven_digits_keeps_it_is_accepted_in_a_batch():
    crank, t = SliderCrank(), 0.01 * np.arange(3)
    exact = consistent_state(crank, {"theta1": 1.0, "theta1_dot": 5.0})
    rounded = jax.tree.map(lambda x: jnp.asarray(np.asarray(x, np.float32), float)[None], exact)
    assert simulate(crank, t, jax.tree.map(lambda x: x[0], rounded)).status.ok
    run = jax.vmap(lambda s: simulate(crank, t, s))(rounded)
    assert run.status.ok.tolist() == [True]
