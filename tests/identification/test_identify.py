"""What `identify` finds, against the laws that made the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import acceleration, as_trajectory
from problems import cart_pole

import mbdnode as mbd
from mbdnode.data.rows import estimate_noise, rows_of
from mbdnode.identification import IdentificationConfig, choose_law, identify
from mbdnode.identification.regression.least_squares import regress
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import CartPole, SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.recipes import identification_config, training_config
from mbdnode.reproduction.cases import get_case
from mbdnode.testing import check_model
from mbdnode.training import TrainingConfig, fit


def test_learned_mechanism_with_the_cart_poles_own_terms_moves_like_it():
    # M = [[l^2, l cos], [l cos, 2]], V = g l cos, and the force on the cart.
    model = LearnedMechanism.for_system(CartPole(), mass_degree=1, potential_degree=1)
    q, v, u = jnp.array([0.6, 1.0]), jnp.array([1.5, -0.3]), jnp.array([2.0])
    pairs = jnp.zeros((3, len(model.mass_basis)))
    terms = model.mass_basis.terms
    one, cosine = terms.index((0, 0)), terms.index((1, 0))
    mass = pairs.at[0, one].set(0.25).at[1, cosine].set(0.5).at[2, one].set(2.0)
    potential = jnp.zeros(len(terms) - 1).at[cosine - 1].set(9.81 * 0.5)
    drive = jnp.array([[0.0], [1.0]])
    values = jnp.concatenate([mass.reshape(-1), potential, jnp.zeros(4), drive.reshape(-1)])
    model = eqx.tree_at(lambda m: m.network.values, model, values)
    found = eqx.filter_jit(model.minimal_rates)(jnp.zeros(()), q, v, u, {})[1]
    expected = cart_pole(0.0, np.concatenate([q, v]), force=2.0)[2:]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [LearnedMechanism, Library])
def test_structured_models_keep_the_contract(kind):
    model = kind.for_system(SinglePendulum())
    leaf = jax.tree.leaves(model.network)[0]
    drawn = jnp.asarray(np.random.default_rng(0).uniform(0.5, 1.5, leaf.shape))
    check_model(eqx.tree_at(lambda m: jax.tree.leaves(m.network)[0], model, drawn))


@pytest.fixture(scope="module")
def swing():
    """A motion of which the first 160 steps are learned from."""
    t = np.arange(201) * 0.01
    return mbd.simulate(SinglePendulum(), t, {"theta_dot": 3.0}, integrator="mp2")


# The steps that are fitted are those of the integrator that made the data.
BEST = IdentificationConfig(integrator="mp2")


@pytest.fixture(scope="module")
def found(swing):
    return identify(SinglePendulum(), swing.rows(0, 160), BEST)


def test_pendulum_is_found_to_the_last_digits(found):
    # The printed law, far outside of the swing that was learned.
    rate = acceleration(found.model, 2.5, -1.0)
    assert rate == pytest.approx(-9.81 * np.sin(2.5) + 0.1, rel=1e-9)
    assert found.structure == found.diagnostics["structure"] == "linear"


def test_what_was_found_is_printed_as_a_person_would_write_it(found):
    lines = str(found).splitlines()
    assert "theta'' = - 9.81 sin(theta) - 0.1 theta_dot" in [line.strip() for line in lines]
    assert lines[-1] == found.status
    assert r"\sin" in found.latex()
    (chosen,) = [one for one in found.candidates if one.chosen]
    assert (chosen.structure, chosen.validation_nrmse < 1e-8) == ("linear", True)
    assert chosen.validation_nrmse == min(one.validation_nrmse for one in found.candidates)


def test_what_lies_after_the_training_range_changes_nothing(swing, found):
    poisoned = eqx.tree_at(
        lambda r: (r.q, r.v, r.u),
        swing,
        tuple(x.at[161:].set(jnp.nan) for x in (swing.q, swing.v, swing.u)),
    )
    again = identify(SinglePendulum(), poisoned.rows(0, 160), BEST).model
    assert eqx.tree_equal(again.network, found.model.network)


@pytest.mark.slow
def test_cart_whose_position_never_matters_gets_the_simplest_law():
    t = np.arange(241) * 0.005
    start = {"theta": 0.5, "x": 1.0}
    run = mbd.simulate(CartPole(), t, start, integrator="mp2")
    choice = choose_law(CartPole(), mbd.Dataset(run), integrator="mp2", refined=True, seed=0)
    model = choice.model
    assert isinstance(model, LearnedMechanism)
    # Two constant masses, a coupling by the cosine, and a weight.
    assert np.sum(np.asarray(model.network.values) != 0) == 4
    mass = model.mass(jnp.array([0.3, 7.0]), {})
    np.testing.assert_allclose(
        mass / mass[1, 1], [[0.125, 0.25 * np.cos(0.3)], [0.25 * np.cos(0.3), 1]], rtol=1e-8
    )


def test_cubic_spring_is_found_by_a_richer_basis():
    def stiffening(t, q, v, u, mu):
        return -5.0 * q - 2.0 * q**3 - 0.1 * v

    system = mbd.AccelerationFunction(stiffening, (mbd.length("x"),))
    t = np.arange(301) * 0.01
    run = mbd.simulate(system, t, {"x": 1.0, "x_dot": 0.0})
    choice = choose_law(system, mbd.Dataset(run), integrator="rk4", refined=False, seed=0)
    linear, chosen = choice.attempts[0], choice.chosen
    assert linear.error > 1e-3
    assert chosen.candidate.structure in ("lagrangian", "mechanical")
    again = mbd.simulate(choice.model, 2 * t, mbd.State(run.q[0], run.v[0]))
    exact = mbd.simulate(system, 2 * t, {"x": 1.0, "x_dot": 0.0})
    np.testing.assert_allclose(again.q, exact.q, atol=1e-5)


# Compiles samples of a constrained mechanism and a large regression.
@pytest.mark.slow
def test_draws_of_the_slider_crank_give_its_accelerations():
    bounds = get_case("slider-crank").bounds
    blank = Library.for_system(SliderCrank(), degree=8)
    chunk = mbd.StepStream(SliderCrank(), bounds, 600, 0.01).chunk(0)
    rows = rows_of(SliderCrank(), blank.minimal, chunk)
    # Samples have no order in time, so they cannot look noisy.
    noise, rk4 = estimate_noise(rows), get_integrator("rk4")
    assert not noise.matters
    model = regress(blank, rows, ridge=0.0, integrator=rk4, noise=noise)
    drawn = next(mbd.sample_accelerations(SliderCrank(), bounds, 50, seed=9))
    index = model.minimal[0]

    def acceleration(q, v, u):
        return model.minimal_rates(jnp.zeros(()), q[index, None], v[index, None], u, {})[1][0]

    found = jax.jit(jax.vmap(acceleration))(drawn.q, drawn.v, drawn.u)
    missed = np.asarray(found - drawn.a[:, index])
    # Eight harmonics leave a few thousandths.
    assert np.sqrt(np.mean(missed**2)) < 0.02 * np.std(drawn.a[:, index])


def test_fit_trains_no_law_and_says_who_finds_it(swing):
    message = r"finds a law.*Use mbd\.identify\(system, data"
    with pytest.raises(ValueError, match=message):
        fit(MBDNODE.for_system(SinglePendulum(), width=1), swing, "best")
    with pytest.raises(ValueError, match=message):
        training_config(IdentificationConfig())


def test_identify_trains_no_network_and_says_who_does(swing):
    message = r"trains a network.*Use mbd\.fit.*'fast' or 'best'"
    with pytest.raises(ValueError, match=message):
        identify(SinglePendulum(), swing, "paper")
    with pytest.raises(ValueError, match=message):
        identification_config(TrainingConfig(epochs=3))


def test_identify_takes_a_system_and_not_a_model(swing):
    with pytest.raises(ValueError, match=r"given a MBDNODE.*model\.body"):
        identify(MBDNODE.for_system(SinglePendulum(), width=1), swing)
    with pytest.raises(ValueError, match=r"The system has coordinates.*but the data has theta"):
        identify(SingleMassSpring(), swing)


def test_too_little_data_is_refused_or_fitted_but_never_a_traceback():
    t, rate = np.arange(12) * 0.01, np.sqrt(5.0)
    states = np.stack([np.cos(rate * t), -rate * np.sin(rate * t)], axis=1)
    run = as_trajectory(SingleMassSpring(), t, states, np.zeros((12, 0)))
    found = identify(SingleMassSpring(), run, "fast")
    assert found.outcome == "completed"
