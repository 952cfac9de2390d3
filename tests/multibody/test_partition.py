"""Which coordinates are chosen, which are refused, and what an exchange does."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import (
    Elbow,
    LinearRows,
    Parallelogram,
    Pendulum,
    TurningBlade,
    TwiceHeldPendulum,
    TwiceHeldPendulumAllowed,
)

from mbdnode.multibody import (
    Split,
    choose_partition,
    consistent_state,
    exchange,
    resolve_parameters,
    tangent_from,
)

NOW = jnp.zeros(())


def choose(system, q, independent=None, parameters=None):
    mu = resolve_parameters(system, parameters)
    return choose_partition(system, NOW, jnp.asarray(q, float), mu, independent)


def names(system, indices):
    return tuple(system.coordinate_names[int(i)] for i in indices)


@pytest.mark.parametrize(("theta", "free"), [(0.2, "x"), (1.4, "y"), (3.0, "x"), (-1.3, "y")])
def test_automatic_choice_integrates_along_the_circle(theta, free):
    partition = choose(Pendulum(), [1.5 * np.sin(theta), -1.5 * np.cos(theta)])
    assert names(Pendulum(), partition.velocity.independent) == (free,)
    assert partition.degrees_of_freedom == 1
    assert partition.redundant == ()


def random_rows(seed, count=2):
    """Rows whose sizes differ by up to six decades, as those of angles and lengths can."""
    random = np.random.default_rng(seed)
    return random.normal(size=(count, 4)) * 10 ** random.uniform(-3, 3, (count, 1))


def test_automatic_choice_is_near_the_best_of_all_choices():
    for seed in range(30):
        matrix = random_rows(seed)
        unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        sets = itertools.combinations(range(4), 2)
        best = max(abs(np.linalg.det(unit[:, list(columns)])) for columns in sets)
        dependent = choose(LinearRows(jnp.asarray(matrix)), np.zeros(4)).velocity.dependent
        # Pivoting is greedy. Its volume is at least 1/2! of the greatest for two rows.
        assert abs(np.linalg.det(unit[:, dependent])) >= best / 2


def test_traced_choice_equals_concrete_choice():
    matrices = jnp.stack([jnp.asarray(random_rows(seed)) for seed in range(30)])
    q = jnp.zeros((30, 4))
    traced = jax.vmap(lambda m, x: choose_partition(LinearRows(m), NOW, x, {}))(matrices, q)
    for matrix, dependent, independent in zip(
        matrices, traced.velocity.dependent, traced.velocity.independent, strict=True
    ):
        concrete = choose(LinearRows(matrix), np.zeros(4)).velocity
        assert set(map(int, dependent)) == set(map(int, concrete.dependent))
        assert list(map(int, independent)) == list(map(int, concrete.independent))


def test_traced_choice_keeps_the_named_coordinates():
    mu = resolve_parameters(Elbow())
    q = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8}).q
    traced = jax.vmap(lambda x: choose_partition(Elbow(), NOW, x, mu, ("elbow", "y")))(q[None])
    assert names(Elbow(), traced.velocity.independent[0]) == ("elbow", "y")


class FreeElbow(Elbow):
    independent = None


def test_choice_does_not_depend_on_the_unit_of_length():
    for seed in range(10):
        shoulder, elbow = np.random.default_rng(seed).uniform(-2.0, 2.0, 2)
        known, choices = {"shoulder": shoulder, "elbow": elbow}, []
        # A power of two scales without rounding, so that ties are broken alike.
        for unit in (1.0, 1024.0):
            q = consistent_state(FreeElbow(), known, parameters={"L": unit}).q
            partition = choose(FreeElbow(), q, parameters={"L": unit})
            choices.append(names(FreeElbow(), partition.velocity.independent))
        assert choices[0] == choices[1]


def test_named_choice_is_taken():
    q = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8}).q
    assert names(Elbow(), choose(Elbow(), q).velocity.independent) == ("x", "y")
    named = choose(Elbow(), q, ("shoulder", "elbow"))
    assert names(Elbow(), named.velocity.independent) == ("shoulder", "elbow")
    assert set(names(Elbow(), named.velocity.dependent)) == {"x", "y"}


def test_wrong_number_of_names_is_refused():
    q = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8}).q
    with pytest.raises(ValueError, match=r"1 independent .*\(x\).* 2 degree.*Name 2, or none"):
        choose(Elbow(), q, ("x",))
    with pytest.raises(ValueError, match=r"3 independent .*\(x, y, elbow\).* 2 degree"):
        choose(Elbow(), q, ("x", "y", "elbow"))


def test_wrong_number_of_names_is_refused_while_traced():
    mu = resolve_parameters(Pendulum())
    with pytest.raises(ValueError, match=r"2 independent .*\(x, y\).* 1 degree"):
        jax.vmap(lambda x: choose_partition(Pendulum(), NOW, x, mu, ("x", "y")))(jnp.ones((3, 2)))


def test_name_given_twice_is_refused():
    q = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8}).q
    with pytest.raises(ValueError, match=r"'x'.* twice"):
        choose(Elbow(), q, ("x", "x"))


def test_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"'shouldr'.*Did you mean 'shoulder'.*Known: shoulder"):
        choose(Elbow(), np.ones(4), ("shouldr", "x"))


def test_one_name_may_be_given_as_a_string():
    partition = choose(Pendulum(), [0.3, -1.4], "y")
    assert names(Pendulum(), partition.velocity.independent) == ("y",)


def test_names_that_do_not_determine_the_rest_are_refused():
    # At the bottom of the swing y does not change to first order, whatever x does.
    with pytest.raises(ValueError, match=r"\(y\) do not determine \(x\).*Name other"):
        choose(Pendulum(), [0.0, -1.5], ("y",))
    # A stretched arm cannot move its tip along itself.
    with pytest.raises(ValueError, match=r"\(x, y\) do not determine \(shoulder, elbow\)"):
        choose(Elbow(), [0.3, 0.0, 2 * np.cos(0.3), 2 * np.sin(0.3)])


def test_redundant_constraint_is_refused_by_its_number():
    q = consistent_state(Pendulum(), {"x": 0.5}).q
    with pytest.raises(
        ValueError, match=r"2 constraints have rank 1.* [01] \(counted.*allow_redundant"
    ):
        choose(TwiceHeldPendulum(), q)


def test_redundant_row_is_found_among_independent_ones():
    matrix = np.array([[1.0, 0, 0, 0], [0, 1.0, 1.0, 0], [0, 2.0, 2.0, 0], [0, 0, 0, 3.0]])
    with pytest.raises(ValueError, match=r"4 constraints have rank 3.* [12] \(counted.*Remove"):
        choose(LinearRows(jnp.asarray(matrix)), np.zeros(4))


def test_allowed_redundant_constraint_is_left_out():
    q = consistent_state(Pendulum(), {"x": 0.5}).q
    partition = choose(TwiceHeldPendulumAllowed(), q)
    assert len(partition.redundant) == 1
    assert partition.velocity.rows.shape == (1,)
    assert partition.degrees_of_freedom == 1


def test_singular_configuration_is_refused():
    # With all bars in line, the loop's equation along the line has no first-order part.
    with pytest.raises(ValueError, match=r"rank 1 .*singular point.*start elsewhere"):
        choose(Parallelogram(), np.zeros(3))


def test_nonholonomic_constraint_removes_a_velocity_but_no_position():
    partition = choose(TurningBlade(), [0.1, 0.2, 0.3])
    assert partition.degrees_of_freedom == 2
    assert partition.position.independent.shape == (3,)


def _random_tangent(seed):
    matrix = random_rows(seed)
    split = Split(jnp.arange(2), jnp.array([0, 1]), jnp.array([2, 3]))
    return matrix, tangent_from(jnp.asarray(matrix), jnp.zeros(2), split)


def test_exchange_multiplies_the_determinant_by_the_slope_entry():
    for seed in range(20):
        matrix, tangent = _random_tangent(seed)
        slope = np.abs(np.asarray(tangent.steepness))
        fresh = exchange(tangent.split, tangent.steepness, jnp.ones(4), limit=0.0)
        before, after = (
            abs(np.linalg.det(matrix[:, split.dependent])) for split in (tangent.split, fresh)
        )
        # Determinants of random blocks lose a few digits to cancellation.
        np.testing.assert_allclose(after / before, slope.max(), rtol=1e-9)


def test_exchange_keeps_every_coordinate_in_its_place():
    full = jnp.array([1.0, 2.0, 3.0, 4.0])
    for seed in range(20):
        _, tangent = _random_tangent(seed)
        fresh = exchange(tangent.split, tangent.steepness, jnp.ones(4), limit=0.0)
        both = [*map(int, fresh.dependent), *map(int, fresh.independent)]
        assert sorted(both) == [0, 1, 2, 3]
        merged = fresh.merge(full[fresh.dependent], fresh.take_independent(full))
        np.testing.assert_array_equal(merged, full)


def test_exchange_leaves_a_good_choice_alone():
    _, tangent = _random_tangent(0)
    largest = float(jnp.max(jnp.abs(tangent.steepness)))
    kept = exchange(tangent.split, tangent.steepness, jnp.ones(4), limit=1.01 * largest)
    swapped = exchange(tangent.split, tangent.steepness, jnp.ones(4), limit=0.99 * largest)
    np.testing.assert_array_equal(kept.dependent, tangent.split.dependent)
    assert not np.array_equal(swapped.dependent, tangent.split.dependent)


def test_exchange_judges_lengths_by_their_scale():
    # One meter per radian is steep for a mechanism of one millimeter, flat for one of a kilometer.
    split = Split(jnp.arange(1), jnp.array([0]), jnp.array([1]))
    slope = jnp.array([[1.0]])
    small = exchange(split, slope, jnp.array([1e-3, 1.0]))
    large = exchange(split, slope, jnp.array([1e3, 1.0]))
    assert int(small.dependent[0]) == 1
    assert int(large.dependent[0]) == 0
