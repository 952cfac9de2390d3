"""A user's own mechanism: what it may return, and what is said when it returns something else."""

import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.multibody import AbstractMechanism, Input, length
from mbdnode.simulation import simulate

TIMES = np.linspace(0.0, 0.5, 6)


class Mine(AbstractMechanism):
    """Two free masses, the second of which is pushed."""

    coordinates = (length("x"), length("y"))

    def mass_matrix(self, q, mu):
        return [1.0, 2.0]

    def force(self, t, q, v, u, mu):
        return [0.0, 2.0]


def variant(**methods):
    return type("Mine", (Mine,), methods)()


@pytest.mark.parametrize(
    "methods",
    [
        {},
        {"force": lambda self, t, q, v, u, mu: np.array([0.0, 2.0])},
        {"force": lambda self, t, q, v, u, mu: (0, 2)},
        {"mass_matrix": lambda self, q, mu: [1, 2]},
        {"mass_matrix": lambda self, q, mu: [[1.0, 0.0], [0.0, 2.0]]},
        {"mass_matrix": lambda self, q, mu: np.diag([1.0, 2.0])},
        {"mass_matrix": lambda self, q, mu: jnp.diag(jnp.array([1.0, 2.0]))},
    ],
    ids=["floats", "numpy force", "integers", "integer mass", "rows", "numpy mass", "jax mass"],
)
def test_every_way_to_write_it_moves_alike(methods):
    run = simulate(variant(**methods), TIMES, {"x": 1.0})
    np.testing.assert_allclose(run["x"], 1.0, atol=1e-15)
    np.testing.assert_allclose(run["y"], TIMES**2 / 2, atol=1e-15)


@pytest.mark.parametrize(
    "names",
    [
        {"coordinates": (length("x"), length("x"))},
        {"coordinates": (length("x"), length("x_dot"))},
        {"coordinates": (length("t"), length("y"))},
        {"inputs": (Input("x_dot"),)},
        {"inputs": (Input("u"), Input("u"))},
    ],
)
def test_two_columns_of_one_name_are_refused(names):
    with pytest.raises(ValueError, match="two columns called"):
        simulate(variant(**names), TIMES, {})


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"force": lambda self, t, q, v, u, mu: [0.0, 1.0, 2.0]}, r"force.*\(3,\).*2.*x, y"),
        ({"force": lambda self, t, q, v, u, mu: 1.0}, r"force.*\(\).*2.*x, y"),
        ({"force": lambda self, t, q, v, u, mu: jnp.ones(1)}, r"force.*\(1,\).*2.*x, y"),
        ({"mass_matrix": lambda self, q, mu: [1.0, 1.0, 1.0]}, r"mass.*\(3,\).*2"),
        ({"mass_matrix": lambda self, q, mu: 1.0}, r"mass.*\(\).*2"),
        ({"mass_matrix": lambda self, q, mu: []}, r"mass.*\(0,\).*2"),
        ({"mass_matrix": lambda self, q, mu: jnp.ones((2, 3))}, r"mass.*\(2, 3\).*2"),
        ({"constraint": lambda self, t, q, mu: q[0] - 1.0}, r"constraint.*\(\).*list"),
        ({"constraint": lambda self, t, q, mu: (q - 1.0)[None]}, r"constraint.*\(1, 2\)"),
        ({"constraint": lambda self, t, q, mu: None}, r"constraint.*None"),
        (
            {"nonholonomic": lambda self, t, q, mu: ([[1.0, 0.0, 0.0]], [0.0])},
            r"nonholonomic.*\(1, 3\).*2",
        ),
        (
            {"nonholonomic": lambda self, t, q, mu: ([[1.0, 0.0]], [0.0, 0.0])},
            r"nonholonomic.*\(1, 2\).*\(2,\)",
        ),
        ({"nonholonomic": lambda self, t, q, mu: ([1.0, 0.0], [0.0])}, r"nonholonomic.*\(2,\)"),
        ({"independent": ("z",)}, r"'z'.*Known: x, y"),
    ],
)
def test_wrong_shapes_are_refused_by_the_name_of_the_method(methods, message):
    with pytest.raises((TypeError, ValueError), match=message):
        simulate(variant(**methods), TIMES, {"x": 1.0})


@pytest.mark.parametrize("value", ["one", None, np.ones(2)])
def test_starts_that_are_no_numbers_are_refused_by_name(value):
    with pytest.raises((TypeError, ValueError), match=r"'x'.*number"):
        simulate(Mine(), TIMES, {"x": value})


@pytest.mark.parametrize("value", [1, np.float32(1.0), np.array(1.0), jnp.array(1.0), True])
def test_starts_may_be_any_kind_of_number(value):
    assert float(simulate(Mine(), TIMES, {"x": value})["x"][-1]) == 1.0


def test_fully_driven_mechanism_follows_its_drive():
    # As many constraints as coordinates: nothing is left to integrate.
    driven = variant(constraint=lambda self, t, q, mu: [q[0] - jnp.cos(t), q[1] - q[0] ** 2])
    run = simulate(driven, TIMES, {})
    assert bool(run.status.ok)
    np.testing.assert_allclose(run["x"], np.cos(TIMES), atol=1e-15)
    np.testing.assert_allclose(run["y_dot"], -np.sin(2 * TIMES), atol=1e-14)
