"""Parameters by name: defaults, ranges, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Oscillator, Pendulum

from mbdnode.multibody import angle, length, resolve_parameters


def test_given_values_replace_defaults():
    mu = resolve_parameters(Pendulum(), {"m": 7})
    assert {name: float(value) for name, value in mu.items()} == {"m": 7.0, "L": 1.5, "g": 9.81}
    assert all(value.dtype == jnp.float64 for value in mu.values())


def test_traced_values_are_taken_as_they_are():
    double = jax.vmap(lambda m: 2 * resolve_parameters(Pendulum(), {"m": m})["m"])
    np.testing.assert_array_equal(double(jnp.array([1.0, 3.0])), [2.0, 6.0])


@pytest.mark.parametrize(
    ("system", "given", "message"),
    [
        (Pendulum(), {"m": 0.0}, r"'m' is 0 kg.*above 0.*default is 2 kg"),
        (Pendulum(), {"m": -1}, r"'m' is -1 kg.*above 0.*default is 2 kg"),
        (Pendulum(), {"m": np.nan}, r"'m' is nan.*finite"),
        (Pendulum(), {"g": np.inf}, r"'g' is inf.*finite"),
        (Pendulum(), {"l": 1.0}, r"Unknown parameter 'l'.*Did you mean 'L'.*Known: m, L, g"),
        (Pendulum(), {"mass": 1.0}, r"Unknown parameter 'mass'.*Known: m, L, g"),
        (Pendulum(), {"m": np.ones(3)}, r"'m' has shape \(3,\).*jax\.vmap"),
        (Pendulum(), {"m": "heavy"}, r"'m' is .*heavy.*number"),
        (Oscillator(), {"k": -4.0}, r"'k' is -4 N/m.*at least 0.*default is 4 N/m"),
        (Oscillator(), {"bias": 6.0}, r"'bias' is 6 N.*at most 5.*default is 0 N"),
    ],
)
def test_bad_values_are_refused_with_rule_value_and_way_out(system, given, message):
    with pytest.raises(ValueError, match=message):
        resolve_parameters(system, given)


def test_bounds_themselves_are_allowed():
    mu = resolve_parameters(Oscillator(), {"k": 0.0, "bias": 5.0})
    assert float(mu["k"]) == 0.0


def test_angles_and_lengths_know_their_unit_and_rate():
    assert (angle("phi").unit, angle("phi").is_angle, angle("phi").rate) == ("rad", True, "phi_dot")
    assert (length("x").unit, length("x").is_angle) == ("m", False)
