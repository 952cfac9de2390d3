"""`check_model` over every kind of model, and over some that break the contract."""

import equinox as eqx
import jax.numpy as jnp
import pytest

from mbdnode.mechanisms import SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.models import KINDS, LAW, MBDNODE, MODELS, AbstractObjective
from mbdnode.models.fitted_mechanism import FittedMechanism
from mbdnode.testing import check_model
from mbdnode.training.loss import objective_of


@pytest.mark.parametrize("name", [name for name in MODELS if name != LAW])
def test_every_kind_of_model_keeps_the_contract(name):
    kind, settings = MODELS[name]
    check_model(KINDS[kind].for_system(SingleMassSpring(), width=8, **settings))


@pytest.mark.parametrize("forces", ["inputs", "added"])
def test_law_keeps_the_contract(forces):
    blank = KINDS[MODELS[LAW][0]].for_system(SinglePendulum(), forces=forces)
    weights = jnp.linspace(-1.0, 1.0, blank.network.weights.size)[None]
    check_model(eqx.tree_at(lambda m: m.network.weights, blank, weights))


@pytest.mark.parametrize(
    "constraints",
    ["hard", *(pytest.param(x, marks=pytest.mark.slow) for x in ("penalty", "augmented", "none"))],
)
def test_every_way_to_keep_constraints_keeps_the_contract(constraints):
    check_model(MBDNODE.for_system(SliderCrank(), width=8, constraints=constraints))


def test_symplectic_float32_model_keeps_the_contract():
    model = MBDNODE.for_system(SingleMassSpring(), width=8, use_velocity=False)
    single = eqx.tree_at(
        lambda n: (n.weights, n.biases),
        model.network,
        (
            tuple(w.astype(jnp.float32) for w in model.network.weights),
            tuple(b.astype(jnp.float32) for b in model.network.biases),
        ),
    )
    check_model(eqx.tree_at(lambda m: m.network, model, single))


def broken(**methods):
    kind = type("Broken", (MBDNODE,), methods)
    return kind.for_system(SinglePendulum(), width=8)


def test_model_that_declares_itself_separable_but_reads_velocities_is_refused():
    with pytest.raises(AssertionError, match="separable"):
        check_model(broken(separable=True))


def test_model_with_too_few_rates_is_refused():
    rates = lambda self, t, z, s, u, mu: (s, jnp.zeros(2))  # noqa: E731
    with pytest.raises(AssertionError, match=r"\(2,\) rates of \(1,\) minimal velocities"):
        check_model(broken(minimal_rates=rates))


def test_model_that_ignores_its_network_is_refused():
    rates = lambda self, t, z, s, u, mu: (s, -z)  # noqa: E731
    with pytest.raises(AssertionError, match="No weight changes"):
        check_model(broken(minimal_rates=rates))


def test_model_that_is_not_finite_is_refused():
    rates = lambda self, t, z, s, u, mu: (s, jnp.log(z - 10.0))  # noqa: E731
    with pytest.raises(AssertionError, match="not finite"):
        check_model(broken(minimal_rates=rates))


def test_every_network_names_what_training_makes_small():
    for kind in KINDS.values():
        if kind.is_law or kind is FittedMechanism:  # Laws and values of parameters.
            continue
        model = kind.for_system(SingleMassSpring(), width=8)
        assert issubclass(objective_of(model), AbstractObjective)
