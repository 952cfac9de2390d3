"""The network against plain NumPy, and the variance of its first weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from mbdnode.models import make_network
from mbdnode.models.network import ACTIVATIONS

FORMULAS = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "sin": np.sin,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
# The usual approximation of gelu by a tanh is good to 5e-4; the others are exact.
TOLERANCES = {"gelu": 2e-3}


def by_hand(network, x, activation=np.tanh):
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        x = activation(np.asarray(weight) @ x + np.asarray(bias))
    return np.asarray(network.weights[-1]) @ x + np.asarray(network.biases[-1])


@pytest.mark.parametrize("activation", FORMULAS)
def test_value_is_that_of_the_layers_one_after_the_other(activation):
    network = make_network((3, 7, 5, 2), activation, "xavier", seed=1)
    x = np.array([0.3, -1.1, 0.8])
    found = network(jnp.asarray(x))
    tolerance = TOLERANCES.get(activation, 1e-14)
    np.testing.assert_allclose(found, by_hand(network, x, FORMULAS[activation]), atol=tolerance)


def test_two_activations_take_turns():
    network = make_network((3, 7, 5, 4, 2), "sigmoid,tanh", "xavier", seed=1)
    x = given = np.array([0.3, -1.1, 0.8])
    layers = list(zip(network.weights, network.biases, strict=True))
    for (weight, bias), name in zip(layers, ("sigmoid", "tanh", "sigmoid"), strict=False):
        x = FORMULAS[name](np.asarray(weight) @ x + np.asarray(bias))
    expected = np.asarray(layers[-1][0]) @ x + np.asarray(layers[-1][1])
    np.testing.assert_allclose(network(jnp.asarray(given)), expected, atol=1e-14)


def test_several_small_networks_are_those_networks_one_after_the_other():
    reads = ((2, 0), (1, 1), (0, 2))
    several = make_network((2, 5, 4, 1), "tanh", "xavier", seed=1, affine=True, reads=reads)
    beside = np.random.default_rng(0).normal(size=(3, 1, 2))
    several = eqx.tree_at(lambda n: n.beside, several, jnp.asarray(beside))
    x = np.array([0.3, -1.1, 0.8])
    expected = []
    for i, which in enumerate(reads):
        own = jax.tree.map(lambda a, i=i: a[i], several)
        picked = x[list(which)]
        expected += list(by_hand(own, picked) + beside[i] @ picked)
    np.testing.assert_allclose(several(jnp.asarray(x)), expected, atol=1e-14)


def test_every_activation_has_a_formula_here():
    assert set(FORMULAS) == set(ACTIVATIONS)


@pytest.mark.parametrize(
    ("initialization", "variance"),
    [("xavier", lambda into, out: 2 / (into + out)), ("kaiming", lambda into, out: 2 / into)],
)
def test_first_weights_have_the_variance_of_their_rule(initialization, variance):
    sizes = (100, 400, 300)
    network = make_network(sizes, "tanh", initialization, seed=3)
    layers = zip(network.weights, network.biases, sizes, sizes[1:], strict=False)
    for weight, bias, into, out in layers:
        assert weight.shape == (out, into)
        expected = variance(into, out)
        # The variance of n samples is known to sqrt(2/n), 0.7 % here; the mean to 1/sqrt(n).
        assert np.var(weight) == pytest.approx(expected, rel=0.03)
        assert abs(np.mean(weight)) < 4 * np.sqrt(expected / weight.size)
        assert np.max(np.abs(bias)) <= 1 / np.sqrt(into)
        # A uniform draw within b has variance b^2/3, known from n of them to 0.9/sqrt(n).
        assert np.var(bias) == pytest.approx(1 / (3 * into), rel=0.2)


def test_weights_follow_from_the_seed_alone():
    first, again, other = (make_network((2, 4, 1), "tanh", "xavier", seed=s) for s in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert not np.array_equal(first.weights[0], other.weights[0])


def test_float32_network_computes_in_float32():
    double = make_network((3, 8, 8, 1), "tanh", "xavier", seed=2)
    single = jax.tree.map(lambda x: x.astype(jnp.float32), double)
    x = np.array([0.3, -1.1, 0.8], np.float32)
    found = single(jnp.asarray(x))
    assert found.dtype == jnp.float32
    # A few units in the last place of float32 for another order of summation.
    np.testing.assert_allclose(found, by_hand(single, x), atol=1e-6)
