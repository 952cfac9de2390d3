"""Coordinates that the constraints give explicitly, and what is left to be solved.

The oracles are the full matrices: the Jacobian by `jacfwd`, NumPy's solution of the equations of
motion, and the same split of the coordinates without an elimination.
"""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from toys import Elbow

import mbdnode as mbd
from mbdnode.mechanisms import from_dict, read_mechanism
from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import (
    Split,
    accelerations,
    choose_partition,
    complete,
    consistent_state,
    kkt,
    position_jacobian,
    position_residual,
    resolve_parameters,
    tangent_at,
    velocity_residual,
)
from mbdnode.multibody.partition import choose_elimination
from mbdnode.multibody.sparsity.constraint_structure import color_columns, structure_of
from mbdnode.multibody.sparsity.elimination import pivoted_columns, plan_elimination

NOW = jnp.zeros(())
FILES = Path(__file__).parents[3] / "examples" / "mechanisms"


def bar(number, before, *, at=0.5, **more):
    """A bar of one meter, pinned to another, which ends half a meter from its center."""
    point = [0.0, 0.0] if before == "ground" else [at, 0.0]
    body = {"center": [number - 0.5, 0.1 * number], "mass": 1.0 + number / 10, "inertia": 0.1}
    joint = {"type": "revolute", "bodies": [before, f"b{number}"], "points": [point, [-0.5, 0.0]]}
    return {f"b{number}": {**body, **more}}, {f"j{number}": joint}


def branched():
    """Six bars, of which two hang on the second; a spring, a damper and friction in a pin."""
    bodies, joints = {}, {}
    for number, before in enumerate(["ground", "b1", "b2", "b2", "b4", "b5"], start=1):
        own = bar(number, before, at=0.5 if number != 4 else 0.1)
        bodies.update(own[0])
        joints.update(own[1])
    ends = {"bodies": ["b3", "b6"], "points": [[0.5, 0.0], [0.2, 0.1]]}
    return from_dict(
        {
            "name": "tree",
            "gravity": [0.0, -9.81],
            "bodies": bodies,
            "joints": joints,
            "springs": {"coil": {"type": "linear", **ends, "stiffness": 20.0, "free_length": 1.0}},
            "dampers": {"oil": {"type": "linear", **ends, "damping": 0.7}},
            "friction": {"rust": {"joint": "j5", "limit": 0.3, "viscous": 0.1}},
        }
    )


MECHANISMS = {
    "tree": branched,
    "loop": lambda: read_mechanism(FILES / "four_bar.toml"),
    "guides": lambda: read_mechanism(FILES / "quick_return.toml"),
    "class": SliderCrank,
}
# How many equations are left: none of a tree, one for each row that closes a loop.
LEFT = {"tree": 0, "loop": 2, "guides": 2, "class": 1}


def without_elimination(partition):
    """The same coordinates, solved as a full matrix."""
    whole = lambda s: Split(s.rows, s.dependent, s.independent)  # noqa: E731
    velocity = whole(partition.velocity)
    return replace(partition, position=velocity, velocity=velocity)


# Those that say what another one says too are for the slow tests.
_TWICE = ("loop", "guides")


@pytest.fixture(
    scope="module",
    params=[pytest.param(x, marks=[pytest.mark.slow] * (x in _TWICE)) for x in MECHANISMS],
)
def case(request):
    """A mechanism a little off a consistent state, solved in both ways, with derivatives."""
    mechanism = MECHANISMS[request.param]()
    known = {} if request.param != "class" else {"theta1": 1.0}
    mu, start = resolve_parameters(mechanism), consistent_state(mechanism, known)
    partition = choose_partition(mechanism, NOW, start.q, mu)
    z = partition.position.take_independent(start.q)
    moved, s = jnp.asarray(np.random.default_rng(4).normal(size=(2, z.shape[0])))
    u = jnp.full(len(mechanism.inputs), 0.5)

    def found(partition, z, s):
        q, v, tangent, solved = complete(mechanism, partition, NOW, z, s, start.q, mu)
        a, multipliers = accelerations(mechanism, partition.velocity, NOW, q, v, u, mu)
        values = (q, v, a, multipliers, tangent.full_slope, tangent.drift, tangent.reduce(q))
        return values, (tangent.determinant, tangent.singular, solved)

    at, along = (z + 0.02 * moved, s), (moved, 0.5 * s)

    @jax.jit
    def both(partition):
        run = lambda *x: found(partition, *x)  # noqa: E731
        values, change, told = jax.jvp(run, at, along, has_aux=True)
        if request.param != "loop":  # One is enough: compiling it takes most of the time.
            return values, change, (), told
        gradient = jax.grad(lambda *x: jnp.sum(jnp.sin(run(*x)[0][2])), argnums=(0, 1))(*at)
        return values, change, gradient, told

    ways = both(partition), both(without_elimination(partition))
    return request.param, mechanism, mu, u, partition, *ways


def test_as_many_equations_are_left_as_loops_need(case):
    name, _, _, _, partition, *_ = case
    assert partition.position.unknowns == LEFT[name]
    assert partition.may_branch == (LEFT[name] > 0)


def close(found, wanted, tolerance):
    size = max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)


def test_eliminated_and_full_solutions_agree_with_their_derivatives(case):
    *_, (values, change, gradient, told), (wanted, wanted_change, wanted_gradient, _) = case
    assert bool(told[2])
    assert not bool(told[1])
    # Condition numbers of a few hundred leave this of sixteen digits.
    for own, other in zip(values, wanted, strict=True):
        close(own, other, 1e-11)
    for own, other in zip((*change, *gradient), (*wanted_change, *wanted_gradient), strict=True):
        close(own, other, 1e-10)


def test_completed_states_keep_the_constraints_at_round_off(case):
    _, mechanism, mu, _, _, (values, *_), _ = case
    q, v = values[:2]
    # Coordinates of a few meters and velocities of tens: some units in the last place.
    assert np.max(np.abs(position_residual(mechanism, NOW, q, mu))) < 1e-14
    speed = max(1.0, float(np.max(np.abs(v))))
    assert np.max(np.abs(velocity_residual(mechanism, NOW, q, v, mu))) < 1e-14 * speed


def test_accelerations_and_multipliers_solve_the_whole_equations(case):
    _, mechanism, mu, u, partition, (values, *_), _ = case
    q, v, a, multipliers = values[:4]
    matrix, right = kkt(mechanism, NOW, q, v, u, mu)
    tangent = tangent_at(mechanism, partition.velocity, NOW, q, mu)
    friction = mechanism.friction_force(NOW, q, v, u, mu, tangent)
    right = np.array(right)
    right[: q.shape[0]] += 0.0 if friction is None else np.asarray(friction)
    close(jnp.concatenate([a, multipliers]), np.linalg.solve(matrix, right), 1e-10)


def test_the_determinants_differ_by_a_constant(case):
    _, mechanism, mu, _, partition, (values, _, _, told), (_, _, _, dense) = case
    other = values[0] + 0.1 * jnp.cos(jnp.arange(values[0].shape[0]))
    ratios = [told[0] / dense[0]]
    splits = partition.velocity, without_elimination(partition).velocity
    own, full = (tangent_at(mechanism, s, NOW, other, mu).determinant for s in splits)
    ratios.append(own / full)
    np.testing.assert_allclose(ratios[0], ratios[1], rtol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loop", "tree"])
def test_motions_and_their_gradients_are_those_of_the_full_matrix(name):
    mechanism = MECHANISMS[name]()
    mu, start = resolve_parameters(mechanism), consistent_state(mechanism, {})
    partition = choose_partition(mechanism, NOW, start.q, mu)
    mass = mechanism.parameter_names[0]
    t = np.linspace(0.0, 0.2, 21)
    u = np.full((21, len(mechanism.inputs)), 0.5) if mechanism.inputs else None

    def end(value, partition):
        # Held: a full matrix would exchange coordinates, and RK4's error is that of its own.
        run = mbd.simulate(
            mechanism,
            t,
            start,
            inputs=u,
            parameters={mass: value},
            independent=partition,
            repartition=False,
        )
        return jnp.concatenate([run.q[-1], run.v[-1]]), run.position_residual

    at = (jnp.asarray(2.0), jnp.ones(()))
    run = jax.jit(lambda p: jax.jvp(lambda m: end(m, p), at[:1], at[1:]))
    (found, residual), (slope, _) = run(partition)
    (wanted, _), (wanted_slope, _) = run(without_elimination(partition))
    assert np.max(residual) < 1e-14
    close(found, wanted, 1e-11)
    close(slope, wanted_slope, 1e-10)


def test_named_coordinates_are_not_eliminated():
    q = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8}).q
    mu = resolve_parameters(Elbow())
    # The tip is named: its joints' angles are left as unknowns, as many as there are constraints.
    assert choose_partition(Elbow(), NOW, q, mu).position.elimination is None
    angles = choose_partition(Elbow(), NOW, q, mu, ("shoulder", "elbow")).position
    assert angles.elimination is not None
    assert angles.elimination.columns == (2, 3)


def test_the_structure_is_that_of_the_function_whatever_its_operations():
    table = np.array([[0.0, 2.0, 0.0, 0.0], [1.0, 0.0, 0.0, 3.0]])

    def function(q, factor):
        moved = jnp.where(q > 0, q**2, 0.0)[::-1]
        picked = q[jnp.array([3, 1])] * 2.0 - jnp.sin(q[0])
        rest = [jnp.cumsum(q[:2]), jnp.stack([factor * q[2], q[1] / 4 + factor]), jnp.ones(1)]
        return jnp.concatenate([table @ q, moved[1:3], picked, *rest])

    found = structure_of(function, 4, jax.ShapeDtypeStruct((), float))
    coefficient, nonlinear = np.zeros((11, 4)), np.zeros((11, 4), bool)
    coefficient[:2] = table
    nonlinear[2, 2] = nonlinear[3, 1] = True  # Also where `where` takes the other branch.
    coefficient[4, 3] = coefficient[5, 1] = 2.0
    nonlinear[4, 0] = nonlinear[5, 0] = True
    nonlinear[6:8, :2] = True  # Of an operation that is not known, all of its arguments.
    nonlinear[8, 2] = True  # A factor that is a parameter is no constant.
    coefficient[9, 1] = 0.25
    np.testing.assert_array_equal(found.coefficient, coefficient)
    np.testing.assert_array_equal(found.nonlinear, nonlinear)


@pytest.mark.parametrize("name", ["tree", "guides", "class"])
def test_the_jacobian_by_colors_is_that_of_all_directions(name):
    mechanism = MECHANISMS[name]()
    mu, count = resolve_parameters(mechanism), len(mechanism.coordinates)
    function = lambda q: position_residual(mechanism, NOW, q, mu)  # noqa: E731
    q = jnp.asarray(np.random.default_rng(3).normal(size=count))
    structure = structure_of(function, count)
    # The angles of the bodies that a joint has; positions too where a guide turns with its body.
    assert len(color_columns(structure).seeds) <= {"tree": 3, "guides": 5, "class": 2}[name]
    wanted = jax.jacfwd(function)(q)
    np.testing.assert_allclose(position_jacobian(mechanism, NOW, q, mu), wanted, atol=1e-15)
    explicit = plan_elimination(structure)
    assert explicit is not None
    # Constant factors are those of the Jacobian, wherever it is evaluated.
    own = np.asarray(wanted)[np.ix_(explicit.rows, explicit.columns)]
    np.testing.assert_allclose(explicit.inverse @ own, np.eye(explicit.count), atol=1e-14)


@pytest.mark.slow
def test_two_hundred_bodies_move_as_mujoco_has_them():
    from benchmarks.chain_speed import measure_chain

    compile_s, _, _, residual, apart = measure_chain(200)
    assert compile_s < 60
    # Two hundred meters of coordinates; both integrate the angles with the same method and step.
    assert residual < 1e-12
    assert apart < 1e-8


@pytest.mark.parametrize("shape", [(4, 4), (3, 9), (9, 3), (8, 60)])
@pytest.mark.parametrize("rank", [1, 3])
def test_columns_are_pivoted_as_by_lapack(shape, rank):
    generator = np.random.default_rng(rank)
    matrix = generator.normal(size=(shape[0], rank)) @ generator.normal(size=(rank, shape[1]))
    sizes, order = pivoted_columns(matrix)
    r, pivots = scipy.linalg.qr(matrix, mode="r", pivoting=True)
    known = np.abs(np.diag(r))
    # Both have rounding errors of a few units in the last place of the largest column.
    np.testing.assert_allclose(sizes, known, rtol=0, atol=1e-13 * known[0])
    np.testing.assert_array_equal(order[:rank], pivots[:rank])
    np.testing.assert_array_equal(np.sort(order), np.arange(shape[1]))


def test_substitution_gives_the_residual_at_the_solved_coordinates():
    system = SliderCrank()
    mu = resolve_parameters(system)
    explicit = choose_elimination(system, mu, system.independent)
    assert explicit is not None
    assert explicit.across is not None
    q = jnp.asarray(np.random.default_rng(0).normal(size=9))
    residual = position_residual(system, jnp.zeros(()), q, mu)
    columns = np.array(explicit.columns)
    solved = q.at[columns].add(-explicit.solve_own(residual))
    expected = position_residual(system, jnp.zeros(()), solved, mu)
    for rows in (np.arange(8), jnp.array([3, 0])):
        found = explicit.substitute(residual, rows)
        np.testing.assert_allclose(found, expected[rows], rtol=0, atol=1e-14)
