"""Laws that are found, against the laws that made the data."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import acceleration, recorded, stepped

import mbdnode as mbd
from mbdnode.identification import choose_law
from mbdnode.identification.regression.null_vector import candidate_supports, compress, find_law
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.basis import make_angle_springs, make_basis, make_joints
from mbdnode.models.learned_mechanism import LearnedMechanism

TERMS = {"quadratic drag": 3, "smooth friction": 3, "cubic spring": 4}
LAWS = {
    "quadratic drag": lambda q, v: -9.81 * np.sin(q) - 0.3 * v * np.abs(v),
    "smooth friction": lambda q, v: -9.81 * np.sin(q) - 0.5 * np.tanh(v / 0.3),
    "cubic spring": lambda q, v: -9.81 * np.sin(q) - 2.0 * q - 3.0 * q**3,
}


# Every law takes a search of its own; one of them is quick enough for every day.
EACH_LAW = pytest.mark.parametrize(
    "name",
    [
        pytest.param("quadratic drag", marks=pytest.mark.slow),
        "smooth friction",
        pytest.param("cubic spring", marks=pytest.mark.slow),
    ],
)


@functools.cache
def choice_of(name):
    """What recipe `best` chose for a law, from two seconds of one swing."""
    return choose_law(
        SinglePendulum(),
        mbd.Dataset(recorded(stepped(LAWS[name], (1.0, 0.5), 0.01, 240), 0.01)),
        integrator="rk4",
        refined=True,
        seed=0,
    )


@EACH_LAW
def test_law_of_a_joint_is_found_far_outside_of_the_data(name):
    # The swing stays below 1.1 rad and 4 rad/s.
    for theta, rate in ((2.5, -4.0), (-2.0, 12.0), (7.0, 0.01)):
        expected = LAWS[name](theta, rate)
        assert acceleration(choice_of(name).model, theta, rate) == pytest.approx(expected, rel=1e-8)


@EACH_LAW
def test_law_of_a_joint_is_as_simple_as_the_one_that_made_the_data(name):
    model = choice_of(name).model
    assert isinstance(model, LearnedMechanism)
    # An inertia, a weight, and the terms of the joint; no coefficient beside them.
    values = np.asarray(model.network.values)
    assert np.sum(np.abs(values) > 1e-9 * np.max(np.abs(values))) == TERMS[name]


def test_width_of_friction_is_found_too():
    model = choice_of("smooth friction").model
    np.testing.assert_allclose(model.network.widths, [0.3], rtol=1e-8)


@EACH_LAW
def test_candidates_before_the_law_were_no_law(name):
    choice = choice_of(name)
    assert choice.chosen.error < 1e-8
    others = [attempt.error for attempt in choice.attempts if attempt is not choice.chosen]
    assert others
    assert min(others) > 1e-8


def test_joints_are_single_coordinates_and_differences_of_one_kind():
    coordinates = (mbd.angle("a"), mbd.length("x"), mbd.angle("b"))
    joints = make_joints(coordinates, 2, jnp.array([0.0, 0.5, 0.0]))
    assert set(joints.stretches) == {(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, -1)}
    z = jnp.array([0.3, 0.9, -0.4])
    # Twists have all powers; the potential has powers of lengths up to two already.
    expected = [x**p for x in (0.3, -0.4, 0.7) for p in (1, 2, 3, 4)] + [0.4**3, 0.4**4]
    np.testing.assert_allclose(np.sort(joints.potentials(z)), np.sort(expected), rtol=1e-14)


def test_springs_of_angles_span_all_quadratic_potentials_of_them():
    coordinates = (mbd.angle("a"), mbd.length("x"), mbd.angle("b"))
    springs = make_angle_springs(coordinates)
    z = jnp.asarray(np.random.default_rng(0).uniform(-3, 3, (50, 3)))
    terms = np.asarray(jax.vmap(springs.potentials)(z))
    a, _, b = np.asarray(z).T
    wanted = np.stack([a, b, a**2, b**2, a * b], axis=1)
    assert terms.shape == wanted.shape
    weights = np.linalg.lstsq(terms, wanted, rcond=None)[0]
    np.testing.assert_allclose(terms @ weights, wanted, atol=1e-12)


def test_resistance_of_a_joint_acts_on_both_sides_of_it():
    joints = make_joints((mbd.angle("a"), mbd.angle("b")), 1, jnp.zeros(2))
    forces = np.asarray(joints.resistances(jnp.array([2.0, 5.0]), jnp.array([1.0, 1.0, 6.0])))
    between = joints.stretches.index((1, -1))
    drag, friction = forces[:, between], forces[:, joints.resisting + between]
    np.testing.assert_allclose(drag, [-9.0, 9.0], rtol=1e-15)
    np.testing.assert_allclose(friction, [-np.tanh(0.5), np.tanh(0.5)], rtol=1e-15)


def test_basis_holds_every_product_up_to_its_degree():
    basis = make_basis((mbd.angle("a"), mbd.length("x")), 2)
    a, x = 0.7, 1.2
    expected = [
        1.0, np.cos(a), np.sin(a), x, np.cos(2 * a), np.sin(2 * a), x**2,
        np.cos(a) * x, np.sin(a) * x,
    ]  # fmt: skip
    found = basis(jnp.array([a, x]))
    assert sorted(np.asarray(found)) == pytest.approx(sorted(expected))
    assert float(found[0]) == 1.0


def _equations_with_a_law(noise: float = 0.0):
    """Inertia in columns 0 and 1, forces in the others; `2 K_0 - E_3 / 2 + 4 E_5 = 0`."""
    random = np.random.default_rng(0)
    whole = random.normal(size=(300, 7))
    whole[:, 5] = (0.5 * whole[:, 3] - 2.0 * whole[:, 0]) / 4.0
    whole += noise * random.normal(size=whole.shape)
    whole[:, 6] = 0.0
    inertia = np.where(np.arange(7) < 2, whole, 0.0)
    return compress(whole, inertia, np.arange(7) < 2)


def test_law_is_the_null_vector_in_the_units_of_the_columns():
    law, left = find_law(_equations_with_a_law(), np.array([0, 3, 5]))
    np.testing.assert_allclose(law / law[0], [1.0, -0.25, 2.0], rtol=1e-12)
    assert left < 1e-12


def test_supports_end_where_the_law_would_lose_a_term():
    supports = candidate_supports(_equations_with_a_law(), most=1)
    assert [list(s) for s in supports] == [[0, 3, 5]]


def test_support_of_a_law_stands_out_of_noise_too():
    equations = _equations_with_a_law(noise=0.01)
    supports = candidate_supports(equations, most=1)
    assert [list(s) for s in supports] == [[0, 3, 5]]
    # Noise of one percent in each column leaves about so much of the inertia.
    assert 1e-3 < find_law(equations, supports[0])[1] < 0.1


def test_column_of_zeros_is_in_no_support():
    for support in candidate_supports(_equations_with_a_law()):
        assert 6 not in support
        assert set(support) & {0, 1}


def test_compressed_equations_have_the_lengths_and_angles_of_all_of_them():
    random = np.random.default_rng(1)
    whole = random.normal(size=(50, 4)) * np.array([1.0, 10.0, 0.1, 3.0])
    inertia = np.where(np.arange(4) < 1, whole, 0.0)
    equations = compress(whole, inertia, np.arange(4) < 1)
    assert equations.whole.shape == (4, 4)
    again = equations.whole * equations.norms
    np.testing.assert_allclose(again.T @ again, whole.T @ whole, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(equations.whole, axis=0), 1.0, rtol=1e-13)


def test_what_is_left_is_a_part_of_the_laws_own_inertia():
    # One mass and one force at an angle of 30 degrees to it: half of the inertia stays.
    whole = np.array([[1.0, np.sqrt(3) / 2], [0.0, 0.5]])
    inertia = np.array([[1.0, 0.0], [0.0, 0.0]])
    _, left = find_law(compress(whole, inertia, np.array([True, False])), np.array([0, 1]))
    assert left == pytest.approx(0.5, rel=1e-12)
