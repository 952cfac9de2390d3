"""Driven motions: inputs between their samples, steps, noise, and what residuals say."""

import dataclasses
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal
from motions import acceleration, as_trajectory
from scipy.integrate import quad, solve_ivp
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

import mbdnode as mbd
from mbdnode.data.rows import begun_later, by_steps, estimate_noise, input_after, rows_of
from mbdnode.identification.mechanical_laws import mechanisms
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.least_squares import integrals
from mbdnode.identification.regression.weak_form import (
    make_windows,
    middle_state,
    samples_per_period,
    samples_per_swing,
)
from mbdnode.identification.residuals import describe_residuals
from mbdnode.identification.shooting import make_segments
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.simulation.interpolation import input_polynomials

DT_S = 0.02


def oscillator(count: int, dt_s: float = DT_S, seed: int = 0):
    """Rows `(q, v)` of `q'' = -q + u` under an input that is held, in closed form."""
    u = np.random.default_rng(seed).normal(0.0, 2.0, count)
    cosine, sine = np.cos(dt_s), np.sin(dt_s)
    rows = [np.array([1.0, 0.0])]
    for force in u[:-1]:
        q, v = rows[-1][0] - force, rows[-1][1]
        rows.append(np.array([force + cosine * q + sine * v, -sine * q + cosine * v]))
    return np.arange(count) * dt_s, np.stack(rows), u[:, None]


def rows_from(t, states, u, interpolation="constant"):
    run = as_trajectory(SinglePendulum(), t, states, u)
    return rows_of(SinglePendulum(), (0,), mbd.Dataset(run), interpolation=interpolation)


def test_polynomials_of_inputs_are_those_of_scipy():
    t = np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, 12))
    u = np.random.default_rng(1).normal(size=(12, 2))
    rows = rows_from(t, np.zeros((12, 2)), u[:, :1], "cubic")
    part = 0.3 * np.diff(t)
    expected = CubicSpline(t, u[:, 0])(t[:-1] + part)
    found = jax.vmap(input_after)(rows.u, rows.u_slopes, jnp.asarray(part))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)
    line = input_polynomials(t, u, "linear")
    at = line[:, 0] + part[:, None] * line[:, 1]
    for k in range(2):
        np.testing.assert_allclose(at[:, k], np.interp(t[:-1] + part, t, u[:, k]), rtol=1e-12)


def test_inputs_that_begin_later_are_the_same():
    slopes = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
    u = jnp.asarray([0.5, -1.0])
    value, later = begun_later(u, slopes, jnp.asarray(0.3))
    cubic = lambda x: u + x * slopes[0] + x**2 * slopes[1] + x**3 * slopes[2]  # noqa: E731
    np.testing.assert_allclose(value, cubic(0.3), rtol=1e-14)
    moved = value + 0.2 * later[0] + 0.2**2 * later[1] + 0.2**3 * later[2]
    np.testing.assert_allclose(moved, cubic(0.5), rtol=1e-13)


def test_middle_of_a_step_is_met_to_the_fourth_order():
    # Each halving of the step divides the error by sixteen.
    errors = []
    for dt_s in (0.2, 0.1):
        t = np.arange(40) * dt_s
        rows = rows_from(t, np.stack([np.sin(t), np.cos(t)], 1), np.zeros((40, 1)))
        z, s = middle_state(rows, noisy=False)
        middle = t[:-1] + dt_s / 2
        errors.append(
            max(np.max(abs(z[:, 0] - np.sin(middle))), np.max(abs(s[:, 0] - np.cos(middle))))
        )
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.1)


def test_changing_inputs_make_steps_the_unit():
    t, states, u = oscillator(40)
    assert by_steps(rows_from(t, states, u))
    assert not by_steps(rows_from(t, states, np.full_like(u, 0.7)))


def test_held_input_is_integrated_over_its_steps():
    t, states, u = oscillator(60)
    rows = rows_from(t, states, u)
    windows = make_windows(rows, 60)
    found = integrals(windows, lambda r: r.u, rows, by_steps=True)[:, 0]
    begin, end = t[windows.index[2, 0]], t[windows.index[2, -1]]
    phi = lambda x: (1 - ((2 * x - begin - end) / (end - begin)) ** 2) ** 6  # noqa: E731
    expected = sum(
        u[k, 0] * quad(phi, t[k], t[k + 1], epsabs=1e-14)[0] for k in windows.index[2, :-1]
    )
    # Simpson's rule on a dozen steps of a smooth function.
    assert found[2] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("part", [0.001, 0.01, 0.05])
def test_noise_under_an_input_of_every_step_is_estimated_within_a_third(part):
    t, states, u = oscillator(400)
    spread = np.std(states, axis=0)
    noisy = states + np.random.default_rng(5).normal(size=states.shape) * part * spread
    noise = estimate_noise(rows_from(t, noisy, u))
    assert noise.z[0] == pytest.approx(part * spread[0], rel=0.3)
    assert noise.relative == pytest.approx(part, rel=0.3)


def test_motion_under_an_input_of_every_step_is_clean():
    assert not estimate_noise(rows_from(*oscillator(400))).matters


def test_potentials_of_relative_angles_are_in_every_form():
    system = mbd.mechanisms.DoublePendulum()
    blank = LearnedMechanism.for_system(
        system, mass_degree=1, potential_degree=1, relative_angles=True
    )
    z = jnp.asarray(np.random.default_rng(0).uniform(-3, 3, (50, 2)))
    terms = np.asarray(jax.vmap(lambda q: blank.potentials(q, {}))(z))
    for sign in (1, -1):
        wanted = np.cos(np.asarray(z[:, 0] + sign * z[:, 1]))
        weights = np.linalg.lstsq(terms, wanted, rcond=None)[0]
        np.testing.assert_allclose(terms @ weights, wanted, atol=1e-12)


def elastic_drive(seed: int, count: int = 301, dt_s: float = 0.01):
    """Rows of a motor that turns a load through an elastic shaft, by the matrix exponential."""
    torque = np.repeat(np.random.default_rng(seed).normal(size=count // 3 + 1), 3)[:count]
    rates = np.array(
        [
            [0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [-400.0, 400.0, -2.5, 0.0, 50.0],
            [100.0, -100.0, 0.0, -0.8, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0],
        ]
    )
    step = expm(rates * dt_s)
    rows = [np.array([0.3, -0.2, 1.0, 0.5])]
    for one in torque[:-1]:
        rows.append((step @ np.append(rows[-1], one))[:4])
    return np.arange(count) * dt_s, np.stack(rows), torque[:, None]


@pytest.mark.parametrize("noise", [0.0, pytest.param(0.01, marks=pytest.mark.slow)])
def test_law_of_an_elastic_drive_is_found_in_its_angles(noise):
    angles = (mbd.angle("motor"), mbd.angle("load"))
    nothing = lambda t, q, v, u, mu: jnp.zeros(2)  # noqa: E731
    drive = mbd.AccelerationFunction(nothing, angles, inputs=(mbd.Input("torque"),))
    runs = []
    for seed in range(4):
        t, states, torque = elastic_drive(seed)
        random = np.random.default_rng(100 + seed)
        states = states + noise * np.std(states, axis=0) * random.normal(size=states.shape)
        runs.append(as_trajectory(drive, t, states, torque))
    found = mbd.identify(drive, mbd.Dataset(runs), recipe="fast")
    # Stiffness, damping and gain of the motor; of the noisy ones the least is known to a tenth.
    linear = mbd.linearize(found.model, [3.0, 2.0, 0.0, 0.0], [0.0])
    expected = np.array([[-400.0, 400.0, -2.5, 0.0], [100.0, -100.0, 0.0, -0.8]])
    tolerance = 1e-5 if noise == 0 else 0.1
    np.testing.assert_allclose(linear.A[2:], expected, rtol=tolerance, atol=0.1 * noise)
    np.testing.assert_allclose(linear.B[2:, 0], [50.0, 0.0], rtol=tolerance, atol=noise)


def test_smooth_input_of_a_cubic_spring_is_not_taken_as_held():
    # An oscillator with a hardening spring under a chirp, stepped by SciPy. What a form without the
    # cubic term leaves is so large that the input between samples makes no difference beside it.
    t, random = np.arange(801) * 0.005, np.random.default_rng(0)
    push = lambda x: 20.0 * np.sin(2 * np.pi * (0.5 + 0.7 * x) * x)  # noqa: E731
    rate = lambda x, y: [y[1], (push(x) - 200 * y[0] - 4e3 * y[0] ** 3 - 2 * y[1]) / 1.5]  # noqa: E731
    cart = mbd.AccelerationFunction(
        lambda t, q, v, u, mu: jnp.zeros(1), (mbd.length("x"),), inputs=(mbd.Input("force"),)
    )
    runs = []
    for first in (0.02, -0.03, 0.05):
        states = solve_ivp(rate, (0, t[-1]), [first, 0.0], t_eval=t, rtol=1e-9, atol=1e-10).y.T
        states = states + 0.005 * np.std(states, axis=0) * random.normal(size=states.shape)
        runs.append(as_trajectory(cart, t, states, push(t)[:, None]))
    found = mbd.identify(cart, mbd.Dataset(runs), recipe="fast")
    assert found.model.interpolation != "constant"
    for x in (0.1, 0.25):
        expected = -(200 * x + 4e3 * x**3) / 1.5
        assert acceleration(found.model, x, 0.0) == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
def test_law_of_a_driven_joint_is_found_with_the_interpolation_of_its_input():
    # A pendulum under a smooth torque of which only samples are known, at a seventh of a radian of
    # its phase: taken as held, no law explains it.
    t = np.arange(201) * 0.04
    push = lambda x: 4.0 * jnp.sin(5.0 * x) + 3.0 * jnp.cos(2.3 * x)  # noqa: E731
    pendulum = SinglePendulum()
    run = mbd.simulate(pendulum, t, {"theta": 0.5}, inputs=push, integrator="dopri8")
    found = mbd.identify(pendulum, run, "fast")
    assert found.diagnostics["interpolation"] == "cubic"
    start = {"theta": -1.0}
    sampled = {"inputs": np.asarray(push(t))[:, None]}
    truth = mbd.simulate(pendulum, t, start, inputs=push, integrator="dopri8")
    # The law keeps the interpolation of its data, so nothing need be said here.
    ahead = mbd.simulate(found.model, t, start, **sampled)
    assert float(jnp.max(jnp.abs(ahead.q - truth.q))) < 0.02
    held = mbd.simulate(found.model, t, start, interpolation="constant", **sampled)
    assert float(jnp.max(jnp.abs(held.q - truth.q))) > 0.05


@pytest.mark.slow
def test_law_of_a_driven_cart_without_noise_is_found_from_positions_alone(tmp_path):
    # Rates that polynomials make of positions are off by a thousandth where a held force jumps.
    cart, true = mbd.mechanisms.CartPole(), {"m": 0.3, "M": 1.4, "l": 0.7}
    t = np.arange(301) * 0.02
    for seed in range(3):
        random = np.random.default_rng(seed)
        force = np.repeat(random.normal(0.0, 4.0, 101), 3)[:301, None]
        start = {"theta": float(random.normal()), "theta_dot": float(random.normal())}
        how = {"inputs": force, "parameters": true, "integrator": "dopri8"}
        run = mbd.simulate(cart, t, start, **how)
        table = np.column_stack([t, run.q, force])
        np.savetxt(tmp_path / f"{seed}.csv", table, "%.12g", ",", header="t,theta,x,u", comments="")
    data = mbd.read(tmp_path / "*.csv", time="t", coordinates=["theta", "x"], inputs=["u"])
    found = mbd.identify(cart, data, "fast")
    start, pushed = {"theta": 2.0, "x": 0.3}, {"inputs": np.zeros((101, 1))}
    own = mbd.simulate(found.model, t[:101], start, **pushed)
    truth = mbd.simulate(cart, t[:101], start, parameters=true, **pushed)
    np.testing.assert_allclose(own.q, truth.q, atol=1e-3)


def test_periodic_residuals_name_their_frequency():
    t = np.arange(600) * 0.01
    drive = np.sin(2 * np.pi * 3.1 * t) + 0.3 * np.random.default_rng(0).normal(size=600)
    said = describe_residuals(0.01, drive[:, None])
    assert "periodic at 3.1 Hz" in said
    assert "input" in said


def log_with(actuator, missing=0.0, noise=0.0, seed=0):
    """Rows of a pushed oscillator, the residuals of its best linear law and what that says of u."""
    random, dt = np.random.default_rng(seed), 0.01
    t = np.arange(1501) * dt
    tones, phases = np.array([0.31, 0.53, 0.854, 1.37, 2.1]), random.uniform(0, 6.28, 5)
    u = 3 * np.sin(2 * np.pi * tones * t[:, None] + phases).sum(axis=1)
    force = actuator(t, u) + missing * np.sin(2 * np.pi * 1.9 * t)
    x = scipy.signal.lsim(([1.0], [1.0, 0.6, 10.0]), force, t)[1]
    v = np.gradient(x, dt, edge_order=2)
    a = force - 0.6 * v - 10 * x + noise * random.normal(size=t.size)
    law = np.stack([x, v, u], axis=1)
    found = np.linalg.lstsq(law, a, rcond=None)[0]
    return (law @ found - a)[:, None], {"u": (u, (found[2] * u)[:, None])}


def lagging(seconds):
    def actuator(t, u):
        return scipy.signal.lsim(([1.0], [seconds, 1.0]), u, t)[1]

    return actuator


def delayed(seconds):
    return lambda t, u: np.interp(t - seconds, t, u)


@pytest.mark.parametrize("noise", [0.0, 2.0])
@pytest.mark.parametrize("actuator", [lagging(0.06), delayed(0.06)], ids=["lag", "delay"])
def test_residuals_of_an_input_that_acts_late_follow_its_past(actuator, noise):
    for seed in range(5):
        residuals, inputs = log_with(actuator, noise=noise, seed=seed)
        said = describe_residuals(0.01, residuals, 5, inputs)
        assert "an actuator lag or a delay" in said
        seconds = float(re.search(r"input 'u' of about ([\d.]+) s ago", said)[1])
        assert 0.03 <= seconds <= 0.09


def test_input_that_acts_at_once_is_no_lag_beside_a_drive_that_is_missing():
    at_once = lambda t, u: u  # noqa: E731
    for seed in range(5):
        residuals, inputs = log_with(at_once, missing=2.0, noise=0.3, seed=seed)
        assert "periodic at 1.9 Hz" in describe_residuals(0.01, residuals, 1, inputs)
        residuals, inputs = log_with(at_once, noise=0.3, seed=seed)
        assert describe_residuals(0.01, residuals, 1, inputs) == ""


def test_status_of_a_law_names_the_lag_of_an_actuator():
    t = np.arange(501) * 0.01
    command = 3 * np.sin(2 * np.pi * 0.854 * t) + 3 * np.sin(2 * np.pi * 2.1 * t + 1)
    force = delayed(0.06)(t, command)
    pushed = {"inputs": force[:, None], "interpolation": "cubic", "integrator": "dopri8"}
    run = mbd.simulate(SinglePendulum(), t, {"theta": 0.1}, **pushed)
    recorded = dataclasses.replace(run, u=jnp.asarray(command[:, None]))
    found = mbd.identify(SinglePendulum(), recorded, "fast")
    assert "follow input 'F' of about 0.0" in found.status
    assert "periodic" not in found.status


def test_residuals_with_memory_say_so_and_white_ones_nothing():
    random = np.random.default_rng(0).normal(size=(600, 1))
    slow = np.zeros_like(random)
    for k in range(1, 600):
        slow[k] = 0.9 * slow[k - 1] + random[k]
    assert "memory" in describe_residuals(0.01, slow)
    assert describe_residuals(0.01, random) == ""
    assert describe_residuals(0.01, np.zeros((600, 1))) == ""


def test_segments_that_fill_up_have_no_weight():
    t, states, u = oscillator(120)
    rows = rows_from(t, states, u)
    plain = make_segments(rows)
    assert plain is not None
    count, length = plain.rows.t.shape
    filled = make_segments(rows, shape=(count + 3, length))
    assert filled is not None
    assert np.all(np.asarray(filled.rows.weight)[count:] == 0)
    assert eqx.tree_equal(jax.tree.map(lambda x: x[:count], filled.rows), plain.rows)


def test_segments_of_an_angle_that_turns_are_as_long_as_its_swings():
    # Turning at 2 rad/s on the mean, with a swing of one second on top.
    t = np.arange(1000) * 0.01
    states = np.stack([2 * t + np.sin(2 * np.pi * t) / np.pi, 2 + 2 * np.cos(2 * np.pi * t)], 1)
    rows = rows_from(t, states, np.zeros((1000, 1)))
    assert samples_per_period(rows) > 200
    assert samples_per_swing(rows) == pytest.approx(100, rel=0.1)
    swing = np.stack([np.sin(2 * np.pi * t), 2 * np.pi * np.cos(2 * np.pi * t)], 1)
    assert samples_per_swing(rows_from(t, swing, np.zeros((1000, 1)))) == pytest.approx(
        100, rel=0.1
    )


def _shaken(count: int = 600, dt_s: float = 0.01):
    """A pendulum of 0.5 m whose pivot is shaken sideways, and the acceleration of the pivot."""
    shake = lambda x: 5 * np.sin(2.6 * x) + 4 * np.cos(5.3 * x)  # noqa: E731
    law = lambda x, q, v: -(9.81 * np.sin(q) + shake(x) * np.cos(q)) / 0.5 - 0.1 * v  # noqa: E731
    t, y = np.arange(count) * dt_s, np.array([0.5, 0.0])
    rate = lambda x, y: np.array([y[1], law(x, *y)])  # noqa: E731
    states = [y]
    for x in t[:-1]:
        k1 = rate(x, y)
        k2 = rate(x + dt_s / 2, y + dt_s / 2 * k1)
        k3 = rate(x + dt_s / 2, y + dt_s / 2 * k2)
        y = y + dt_s / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + dt_s, y + dt_s * k3))
        states.append(y)
    return t, np.stack(states), shake(t)[:, None]


@pytest.mark.slow
def test_law_under_the_acceleration_of_a_moving_base_is_proposed():
    # It acts by the cosine of the angle: no constant input map explains it.
    rows = rows_from(*_shaken(), "cubic")
    problem = Problem(
        SinglePendulum(), get_integrator("rk4"), False, 0, estimate_noise(rows), by_steps=True
    )
    first = next(one for some in mechanisms(problem, rows) for one in some)
    found = first.fit(rows)
    assert found is not None
    for q, v, u in ((0.4, 1.0, 3.0), (2.0, -1.0, -5.0)):
        state = (jnp.asarray([x]) for x in (q, v, u))
        given = found.minimal_rates(0.0, *state, {})[1]
        expected = -(9.81 * np.sin(q) + u * np.cos(q)) / 0.5 - 0.1 * v
        # The spline through the samples misses the pivot's motion by parts in ten thousand.
        assert float(given[0]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("interpolation", ["constant", "linear", "cubic", "band-limited"])
def test_runs_of_a_batch_have_the_rows_that_each_has_alone(interpolation):
    t, runs = 0.01 * np.arange(60), 3
    rng = np.random.default_rng(0)
    q, v, u = (rng.normal(size=(runs, t.size, 1)) for _ in range(3))
    system = SinglePendulum()
    states = np.concatenate([q, v], axis=2)
    alone = [as_trajectory(system, t, states[i], u[i]) for i in range(runs)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *alone)
    found = rows_of(system, (0,), mbd.Dataset(batch), interpolation=interpolation)
    expected = rows_of(system, (0,), mbd.Dataset(alone), interpolation=interpolation)
    for own, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = np.max(np.abs(np.asarray(other)), initial=1.0)
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-12 * scale)
