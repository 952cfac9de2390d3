"""Inputs between their samples, against SciPy's interpolants and exact integrals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PPoly, interp1d
from toys import Oscillator

from mbdnode.errors import UserError
from mbdnode.multibody import AccelerationFunction, Input, length
from mbdnode.simulation import simulate
from mbdnode.simulation.interpolation import possible
from mbdnode.simulation.signals import make_signal
from mbdnode.trajectory import State

UNIFORM = np.linspace(0.5, 2.5, 9)
UNEVEN = np.array([0.5, 0.6, 0.9, 1.0, 1.7, 1.75, 2.2, 2.4, 2.5])
FREE_MASS = {"k": 0.0}
grids = pytest.mark.parametrize("t", [UNIFORM, UNEVEN], ids=["uniform", "uneven"])


def samples(t):
    return np.sin(3 * t) + 0.5 * t**2


def reference(kind, t, values):
    """The same interpolant as a piecewise polynomial of SciPy's."""
    if kind == "cubic":
        return CubicSpline(t, values, bc_type="not-a-knot")
    if kind == "linear":
        return PPoly(np.stack([np.diff(values) / np.diff(t), values[:-1]]), t)
    return PPoly(values[None, :-1], t)


kinds = pytest.mark.parametrize("kind", ["constant", "linear", "cubic"])


@kinds
@grids
def test_interpolation_matches_scipy_inside_every_interval(kind, t):
    values = samples(t)
    signal = make_signal(Oscillator(), jnp.asarray(t), values, kind)
    expected = reference(kind, t, values)
    for index, (start, end) in enumerate(itertools.pairwise(t)):
        for fraction in (0.0, 0.3, 0.999):
            now = start + fraction * (end - start)
            found = signal.at(jnp.array(now), jnp.array(start), signal.coefficients[index])
            # Solving for the spline costs a few digits on the uneven grid.
            np.testing.assert_allclose(found, [expected(now)], atol=1e-13)


@pytest.mark.parametrize("part", [0.3, 0.8])
def test_band_limited_inputs_are_those_of_their_spectrum(part):
    dt, random = 0.01, np.random.default_rng(3)
    frequency, phase = random.uniform(0, part / (2 * dt), 20), random.uniform(0, 2 * np.pi, 20)
    wave = lambda s: np.sum(np.sin(2 * np.pi * frequency * s[..., None] + phase), -1)  # noqa: E731
    t = dt * np.arange(200)
    signal = make_signal(Oscillator(), jnp.asarray(t), wave(t), "band-limited")
    for fraction in (0.0, 0.2, 0.5, 0.9):
        now = t[:-1] + fraction * dt
        found = jax.vmap(signal.at)(jnp.asarray(now), jnp.asarray(t[:-1]), signal.coefficients)
        # Nearer to the ends than the window reaches, samples are missing that would count.
        away = (np.asarray(found)[:, 0] - wave(now))[16:-16]
        assert np.sqrt(np.mean(away**2)) < 1e-4 * np.std(wave(t))
        assert fraction or np.max(np.abs(np.asarray(found)[:, 0] - wave(now))) < 1e-12


def test_band_limited_inputs_keep_a_constant_and_need_even_times():
    still = make_signal(Oscillator(), jnp.linspace(0.0, 1.0, 5), np.full(5, 3.0), "band-limited")
    for later in (0.0, 0.1, 0.2):
        found = still.at(jnp.array(later), jnp.array(0.0), still.coefficients[0])
        # The coefficients of a polynomial of degree seven are some ten thousand times its values.
        np.testing.assert_allclose(found, [3.0], atol=1e-11)
    with pytest.raises(UserError, match=r"0\.1 to 0\.7 s.*cubic"):
        make_signal(Oscillator(), jnp.array([0.0, 0.1, 0.3, 1.0]), np.zeros(4), "band-limited")
    assert possible([UNIFORM]) == ("constant", "linear", "cubic", "band-limited")
    assert possible([UNIFORM, UNEVEN]) == ("constant", "linear", "cubic")
    assert possible([UNIFORM[:3]]) == ("constant", "linear", "band-limited")


@pytest.mark.parametrize("count", [4, 5])
def test_shortest_cubic_reproduces_a_cubic(count):
    t = np.array([0.0, 0.4, 0.5, 1.3, 2.0])[:count]
    cubic = np.poly1d([1.0, -2.0, 0.5, 3.0])
    signal = make_signal(Oscillator(), jnp.asarray(t), cubic(t), "cubic")
    middle = (t[:-1] + t[1:]) / 2
    found = jax.vmap(signal.at)(jnp.asarray(middle), jnp.asarray(t[:-1]), signal.coefficients)
    np.testing.assert_allclose(found[:, 0], cubic(middle), atol=1e-14)


def test_cubic_needs_four_samples():
    with pytest.raises(ValueError, match=r"at least 4 samples.*3.*interpolation='linear'"):
        make_signal(Oscillator(), jnp.arange(3.0), np.ones(3), "cubic")


@kinds
@grids
def test_free_mass_moves_as_the_exact_integral_of_its_force(kind, t):
    values = samples(t)
    run = simulate(
        Oscillator(),
        t,
        {"x": 0.3, "x_dot": -0.2},
        inputs=values,
        interpolation=kind,
        parameters=FREE_MASS,
        integrator="dopri8",
    )
    force = reference(kind, t, values)
    once, twice = force.antiderivative(1), force.antiderivative(2)
    v = -0.2 + once(t) - once(t[0])
    x = 0.3 - 0.2 * (t - t[0]) + twice(t) - twice(t[0]) - once(t[0]) * (t - t[0])
    # The solver is exact for polynomials of this degree, and its tolerance is 1e-13.
    np.testing.assert_allclose(run["x_dot"], v, atol=1e-12)
    np.testing.assert_allclose(run["x"], x, atol=1e-12)
    np.testing.assert_array_equal(run["u"], values)


@pytest.mark.parametrize("integrator", ["rk4", "backward-euler", "dopri5"])
def test_held_input_keeps_its_value_to_the_very_end_of_its_step(integrator):
    # Backward Euler looks at the end of the step only, where the next value begins.
    t, held = np.linspace(0.0, 1.0, 11), np.random.default_rng(0).normal(size=10)
    run = simulate(
        Oscillator(), t, {"x": 0.0}, inputs=held, parameters=FREE_MASS, integrator=integrator
    )
    speed = np.concatenate([[0.0], np.cumsum(0.1 * held)])
    np.testing.assert_allclose(run["x_dot"], speed, atol=1e-14)
    np.testing.assert_array_equal(run["u"], [*held, held[-1]])


def test_row_for_each_step_equals_a_row_for_each_time():
    t, held = np.linspace(0.0, 1.0, 11), np.random.default_rng(0).normal(size=11)
    by_time = simulate(Oscillator(), t, {"x": 1.0}, inputs=held)
    by_step = simulate(Oscillator(), t, {"x": 1.0}, inputs=held[:, None][:-1])
    np.testing.assert_array_equal(by_time.q, by_step.q)
    np.testing.assert_array_equal(by_time.v, by_step.v)


def test_function_of_time_drives_the_closed_form_resonance():
    # x'' + 4 x = cos(2 t) from rest: x = t sin(2 t)/4.
    t = np.linspace(0.0, 3.0, 31)
    run = simulate(
        Oscillator(), t, {"x": 0.0}, inputs=lambda s: jnp.cos(2 * s), integrator="dopri8"
    )
    np.testing.assert_allclose(run["x"], t * np.sin(2 * t) / 4, atol=1e-12)
    np.testing.assert_allclose(run["u"], np.cos(2 * t), atol=1e-15)


def two_masses(t, q, v, u, mu):
    """Two free masses of 1 kg, each with a force of its own."""
    return u


PAIR = AccelerationFunction(
    two_masses, (length("x"), length("y")), inputs=(Input("fx"), Input("fy"))
)


@pytest.mark.parametrize(
    ("fx", "fy", "kind"),
    [
        (np.cos(UNEVEN), np.sin(UNEVEN), "linear"),
        (np.cos(UNEVEN), 2.5, "cubic"),
        (np.cos(UNEVEN)[:-1], np.sin(UNEVEN), "constant"),
        (-1.0, 2.5, "constant"),
    ],
    ids=["two arrays", "array and constant", "by step and by time", "two constants"],
)
def test_inputs_by_name_are_the_columns_of_the_array(fx, fy, kind):
    columns = [np.append(fx, fx[-1:]) if np.size(fx) == 8 else fx, fy]
    array = np.stack([np.broadcast_to(column, 9) for column in columns], axis=1)
    settings = {"interpolation": kind, "integrator": "rk4"}
    named = simulate(PAIR, UNEVEN, {"x": 1.0}, inputs={"fy": fy, "fx": fx}, **settings)
    whole = simulate(PAIR, UNEVEN, {"x": 1.0}, inputs=array, **settings)
    np.testing.assert_array_equal(named.u, array)
    np.testing.assert_array_equal(named.table, whole.table)


def test_function_of_one_input_goes_with_samples_of_another():
    # x'' = cos(2 t) and y'' = 6 t, both from rest at t = 0.5.
    inputs = {"fx": lambda s: jnp.cos(2 * s), "fy": 6 * UNEVEN}
    run = simulate(PAIR, UNEVEN, {}, inputs=inputs, interpolation="linear", integrator="dopri8")
    since = UNEVEN - 0.5
    x = (np.cos(1.0) - np.cos(2 * UNEVEN)) / 4 - np.sin(1.0) / 2 * since
    np.testing.assert_allclose(run["x"], x, atol=1e-12)
    np.testing.assert_allclose(run["y"], UNEVEN**3 - 0.125 - 0.75 * since, atol=1e-12)
    np.testing.assert_allclose(run["fx"], np.cos(2 * UNEVEN), atol=1e-15)
    np.testing.assert_array_equal(run["fy"], 6 * UNEVEN)


def test_functions_by_name_compile_once():
    traced = []

    def force(s):
        traced.append(s)
        return jnp.sin(s)

    def ends(constant):
        return simulate(PAIR, UNIFORM, {}, inputs={"fx": force, "fy": constant})["y"][-1]

    first = ends(1.0)
    before = len(traced)
    assert ends(2.0) == pytest.approx(2 * float(first), rel=1e-12)
    # Only the samples at the output times are taken again.
    assert len(traced) == before + 1


def test_constant_by_name_may_be_traced():
    def end(force):
        state = State(jnp.zeros(2), jnp.zeros(2))
        return simulate(PAIR, jnp.asarray(UNIFORM), state, inputs={"fx": force, "fy": 0.0})["x"][-1]

    # x = f t^2 / 2 after two seconds.
    np.testing.assert_allclose(jax.vmap(end)(jnp.array([1.0, -3.0])), [2.0, -6.0], atol=1e-13)


def test_no_inputs_mean_zero():
    t = np.linspace(0.0, 1.0, 11)
    none = simulate(Oscillator(), t, {"x": 1.0})
    zero = simulate(Oscillator(), t, {"x": 1.0}, inputs=np.zeros(11))
    np.testing.assert_array_equal(none.q, zero.q)
    np.testing.assert_array_equal(none.u, np.zeros((11, 1)))


@kinds
def test_motion_is_differentiable_by_its_inputs(kind):
    t = jnp.asarray(UNEVEN)
    direction = jnp.cos(5 * t)

    @jax.jit
    def end(size):
        force = jnp.asarray(samples(UNEVEN)) + size * direction
        return simulate(Oscillator(), t, {"x": 0.3}, inputs=force, interpolation=kind)["x"][-1]

    h = 1e-4
    # The motion is linear in the input, so the difference has no truncation error.
    expected = (end(h) - end(-h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(end)(0.0), expected, rtol=1e-9)


def test_linear_interpolation_matches_scipy_interp1d_in_a_motion():
    values = samples(UNEVEN)
    run = simulate(
        Oscillator(),
        UNEVEN,
        {"x": 0.3},
        inputs=values,
        interpolation="linear",
        integrator="dopri8",
    )
    as_function = interp1d(UNEVEN, values)
    fine = np.unique(np.concatenate([UNEVEN, np.linspace(0.5, 2.5, 400)]))
    # The same force sampled on a grid that contains the first one.
    again = simulate(
        Oscillator(),
        fine,
        {"x": 0.3},
        inputs=as_function(fine),
        interpolation="linear",
        integrator="dopri8",
    )
    at = np.searchsorted(fine, UNEVEN)
    np.testing.assert_allclose(again["x"][at], run["x"], atol=1e-12)
