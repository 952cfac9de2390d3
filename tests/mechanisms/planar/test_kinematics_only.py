"""A file without masses: everything but forces."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import from_dict, from_text
from mbdnode.mechanisms.planar import PlanarKinematics, PlanarMechanism, analyze
from mbdnode.multibody import AbstractMechanism, resolve_parameters

SLIDER_CRANK = Path(__file__).parents[3] / "examples" / "mechanisms" / "slider_crank.toml"


@pytest.fixture(scope="module")
def crank():
    lines = SLIDER_CRANK.read_text().splitlines()
    return from_text("\n".join(x for x in lines if not x.startswith(("mass", "inertia"))))


@pytest.fixture(scope="module")
def found(crank):
    return analyze(crank, {"theta1": 0.5, "theta1_dot": 2.0})


def test_it_is_assembled_and_its_freedom_found(crank, found):
    assert isinstance(crank, PlanarKinematics)
    assert found.degrees_of_freedom == 1
    assert found.independent == ("theta1",)
    # The slider is at l cos(theta1) + sqrt(r^2 - l^2 sin^2(theta1)), of l = 2 and r = 4.
    state = dict(zip(crank.coordinate_names, np.asarray(found.state.q), strict=True))
    assert state["x3"] == pytest.approx(2 * np.cos(0.5) + np.sqrt(16 - 4 * np.sin(0.5) ** 2))


def test_forces_and_accelerations_are_refused_with_the_reason(crank):
    t, q, mu = jnp.zeros(()), jnp.zeros(9), resolve_parameters(crank)
    reason = "'slider-crank' gives no mass and inertia for crank, rod, slider"
    with pytest.raises(ValueError, match=reason):
        crank.force(t, q, q, jnp.zeros(2), mu)
    with pytest.raises(ValueError, match=reason):
        crank.mass_matrix(q, mu)
    with pytest.raises(ValueError, match=reason):
        crank.potential_energy(q, mu)
    with pytest.raises(ValueError, match=reason):
        mbd.simulate(crank, [0.0, 0.1], {"theta1": 0.5})
    with pytest.raises(ValueError, match=reason):
        PlanarMechanism(crank.description)
    assert not isinstance(crank, AbstractMechanism)


def test_a_model_on_it_has_its_constraints_and_its_freedom(crank, found):
    model = mbd.MBDNODE.for_system(crank, width=4, hidden_layers=1)
    assert model.independent == ("theta1",)
    assert model.input_names == ("F", "T")
    state = found.state
    z, s = state.q[2:3], state.v[2:3]
    _, rate = model.minimal_rates(jnp.zeros(()), z, s, jnp.zeros(2), {})
    assert np.all(np.isfinite(rate))
    residual = np.asarray(model.constraint(jnp.zeros(()), state.q, {}))
    assert residual.shape == (8,)
    assert np.max(np.abs(residual)) <= 1e-14


def test_one_body_without_a_mass_is_enough():
    text = "[bodies.a]\ncenter = [0, 0]\nmass = 1.0\ninertia = 1.0\n[bodies.b]\ncenter = [1, 0]\n"
    free = from_text(text)
    assert free.parameter_names == ("a_mass", "a_inertia")
    with pytest.raises(ValueError, match=r"inertia for b, so its forces.*to this body"):
        free.force(None, None, None, None, None)


def test_a_saved_model_is_loaded_with_the_mechanism_of_its_file(crank, tmp_path):
    model = mbd.MBDNODE.for_system(crank, width=4, hidden_layers=1, seed=3)
    mbd.save(model, tmp_path / "model.safetensors")
    again = mbd.load(tmp_path / "model.safetensors", system=from_dict(crank.to_dict()))
    assert again.body == crank
    np.testing.assert_array_equal(again.network.weights[0], model.network.weights[0])
