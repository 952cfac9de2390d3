"""`simulate`: times, systems, batches, derivatives, and compiling once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy.integrate import solve_ivp
from toys import TIMES, Oscillator, Pendulum, ShakenPendulum

from mbdnode.multibody import AccelerationFunction, Input, Parameter, consistent_state, length
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

UNEVEN = np.sort(np.random.default_rng(3).uniform(2.0, 5.0, 41))


def test_oscillator_follows_its_closed_form_on_uneven_times():
    run = simulate(
        Oscillator(), UNEVEN, {"x": 1.0, "x_dot": 0.5}, parameters={"m": 2.0}, integrator="dopri8"
    )
    w, s = np.sqrt(2.0), UNEVEN - UNEVEN[0]
    np.testing.assert_allclose(run["x"], np.cos(w * s) + 0.5 / w * np.sin(w * s), atol=1e-12)
    np.testing.assert_allclose(run["x_dot"], 0.5 * np.cos(w * s) - w * np.sin(w * s), atol=1e-12)
    np.testing.assert_array_equal(run["t"], UNEVEN)


def test_fixed_step_takes_one_step_an_interval():
    # One classical Runge-Kutta step of x'' = -4 x is the Taylor polynomial of degree four.
    steps = np.diff(UNEVEN)
    run = simulate(Oscillator(), UNEVEN, {"x": 1.0})
    matrix, y = np.array([[0.0, 1.0], [-4.0, 0.0]]), np.array([1.0, 0.0])
    for h, row in zip(steps, np.stack([run["x"], run["x_dot"]], axis=1)[1:], strict=True):
        term = y
        for power in range(1, 5):
            term = h / power * matrix @ term
            y = y + term
        np.testing.assert_allclose(row, y, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
def test_moving_pivot_shakes_the_pendulum_as_the_minimal_equation_says():
    # With the pivot at X(t): L theta'' = -g sin(theta) - X'' cos(theta).
    t = np.linspace(0.4, 3.4, 151)
    theta, rate = 0.6, -0.5

    def right(s, y):
        return [y[1], (-9.81 * np.sin(y[0]) + 1.2 * np.sin(2 * s) * np.cos(y[0])) / 1.5]

    expected = solve_ivp(
        right, (0.4, 3.4), [theta, rate], method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13
    ).y[0]
    pivot, speed = 0.3 * np.sin(0.8), 0.6 * np.cos(0.8)
    start = State(
        jnp.array([pivot + 1.5 * np.sin(theta), -1.5 * np.cos(theta)]),
        jnp.array([speed + 1.5 * rate * np.cos(theta), 1.5 * rate * np.sin(theta)]),
    )
    run = simulate(ShakenPendulum(), t, start, integrator="dopri8")
    np.testing.assert_allclose(run["x"], 0.3 * np.sin(2 * t) + 1.5 * np.sin(expected), atol=1e-10)
    np.testing.assert_allclose(run["y"], -1.5 * np.cos(expected), atol=1e-10)
    assert float(run.position_residual.max()) < 1e-14
    assert float(run.velocity_residual.max()) < 1e-13


def pull(t, q, v, u, mu):
    return -4 * q


def test_bare_function_is_a_system():
    run = simulate(pull, TIMES, {"x": 1.0})
    assert run.columns == ("t", "x", "x_dot")
    # RK4 at 0.025 s.
    np.testing.assert_allclose(run["x"], np.cos(2 * TIMES), atol=1e-6)
    by_rate = simulate(pull, TIMES, {"x_dot": 2.0})
    np.testing.assert_allclose(by_rate["x"], np.sin(2 * TIMES), atol=1e-6)
    two = simulate(pull, TIMES, State(jnp.array([1.0, 2.0]), jnp.zeros(2)))
    assert two.coordinates == ("q1", "q2")
    np.testing.assert_allclose(two["q2"], 2 * np.cos(2 * TIMES), atol=1e-6)


def test_acceleration_function_takes_inputs_and_parameters():
    system = AccelerationFunction(
        lambda t, q, v, u, mu: u - mu["k"] * q,
        (length("x"),),
        inputs=(Input("u"),),
        parameters=(Parameter("k", 1.0),),
        separable=True,
    )
    run = simulate(
        system, TIMES, {"x": 0.0}, inputs=np.ones(41), parameters={"k": 4.0}, integrator="fk6"
    )
    # Sixth order at a step of 0.025.
    np.testing.assert_allclose(run["x"], (1 - np.cos(2 * TIMES)) / 4, atol=1e-9)


@pytest.fixture(scope="module")
def starts():
    states = [consistent_state(Pendulum(), {"x": x, "x_dot": 0.4}) for x in (-0.9, 0.2, 1.45)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


@pytest.mark.slow
def test_batch_of_starts_and_parameters_equals_a_loop(starts):
    g = jnp.array([9.81, 1.62, 3.7])
    run = lambda s, g: simulate(Pendulum(), TIMES, s, parameters={"g": g})  # noqa: E731
    batch = jax.vmap(run)(starts, g)
    assert bool(jnp.all(batch.status.ok))
    assert batch["x"].shape == (3, 41)
    for lane in range(3):
        one = run(jax.tree.map(lambda x, i=lane: x[i], starts), g[lane])
        # The third start is near the side, where y is chosen, the others near the bottom.
        np.testing.assert_allclose(batch.q[lane], one.q, atol=1e-13)
        np.testing.assert_allclose(batch.v[lane], one.v, atol=1e-12)
        assert float(batch.position_residual[lane].max()) < 1e-14


def test_batch_of_inputs_equals_a_loop():
    forces = jnp.asarray(np.random.default_rng(0).normal(size=(3, 41)))
    run = lambda u: simulate(Oscillator(), TIMES, {"x": 1.0}, inputs=u, interpolation="cubic")  # noqa: E731
    batch = jax.vmap(run)(forces)
    for lane in range(3):
        np.testing.assert_allclose(batch.q[lane], run(forces[lane]).q, atol=1e-13)


def test_batch_of_times_equals_a_loop():
    start = State(jnp.ones(1), jnp.zeros(1))
    grids = jnp.stack([jnp.asarray(TIMES), 2 * jnp.asarray(TIMES) + 1])
    batch = jax.vmap(lambda t: simulate(Oscillator(), t, start))(grids)
    for lane in range(2):
        np.testing.assert_allclose(
            batch.q[lane], simulate(Oscillator(), grids[lane], start).q, atol=1e-13
        )


def final_height(point):
    """Where a pendulum released at an angle is after a second, through constrained coordinates."""
    theta, rod, g = point
    start = State(rod * jnp.stack([jnp.sin(theta), -jnp.cos(theta)]), jnp.zeros(2))
    parameters = {"L": rod, "g": g}
    return simulate(Pendulum(), TIMES, start, parameters=parameters, integrator="mp2")["y"][-1]


@pytest.mark.slow
def test_derivatives_of_a_constrained_rollout_match_finite_differences():
    point, direction = jnp.array([0.8, 1.3, 9.81]), jnp.array([0.3, -0.2, 1.0])
    backward = jax.jit(jax.value_and_grad(final_height))
    h = 1e-4
    expected = []
    for unit in (*jnp.eye(3), direction):
        ends = [backward(point + sign * h * unit)[0] for sign in (1.0, -1.0)]
        expected.append((ends[0] - ends[1]) / (2 * h))
    # Truncation of the difference is h^2 times a third derivative of size ten.
    np.testing.assert_allclose(backward(point)[1], expected[:3], rtol=1e-6)
    forward = jax.jit(lambda x: jax.jvp(final_height, (x,), (direction,))[1])
    np.testing.assert_allclose(forward(point), expected[3], rtol=1e-6)


def test_gradient_through_an_implicit_integrator_matches_the_closed_form():
    start = State(jnp.ones(1), jnp.zeros(1))

    def end(k):
        run = simulate(
            Oscillator(), TIMES, start, parameters={"k": k}, integrator="implicit-midpoint"
        )
        return run["x"][-1]

    # d/dk cos(sqrt(k)) = -sin(sqrt(k)) / (2 sqrt(k)); the midpoint rule is off by h^2.
    np.testing.assert_allclose(jax.jit(jax.grad(end))(4.0), -np.sin(2.0) / 4, rtol=1e-3)


class WeighedPendulum(Pendulum):
    """The pendulum with its length as an array of its own, as a learned model has its weights."""

    rod: Array

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - self.rod**2]


@pytest.mark.slow
def test_gradient_reaches_the_arrays_of_a_system():
    start = State(jnp.array([0.9, -1.2]), jnp.zeros(2))

    @eqx.filter_jit
    def end(system):
        return simulate(system, TIMES, start, integrator="mp2")["x"][-1]

    system = WeighedPendulum(jnp.array(1.5))
    found = eqx.filter_grad(end)(system).rod
    h = 1e-5
    expected = end(WeighedPendulum(jnp.array(1.5 + h))) - end(WeighedPendulum(jnp.array(1.5 - h)))
    np.testing.assert_allclose(found, expected / (2 * h), rtol=1e-6)


class PushedPendulum(Pendulum):
    """The pendulum with a push along x; counts how often its forces are traced."""

    inputs = (Input("push"),)
    traces = [0]

    def force(self, t, q, v, u, mu):
        self.traces[0] += 1
        return [u[0], -mu["m"] * mu["g"]]


def test_rollout_is_compiled_once_and_reused():
    def run(x=0.9, **options):
        simulate(PushedPendulum(), TIMES, {"x": x}, **options)
        return PushedPendulum.traces[0]

    once = run()
    assert once > 0
    assert run() == once  # another instance of the same class
    assert run(parameters={"m": 5.0, "L": 1.3}) == once
    assert run(parameters={"m": 5, "L": np.float32(1.25)}) == once
    assert run(inputs=np.ones(41)) == once  # held inputs have the shape of none
    assert run(inputs=np.ones((40, 1), dtype=np.float32)) == once
    # Another choice of coordinates is other numbers, not another program.
    assert run(x=1.4) == once
    assert run(independent="x") == once
    assert run(independent=("y",)) == once
    assert run(integrator="RK4") == once


class CountedOscillator(Oscillator):
    """Counts for itself."""

    traces = [0]


@pytest.mark.parametrize(
    ("transform", "k"),
    [(lambda f: f, 4.0), (jax.grad, 4.0), (jax.vmap, [4.0, 5.0])],
    ids=["plain", "grad", "vmap"],
)
def test_transformed_rollout_with_a_function_of_time_is_compiled_once(transform, k):
    start = State(jnp.ones(1), jnp.zeros(1))

    def end(k):
        run = simulate(CountedOscillator(), TIMES, start, inputs=jnp.cos, parameters={"k": k})
        return run["x"][-1]

    transform(end)(jnp.array(k))
    traces = CountedOscillator.traces[0]
    transform(end)(jnp.array(k) + 1.0)
    assert CountedOscillator.traces[0] == traces > 0


def test_everything_works_inside_an_outer_jit():
    start = consistent_state(Pendulum(), {"x": 0.9})
    plain, times = simulate(Pendulum(), TIMES, start).q, jnp.asarray(TIMES)

    @jax.jit
    def inside(g):
        by_state = simulate(Pendulum(), TIMES, start, parameters={"g": g}).q
        by_name = simulate(Pendulum(), times, {"x": 0.9}).q
        return by_state, by_name

    for found in inside(9.81):
        np.testing.assert_allclose(found, plain, atol=1e-13)
