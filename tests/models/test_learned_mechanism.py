"""Columns of a learned mechanism: of a part of them, and of what the inputs add."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import CartPole
from mbdnode.models.learned_mechanism import LearnedMechanism

SETTINGS = {
    "of constant inputs": {"mass_degree": 2, "potential_degree": 2},
    "of inputs that depend on the position": {
        "mass_degree": 2,
        "potential_degree": 1,
        "input_degree": 1,
    },
    "with springs of angles": {"mass_degree": 1, "potential_degree": 2, "angle_springs": True},
    "with laws of the joints": {"mass_degree": 1, "potential_degree": 2, "joint_laws": True},
    "with the mechanism's own inputs": {
        "mass_degree": 2,
        "potential_degree": 2,
        "forces": "added",
    },
}


def columns(model, u):
    z, s = jnp.array([0.7, -0.4]), jnp.array([1.3, 0.6])
    mu = {p.name: jnp.asarray(p.default) for p in model.body.parameters}
    return jnp.zeros(()), z, s, jnp.asarray(u), mu


@pytest.mark.parametrize("name", SETTINGS)
def test_some_columns_alone_are_those_of_the_whole_mechanism(name):
    model = LearnedMechanism.for_system(CartPole(), **SETTINGS[name])
    whole = eqx.filter_jit(model.momenta_and_forces)(*columns(model, [2.0]))
    rng = np.random.default_rng(0)
    for count in (1, 3, model.network.values.size // 2):
        chosen = np.sort(rng.choice(model.network.values.size, count, replace=False))
        part = model.of_columns(chosen)
        found = eqx.filter_jit(part.momenta_and_forces)(*columns(part, [2.0]))
        for one, every in zip(found, whole, strict=True):
            np.testing.assert_allclose(one, every[:, chosen], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", SETTINGS)
def test_forces_of_inputs_are_those_with_them_less_those_without(name):
    model = LearnedMechanism.for_system(CartPole(), **SETTINGS[name])
    every = np.arange(model.network.values.size)
    for one in (model, model.of_columns(every[1::2])):
        with_inputs, without = (
            eqx.filter_jit(one.momenta_and_forces)(*columns(one, u))[1] for u in ([2.0], [0.0])
        )
        expected = np.zeros(with_inputs.shape)
        expected[:, one.driven_columns] = eqx.filter_jit(one.input_forces)(*columns(one, [2.0]))
        np.testing.assert_allclose(with_inputs - without, expected, rtol=1e-12, atol=1e-12)
