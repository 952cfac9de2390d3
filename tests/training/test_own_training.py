"""What a researcher brings along: optimizers, schedules, losses, networks, integrators."""

import dataclasses
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import mbdnode as mbd
from mbdnode.integrators import AbstractIntegrator
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models import (
    FCNN,
    HNN,
    MBDNODE,
    AbstractRateModel,
    Capability,
    Network,
    make_network,
)
from mbdnode.training import AbstractObjective, Checkpoint, TrainingConfig, fit

FEW = TrainingConfig(integrator="fe1", epochs=3, precision="float64")
MAKE = """
import equinox as eqx, jax
def make(count_in, count_out, seed):
    return eqx.nn.MLP(count_in, count_out, 5, 1, activation=jax.numpy.sin, key=jax.random.key(seed))
def bent(x):
    return jax.numpy.tanh(x) + 0.1 * x
def falling(update):
    return 1e-2 / (1 + update)
def lowest(errors):
    return jax.numpy.mean(errors**4)
"""


def weights(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model.network)])


@pytest.fixture
def my_nets(tmp_path, monkeypatch):
    """A module of a user's own, in the working folder."""
    (tmp_path / "my_nets.py").write_text(MAKE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mbd.naming, "_OBJECTS", {})
    yield
    sys.modules.pop("my_nets", None)


def test_adam_of_optax_makes_the_same_updates(swing, pendulum_model):
    plain = fit(pendulum_model, swing, dataclasses.replace(FEW, decay=1.0))
    found = fit(pendulum_model, swing, FEW, optimizer=optax.adam(1e-3))
    # The same numbers in another order of products, thirty times.
    np.testing.assert_allclose(weights(found.model), weights(plain.model), rtol=1e-9, atol=1e-12)
    assert np.max(np.abs(weights(found.model) - weights(pendulum_model))) > 1e-3


def test_plain_descent_goes_down_the_slope(swing, pendulum_model):
    config = dataclasses.replace(FEW, epochs=1, batch_size=None)
    moved = [
        weights(fit(pendulum_model, swing, config, optimizer=optax.sgd(rate)).model)
        - weights(pendulum_model)
        for rate in (1e-2, 2e-2)
    ]
    np.testing.assert_allclose(moved[1], 2 * moved[0], rtol=1e-9, atol=1e-14)
    assert np.max(np.abs(moved[0])) > 1e-5


def test_schedule_of_ones_own_is_that_of_the_recipe_where_it_says_the_same(swing, pendulum_model):
    expected = fit(pendulum_model, swing, FEW)
    found = fit(pendulum_model, swing, FEW, schedule=lambda update: 1e-3 * 0.98 ** (update // 10))
    np.testing.assert_array_equal(weights(found.model), weights(expected.model))


def test_schedule_that_begins_at_zero_is_no_refinement(swing, pendulum_model, tmp_path):
    warm = optax.linear_schedule(0.0, 1e-3, 30)
    stop = lambda model, history: len(history) == 2  # noqa: E731
    kept = Checkpoint(tmp_path / "kept.safetensors", interval_s=0.0)
    part = fit(pendulum_model, swing, FEW, schedule=warm, checkpoint=kept, callback=stop)
    assert part.status == "stopped after 2 of 3 epochs: the callback said so"
    assert part.outcome == "stopped"
    again = dataclasses.replace(kept, resume=True)
    rest = fit(pendulum_model, swing, FEW, schedule=warm, checkpoint=again)
    whole = fit(pendulum_model, swing, FEW, schedule=warm)
    assert [row["epoch"] for row in rest.history] == [0, 1, 2]
    np.testing.assert_array_equal(weights(rest.model), weights(whole.model))


def test_mean_square_as_a_loss_of_ones_own_changes_nothing(swing, pendulum_model):
    expected = fit(pendulum_model, swing, FEW)
    found = fit(pendulum_model, swing, FEW, loss=lambda errors: jnp.mean(errors**2))
    np.testing.assert_allclose(weights(found.model), weights(expected.model), rtol=1e-9)
    absolute = fit(pendulum_model, swing, FEW, loss=lambda errors: jnp.mean(jnp.abs(errors)))
    assert absolute.history[0]["loss"] > 3 * expected.history[0]["loss"]


def test_weights_multiply_squared_errors(swing, pendulum_model):
    only = fit(pendulum_model, swing, FEW, weights={"theta": 0.0, "theta_dot": 4.0})
    expected = fit(pendulum_model, swing, FEW, loss=lambda errors: 2 * jnp.mean(errors[:, 1] ** 2))
    np.testing.assert_allclose(weights(only.model), weights(expected.model), rtol=1e-9)
    with pytest.raises(mbd.UserError, match="Unknown coordinate or velocity 'phi'"):
        fit(pendulum_model, swing, FEW, weights={"phi": 1.0})
    with pytest.raises(mbd.UserError, match="weight of 'theta' is -1"):
        fit(pendulum_model, swing, FEW, weights={"theta": -1.0})


def test_training_does_not_go_on_with_another_loss_or_other_weights(
    swing, pendulum_model, tmp_path, my_nets
):
    own = {"weights": {"theta": 2.0}, "loss": mbd.naming.import_object("my_nets:lowest")}
    kept = Checkpoint(tmp_path / "kept.safetensors", interval_s=0.0)
    stop = lambda model, history: len(history) == 1  # noqa: E731
    fit(pendulum_model, swing, FEW, checkpoint=kept, callback=stop, **own)
    again = dataclasses.replace(kept, resume=True)
    for name, other in {"weights": {"theta": 3.0}, "loss": jnp.mean}.items():
        with pytest.raises(mbd.UserError, match=f"another run: {name} differ"):
            fit(pendulum_model, swing, FEW, checkpoint=again, **{**own, name: other})
    with pytest.raises(mbd.UserError, match="another run: loss, weights differ"):
        fit(pendulum_model, swing, FEW, checkpoint=again)
    rest = fit(pendulum_model, swing, FEW, checkpoint=again, **own)
    whole = fit(pendulum_model, swing, FEW, **own)
    np.testing.assert_array_equal(weights(rest.model), weights(whole.model))


class Slopes(AbstractObjective):
    """Accelerations of the data's own differences; nothing is integrated."""

    examples: tuple

    @classmethod
    def prepare(cls, model, data, config):
        """Of the only run."""
        run = data.trajectories[0]
        slopes = jnp.diff(run.v, axis=0) / jnp.diff(run.t)[:, None]
        return model, cls((run.q[:-1], run.v[:-1], run.u[:-1], slopes))

    def loss(self, model, example, multipliers):
        """Of one state."""
        q, v, u, slope = example
        return jnp.mean((model.minimal_rates(jnp.zeros(()), q, v, u, {})[1] - slope) ** 2)


def test_objective_of_ones_own_is_what_euler_steps_make_small(swing, pendulum_model):
    config = dataclasses.replace(FEW, integrator="rk4")  # Which it does not use.
    found = fit(pendulum_model, swing, config, loss=Slopes, optimizer=optax.sgd(1e-3))
    # An Euler step's velocity misses by the acceleration's error times the step, 0.04 s.
    euler = fit(
        pendulum_model,
        swing,
        FEW,
        loss=lambda errors: jnp.mean(errors[:, 1] ** 2) / 0.04**2,
        optimizer=optax.sgd(1e-3),
    )
    np.testing.assert_allclose(weights(found.model), weights(euler.model), rtol=1e-8)
    with pytest.raises(mbd.UserError, match="must be an AbstractObjective"):
        fit(pendulum_model, swing, config, loss=dict)


@dataclasses.dataclass(frozen=True)
class PlainConfig:
    """`mbdnode fit` turns on what is called `scaling`; what it means is the model's own affair."""

    order: str = "second"
    constraints: str = "none"
    scaling: bool = True


class Plain(AbstractRateModel):
    """Accelerations of positions and velocities, without inputs, scales and structures."""

    kind = "plain"
    settings_type = PlainConfig
    capabilities = frozenset(Capability)

    network: Network
    body: mbd.AbstractMechanism
    settings: PlainConfig = eqx.field(static=True)
    minimal: tuple = eqx.field(static=True)
    coordinates: tuple = eqx.field(static=True, kw_only=True)
    inputs: tuple = eqx.field(static=True, kw_only=True)
    parameters: tuple = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system, *, seed=0, **settings):
        """One hidden layer."""
        network = make_network((2, 4, 1), "tanh", "xavier", seed)
        names = {part: getattr(system, part) for part in ("coordinates", "inputs", "parameters")}
        return cls(network, system, PlainConfig(**settings), (0,), **names)

    def minimal_rates(self, t, z, s, u, mu):
        """Of a pendulum."""
        return s, self.network(jnp.concatenate([z, s]))

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The same."""
        return self.minimal_rates(t, q, v, u, mu)[1]


def test_model_of_ones_own_is_trained_as_an_mbd_node_with_its_network(swing):
    own = Plain.for_system(SinglePendulum())
    model = MBDNODE.for_system(SinglePendulum(), width=4, hidden_layers=1, forces="none")
    model = eqx.tree_at(lambda m: m.network, model, own.network)
    for config in (FEW, dataclasses.replace(FEW, refinement=2)):
        found = weights(fit(own, swing, config).model)
        np.testing.assert_allclose(found, weights(fit(model, swing, config).model), rtol=1e-9)


def test_validation_loss_is_that_of_training_on_the_same_data(swing, pendulum_model):
    found = fit(pendulum_model, swing, FEW, validation=swing)
    # Of the weights after the epoch: a pass that changes none has their loss.
    still = fit(found.model, swing, FEW, schedule=lambda update: 0.0)
    last = found.history[-1]["validation_loss"]
    assert last == pytest.approx(still.history[0]["loss"], rel=1e-10)
    np.testing.assert_array_equal(
        weights(found.model), weights(fit(pendulum_model, swing, FEW).model)
    )
    members = fit(pendulum_model, swing, FEW, validation=swing, members=2)
    assert len([row["validation_loss"] for row in members.history]) == 3


class Doubled(eqx.Module):
    """The paper's form with one layer, and a number that is no weight."""

    inner: jax.Array
    outer: jax.Array
    factor: int

    def __call__(self, x):
        """Twice a network."""
        return self.factor * (self.outer @ jnp.tanh(self.inner @ x))


def test_network_of_ones_own_is_trained_and_simulated(swing):
    random = np.random.default_rng(0)
    net = Doubled(
        jnp.asarray(random.normal(size=(4, 3))), jnp.asarray(random.normal(size=(1, 4))), 2
    )
    model = MBDNODE.for_system(SinglePendulum(), network=net)
    found = fit(model, swing, FEW)
    assert found.history[-1]["loss"] < found.history[0]["loss"]
    module = found.model.network.module
    given = (jnp.array([0.3]), jnp.array([-1.1]), jnp.array([0.5]))
    expected = 2 * module.outer @ jnp.tanh(module.inner @ jnp.array([0.3, -1.1, 0.5]))
    rates = found.model.minimal_rates(jnp.zeros(()), *given, {})
    np.testing.assert_allclose(rates[1], expected, rtol=1e-14)
    run = mbd.simulate(found.model, np.arange(5) * 0.04, {"theta": 0.4})
    assert run.status.ok


def test_network_of_ones_own_is_refined_and_an_ensemble_draws_its_weights(swing):
    def make(count_in, count_out, seed):
        random = np.random.default_rng(seed)
        shapes = (4, count_in), (count_out, 4)
        return Doubled(*(jnp.asarray(random.normal(size=shape)) for shape in shapes), 2)

    model = MBDNODE.for_system(SinglePendulum(), network=make)
    refined = fit(model, swing, dataclasses.replace(FEW, refinement=5))
    assert refined.history[-1]["loss"] < 0.1 * refined.history[2]["loss"]
    members = fit(model, swing, FEW, members=2, seed=4).model
    alone = MBDNODE.for_system(SinglePendulum(), network=make, seed=5)
    expected = fit(alone, swing, FEW, seed=5).model
    np.testing.assert_allclose(weights(members[1]), weights(expected), rtol=1e-11, atol=1e-13)
    given = MBDNODE.for_system(SinglePendulum(), network=make(3, 1, 0))
    with pytest.raises(mbd.UserError, match="start from the same weights"):
        fit(given, swing, FEW, members=2)


def test_network_of_the_wrong_size_is_refused_with_the_right_one():
    net = Doubled(jnp.ones((4, 2)), jnp.ones((1, 4)), 2)
    with pytest.raises(mbd.UserError, match="cannot read the 3 number"):
        MBDNODE.for_system(SinglePendulum(), network=net)
    net = Doubled(jnp.ones((4, 3)), jnp.ones((2, 4)), 2)
    with pytest.raises(mbd.UserError, match=r"shape \(2,\); it must give 1 number"):
        MBDNODE.for_system(SinglePendulum(), network=net)
    net = Doubled(jnp.ones((4, 3)), jnp.ones((1, 4)), 2)
    with pytest.raises(mbd.UserError, match="affine is True"):
        MBDNODE.for_system(SinglePendulum(), network=net, affine=True)


def test_what_is_named_is_saved_and_loaded(my_nets, swing, tmp_path):
    settings = ({"network": "my_nets:make"}, {"activation": "my_nets:bent", "width": 4})
    for number, own in enumerate(settings):
        model = fit(MBDNODE.for_system(SinglePendulum(), **own), swing, FEW).model
        path = tmp_path / f"{number}.safetensors"
        mbd.save(model, path)
        np.testing.assert_array_equal(weights(mbd.load(path)), weights(model))
        # Nothing is imported because a file names it.
        mbd.naming._OBJECTS.clear()
        with pytest.raises(mbd.UserError, match=r"import_object\('my_nets:"):
            mbd.load(path)
        mbd.naming.import_object(next(iter(own.values())))
        np.testing.assert_array_equal(weights(mbd.load(path)), weights(model))


def test_what_has_no_name_is_refused_when_it_is_saved(tmp_path):
    bent = MBDNODE.for_system(SinglePendulum(), width=4, activation=lambda x: x / (1 + x**2))
    net = Doubled(jnp.ones((4, 3)), jnp.ones((1, 4)), 2)
    for model in (bent, MBDNODE.for_system(SinglePendulum(), network=net)):
        with pytest.raises(mbd.UserError, match="could not be read again"):
            mbd.save(model, tmp_path / "own.safetensors")
    assert not (tmp_path / "own.safetensors").exists()


def test_activation_of_ones_own_is_between_the_layers():
    model = MBDNODE.for_system(SinglePendulum(), width=4, hidden_layers=1, activation=jnp.arctan)
    first, last = (np.asarray(x) for x in model.network.weights)
    x = np.array([0.3, -0.7, 1.1])
    expected = last @ np.arctan(first @ x + np.asarray(model.network.biases[0]))
    found = model.network(jnp.asarray(x))
    np.testing.assert_allclose(found, expected + np.asarray(model.network.biases[1]), rtol=1e-13)


def test_two_functions_without_a_name_are_told_apart():
    first, second = (lambda x: x), (lambda x: 2 * x)
    names = [mbd.naming.object_name(value) for value in (first, second, first, second)]
    assert names[:2] == names[2:]
    assert [mbd.naming.known_object(name)(3) for name in names[:2]] == [3, 6]


class Late(AbstractIntegrator):
    """Forward Euler, half as far."""

    order = 1

    def step(self, rate, t, dt, y):
        """One evaluation."""
        return jax.tree.map(lambda a, k: a + dt * k / 2, y, rate(t, y)), jnp.array(True)


def test_integrator_of_ones_own_steps_in_training_and_in_simulate(swing, pendulum_model):
    config = dataclasses.replace(FEW, integrator=Late(), schedule=lambda update: 0.0)
    found = fit(pendulum_model, swing, config)
    y = np.concatenate([swing.q, swing.v], axis=1)
    rates = [
        np.concatenate(pendulum_model.minimal_rates(jnp.zeros(()), *x, {}))
        for x in zip(swing.q[:-1], swing.v[:-1], swing.u[:-1], strict=True)
    ]
    expected = np.mean((y[:-1] + 0.02 * np.array(rates) - y[1:]) ** 2)
    assert found.history[0]["loss"] == pytest.approx(expected, rel=1e-12)
    run = mbd.simulate(SinglePendulum(), [0.0, 0.1], {"theta_dot": 1.0}, integrator=Late())
    assert run["theta"][1] == pytest.approx(0.05)


def test_schedule_and_network_have_names_on_the_command_line(my_nets):
    from mbdnode.reproduction.config import configure, with_changes
    from mbdnode.reproduction.run import check

    asked = {"schedule": "my_nets:falling", "network": "my_nets:make", "epochs": "2"}
    config = with_changes(configure("single-mass-spring-damper"), asked)
    assert config.training.rate(3, 10) == pytest.approx(1e-2 / 4)
    assert check(config).network.module.layers[0].weight.shape == (5, 2)
    with pytest.raises(mbd.UserError, match="schedule 'line'"):
        TrainingConfig(schedule="line")
    with pytest.raises(mbd.UserError, match="cannot be imported"):
        TrainingConfig(schedule="no_such_module:x").rate(0, 1)


def test_what_cannot_be_combined_is_refused(swing, pendulum_model):
    refined = dataclasses.replace(FEW, refinement=2)
    with pytest.raises(mbd.UserError, match="optimizer is given and refinement is 2"):
        fit(pendulum_model, swing, refined, optimizer=optax.sgd(1e-3))
    with pytest.raises(mbd.UserError, match="optimizer is 'adamw'; give one of Optax"):
        fit(pendulum_model, swing, FEW, optimizer="adamw")
    with pytest.raises(mbd.UserError, match="loss is 3; give a function"):
        fit(pendulum_model, swing, FEW, loss=3)
    with pytest.raises(mbd.UserError, match="makes squares small"):
        fit(pendulum_model, swing, refined, loss=jnp.mean)
    held = dataclasses.replace(refined, validation=0.2)
    with pytest.raises(mbd.UserError, match="weights cannot be given"):
        fit(pendulum_model, swing, held, weights={"theta": 2.0})
    still = mbd.simulate(SinglePendulum(), swing.t, {"theta": 1.0})
    model = FCNN.for_system(SinglePendulum(), width=3)
    for own in ({"validation": still}, {"weights": {"theta": 1.0}}, {"loss": jnp.mean}):
        with pytest.raises(mbd.UserError, match="training of fcnn"):
            fit(model, still, TrainingConfig(epochs=1), **own)


def test_device_is_where_it_computes(swing, pendulum_model):
    expected = weights(fit(pendulum_model, swing, FEW).model)
    for device in ("cpu", jax.devices()[0]):
        found = fit(pendulum_model, swing, FEW, device=device)
        np.testing.assert_array_equal(weights(found.model), expected)
    with pytest.raises(mbd.UserError, match="device is 'abacus'"):
        fit(pendulum_model, swing, FEW, device="abacus")


def test_former_name_of_the_callback_is_still_known(swing, pendulum_model):
    seen = []
    with pytest.warns(DeprecationWarning, match="called callback"):
        fit(pendulum_model, swing, FEW, watch=lambda model, history: seen.append(len(history)))
    assert seen == [1, 2, 3]
    assert HNN.objective is not None  # A class of models names its own.
