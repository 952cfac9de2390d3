"""FCNN, LSTM, HNN and LNN: their equations against closed forms, and what they refuse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import (
    DoublePendulum,
    SingleMassSpring,
    SingleMassSpringDamper,
    SinglePendulum,
    SliderCrank,
)
from mbdnode.models import FCNN, HNN, KINDS, LNN, LSTM, Capability
from mbdnode.multibody import resolve_parameters
from mbdnode.training import TrainingConfig, fit


class Given(eqx.Module):
    """In the network's place: a function of the scaled state."""

    function: object = eqx.field(static=True)
    weights: tuple

    def __call__(self, x):
        return jnp.stack([self.function(x)])


def with_function(model, function):
    given = Given(function, (jnp.zeros((1, 1)),))
    return eqx.tree_at(lambda m: m.network, model, given, is_leaf=lambda x: x is None)


PENDULUMS = DoublePendulum()
MU = resolve_parameters(PENDULUMS)


def pendulum_energy(q, v):
    return 0.5 * v @ PENDULUMS.mass(q, MU) @ v, PENDULUMS.potential_energy(q, MU)


def truth_at(q, v):
    t = np.array([0.0, 1e-3])
    run = mbd.simulate(PENDULUMS, t, mbd.State(q, v), integrator="dopri8")
    back = mbd.simulate(PENDULUMS, t, mbd.State(q, -v), integrator="dopri8")
    # v(h) and v(-h) = -back.v(h): a central difference of the velocity.
    return np.asarray((run.v[1] + back.v[1]) / 2e-3)


Q, V = jnp.array([0.7, -1.1]), jnp.array([1.3, 0.4])


def test_hnn_with_the_true_hamiltonian_moves_like_the_double_pendulum():
    def hamiltonian(x):
        q, p = x[:2], x[2:]
        v = jnp.linalg.solve(PENDULUMS.mass(q, MU), p)
        return sum(pendulum_energy(q, v))

    model = with_function(HNN.for_system(PENDULUMS, width=4), hamiltonian)
    q_rate, v_rate = eqx.filter_jit(model.minimal_rates)(jnp.zeros(()), Q, V, jnp.zeros(0), MU)
    np.testing.assert_allclose(q_rate, V, atol=1e-12)
    # The central difference is off by h^2 times a third derivative of order 100.
    np.testing.assert_allclose(v_rate, truth_at(Q, V), atol=1e-4)


def test_lnn_with_the_true_lagrangian_moves_like_the_double_pendulum():
    def lagrangian(x):
        kinetic, potential = pendulum_energy(x[:2], x[2:])
        return kinetic - potential

    model = with_function(LNN.for_system(PENDULUMS, width=4, prior=0.0), lagrangian)
    found = eqx.filter_jit(model.minimal_rates)(jnp.zeros(()), Q, V, jnp.zeros(0), MU)
    np.testing.assert_allclose(found[0], V)
    np.testing.assert_allclose(found[1], truth_at(Q, V), atol=1e-4)


def test_fixed_kinetic_part_of_an_lnn_adds_to_its_mass_alone():
    plain, helped = (LNN.for_system(PENDULUMS, width=8, prior=p, seed=3) for p in (0.0, 2.0))
    masses = [eqx.filter_jit(model.mass)(Q, V) for model in (helped, plain)]
    np.testing.assert_allclose(masses[0] - masses[1], 2 * np.eye(2), atol=1e-12)
    forces = [jax.jit(jax.grad(model.lagrangian))(Q, V) for model in (helped, plain)]
    np.testing.assert_allclose(*forces, atol=1e-12)


def test_lstm_layer_is_the_textbook_cell():
    model = LSTM.for_system(SingleMassSpring(), width=3, layers=1, past=4, seed=1)
    net = model.network
    window = np.random.default_rng(0).normal(size=(4, 2))
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    h = c = np.zeros(3)
    for row in window:
        gates = net.reading[0] @ row + net.hidden[0] @ h + net.biases[0]
        i, f, g, o = np.split(np.asarray(gates), 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    np.testing.assert_allclose(net(jnp.asarray(window)), net.weight @ h + net.bias, atol=1e-14)


@pytest.fixture(scope="module")
def swing():
    t = np.arange(41) * 0.01
    return mbd.simulate(SingleMassSpring(), t, {"x": 1.0, "x_dot": 0.5}, integrator="dopri8")


SHORT = dict(epochs=2, precision="float64")


@pytest.fixture(scope="module")
def trained(swing):
    kinds = {
        "fcnn": {},
        "lstm": {"past": 5, "increments": True},
        "hnn": {},
        "lnn": {},
    }
    return {
        kind: fit(
            KINDS[kind].for_system(SingleMassSpring(), width=8, **settings),
            swing.rows(0, 30),
            TrainingConfig(**SHORT),
        )
        for kind, settings in kinds.items()
    }


@pytest.mark.parametrize("kind", ["fcnn", "lstm", "hnn", "lnn"])
def test_training_lowers_the_loss_and_a_file_gives_the_same_motion(kind, trained, swing, tmp_path):
    found = trained[kind]
    assert found.history[1]["loss"] < found.history[0]["loss"]
    mbd.save(found.model, tmp_path / "model.safetensors")
    again = mbd.load(tmp_path / "model.safetensors")
    start = swing.rows(0, 4) if kind == "lstm" else mbd.State(swing.q[0], swing.v[0])
    runs = [mbd.simulate(m, swing.t, start) for m in (found.model, again)]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert bool(runs[0].status.ok)


@pytest.mark.parametrize("kind", ["fcnn", "lstm", "hnn", "lnn"])
def test_what_lies_after_the_training_range_changes_nothing(kind, swing):
    settings = {"past": 5} if kind == "lstm" else {}
    model = KINDS[kind].for_system(SingleMassSpring(), width=8, **settings)
    poisoned = eqx.tree_at(lambda r: r.q, swing, swing.q.at[31:].set(jnp.nan))
    fits = [fit(model, run.rows(0, 30), TrainingConfig(**SHORT)) for run in (swing, poisoned)]
    arrays = [jax.tree.leaves(eqx.filter(f.model, eqx.is_array)) for f in fits]
    for a, b in zip(*arrays, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


def test_fcnn_starts_only_where_it_was_trained(trained, swing):
    model = trained["fcnn"].model
    mbd.simulate(model, swing.t, {"x": 1.0, "x_dot": 0.5})
    with pytest.raises(ValueError, match=r"learned the motion from x = 1, x_dot = 0.5"):
        mbd.simulate(model, swing.t, {"x": 0.9, "x_dot": 0.5})
    with pytest.raises(ValueError, match="one state, not from 3"):
        mbd.simulate(model, swing.t, swing.rows(0, 2))


def test_lstm_needs_its_window_and_its_step(trained, swing):
    model = trained["lstm"].model
    with pytest.raises(ValueError, match=r"goes on from 5 states, but 1 were given"):
        mbd.simulate(model, swing.t, mbd.State(swing.q[0], swing.v[0]))
    with pytest.raises(ValueError, match=r"step of 0.01 s and knows no other"):
        mbd.simulate(model, 2 * swing.t, swing.rows(0, 4))
    with pytest.raises(ValueError, match="Ask for more"):
        mbd.simulate(model, swing.t[:5], swing.rows(0, 4))


def test_models_that_give_states_take_no_forces():
    t = np.arange(30) * 0.01
    pushed = mbd.simulate(SinglePendulum(), t, {"theta": 0.1}, inputs=np.sin(t))
    for kind in ("fcnn", "lstm"):
        model = KINDS[kind].for_system(SinglePendulum(), width=4)
        with pytest.raises(ValueError, match="no place for forces that change with time"):
            fit(model, pushed, TrainingConfig(epochs=1))
        start = pushed.rows(0, 15) if kind == "lstm" else mbd.State(pushed.q[0], pushed.v[0])
        with pytest.raises(ValueError, match="has no inputs, so forces cannot change"):
            mbd.simulate(model, t, start, inputs=np.sin(t))


@pytest.mark.parametrize(
    ("kind", "system", "message"),
    [
        ("hnn", SingleMassSpringDamper(), "one energy that never changes.*SingleMassSpringDamper"),
        ("lnn", SinglePendulum(), "one energy that never changes.*SinglePendulum"),
        ("hnn", SliderCrank(), "no means to keep constraints.*has 8"),
        ("lnn", SliderCrank(), "no means to keep constraints"),
        ("lstm", SliderCrank(), "no means to keep constraints"),
        ("fcnn", SliderCrank(), "no means to keep constraints"),
        ("hnn", mbd.AccelerationFunction(lambda t, q, v, u, mu: -q, (mbd.length("x"),)), "energy"),
    ],
)
def test_what_a_model_cannot_do_is_refused_with_the_reason(kind, system, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind].for_system(system)


@pytest.mark.parametrize("kind", ["hnn", "lnn"])
def test_dissipative_data_of_a_conservative_mechanism_is_refused(kind):
    t = np.arange(201) * 0.01
    damped = mbd.simulate(SingleMassSpringDamper(), t, {"x": 1.0})
    names = dict(coordinates=("x",), rates=("x_dot",), inputs=())
    relabeled = mbd.Trajectory(
        damped.t, damped.q, damped.v, damped.u[:, :0],
        damped.position_residual, damped.velocity_residual, damped.status, **names
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"goes from 25 to .* J between t = 0 and 2 s"):
        fit(KINDS[kind].for_system(SingleMassSpring(), width=4), relabeled)


def test_settings_that_a_training_does_not_use_are_refused(swing):
    for kind in ("fcnn", "lstm", "hnn", "lnn"):
        model = KINDS[kind].for_system(SingleMassSpring(), width=4)
        with pytest.raises(ValueError, match=f"window is 3.*{kind} does not use it"):
            fit(model, swing, TrainingConfig(window=3))


def test_uneven_times_are_refused_by_an_lstm(swing):
    uneven = eqx.tree_at(lambda r: r.t, swing, swing.t.at[-1].add(0.001))
    with pytest.raises(ValueError, match="all steps must be equal"):
        fit(LSTM.for_system(SingleMassSpring(), width=4), uneven)


def test_fcnn_learns_one_motion_at_a_time(swing):
    with pytest.raises(ValueError, match="learns one motion; the data has 2 runs"):
        fit(FCNN.for_system(SingleMassSpring(), width=4), mbd.Dataset([swing, swing]))


def test_lnn_reports_the_condition_of_its_mass(trained):
    assert trained["lnn"].diagnostics["mass_condition"] >= 1.0
    assert trained["lnn"].diagnostics["mass_sign_changes"] == 0.0


def test_mbd_node_is_the_only_network_that_can_do_everything_like_a_mechanism():
    able = [name for name, kind in KINDS.items() if kind.capabilities == frozenset(Capability)]
    assert able == ["mbd-node", "fitted-mechanism"]


def test_parameters_of_one_learned_motion_are_refused(swing):
    model, start = FCNN.for_system(SingleMassSpring(), width=4), {"x": 1.0, "x_dot": 0.5}
    run = mbd.simulate(model, swing.t, start)
    default = SingleMassSpring().parameters[1].default
    own = mbd.simulate(model, swing.t, start, parameters={"k": default})
    np.testing.assert_array_equal(own.q, run.q)
    with pytest.raises(mbd.UserError, match="FCNN knows one motion, so parameter 'k' cannot"):
        mbd.simulate(model, swing.t, start, parameters={"k": 7.0})
    with pytest.raises(mbd.UserError, match="Unknown parameter 'kk'"):
        mbd.simulate(model, swing.t, start, parameters={"kk": 7.0})
