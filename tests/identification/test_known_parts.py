"""What can be told to `identify`: known parts, a structure, parameters, and data in pieces."""

import gc
import weakref

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from motions import acceleration, recorded, stepped

import mbdnode as mbd
from mbdnode.config import from_dict
from mbdnode.data import AbstractStream
from mbdnode.identification import IdentificationConfig, identify
from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.training import TrainingConfig, fit

DT_S, STEPS = 0.01, 240
# A pendulum that is neither as heavy nor as long as by default.
HEAVY = {"m": 3.0, "L": 2.0, "c": 0.4}


def learn(data, *, refined=False, **settings):
    """A pendulum's law, by regression alone unless refinement is asked for."""
    return identify(SinglePendulum(), data, IdentificationConfig(refined=refined, **settings))


def swing(law, start=(1.0, 0.5), steps=STEPS):
    return recorded(stepped(law, start, DT_S, steps), DT_S)


def torque(theta, rate):
    """Of the printed pendulum: weight and damping about the pivot."""
    m, arm, c = (HEAVY[name] for name in ("m", "L", "c"))
    return arm * (-m * 9.81 * np.sin(theta) - c * rate)


INERTIA = HEAVY["m"] * HEAVY["L"] ** 2


def test_with_a_known_mass_the_torques_are_learned():
    data = mbd.Dataset(swing(lambda q, v: torque(q, v) / INERTIA), HEAVY)
    model = learn(data, known="mass", structure="linear").model
    assert isinstance(model, Library)
    named = dict(zip(model.basis.terms, model.network.weights[0], strict=False))
    assert float(named[(2,)]) == pytest.approx(-3.0 * 2.0 * 9.81, rel=1e-8)
    assert float(model.network.weights[0, len(model.basis)]) == pytest.approx(-0.8, rel=1e-7)
    # The mass is the mechanism's own, so it may be another one later.
    expected = torque(2.0, -5.0) / (5 * INERTIA)
    found = acceleration(model, 2.0, -5.0, **(HEAVY | {"m": 15.0}))
    assert found == pytest.approx(expected, rel=1e-8)


@pytest.fixture(scope="module")
def magnet():
    """What a pendulum that is known but for a magnet teaches; the magnet pulls by `sin 2 theta`."""
    law = lambda q, v: (torque(q, v) - 0.7 * np.sin(2 * q) + 0.2) / INERTIA  # noqa: E731
    return learn(mbd.Dataset(swing(law), HEAVY), refined=True, known="mechanism").model


def test_of_a_known_mechanism_only_what_is_missing_is_learned(magnet):
    assert isinstance(magnet, Library)
    for theta, rate in ((0.8, 0.5), (-0.3, -2.0)):
        state = jnp.array([theta]), jnp.array([rate]), jnp.zeros(1)
        learned = magnet.network.weights @ eqx.filter_jit(magnet.columns)(*state, {})
        assert float(learned[0]) == pytest.approx(0.2 - 0.7 * np.sin(2 * theta), abs=1e-6)


def test_forces_that_never_acted_are_known_of_a_known_mechanism(magnet):
    # No force was ever on the bob in the data.
    expected = (torque(0.4, 1.0) - 0.7 * np.sin(0.8) + 0.2 + HEAVY["L"] * 12.0) / INERTIA
    assert acceleration(magnet, 0.4, 1.0, force=12.0, **HEAVY) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("structure", "kind"), [("linear", Library), ("lagrangian", LearnedMechanism)]
)
def test_law_found_without_forces_adds_those_of_the_mechanism(structure, kind):
    data = mbd.Dataset(swing(lambda q, v: torque(q, v) / INERTIA), HEAVY)
    model = learn(data, structure=structure, forces="added").model
    assert isinstance(model, kind)
    # No force was ever on the bob in the data; it has the arm and the inertia of the mechanism.
    for force in (0.0, 12.0):
        expected = (torque(0.4, 1.0) + HEAVY["L"] * force) / INERTIA
        found = acceleration(model, 0.4, 1.0, force=force, **HEAVY)
        assert found == pytest.approx(expected, rel=1e-5)


def test_equations_of_a_mechanism_hold_under_forces_that_are_added():
    model = LearnedMechanism.for_system(
        SinglePendulum(), mass_degree=0, potential_degree=1, forces="added"
    )
    mu = {p.name: jnp.asarray(p.default) for p in SinglePendulum().parameters}
    # Inertia m L^2, potential -m g L cos, damping c L; the column of the input stays empty.
    coefficients = jnp.array([1.0, -9.81, 0.0, 0.1, 5.0])
    theta, rate, force = 0.7, -2.0, 3.0
    law = -9.81 * np.sin(theta) - 0.1 * rate + force
    z, s, a, u = (jnp.array([x]) for x in (theta, rate, law, force))
    inertia = eqx.filter_jit(model.inertia)(jnp.zeros(()), z, s, a, u, mu)
    rest = eqx.filter_jit(model.momenta_and_forces)(jnp.zeros(()), z, s, u, mu)[1]
    assert float(((inertia + rest) @ coefficients)[0]) == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("known", ["nothing", "mass"])
def test_functions_need_not_explain_forces_that_are_added(known):
    model = Library.for_system(SinglePendulum(), known=known, forces="added")
    mu = {p.name: jnp.asarray(p.default) for p in SinglePendulum().parameters}
    z, s, u = jnp.array([0.3]), jnp.array([1.0]), jnp.array([4.0])
    # The default pendulum has an inertia of one: a force of 4 N is an acceleration of 4.
    wanted = eqx.filter_jit(model.wanted)(jnp.zeros(()), z, s, u, mu, jnp.array([6.0]))
    assert float(wanted[0]) == pytest.approx(2.0)
    momentum, rest = eqx.filter_jit(model.momentum_and_rest)(jnp.zeros(()), z, s, u, mu)
    assert (float(momentum[0]), float(rest[0])) == pytest.approx((1.0, -4.0))
    columns = eqx.filter_jit(model.columns)
    assert np.array_equal(columns(z, s, u, mu), columns(z, s, 0 * u, mu))


def test_forces_cannot_be_added_under_constraints():
    for kind in (Library, LearnedMechanism):
        with pytest.raises(ValueError, match="needs a mechanism without constraints"):
            kind.for_system(SliderCrank(), forces="added")


def test_law_has_no_network_to_train():
    run = swing(lambda q, v: -9.81 * np.sin(q), steps=20)
    with pytest.raises(ValueError, match=r"found by regression.*Use mbd\.identify"):
        fit(Library.for_system(SinglePendulum()), run, "paper")


def test_function_of_accelerations_has_nothing_to_give_as_known():
    system = mbd.AccelerationFunction(lambda t, q, v, u, mu: -q, (mbd.length("x"),))
    for known in ("mass", "mechanism"):
        with pytest.raises(ValueError, match="AccelerationFunction has no mass matrix"):
            Library.for_system(system, known=known)
    t = np.arange(60) * DT_S
    run = recorded(np.stack([np.cos(t), -np.sin(t)], axis=1), DT_S, system)
    config = IdentificationConfig(refined=False, known="mass")
    with pytest.raises(ValueError, match="Describe what is known as a mechanism"):
        identify(system, run, config)


def test_known_part_of_a_constrained_mechanism_is_refused():
    with pytest.raises(ValueError, match=r"SliderCrank has constraints.*minimal coordinates only"):
        Library.for_system(SliderCrank(), known="mechanism")


@pytest.mark.parametrize("setting", [{"structure": "linear"}, {"known": "mass"}])
def test_training_has_no_settings_of_a_law(setting):
    with pytest.raises(ValueError, match="Unknown key of TrainingConfig"):
        from_dict(TrainingConfig, setting)


def test_law_that_is_found_whole_cannot_have_a_known_part():
    with pytest.raises(ValueError, match="'lagrangian', which is found whole"):
        IdentificationConfig(structure="lagrangian", known="mass")


@pytest.mark.parametrize(
    ("structure", "kind"),
    [("linear", Library), ("lagrangian", LearnedMechanism), ("mechanical", Library)],
)
def test_structure_restricts_what_is_chosen_from(structure, kind):
    # Each of them can say this law.
    law = lambda q, v: -9.81 * np.sin(q) - 0.1 * v  # noqa: E731
    found = learn(swing(law), structure=structure)
    assert found.diagnostics["structure"] == structure
    assert isinstance(found.model, kind)
    assert found.model.kind == kind.kind
    assert acceleration(found.model, 0.8, 2.0) == pytest.approx(law(0.8, 2.0), rel=1e-5)


def test_structure_that_cannot_say_the_law_shows_in_the_validation_error():
    law = lambda q, v: -9.81 * np.sin(q) - 0.3 * v * abs(v)  # noqa: E731
    assert learn(swing(law), structure="linear").diagnostics["validation_nrmse"] > 1e-3


def test_pendulums_on_several_moons_teach_those_on_another():
    law = lambda g: lambda q, v: -g * np.sin(q) - 0.1 * v  # noqa: E731
    moons = (1.6, 3.7, 9.8)
    data = mbd.Dataset([swing(law(g), steps=80) for g in moons], [{"g": g} for g in moons])
    found = learn(data, structure="mechanical")
    assert found.model.settings.use_parameters == ("g",)
    # Three values leave some of a cubic in `g` open; the plainest is nearly right.
    for g in (2.5, 7.0):
        expected = law(g)(0.8, -0.5)
        assert acceleration(found.model, 0.8, -0.5, g=g) == pytest.approx(expected, rel=5e-3)


class Pieces(AbstractStream):
    """Swings from growing starts, one a chunk; it knows which were asked for, and which live."""

    def __init__(self, count):
        self.count = count
        self.asked, self.alive, self._given = [], [], []

    def chunk(self, number):
        law = lambda q, v: -9.81 * np.sin(q) - 0.3 * v * abs(v)  # noqa: E731
        gc.collect()
        self.alive.append(sum(given() is not None for given in self._given))
        self.asked.append(number)
        run = swing(law, (0.3 + 0.2 * number, 0.0), steps=60)
        self._given.append(weakref.ref(run))
        return mbd.Dataset(run)


@pytest.fixture(scope="module")
def streamed():
    """A law that the model cannot say, so that every piece of the data has its say."""
    stream = Pieces(6)
    # Of all that other tests left behind, nothing is looked for when garbage is collected.
    gc.freeze()
    yield stream, learn(stream, structure="linear").model
    gc.unfreeze()


@pytest.mark.slow
def test_stream_gives_the_coefficients_of_the_same_data_in_memory(streamed):
    own = Pieces(6)
    runs = [own.chunk(number).trajectories[0] for number in range(6)]
    whole = learn(mbd.Dataset(runs), structure="linear").model.network.weights
    first = learn(runs[0], structure="linear").model.network.weights
    found = streamed[1].network.weights
    np.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-9)
    assert np.max(np.abs(found - first)) > 1e-2


def test_stream_is_asked_for_every_piece_equally_often_and_never_holds_all(streamed):
    stream, _ = streamed
    assert stream.asked[0] == 0
    times = [stream.asked.count(number) for number in range(1, 6)]
    assert min(times) == max(times) >= 2
    # The first, on which the choice is made, and the piece before.
    assert max(stream.alive) <= 3
