"""What is kept from training."""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.surrogate.holdout import split
from mbdnode.trajectory import Dataset


def runs(count, rows=41):
    t = np.linspace(0.0, 1.0, rows)
    spring = mbd.mechanisms.SingleMassSpring()
    return Dataset([mbd.simulate(spring, t, {"x": 1.0 + k}) for k in range(count)])


def test_part_of_the_runs_is_held_out_and_none_is_in_both():
    data = runs(5)
    parts = split(data, 0.4)
    assert len(parts.held_out) == 2
    starts = {float(run.q[0, 0]) for run in parts.training.trajectories}
    held = {float(run.q[0, 0]) for _, run, _ in parts.held_out}
    assert starts | held == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert not starts & held


def test_same_seed_holds_out_the_same_runs():
    names = [[name for name, _, _ in split(runs(6), 0.3, seed).held_out] for seed in (3, 3, 4)]
    assert names[0] == names[1]


def test_of_a_single_run_the_end_is_held_out():
    parts = split(runs(1), 0.25)
    (training,), ((name, rest, _),) = parts.training.trajectories, parts.held_out
    assert len(training) == 31
    assert float(rest.t[0]) == pytest.approx(float(training.t[-1]))
    assert float(rest.t[-1]) == pytest.approx(1.0)
    assert "its end" in name


def test_at_least_one_run_is_left_to_learn_from():
    assert len(split(runs(2), 0.9).training.trajectories) == 1


def test_nothing_is_held_out_if_asked():
    assert split(runs(2), 0.0).held_out == ()


@pytest.mark.parametrize("part", [-0.1, 1.0, 2.0])
def test_impossible_part_is_refused(part):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        split(runs(2), part)


def test_run_that_is_too_short_to_cut_is_refused():
    with pytest.raises(ValueError, match="too few"):
        split(runs(1, rows=8), 0.5)
