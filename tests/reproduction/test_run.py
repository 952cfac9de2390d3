"""A run sees its training range alone, and everything wrong with it is said beforehand."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.config import from_dict, to_dict
from mbdnode.models import MBDNODE
from mbdnode.recipes import RECIPES, Recipe
from mbdnode.reproduction.cases import CASES, get_case
from mbdnode.reproduction.cases.case import Trial
from mbdnode.reproduction.config import RunConfig, configure, with_changes
from mbdnode.reproduction.run import (
    check,
    run_case,
    simulate_truth,
    training_data,
    training_motions,
)
from mbdnode.training import TrainingConfig, fit
from mbdnode.training.train import batches

SMALL = {"width": "4", "epochs": "1", "batch_size": "100", "integrator": "fe1"}


@pytest.fixture(scope="module")
def spring():
    """The case, its configuration and its truth, by the closed form, which compiles nothing."""
    case = get_case("single-mass-spring")
    config = with_changes(configure("single-mass-spring", integrator="rk4"), SMALL)
    return case, config, simulate_truth(case)


def test_nothing_after_the_training_range_is_seen(spring):
    case, config, truth = spring
    last = case.train_steps
    poisoned = eqx.tree_at(
        lambda run: (run.q, run.v),
        truth,
        (truth.q.at[last + 1 :].set(jnp.nan), truth.v.at[last + 1 :].set(jnp.nan)),
    )
    clean, blind = (training_data(case, run, config) for run in (truth, poisoned))
    assert len(clean.trajectories[0]) == last + 1
    model = MBDNODE.for_system(case.mechanism, width=4, scaling=True)
    results = [fit(model, data, config.training).model for data in (clean, blind)]
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        assert np.array_equal(one, other)


def test_changes_reach_the_part_that_they_belong_to():
    changes = {"samples": "7", "width": "9", "window": "none", "use_parameters": "k", "divisor": ""}
    found = with_changes(configure("single-mass-spring-damper"), changes)
    assert (found.samples, found.settings.width, found.training.window) == (7, 9, None)
    assert (found.settings.use_parameters, found.settings.divisor) == (("k",), ())


@pytest.mark.parametrize("case", ["single-mass-spring", "slider-crank"])
@pytest.mark.parametrize("model", ["mbd-node", "sonode", "node"])
def test_every_model_can_be_run_as_it_comes(case, model):
    config = with_changes(configure(case, model=model), {"width": "4"})
    assert isinstance(check(config), MBDNODE)


@pytest.mark.parametrize("name", list(CASES))
def test_one_setting_trains_every_case(name):
    """Beside the integrator that made the data, and what the case says of forces and parameters."""
    config, first = (configure(case, recipe="adam-lm") for case in (name, "cart-pole"))
    own = {"integrator": config.training.integrator}
    assert config.training == dataclasses.replace(first.training, **own)
    stated = ("divisor", "forces", "use_parameters")
    printed = {field: getattr(config.settings, field) for field in stated}
    assert config.settings == dataclasses.replace(first.settings, **printed)
    assert first.structures == ("free", "lagrangian")
    if name == "vehicle":  # Its wheels do not slip: Lagrange's equations lack that force.
        assert (config.structures, check(config).settings.structure) == ((), "free")
        return
    assert config.structures == first.structures
    assert [model.settings.structure for model in check(config)] == list(config.structures)
    named = with_changes(config, {"structure": "lagrangian", "affine": "false"})
    assert (named.structures, check(named).settings.structure) == ((), "lagrangian")


@pytest.mark.parametrize("name", list(CASES))
def test_shuffling_changes_the_order_of_the_updates_and_nothing_else(name):
    plain, shuffled = (configure(name, recipe=recipe) for recipe in ("paper", "paper-shuffled"))
    again = dataclasses.replace(shuffled.training, shuffle=False)
    assert dataclasses.replace(shuffled, recipe="paper", training=again) == plain
    assert (plain.training.shuffle, shuffled.training.shuffle) == (False, True)
    orders = [batches(7, config.training, 3, 1) for config in (plain, shuffled)]
    assert not np.array_equal(*orders)
    assert np.array_equal(*(np.sort(order[order >= 0]) for order in orders))


@pytest.mark.slow
def test_refinement_sees_all_samples_at_once(spring):
    config = with_changes(configure("slider-crank", recipe="adam-lm"), {"samples": "5"})
    data = training_data(get_case("slider-crank"), spring[2], config)
    assert data.trajectories[0].t.shape == (5, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_parameters": "zz"}, r"parameter 'zz'"),
        ({"divisor": "1,2"}, r"divisor has 2"),
        ({"window": "100000"}, r"window is 100000"),
        ({"integrator": "foo"}, r"integrator 'foo'"),
        ({"integrator": "lf2"}, r"use_velocity"),
        ({"gradient": "adjoint"}, r"dopri5"),
        ({"epoch": "3"}, r"'epoch'.*Did you mean 'epochs'"),
        ({"width": "wide"}, r"width is 'wide'"),
    ],
)
def test_run_that_cannot_be_carried_out_is_refused_beforehand(changes, message):
    with pytest.raises(ValueError, match=message):
        check(with_changes(configure("single-mass-spring-damper"), changes))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"case": "pendulum"}, r"case 'pendulum'"),
        ({"case": "cart-pole", "model": "mbdnode"}, r"model 'mbdnode'.*'mbd-node'"),
        ({"case": "cart-pole", "recipe": "papr"}, r"recipe 'papr'.*'paper'"),
        ({"case": "cart-pole", "integrator": "rk5"}, r"integrator 'rk5'"),
        ({"case": "cart-pole", "seed": -1}, r"seed is -1"),
        (
            {"case": "cart-pole", "recipe": "adam-lm", "model": "lstm"},
            r"'adam-lm' trains mbd-node, not",
        ),
        (
            {"case": "cart-pole", "recipe": "best", "model": "mbd-node"},
            r"finds a law by regression",
        ),
        ({"case": "cart-pole", "model": "law"}, r"a law is found by 'fast' or 'best'"),
    ],
)
def test_unknown_names_are_refused(names, message):
    with pytest.raises(ValueError, match=message):
        configure(**names)


@pytest.mark.parametrize(("recipe", "model"), [("paper", "mbd-node"), ("fast", "law")])
def test_model_of_a_recipe_is_what_comes_of_it(recipe, model):
    config = configure("cart-pole", recipe=recipe)
    assert config.model == model
    assert config.finds_law == (model == "law")
    assert isinstance(check(config), MBDNODE) == (model == "mbd-node")


def test_network_cannot_be_turned_into_a_regression_under_its_own_name():
    law = configure("cart-pole", recipe="best")
    with pytest.raises(ValueError, match=r"of the model 'mbd-node' it must be a TrainingConfig"):
        dataclasses.replace(configure("cart-pole"), training=law.training)
    with pytest.raises(ValueError, match=r"structure 'linear'\. Known: free"):
        with_changes(configure("cart-pole"), {"structure": "linear"})


def test_recipe_is_added_by_one_line(monkeypatch):
    new = Recipe(TrainingConfig(epochs=7), "seven epochs", samples=123)
    monkeypatch.setitem(RECIPES, "seven", new)
    for case in ("cart-pole", "slider-crank"):
        config = configure(case, recipe="seven")
        assert (config.model, config.training.epochs, config.samples) == ("mbd-node", 7, 123)
        check(config)


@pytest.mark.parametrize("recipe", ["paper", "best"])
def test_configuration_of_either_verb_is_read_back_as_it_was_saved(recipe):
    config = configure("single-pendulum", recipe=recipe)
    assert from_dict(RunConfig, to_dict(config)) == config
    assert with_changes(config, {"integrator": "fe1"}).training.integrator == "fe1"


def test_law_has_no_settings_of_a_network():
    config = configure("single-pendulum", recipe="best")
    with pytest.raises(ValueError, match="'width'"):
        with_changes(config, {"width": "8"})
    # The case's network is trained without its force, and so is the law: both add it.
    assert config.training.forces == configure("single-pendulum").settings.forces == "added"
    assert configure("cart-pole", recipe="best").training.forces == "inputs"


@pytest.fixture(scope="module")
def law_run():
    """The cheapest law with studies: a damped pendulum, its starts and its random force."""
    return run_case(configure("single-pendulum", recipe="fast"))


def test_run_is_named_by_the_model_that_came_of_it(law_run):
    summary = law_run.summary()
    assert law_run.fit.model.is_law
    assert (summary["model"], summary["recipe"], summary["updates"]) == ("law", "fast", 0)
    assert "layers" not in summary


def test_law_that_was_found_without_a_force_follows_a_random_one(law_run):
    pushed = law_run.summary()["probes"]["random-force"]
    # The law is exact, and so is the input map; a force that is ignored leaves 6.7e-2.
    assert pushed["mse"] < 1e-20
    assert pushed["nrmse"] < 1e-9


def test_recipe_is_one_update_a_step_in_time_order():
    config = configure("single-mass-spring-damper").training
    assert config == TrainingConfig(epochs=350, learning_rate=1e-3, decay=0.98)


def test_a_case_of_other_parameters_is_learned_from_other_motions_alone():
    case = get_case("single-pendulum:lengths")
    truth = simulate_truth(case)
    data = training_motions(case, truth)
    lengths = [own["L"] for own in data.parameters]
    asked = [1.0, *(trial.parameters["L"] for trial in case.trials if isinstance(trial, Trial))]
    assert len(lengths) == len(set(lengths)) == len(data.trajectories) == 4
    assert not set(lengths) & set(asked)
    # As many of those asked lie between the learned ones as the page says.
    assert sum(min(lengths) < length < max(lengths) for length in asked) == 3
    for run, length in zip(data.trajectories, lengths, strict=True):
        assert len(run) == len(truth)
        # Small swings of an undamped pendulum of that length have this period; these are large
        # and slow down by a known series, so the first return to the lowest point comes later.
        crossings = np.flatnonzero(np.diff(np.sign(np.asarray(run["theta"])[1:])) < 0)
        half = float(run.t[crossings[0] + 1])
        highest = float(np.max(run["theta"]))
        expected = math.pi * math.sqrt(length / 9.81) * (1 + highest**2 / 16)
        assert half == pytest.approx(expected, rel=0.05)
