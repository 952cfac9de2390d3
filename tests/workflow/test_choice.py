"""Which model is taken: the first within the noise, else the simplest that is nearly the best."""

import numpy as np
import pytest

from mbdnode.identification import Identified
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.function_library import Library
from mbdnode.simulation import simulate
from mbdnode.trajectory import Dataset
from mbdnode.workflow import model_choice as choice
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.hybrid import thin_runs

NAMES = ("parameters", "law", "refined law", "law plus network", "network")


def called(name):
    """Something that was found, known by its status."""
    return Identified(None, (), name, "completed", 0.0, 0.0)


def choose(monkeypatch, errors, rows=60):
    """With models that are not fitted, but have these errors over the validation split."""
    tried = []

    def step(name):
        def try_it(self):
            tried.append(name)
            error = errors[name]
            told = choice.TriedModel(name, error, error < 0.01)
            return choice._Candidate(told, lambda: called(name))

        return try_it

    for method, name in zip(
        ("try_parameters", "try_law", "try_refined_law", "try_hybrid", "try_network"),
        NAMES,
        strict=True,
    ):
        monkeypatch.setattr(choice._Ladder, method, step(name))
    monkeypatch.setattr(choice._Ladder, "all_parameters", lambda self: called(NAMES[0]))
    t = np.arange(rows) * 0.01
    data = Dataset(simulate(SinglePendulum(), t, {"theta": 0.1}))
    config, unknown = FitConfig(("run.csv",)), {"L": None} if "parameters" in errors else {}
    return choice.choose_model(config, SinglePendulum(), data, unknown, (), None), tried


def test_first_within_the_noise_is_taken_and_none_after_it_is_tried(monkeypatch):
    errors = {"parameters": 0.2, "law": 0.005, "law plus network": 0.001, "network": 0.001}
    found, tried = choose(monkeypatch, errors)
    assert (found.found.status, found.taken, tried) == ("law", "law", ["parameters", "law"])
    assert "parameters (20 %), law (0.5 %). Taken: law, the simplest" in str(found)
    # What was tested is said: the last fifth of 59 steps of 0.01 s, and no more than that.
    assert found.seconds == pytest.approx(0.59 / 5, abs=0.01)
    assert f"pieces of {found.seconds:.3g} s" in str(found)
    assert "nothing of longer predictions, or of motions outside the training data" in str(found)


@pytest.mark.parametrize(
    ("values", "taken"),
    [
        ((0.104, 0.3, 0.2, 0.1, 0.1), "parameters"),
        ((0.2, 0.3, 0.2, 0.12, 0.1), "network"),
        ((np.inf, 0.3, 0.2, 0.1, 0.11), "law plus network"),
        ((np.inf, 0.3, 0.1, 0.1, 0.1), "refined law"),
    ],
)
def test_simplest_within_a_tenth_of_the_best_is_taken(values, taken, monkeypatch):
    found, tried = choose(monkeypatch, dict(zip(NAMES, values, strict=True)))
    assert found.taken == taken
    assert tried == list(NAMES)
    assert "none is within the noise" in str(found)


def test_parameters_are_not_tried_where_none_is_unknown(monkeypatch):
    errors = {"law": 0.5, "refined law": 0.5, "law plus network": 0.4, "network": 0.05}
    found, tried = choose(monkeypatch, errors)
    assert found.taken == "network"
    assert tried == list(NAMES[1:])


def test_short_runs_leave_nothing_to_choose_by(monkeypatch):
    found, tried = choose(monkeypatch, {"parameters": 0.5}, rows=30)
    assert (found.taken, tried) == ("parameters", [])
    assert "leaves no part to choose by" in str(found)


def test_networks_learn_from_even_pieces_of_long_runs():
    runs = [simulate(SinglePendulum(), np.arange(n) * 0.01, {"theta": 0.1}) for n in (701, 1001)]
    pieces = thin_runs(Dataset(runs), 800).trajectories
    assert [len(piece) - 1 for piece in pieces] == [200] * 4
    # Of both runs, the first from its first row on, and none twice.
    starts = [float(piece.t[0]) for piece in pieces]
    assert starts[0] == 0.0
    np.testing.assert_array_equal(pieces[-1].q, runs[1].q[800:1001])
    assert thin_runs(Dataset(runs), 1700).trajectories == tuple(runs)


def test_fit_of_random_features_is_not_called_a_law():
    features = Library.for_system(SinglePendulum(), features=160)
    found = Identified(features, (), "", "completed", 0.0, 0.0)
    assert choice._named(choice.REFINED, found) == "refined fit of 160 random features"
    assert choice._named(choice.HYBRID, found) == "fit of 160 random features plus network"
    law = Identified(Library.for_system(SinglePendulum()), (), "", "completed", 0.0, 0.0)
    assert choice._named(choice.HYBRID, law) == choice.HYBRID
