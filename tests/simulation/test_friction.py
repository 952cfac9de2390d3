"""Dry friction that sticks, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms.single_pendulum import SinglePendulum, SinglePendulumCartesian
from mbdnode.testing import check_mechanism

T = np.linspace(0.0, 2.0, 201)


class Block(mbd.AbstractMechanism):
    """A block on a table that holds up to `f` newton."""

    coordinates = (mbd.length("x"),)
    inputs = (mbd.Input("u", "N"),)
    parameters = (
        mbd.positive("m", 2.0, "kg"),
        mbd.nonnegative("f", 3.0, "N"),
        mbd.nonnegative("k", 0.0, "N/m"),
    )

    def mass_matrix(self, q, mu):
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        return [u[0] - mu["k"] * q[0]]

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0]], [mu["f"]]

    def potential_energy(self, q, mu):
        return 0.5 * mu["k"] * q[0] ** 2


class OneWay(Block):
    """Forward slip is twice as hard as backward."""

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0]], [[mu["f"], 2 * mu["f"]]]


class Belt(mbd.AbstractMechanism):
    """A mass on a spring, on a belt that moves at 0.5 m/s; static friction is above kinetic."""

    coordinates = (mbd.length("x"), mbd.length("belt"))
    k, m, static, kinetic, speed = 100.0, 1.0, 8.0, 5.0, 0.5

    def mass_matrix(self, q, mu):
        return [self.m, 1.0]

    def force(self, t, q, v, u, mu):
        return [-self.k * q[0], jnp.zeros(())]

    def constraint(self, t, q, mu):
        return [q[1] - self.speed * t]

    def dry_friction(self, t, q, v, u, mu):
        slips = jnp.abs(v[0] - v[1]) > 1e-9
        return [[1.0, -1.0]], [jnp.where(slips, self.kinetic, self.static)]


class Stack(mbd.AbstractMechanism):
    """A block of 1 kg on one of 3 kg on a table; the upper one is pulled."""

    coordinates = (mbd.length("lower"), mbd.length("upper"))
    inputs = (mbd.Input("pull", "N"),)
    parameters = (mbd.nonnegative("table", 2.0, "N"), mbd.nonnegative("between", 5.0, "N"))

    def mass_matrix(self, q, mu):
        return [3.0, 1.0]

    def force(self, t, q, v, u, mu):
        return [jnp.zeros(()), u[0]]

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0, 0.0], [-1.0, 1.0]], [mu["table"], mu["between"]]


def hinge(mechanism, row):
    """The same pendulum with a dry hinge of 0.4 N m."""

    class Dry(mechanism):
        def dry_friction(self, t, q, v, u, mu):
            return [row(q)], [0.4]

    return Dry()


def test_block_comes_to_rest_where_its_energy_is_spent_and_stays():
    run = mbd.simulate(Block(), T, {"x_dot": 1.0})
    slipping = T < 2 / 3 - 0.01
    x = np.asarray(run["x"])
    np.testing.assert_allclose(x[slipping], (T - 0.75 * T**2)[slipping], atol=1e-14)
    # Within the step in which it stops, the deceleration is taken as even: dt^2 a / 8 at most.
    assert x[-1] == pytest.approx(1 / 3, abs=1e-4 * 1.5 / 8 * 2)
    rest = T > 2 / 3 + 0.01
    assert not np.any(np.asarray(run["x_dot"])[rest])
    np.testing.assert_allclose(x[rest], x[-1], atol=1e-15)


@pytest.mark.parametrize(("u", "a"), [(2.999, 0.0), (-2.999, 0.0), (5.0, 1.0), (-5.0, -1.0)])
def test_block_holds_up_to_its_limit_and_slides_beyond(u, a):
    run = mbd.simulate(Block(), T, {"x": 0.0}, inputs=np.full(201, u))
    np.testing.assert_allclose(run["x"], 0.5 * a * T**2, atol=1e-13)


def test_limits_may_differ_with_the_direction():
    forward = mbd.simulate(OneWay(), T, {"x": 0.0}, inputs=np.full(201, 5.0))
    backward = mbd.simulate(OneWay(), T, {"x": 0.0}, inputs=np.full(201, -5.0))
    assert not np.any(np.asarray(forward["x_dot"]))
    np.testing.assert_allclose(backward["x"], -0.5 * T**2, atol=1e-13)


def test_oscillator_loses_four_limits_over_stiffness_in_a_turn():
    # Between two rests the motion is harmonic about f/k or -f/k.
    t = np.linspace(0.0, 20.0, 4001)
    run = mbd.simulate(Block(), t, {"x": 1.0}, parameters={"k": 40.0, "m": 2.0, "f": 3.0})
    x, v = np.asarray(run["x"]), np.asarray(run["x_dot"])
    peaks = [x[0], *(x[i] for i in range(1, 4000) if v[i - 1] > 0 >= v[i])]
    # A peak is read within a step of it, where the acceleration is up to 18.5 m/s^2.
    read = 18.5 * 0.005**2 / 2
    np.testing.assert_allclose(np.diff(peaks[:4]), -4 * 3.0 / 40.0, atol=2 * read)
    # It ends at rest, inside the band where friction holds the spring.
    assert v[-1] == 0
    assert abs(x[-1]) <= 3.0 / 40.0
    energy = np.asarray(mbd.energy(Block(), run, parameters={"k": 40.0, "m": 2.0, "f": 3.0}))
    # RK4 itself errs by 1e-9 of it in a turn.
    assert np.all(np.diff(energy) < 1e-9)


def test_mass_on_a_belt_sticks_and_slips_for_the_known_times():
    t = np.linspace(0.0, 3.0, 3001)
    run = mbd.simulate(Belt(), t, {"x": 0.0, "x_dot": 0.5, "belt": 0.0, "belt_dot": 0.5})
    assert bool(run.status.ok), str(run.status)
    slip = np.abs(np.asarray(run["x_dot"]) - 0.5) > 1e-6
    edges = t[1:][np.diff(slip.astype(int)) != 0]
    # It is carried until the spring pulls with 8 N: x = 0.08 after 0.16 s. Then
    # x = 0.05 + 0.03 cos(w s) + 0.5/w sin(w s), w = 10/s, until the speed is 0.5 again, which is
    # when tan(w s / 2) = -0.03 w / 0.5, and it is carried from 0.02 to 0.08 again.
    slipping = 2 * (np.pi - np.arctan(0.03 * 10 / 0.5)) / 10
    expected = 0.16 + np.cumsum([0.0, slipping, 0.06 / 0.5, slipping, 0.06 / 0.5])
    # Each change is found within a step or two.
    np.testing.assert_allclose(edges[:5], expected, atol=4e-3)


@pytest.mark.parametrize(
    ("pull", "limits", "expected"),
    [
        (1.9, (2.0, 5.0), (0.0, 0.0)),  # all hold
        (4.0, (2.0, 5.0), (0.5, 0.5)),  # both slide on the table, as one
        (9.0, (2.0, 5.0), (1.0, 4.0)),  # the upper slides, and drags the lower
        (9.0, (6.0, 5.0), (0.0, 4.0)),  # the upper slides, the lower is held
    ],
)
def test_stacked_blocks_share_friction(pull, limits, expected):
    mu = {"table": limits[0], "between": limits[1]}
    run = mbd.simulate(Stack(), T, {}, inputs=np.full(201, pull), parameters=mu)
    np.testing.assert_allclose(run.q, 0.5 * np.outer(T**2, expected), atol=1e-12)


@pytest.mark.slow
def test_dry_hinge_is_the_same_in_angle_and_cartesian_coordinates():
    one = mbd.simulate(hinge(SinglePendulum, lambda q: [1.0]), T, {"theta": 1.0})
    both = hinge(SinglePendulumCartesian, lambda q: [-q[1], q[0]])
    start = {"x": float(np.sin(1.0)), "y": float(-np.cos(1.0)), "x_dot": 0.0}
    two = mbd.simulate(both, T, start)
    # Each stops within a step, and rounds differently within it.
    np.testing.assert_allclose(two["x"], np.sin(one["theta"]), atol=1e-6)
    assert float(two.position_residual.max()) < 1e-13


@pytest.mark.slow
def test_batches_and_derivatives_go_through_friction():
    def end(f, u):
        inputs = jnp.full((201, 1), u)
        return mbd.simulate(
            Block(), T, mbd.State(jnp.zeros(1), jnp.zeros(1)), inputs=inputs, parameters={"f": f}
        ).q[-1, 0]

    ends = jax.vmap(end)(jnp.array([3.0, 6.0]), jnp.array([5.0, 5.0]))
    np.testing.assert_allclose(ends, [2.0, 0.0], atol=1e-13)
    # x = (u - f) t^2 / (2 m): each newton of friction costs a meter after two seconds.
    assert float(jax.grad(end)(3.0, 5.0)) == pytest.approx(-1.0, abs=1e-10)


def test_friction_is_found_from_positions():
    drive = 6.0 * np.sin(2.5 * T) + 2.0 * np.sin(7.0 * T)
    true = {"m": 1.7, "f": 2.2}
    run = mbd.simulate(Block(), T, {"x": 0.0}, inputs=drive, parameters=true)
    assert np.sum(np.asarray(run["x_dot"]) == 0) > 5  # It sticks in between.
    data = mbd.Dataset(run, recorded=["x"])
    found = mbd.identify(Block(), data, unknown=["m", "f"], interpolation="constant")
    assert found.parameters == pytest.approx(true, rel=1e-6)


class Wrong(Block):
    """Two numbers for one coordinate."""

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0, 0.0]], [1.0]


def test_mechanisms_with_friction_keep_the_contract():
    check_mechanism(Block())
    with pytest.raises(mbd.UserError, match="a row of 1 numbers for each contact"):
        mbd.simulate(Wrong(), T, {"x": 0.0})
