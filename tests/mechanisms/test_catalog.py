"""What holds for several mechanisms: the registry, and textbook forces against autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode import mechanisms
from mbdnode.mechanisms import MECHANISMS, get_mechanism
from mbdnode.multibody import resolve_parameters
from mbdnode.multibody.kinematics import vector


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_found_by_name_and_exported_by_class(name):
    mechanism = get_mechanism(name)
    assert type(mechanism) is MECHANISMS[name]
    assert getattr(mbd.mechanisms, type(mechanism).__name__) is MECHANISMS[name]
    assert type(mechanism).__name__ in mechanisms.__all__


def test_an_unknown_mechanism_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"'fourbar'\. Did you mean 'four-bar'"):
        get_mechanism("fourbar")


@pytest.mark.parametrize("name", ["double-pendulum", "cart-pole", "four-bar"])
def test_textbook_terms_are_the_quadratic_velocity_force_and_the_slope_of_the_potential(name):
    mechanism = get_mechanism(name)
    random = np.random.default_rng(1)
    # Not the defaults, under which a wrong power of a length could pass.
    given = {p.name: p.default * random.uniform(0.5, 1.5) for p in mechanism.parameters}
    mu = resolve_parameters(mechanism, given)
    no_input = jnp.zeros(len(mechanism.inputs))

    @jax.jit
    def difference(q, v):
        textbook = vector(mechanism.force(jnp.zeros(()), q, v, no_input, mu))
        velocity_terms = mechanism.quadratic_velocity_force(q, v, mu)
        return textbook - velocity_terms + jax.grad(mechanism.potential_energy)(q, mu), textbook

    for _ in range(3):
        q, v = jnp.asarray(random.normal(size=(2, len(mechanism.coordinates))) * 2)
        error, size = difference(q, v)
        assert np.max(np.abs(error)) <= 1e-13 * np.max(np.abs(size))


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("single-mass-spring", "m", 0.0),
        ("single-mass-spring-damper", "d", -1.0),
        ("triple-mass-spring-damper", "physical_wall_damper", 1.5),
        ("single-pendulum", "L", -1.0),
        ("double-pendulum", "m2", float("nan")),
        ("cart-pole", "M", 0.0),
        ("slider-crank", "r", 0.0),
        ("four-bar", "I_coupler", -1e-3),
    ],
)
def test_a_parameter_outside_its_range_is_refused_by_name(name, parameter, value):
    with pytest.raises(ValueError, match=f"Parameter '{parameter}' is .* must be"):
        resolve_parameters(get_mechanism(name), {parameter: value})
