"""Which terms a law of noisy data has, told by its rollouts."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import mbdnode as mbd
from mbdnode.data.rows import rows_of
from mbdnode.identification.term_selection import choose_columns, is_definite
from mbdnode.models.learned_mechanism import LearnedMechanism


def test_columns_are_those_of_the_best_subset_of_all():
    random = np.random.default_rng(3)
    columns = random.normal(size=(200, 8))
    # Two that are nearly alike, of which the second belongs to the law.
    columns[:, 1] = columns[:, 4] + 0.3 * random.normal(size=200)
    target = -columns[:, [2, 4, 7]] @ np.array([1.0, 2.0, 0.5]) + 0.1 * random.normal(size=200)
    price, none = np.log(200) + np.log(8), np.zeros(8, bool)

    def criterion(chosen):
        own = columns[:, list(chosen)]
        rest = target - own @ np.linalg.lstsq(own, target, rcond=None)[0]
        return 200 * np.log(rest @ rest / 200) + price * len(chosen)

    every = [s for n in range(1, 9) for s in itertools.combinations(range(8), n)]
    best = min(every, key=criterion)
    for start in ([1], [0, 1, 3], list(range(8))):
        begun = np.isin(np.arange(8), start)
        taken, coefficients = choose_columns(columns, target, begun, none, price, 200)[-1]
        assert tuple(np.flatnonzero(taken)) == best == (2, 4, 7)
        # Two standard errors of 0.1/sqrt(200) and more: columns are not orthogonal.
        np.testing.assert_allclose(coefficients[[2, 4, 7]], [1.0, 2.0, 0.5], atol=0.05)


def test_two_columns_that_make_up_a_third_are_exchanged_for_it():
    random = np.random.default_rng(5)
    small = random.uniform(-0.3, 0.3, 400)
    columns = np.stack([np.cos(small), np.cos(2 * small), np.ones(400)], axis=1)
    # To the second order of the angle, 4/3 of the first less 1/3 of the second are the third.
    target = -1.5 * columns[:, 2] + 0.02 * random.normal(size=400)
    begun, none = np.array([True, True, False]), np.zeros(3, bool)
    path = choose_columns(columns, target, begun, none, np.log(400), 400)
    assert np.flatnonzero(path[-1][0]).tolist() == [2]


def test_column_that_sets_the_scale_stays():
    columns = np.eye(5)[:, :3]
    begun, fixed = np.array([True, True, True]), np.array([True, False, False])
    target = np.array([0.0, -1.0, 0.0, 0.1, 0.1])
    taken, _ = choose_columns(columns, target, begun, fixed, np.log(5), 5)[-1]
    assert taken.tolist() == [True, True, False]


def test_mass_that_is_definite_along_the_data_alone_is_no_mechanisms():
    # M = m0 + m1 cos(q) is 1.5 at q = 0, and at q = pi 0.5, or -0.1 with the other coefficients.
    system = mbd.AccelerationFunction(lambda t, q, v, u, mu: -q, (mbd.angle("q"),))
    run = mbd.simulate(system, np.arange(51) * 0.02, {"q": 0.3})
    rows = rows_of(system, (0,), mbd.Dataset(run))
    blank = LearnedMechanism.for_system(system, mass_degree=1)
    angles = np.array([True])
    for values, expected in (((1.0, 0.5), True), ((0.7, 0.8), False), ((-1.0, -0.5), True)):
        every = np.zeros(blank.network.values.size)
        every[:2] = values
        law = eqx.tree_at(lambda m: m.network.values, blank, jnp.asarray(every))
        assert float(law.mass(jnp.array([0.3]), {})[0, 0] * np.sign(values[0])) > 0
        assert is_definite(law, rows, angles) is expected
