import math
import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.models.basis import Scale
from mbdnode.models.function_library import Library
from mbdnode.models.law_equations import equations_of
from mbdnode.models.learned_mechanism import LearnedMechanism

VALUES = {"theta": 0.7, "x": -0.4, "theta_dot": 1.3, "x_dot": 0.6, "f": 2.5}


def value_of(terms, values):
    """A printed sum, computed by Python from its own text."""

    def factor(text):
        text = re.sub(r"(\d) (\w)", r"\1*\2", text).replace("^", "**")
        text = re.sub(r"(\w+)\|(\w+)\|", r"\1*abs(\2)", text)
        return eval(text, {"cos": math.cos, "sin": math.sin, "tanh": math.tanh, "abs": abs}, values)

    return sum(t.coefficient * math.prod(factor(f.text) for f in t.factors) for t in terms)


def group(equations, heading):
    return {e.left.text: e.terms for e in dict(equations.groups)[heading]}


@pytest.fixture(scope="module")
def cart_law():
    """All coefficients of a cart-pole's law, drawn at random."""
    cart = mbd.mechanisms.CartPole()
    scale = Scale(jnp.array([0.0, 0.3]), jnp.array([1.0, 2.0]))
    law = LearnedMechanism.for_system(
        cart, lengths=scale, mass_degree=2, potential_degree=2, joint_laws=True, input_degree=1
    )
    random = np.random.default_rng(0)
    drawn = jnp.asarray(random.uniform(0.5, 2.0, len(law.network.values)))
    widths = jnp.asarray([0.5, 1.25, 2.0][: law.joints.resisting])  # printed whole with six digits
    return eqx.tree_at(lambda m: (m.network.values, m.network.widths), law, (drawn, widths))


def test_printed_mass_matrix_and_potential_have_the_law_s_values(cart_law):
    equations = equations_of(cart_law)
    z, mu = jnp.array([VALUES["theta"], VALUES["x"]]), {}
    mass, printed = cart_law.mass(z, mu), group(equations, "mass matrix")
    # The free factor is the input's coefficient.
    drive = np.ravel(cart_law.parts()[3])
    factor = drive[np.argmax(np.abs(drive))]
    for (i, j), name in {
        (0, 0): "M[theta, theta]",
        (0, 1): "M[theta, x]",
        (1, 1): "M[x, x]",
    }.items():
        assert value_of(printed[name], VALUES) == pytest.approx(float(mass[i, j]) / factor, 1e-12)
    stored = float(cart_law.potentials(z, mu) @ cart_law.parts()[1]) / factor
    assert value_of(group(equations, "potential")["V"], VALUES) == pytest.approx(stored, 1e-12)


def test_springs_of_angles_are_printed_as_such_and_widths_of_friction_are_positive():
    system = mbd.mechanisms.DoublePendulum()
    first, second = (system.coordinates[i].name for i in range(2))
    law = LearnedMechanism.for_system(system, mass_degree=0, potential_degree=0, joint_laws=True)
    values, widths = np.zeros(law.network.values.size), jnp.array([1.0, 1.0, -0.25])
    values[0] = values[2] = 1.0  # Masses; then the spring and the friction of the last joint.
    values[law.mass_columns + law.joints.springs.index((2, 2))] = 3.0
    values[-1] = -0.5
    law = eqx.tree_at(
        lambda m: (m.network.values, m.network.widths), law, (jnp.asarray(values), widths)
    )
    told = str(equations_of(law.without_zeros()))
    assert f"V = 3 ({first} - {second})^2" in told
    assert f"Q[{first}] = - 0.5 tanh(({first}_dot - {second}_dot)/0.25)" in told
    z, s, mu = jnp.array([0.3, -0.4]), jnp.array([0.1, 0.7]), {}
    np.testing.assert_allclose(
        law.without_zeros().minimal_rates(0.0, z, s, jnp.zeros(0), mu)[1],
        law.minimal_rates(0.0, z, s, jnp.zeros(0), mu)[1],
        rtol=1e-14,
    )


def test_printed_forces_have_the_law_s_values(cart_law):
    printed = group(equations_of(cart_law), "forces of velocities and inputs")
    name = cart_law.inputs[0].name
    values = {**VALUES, name: VALUES["f"]}
    s, u = jnp.array([VALUES["theta_dot"], VALUES["x_dot"]]), jnp.array([VALUES["f"]])
    _, _, damping, drive, resistance = cart_law.parts()
    # One, cosine and sine of the angle, and the length from its origin in its unit, by degree.
    theta, x = VALUES["theta"], VALUES["x"]
    known = {(0, 0): 1.0, (1, 0): np.cos(theta), (2, 0): np.sin(theta), (0, 1): (x - 0.3) / 2}
    terms = np.array([known[term] for term in cart_law.input_basis.terms])
    assert len(terms) == len(known)
    force = (drive @ terms) @ u - damping @ s - cart_law.resistances(s) @ resistance
    drive = np.ravel(drive)
    factor = drive[np.argmax(np.abs(drive))]
    for i, coordinate in enumerate(("theta", "x")):
        found = value_of(printed[f"Q[{coordinate}]"], values)
        assert found == pytest.approx(float(force[i]) / factor, 1e-12)


@pytest.mark.parametrize("quadratic", [True, False])
def test_printed_accelerations_have_the_library_s_values(quadratic):
    cart = mbd.mechanisms.CartPole()
    model = Library.for_system(cart, degree=2, quadratic=quadratic)
    drawn = np.random.default_rng(1).uniform(0.5, 2.0, model.network.weights.shape)
    model = eqx.tree_at(lambda m: m.network.weights, model, jnp.asarray(drawn))
    z, s = jnp.array([0.7, -0.4]), jnp.array([1.3, 0.6])
    _, rates = eqx.filter_jit(model.minimal_rates)(0.0, z, s, jnp.array([2.5]), {})
    printed = group(equations_of(model), "accelerations")
    values = {**VALUES, cart.inputs[0].name: 2.5}
    for i, name in enumerate(("theta''", "x''")):
        assert value_of(printed[name], values) == pytest.approx(float(rates[i]), rel=1e-12)


def test_products_of_two_angles_are_written_as_their_difference():
    double = mbd.mechanisms.DoublePendulum()
    law = LearnedMechanism.for_system(double, mass_degree=2, potential_degree=1)
    terms = law.mass_basis.terms
    mass = np.zeros((3, len(terms)))
    mass[0, terms.index((0, 0))] = 1.0
    mass[1, terms.index((1, 1))] = mass[1, terms.index((2, 2))] = 0.5
    mass[2, terms.index((0, 0))] = 0.5
    values = np.zeros(len(law.network.values))
    values[: mass.size] = mass.reshape(-1)
    law = eqx.tree_at(lambda m: m.network.values, law, jnp.asarray(values))
    equations = equations_of(law)
    assert "M[theta1, theta2] = 0.5 cos(theta1 - theta2)" in str(equations)
    assert r"0.5 \, \cos(\theta_{1} - \theta_{2})" in equations.latex()


def test_a_network_has_no_equation_to_print():
    network = mbd.MBDNODE.for_system(mbd.mechanisms.SinglePendulum(), width=2)
    with pytest.raises(ValueError, match=r"MBDNODE is not a law.*identify"):
        equations_of(network)


def test_fit_of_random_features_is_not_printed_as_a_law():
    pendulum = mbd.mechanisms.SinglePendulum()
    swing = mbd.simulate(pendulum, np.linspace(0.0, 8.0, 401), {"theta": 1.0})
    config = mbd.IdentificationConfig(structure="features", refined=False)
    found = mbd.identify(pendulum, swing, config)
    count = found.model.settings.features
    told = str(found)
    assert told.startswith(f"A fit of {count} random features in theta")
    assert "theta''" not in told
    assert "Law" not in told
    assert f"chose a fit of {count} random features" in found.status
    with pytest.raises(ValueError, match="no equation to set in LaTeX"):
        found.latex()
