"""Control with a learned model, as the paper does it, on few samples."""

from dataclasses import replace

import pytest

from mbdnode.reproduction.cases import CASES, get_case
from mbdnode.reproduction.cases.control_task import control_sentence
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.run import run_case, training_data
from mbdnode.simulation import simulate

CASE = get_case("cart-pole:controlled")


def test_box_is_the_papers():
    pi = 3.141592653589793
    assert CASE.bounds == {
        "theta": (0.0, 2 * pi),
        "x": (-1.5, 1.5),
        "theta_dot": (-8.0, 8.0),
        "x_dot": (-4.0, 4.0),
        "u": (-10.0, 30.0),
    }
    assert configure(CASE.name).samples == 100_000


def test_papers_recipe_sees_the_same_draws_in_every_epoch():
    config = replace(configure(CASE.name), samples=40)
    unused = simulate(CASE.mechanism, CASE.times(2), CASE.initial)
    data = training_data(CASE, unused, config)
    (steps,) = data.trajectories
    assert steps.t.shape == (40, 2)


# Two controllers are compiled and both loops are closed: half a minute for what follows.
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def result():
    """Of the best recipe on few samples, with a short swing-up as the only trial."""
    short = replace(CASE.trials[1], steps=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CASES, CASE.name, replace(CASE, trials=(short,)))
        return run_case(replace(configure(CASE.name, recipe="best"), samples=300))


@slow
def test_loops_of_truth_and_of_the_learned_law_are_the_same(result):
    control = result.control
    assert max(control["largest_difference"].values()) < 0.01
    assert control["settled_s"] < 20.0
    assert control["settled_with_truth_s"] < 20.0
    assert control["fallbacks"] == 0


@slow
def test_learned_jacobian_is_the_truths(result):
    assert result.control["jacobian_error_A"] < 1e-3
    assert result.control["jacobian_error_B"] < 1e-3


@slow
def test_swing_up_with_the_learned_law_is_the_truths(result):
    (probe,) = result.probes
    assert probe.name == "swing-up"
    assert probe.mse < 1e-6
    assert float(abs(probe.prediction["theta"][-1])) < 0.1


@slow
def test_summary_has_the_control_and_a_sentence_of_it(result):
    judged = result.summary()["control"]
    text = control_sentence("mbd-node", judged)
    assert text.startswith("mbd-node: relative error of A")
    assert "settled after" in text
