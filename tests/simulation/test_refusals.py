"""Bad requests are refused with the rule, the value and the way out, before anything runs."""

import datetime
import math

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pyarrow
import pytest
from toys import Oscillator, Pendulum, TurningBlade

from mbdnode.integrators import RungeKutta4
from mbdnode.mechanisms.single_mass_spring import SingleMassSpring
from mbdnode.multibody import (
    AbstractMechanism,
    Input,
    angle,
    consistent_state,
    length,
    positive,
)
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

TIMES = np.linspace(0.0, 1.0, 11)


def spring(t, q, v, u, mu):
    return -q


def hole(values, index):
    values = np.array(values, float)
    values[index] = np.nan
    return values


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([0.0, 1.0, 1.0], r"increase, but t\[2\] = 1 follows t\[1\] = 1\. Sort"),
        ([0.0, 0.2, 0.1], r"increase, but t\[2\] = 0\.1 follows t\[1\] = 0\.2\. Sort"),
        ([0.0], r"shape \(1,\); give a vector of at least two times"),
        ([], r"shape \(0,\); give a vector of at least two times"),
        (5.0, r"shape \(\); give a vector of at least two times"),
        ([[0.0, 1.0]], r"shape \(1, 2\); give a vector"),
        (hole(TIMES, 3), r"3 is nan; times must be finite"),
        ([0.0, np.inf], r"1 is inf; times must be finite"),
        (["now", "then"], r"Times must be numbers.*'now'"),
        (None, r"[Tt]imes"),
    ],
)
def test_bad_times_are_refused(t, message):
    with pytest.raises(ValueError, match=message):
        simulate(Oscillator(), t, {"x": 1.0})


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        (np.ones(9), "constant", r"\(9, 1\).* 11 rows .*or 10 .*1 column.*: u"),
        (np.ones(10), "linear", r"\(10, 1\).* 11 rows \(one for each time\) and 1 column"),
        (np.ones((11, 2)), "constant", r"\(11, 2\).*1 column.*: u"),
        (np.ones((1, 11)), "constant", r"\(1, 11\).* 11 rows"),
        (np.ones((11, 1, 1)), "constant", r"\(11, 1, 1\).* 11 rows"),
        (1.0, "constant", r"\(\).* 11 rows"),
        (hole(np.ones(11), 4), "constant", r"'u' is nan in row 4.*Fill or cut"),
        ({"U": np.ones(11)}, "constant", r"Unknown input 'U'.*Did you mean 'u'"),
        ({}, "constant", r"not for u\. Name every one of u"),
        ({"u": 1.0, "w": 1.0}, "constant", r"Unknown input 'w'.*Known: u"),
        ({"u": np.ones(9)}, "constant", r"'u' has shape \(9,\).* 11 values .*or 10 .*function"),
        ({"u": np.ones(10)}, "linear", r"'u' has shape \(10,\).* 11 values \(one for each time\),"),
        ({"u": np.ones((11, 1))}, "constant", r"'u' has shape \(11, 1\)"),
        ({"u": "much"}, "constant", r"'u' is 'much'.*a number, .*function of time"),
        ({"u": np.nan}, "constant", r"'u' is nan; .*finite"),
        ({"u": hole(np.ones(11), 4)}, "constant", r"'u' is nan in row 4.*Fill or cut"),
        ({"u": lambda t: jnp.ones(2)}, "constant", r"'u' returned shape \(2,\).*one number"),
        (lambda t: jnp.ones(2), "constant", r"returned shape \(2,\); it must return 1 value"),
        (np.ones(11), "quadratic", r"'quadratic'.*Known: constant, linear, cubic"),
        (np.ones(11), "linaer", r"'linaer'.*Did you mean 'linear'"),
        (None, "linaer", r"'linaer'.*Did you mean 'linear'"),
    ],
)
def test_bad_inputs_are_refused(inputs, kind, message):
    with pytest.raises((TypeError, ValueError), match=message):
        simulate(Oscillator(), TIMES, {"x": 1.0}, inputs=inputs, interpolation=kind)


def test_inputs_for_a_system_without_any_are_refused():
    with pytest.raises(ValueError, match=r"Pendulum has no inputs; leave `inputs` out"):
        simulate(Pendulum(), TIMES, {"x": 0.1}, inputs=np.ones(11))
    with pytest.raises(ValueError, match=r"no inputs.*AccelerationFunction\(.*inputs="):
        simulate(spring, TIMES, {"x": 0.1}, inputs=np.ones(11))


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ({"x": np.nan}, r"'x' is nan; it must be a finite number"),
        ({"X": 1.0}, r"'X'.*Did you mean 'x'"),
        ({"xdot": 1.0}, r"'xdot'.*Did you mean 'x_dot'"),
        ({"x": 2.0}, r"x = 2 .*residual of 1\.75.*Give fewer"),
        (State(jnp.ones(3), jnp.ones(3)), r"q has shape \(3,\).*\(2,\): x, y"),
        (State(jnp.array([0.9, np.nan]), jnp.zeros(2)), r"'y' is nan"),
        (State(jnp.array([0.9, -1.2]), jnp.array([np.inf, 0.0])), r"'x_dot' is inf"),
        (
            State(jnp.ones(2), jnp.zeros(2)),
            r"off the constraint manifold.*-0\.25.*consistent_state",
        ),
        (None, r"NoneType.*State.*by name"),
        (np.ones(4), r"ndarray.*State.*by name"),
        ((jnp.ones(2), jnp.ones(2)), r"tuple.*State.*by name"),
    ],
)
def test_bad_starts_are_refused(initial, message):
    with pytest.raises((TypeError, ValueError), match=message):
        simulate(Pendulum(), TIMES, initial)


def test_bad_starts_in_a_batch_are_refused_by_their_shape():
    batch = State(jnp.ones((4, 3)), jnp.ones((4, 3)))
    with pytest.raises(ValueError, match=r"q has shape \(3,\).*\(2,\): x, y"):
        jax.vmap(lambda s: simulate(Pendulum(), TIMES, s))(batch)
    with pytest.raises(ValueError, match=r"q has shape \(4, 2\).*\(2,\): x, y"):
        simulate(Pendulum(), TIMES, State(jnp.ones((4, 2)), jnp.ones((4, 2))))


def test_traced_values_by_name_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"by name needs plain numbers.*consistent_state"):
        jax.vmap(lambda x: simulate(Pendulum(), TIMES, {"x": x}).q)(jnp.ones(2))
    with pytest.raises(ValueError, match=r"by name needs plain numbers.*consistent_state"):
        jax.vmap(lambda m: simulate(Pendulum(), TIMES, {"x": 0.9}, parameters={"L": m}).q)(
            jnp.ones(2)
        )
    with pytest.raises(ValueError, match=r"by name needs plain numbers.*consistent_state"):
        jax.vmap(lambda h: simulate(Pendulum(), h * jnp.arange(3.0), {"x": 0.9}).q)(jnp.ones(2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"m": 0.0}, r"'m' is 0 kg; it must be above 0"),
        ({"m": -2.0}, r"'m' is -2 kg; it must be above 0"),
        ({"m": np.nan}, r"'m' is nan"),
        ({"mass": 1.0}, r"Unknown parameter 'mass'.*Known: m, L, g"),
        ({"m": np.ones(2)}, r"'m' has shape \(2,\).*jax\.vmap"),
    ],
)
def test_bad_parameters_are_refused_whatever_the_start(parameters, message):
    with pytest.raises(ValueError, match=message):
        simulate(Pendulum(), TIMES, {"x": 0.9}, parameters=parameters)
    start = State(jnp.array([0.9, -1.2]), jnp.zeros(2))
    with pytest.raises(ValueError, match=message):
        simulate(Pendulum(), TIMES, start, parameters=parameters)


@pytest.mark.parametrize(
    ("integrator", "message"),
    [
        ("rk5", r"Unknown integrator 'rk5'.*Did you mean 'rk4'.*Known: fe1"),
        ("symplectic", r"Unknown integrator 'symplectic'.*Known: fe1"),
        (RungeKutta4, r"RungeKutta4\(\)"),
        (4, r"integrator"),
    ],
)
def test_unknown_integrators_are_refused(integrator, message):
    with pytest.raises((TypeError, ValueError), match=message):
        simulate(Oscillator(), TIMES, {"x": 1.0}, integrator=integrator)


@pytest.mark.parametrize("integrator", ["lf2", "ys4", "FK6"])
def test_symplectic_composition_on_a_system_that_is_not_separable_is_refused(integrator):
    for system in (Pendulum(), TurningBlade(), spring):
        with pytest.raises(ValueError, match=r"not .*separable.*'implicit-midpoint'"):
            simulate(system, TIMES, {"x": 0.9}, integrator=integrator)


def test_closed_form_is_given_only_where_there_is_one():
    run = simulate(SingleMassSpring(), TIMES + 3, {"x": 1.0, "x_dot": 2.0}, integrator="Analytic")
    w = np.sqrt(5.0)
    np.testing.assert_allclose(run["x"], np.cos(w * TIMES) + 2 / w * np.sin(w * TIMES), atol=1e-14)
    assert bool(run.status.ok)
    for system in (Pendulum(), spring):
        with pytest.raises(ValueError, match=r"no closed-form solution.*'dopri8'"):
            simulate(system, TIMES, {"x": 0.9}, integrator="analytic")


class Solved(Oscillator):
    def solution(self, elapsed, q, v, mu):
        return q * jnp.cos(2 * elapsed), -2 * q * jnp.sin(2 * elapsed)


def test_closed_form_does_not_ignore_inputs_in_silence():
    with pytest.raises(ValueError, match=r"closed form is for zero inputs.*'dopri8'"):
        simulate(Solved(), TIMES, {"x": 1.0}, inputs=np.ones(11), integrator="analytic")


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("pendulum", r"given a str.*mechanism"),
        (Pendulum, r"class Pendulum.*Pendulum\(\)"),
        (3, "int"),
    ],
)
def test_things_that_give_no_accelerations_are_refused(system, message):
    with pytest.raises(TypeError, match=message):
        simulate(system, TIMES, {"x": 1.0})


@pytest.mark.parametrize(
    ("function", "shape"),
    [(lambda t, q, v, u, mu: jnp.ones(2), r"\(2,\)"), (lambda t, q, v, u, mu: -q[0], r"\(\)")],
)
def test_bare_function_of_the_wrong_shape_is_refused(function, shape):
    with pytest.raises(ValueError, match=rf"returned shape {shape} for 1 coordinates.*\(1,\)"):
        simulate(function, TIMES, {"x": 1.0})


def test_refused_names_of_independent_coordinates_reach_the_user():
    start = consistent_state(Pendulum(), {"x": 0.9})
    with pytest.raises(ValueError, match=r"'z'.*Known: x, y"):
        simulate(Pendulum(), TIMES, start, independent="z")
    with pytest.raises(ValueError, match=r"2 independent .*\(x, y\).* 1 degree.*Name 1"):
        simulate(Pendulum(), TIMES, start, independent=("x", "y"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("constraints", "constraint"),
        ("position_constraint", "constraint"),
        ("dry_frictions", "dry_friction"),
    ],
)
def test_a_method_that_is_nearly_called_what_it_should_be_is_refused(name, meant):
    bead = type("Bead", (SingleMassSpring,), {name: lambda self, t, q, mu: [q[0]]})
    with pytest.raises(ValueError, match=rf"method '{name}'.* none .* '{meant}'.*underscore"):
        simulate(bead(), TIMES, {"x": 1.0})


def test_a_helper_may_be_named_after_a_method_that_is_there():
    class Bead(Pendulum):
        def constraint(self, t, q, mu):
            return [self.constraint_of_rod(q, mu)]

        def constraint_of_rod(self, q, mu):
            return q[0] ** 2 + q[1] ** 2 - mu["L"] ** 2

    found, expected = (simulate(kind(), TIMES, {"x": 0.5}) for kind in (Bead, Pendulum))
    np.testing.assert_array_equal(found.q, expected.q)


class Bead(AbstractMechanism):
    """A bead in a plane that turns, of which a test replaces methods; `F` acts along `x`."""

    coordinates = (length("x"), length("y"), angle("a"))
    inputs = (Input("F"), Input("T", "N m"))
    parameters = (positive("m", 1.0, "kg"),)

    def mass_matrix(self, q, mu):
        return [mu["m"], mu["m"], 1.0]

    def force(self, t, q, v, u, mu):
        return [u[0], 0.0, u[1]]


def bead(**methods):
    return type("Bead", (Bead,), methods)()


def pushed(inputs, **options):
    return simulate(Bead(), TIMES, {"x": 0.0}, inputs=inputs, **options)


COLUMNS = {"T": np.full(11, 2.0), "F": np.full(11, 6.0)}


@pytest.mark.parametrize(
    "inputs",
    [
        pandas.DataFrame(COLUMNS),
        pyarrow.table(COLUMNS),
        np.array([(2.0, 6.0)] * 11, [("T", float), ("F", float)]),
        pandas.Series({"T": 2.0, "F": 6.0}),
        pandas.DataFrame({"T": [2.0], "F": [6.0]}),
        lambda t: {"T": 2.0, "F": 6.0 + 0 * t},
    ],
    ids=["pandas", "arrow", "structured", "series", "one row", "function"],
)
def test_inputs_with_names_go_by_name_and_not_by_place(inputs):
    run = pushed(inputs)
    np.testing.assert_allclose(run["x"], 3.0 * TIMES**2, atol=1e-14)
    np.testing.assert_allclose(run["a"], TIMES**2, atol=1e-14)


def test_names_of_a_frame_are_checked():
    frame = pandas.DataFrame(COLUMNS)
    with pytest.raises(ValueError, match=r"Unknown input 'slope'.*Known: F, T"):
        pushed(frame.assign(slope=1.0))
    with pytest.raises(ValueError, match=r"not for T\. Name every one of F, T"):
        pushed(frame[["F"]])
    with pytest.raises(ValueError, match=r"Column 'F' is there 2 times"):
        pushed(pandas.concat([frame, frame[["F"]]], axis=1))
    with pytest.raises(ValueError, match=r"returned values for T; the inputs are F, T"):
        pushed(lambda t: {"T": 2.0})


def test_initial_values_and_parameters_of_a_series_go_by_name():
    start, values = pandas.Series({"y": 2.0, "x": 1.0}), pandas.Series({"m": 3.0})
    run = simulate(Bead(), TIMES, start, inputs={"T": 0.0, "F": 6.0}, parameters=values)
    np.testing.assert_allclose(run["x"], 1.0 + TIMES**2, atol=1e-14)
    np.testing.assert_array_equal(run["y"], 2.0)
    with pytest.raises(ValueError, match=r"Unknown coordinate 'z'"):
        simulate(Bead(), TIMES, pandas.Series({"z": 1.0}))
    with pytest.raises(ValueError, match=r"Parameters are \[1\.0\]; give values by name"):
        simulate(Bead(), TIMES, {"x": 0.0}, parameters=[1.0])


def test_a_state_of_values_with_names_is_refused():
    # By place, x and y would change places.
    start, rest = pandas.Series({"y": 2.0, "x": 1.0, "a": 0.0}), jnp.zeros(3)
    for values in (start, dict(start), start.to_frame().T):
        # Types are checked in the tests alone, so what a State checks itself is called.
        given = jax.tree.map(lambda _, values=values: values, State(rest, rest))
        with pytest.raises(ValueError, match=r"names .*: y, x, a\. .*order of the coordinates\. G"):
            given.__check_init__()


@pytest.mark.parametrize(
    ("mass", "message"),
    [
        ([1.0, -2.0, 1.0], r"Bead\.mass_matrix has \[1, 1\] = -2 \(y, y\).*not be negative"),
        ([1.0, np.nan, 1.0], r"Bead\.mass_matrix has \[1, 1\] = nan \(y, y\).*finite"),
        (
            [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            r"not symmetric: it has \[0, 1\] = 0\.5 \(x, y\), but \[1, 0\] = 0 \(y, x\)",
        ),
        # The kinetic energy of x' = -y' is (1 + 1e-6) / 2 - 2e-3 < 0, in whatever units.
        (
            [[1.0, 2e-3, 0.0], [2e-3, 1e-6, 0.0], [0.0, 0.0, 1.0]],
            r"indefinite: with \[0, 1\] = 0\.002 \(x, y\) beside \[0, 0\] = 1",
        ),
        # Nothing moves `y` alone, so it moves with `x` without a kinetic energy of its own.
        ([[1.0, 0.1, 0.0], [0.1, 0.0, 0.0], [0.0, 0.0, 1.0]], r"indefinite: .*\[1, 1\] = 0"),
        ([0.0, 1.0, 1.0], r"singular: with \[0, 0\] = 0 \(x, x\), .*no mass"),
        ([[1.0, 0, 0], [0, 1.0, 1.0], [0, 1.0, 1.0]], r"singular: with \[[12], [12]\] = 1"),
        ([[1.0, 1j, 0.0], [1j, 1.0, 0.0], [0, 0, 1.0]], r"complex numbers in entry \[0\]\[1\]"),
    ],
)
def test_a_mass_matrix_that_no_masses_have_is_refused_by_its_entry(mass, message):
    with pytest.raises(ValueError, match=message):
        simulate(bead(mass_matrix=lambda self, q, mu: mass), TIMES, {"x": 0.0})


def test_a_mass_matrix_of_coupled_bodies_is_accepted():
    # Of x + y with unit mass and of x with 1e-6: barely regular.
    mass = [[1.0 + 1e-6, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    run = simulate(bead(mass_matrix=lambda self, q, mu: mass), TIMES, {"x": 1.0})
    assert bool(run.status.ok)


@pytest.mark.parametrize(
    ("take", "index", "size"),
    [
        (lambda q, u: q[7], 7, 3),
        (lambda q, u: q[-5], -5, 3),
        (lambda q, u: u[2], 2, 2),
        (lambda q, u: jnp.outer(q, q)[1, 4], 4, 3),
        (lambda q, u: q[np.array([0, 7])].sum(), 7, 3),
        (lambda q, u: q[jnp.array([[0, 1], [3, 2]])].sum(), 3, 3),
        (lambda q, u: q.at[3].set(1.0)[0], 3, 3),
        (lambda q, u: jax.jit(lambda q: q[4])(q), 4, 3),
        (lambda q, u: jax.lax.cond(q[0] > 0, lambda q: q[4], lambda q: q[0], q), 4, 3),
    ],
)
def test_an_index_beyond_an_array_is_refused(take, index, size):
    def force(self, t, q, v, u, mu):
        return [take(q, u), 0.0, 0.0]

    with pytest.raises(ValueError, match=rf"Bead\.force takes entry {index},.* that has {size};"):
        simulate(bead(force=force), TIMES, {"x": 1.0})


def test_an_index_beyond_the_coordinates_is_refused_in_every_method():
    holds = lambda self, t, q, mu: [q[3]]  # noqa: E731
    for name, method in (
        ("constraint", holds),
        ("nonholonomic", lambda self, t, q, mu: ([[q[3], 0.0, 0.0]], [0.0])),
        ("mass_matrix", lambda self, q, mu: [1.0, 1.0, 1.0 + q[3] ** 2]),
        ("potential_energy", lambda self, q, mu: q[3]),
        ("dry_friction", lambda self, t, q, v, u, mu: ([[1.0, 0.0, 0.0]], [q[3]])),
    ):
        with pytest.raises(ValueError, match=rf"Bead\.{name} takes entry 3,"):
            simulate(bead(**{name: method}), TIMES, {"x": 1.0})
    with pytest.raises(ValueError, match=r"The acceleration function takes entry 1,"):
        simulate(lambda t, q, v, u, mu: -q + q[1], TIMES, {"x": 1.0})


def test_an_index_beyond_an_array_is_refused_in_functions_of_time_too():
    table = jnp.array([1.0, 2.0])
    for inputs in (lambda t: [table[5], t], {"F": lambda t: table[5], "T": 0.0}):
        with pytest.raises(ValueError, match=r"The input function takes entry 5,"):
            pushed(inputs)


def test_an_index_into_an_empty_array_is_refused_by_its_line():
    force = lambda self, t, q, v, u, mu: [u[0], 0.0, 0.0]  # noqa: E731
    alone = bead(force=force, inputs=())
    with pytest.raises(ValueError, match=r"Bead\.force fails in 'force = lambda.*size 0"):
        simulate(alone, TIMES, {"x": 1.0})


def test_indices_that_are_there_or_are_not_known_before_are_accepted():
    def force(self, t, q, v, u, mu):
        total = jax.lax.fori_loop(0, 3, lambda i, s: s + q[i], 0.0)
        return [q[-3] + q[np.array([0, -1])].sum(), q[jnp.argmax(q)], total]

    run = simulate(bead(force=force), TIMES, {"x": 1.0})
    assert bool(run.status.ok)


@pytest.mark.parametrize("value", [1j, lambda q: q[0].astype(complex)])
def test_complex_forces_are_refused(value):
    def force(self, t, q, v, u, mu):
        return [0.0, value(q) if callable(value) else value, 0.0]

    with pytest.raises(ValueError, match=r"Bead\.force has complex numbers in entry \[1\]"):
        simulate(bead(force=force), TIMES, {"x": 1.0})
    with pytest.raises(ValueError, match=r"The acceleration function returned complex numbers"):
        simulate(lambda t, q, v, u, mu: q.astype(complex), TIMES, {"x": 1.0})


@pytest.mark.parametrize(
    "value",
    [
        lambda x: math.sin(x),
        lambda x: np.sin(x),
        lambda x: 1.0 if x > 0 else 0.0,
        lambda x: float(x),
        lambda x: sum(range(x.astype(int))),
        lambda x: np.interp(x, [0.0, 1.0], [0.0, 1.0]),
    ],
    ids=["math", "numpy", "if", "float", "range", "interp"],
)
def test_functions_of_plain_numbers_are_refused_by_their_line(value):
    line = r"asks for plain numbers in 'lambda x: .*test_refusals\.py.*jnp\.sin for math\.sin"

    def force(self, t, q, v, u, mu):
        return [value(q[0]), 0.0, 0.0]

    with pytest.raises(ValueError, match=rf"The input function {line}"):
        pushed(lambda t: jnp.stack([value(t), 0.0]))
    with pytest.raises(ValueError, match=rf"The function of input 'F' {line}"):
        pushed({"F": value, "T": 0.0})
    with pytest.raises(ValueError, match=rf"Bead\.force {line}"):
        simulate(bead(force=force), TIMES, {"x": 1.0})
    with pytest.raises(ValueError, match=rf"Bead\.constraint {line}"):
        simulate(bead(constraint=lambda self, t, q, mu: [value(q[0])]), TIMES, {"x": 1.0})


def test_functions_that_python_refuses_are_named_with_their_line():
    # The index is no whole number.
    pick = lambda x: [1.0, 2.0][x]  # noqa: E731
    with pytest.raises(ValueError, match=r"The function of input 'F' fails in 'pick = lambda.*ind"):
        pushed({"F": pick, "T": 0.0})
    with pytest.raises(ValueError, match=r"Bead\.force fails in 'pick = lambda.*test_refusals"):
        simulate(bead(force=lambda s, t, q, v, u, mu: [pick(q[0]), 0, 0]), TIMES, {"x": 1.0})


def test_a_parameter_that_is_not_declared_is_named():
    spring = bead(force=lambda self, t, q, v, u, mu: [-mu["k"] * q[0], 0.0, 0.0])
    with pytest.raises(ValueError, match=r"Bead\.force asks for 'k', which is no parameter"):
        simulate(spring, TIMES, {"x": 1.0})


_FIRST = datetime.datetime(2024, 5, 1, 12)


@pytest.mark.parametrize(
    "dates",
    [
        np.arange("2024-05-01T12:00:00", "2024-05-01T12:00:03", dtype="M8[s]"),
        [_FIRST + datetime.timedelta(seconds=i) for i in range(3)],
        pandas.date_range(_FIRST, periods=3, freq="s"),
        list(pandas.date_range(_FIRST, periods=3, freq="s")),
    ],
    ids=["numpy", "datetime", "pandas", "timestamps"],
)
def test_dates_as_times_are_refused_with_a_way_out_that_works(dates):
    with pytest.raises(ValueError, match=r"Times must be numbers.*dates, give (.*)\.$") as found:
        simulate(Oscillator(), dates, {"x": 1.0})
    way_out = str(found.value).split("since the first: ")[1].rstrip(".")
    np.testing.assert_array_equal(eval(way_out, {"np": np, "t": dates}), [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interpolation": 3}, r"Unknown interpolation 3\. Known: constant"),
        ({"interpolation": ["linear"]}, r"Unknown interpolation \['linear'\]"),
        ({"independent": [2]}, r"Unknown coordinate 2\. Known: x"),
        ({"independent": 2}, r"independent is 2; .*names"),
        ({"parameters": "m"}, r"Parameters are 'm'; give values by name"),
    ],
)
def test_options_of_the_wrong_type_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate(Oscillator(), TIMES, {"x": 1.0}, inputs=np.ones(11), **options)
