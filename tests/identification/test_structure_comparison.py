"""Which terms a law has beside the true ones, as `benchmarks.noise` counts them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.noise import SYSTEMS, clean_runs, coefficients, compare_structure, with_noise
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism


def law_of(name: str, terms: dict[str, float], **settings) -> LearnedMechanism:
    """A law with these terms, in a form that has all of degree two."""
    blank = LearnedMechanism.for_system(SYSTEMS[name].system(), mass_degree=2, **settings)
    size, values = blank.network.values.size, np.zeros(blank.network.values.size)
    for k in range(size):
        one = eqx.tree_at(lambda m: m.network.values, blank, jnp.asarray(np.eye(size)[k]))
        values[k] = terms.get(next(iter(coefficients(one))), 0.0)
    return eqx.tree_at(lambda m: m.network.values, blank, jnp.asarray(values)).without_zeros()


# By hand, from the kinetic and potential energies: sin^2 = (1 - cos 2q)/2, and
# cos(q1 - q2) = cos q1 cos q2 + sin q1 sin q2.
LAWS = {
    "double pendulum": {
        "M[q1, q1] 1": 2.0,
        "M[q1, q2] cos(q1) cos(q2)": 1.0,
        "M[q1, q2] sin(q1) sin(q2)": 1.0,
        "M[q2, q2] 1": 1.0,
        "V cos(q1)": -2 * 9.81,
        "V cos(q2)": -9.81,
    },
    "cart-pendulum": {
        "M[q1, q1] 1": 0.5,
        "M[q1, x] cos(q1)": 0.5,
        "M[x, x] 1": 1.5,
        "V cos(q1)": -0.5 * 9.81,
    },
    "spherical pendulum": {
        "M[q1, q1] 1": 1.0,
        "M[q2, q2] 1": 0.5,
        "M[q2, q2] cos(2 q1)": -0.5,
        "V cos(q1)": -9.81,
    },
}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "spherical pendulum")) for x in LAWS]
)
def test_true_law_is_right_whatever_its_factor(name):
    scaled = {term: -3.0 * value for term, value in LAWS[name].items()}
    compared = compare_structure(SYSTEMS[name], law_of(name, scaled))
    assert compared.right
    assert compared.error < 1e-9


def test_terms_too_many_and_too_few_are_named():
    name = "cart-pendulum"
    terms = {**LAWS[name], "V x^2": 0.01, "M[q1, q1] 1": 0.51, "damping 3": 0.1}
    del terms["M[q1, x] cos(q1)"]
    compared = compare_structure(SYSTEMS[name], law_of(name, terms))
    assert not compared.right
    assert compared.extra == ("V x^2", "damping 3")
    assert compared.missing == ("M[q1, x] cos(q1)",)


def test_error_of_a_coefficient_is_relative_to_its_own_size():
    name = "double pendulum"
    terms = {**LAWS[name], "V cos(q2)": -9.81 * 1.06}
    # The common factor takes up a sixth of it.
    assert compare_structure(SYSTEMS[name], law_of(name, terms)).error == pytest.approx(
        0.05, abs=2e-3
    )


def test_law_that_is_no_lagrangian_or_whose_form_is_too_poor_is_wrong():
    system = SYSTEMS["spherical pendulum"]
    assert not compare_structure(system, Library.for_system(system.system())).right
    poor = LearnedMechanism.for_system(system.system(), mass_degree=1)
    assert not compare_structure(system, poor).right


def test_shared_noise_moves_all_columns_of_a_row_alike():
    runs = clean_runs(SYSTEMS["double pendulum"], 1, 0, 50)
    for kind, alike in (("shared", True), ("own", False)):
        (noisy,) = with_noise(runs, 0.1, kind, 0)
        moves = np.concatenate([noisy.q - runs[0].q, noisy.v - runs[0].v], axis=1)
        assert np.allclose(moves, moves[:, :1], atol=1e-12) is alike
        assert 0.06 < np.std(moves) < 0.14
