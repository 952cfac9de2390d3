"""What is kept from training: never on both sides, whatever it is called."""

import itertools
import os

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.data.files import separate_files
from mbdnode.data.logs import find_files, read
from mbdnode.evaluation import hold_out_runs, split, split_runs
from mbdnode.trajectory import Dataset


def runs(count, rows=41):
    t = np.linspace(0.0, 1.0, rows)
    spring = mbd.mechanisms.SingleMassSpring()
    return Dataset([mbd.simulate(spring, t, {"x": 1.0 + k}) for k in range(count)])


def first_positions(data):
    return [float(run.q[0, 0]) for run in data.trajectories]


def write_log(path, rows=60, phase=0.0, gap_at=None):
    """Positions at a hundred rows a second; with a second missing if asked."""
    t = 0.01 * np.arange(rows)
    if gap_at is not None:
        t[gap_at:] += 1.0
    table = np.column_stack([t, np.sin(3.0 * t + phase)])
    np.savetxt(path, table, delimiter=",", header="t,x", comments="", fmt="%.17g")
    return path


ROLES = {"time": "t", "coordinates": ["x"]}


def test_part_of_the_runs_is_held_out_and_none_is_in_both():
    parts = split(runs(5), 0.4)
    assert len(parts.held_out) == 2
    starts = set(first_positions(parts.training))
    held = {float(run.q[0, 0]) for _, run, _ in parts.held_out}
    assert starts | held == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert not starts & held


def test_same_seed_holds_out_the_same_runs_and_another_seed_others():
    data = runs(6)
    names = [[name for name, _, _ in split(data, 0.3, seed).held_out] for seed in (3, 3, 4)]
    assert names[0] == names[1]
    assert names[0] != names[2]


def test_of_a_single_run_the_end_is_held_out_and_shares_no_row():
    parts = split(runs(1), 0.25)
    (training,), ((name, rest, _),) = parts.training.trajectories, parts.held_out
    assert len(training) == 31
    assert float(rest.t[0]) == pytest.approx(float(training.t[-1]) + 0.025)
    assert float(rest.t[-1]) == pytest.approx(1.0)
    assert "its end" in name


def test_no_rate_that_is_trained_on_was_estimated_from_a_held_out_position(tmp_path):
    log = write_log(tmp_path / "log.csv", rows=200)
    (training,) = split(read(log, **ROLES), 0.25).training.trajectories
    # The same log with other positions in its held-out part.
    table = np.genfromtxt(log, delimiter=",", skip_header=1)
    rest = slice(len(training), None)
    table[rest, 1] += 0.3 * np.sin(7.0 * table[rest, 0])
    np.savetxt(log, table, delimiter=",", header="t,x", comments="", fmt="%.17g")
    (again,) = split(read(log, **ROLES), 0.25).training.trajectories
    assert np.array_equal(training.v, again.v)
    assert np.array_equal(training.q, again.q)
    # Away from the ends of the part the rate is that of the sine.
    inner = slice(20, -20)
    exact = 3.0 * np.cos(3.0 * np.asarray(training.t))
    assert np.asarray(training.v)[inner, 0] == pytest.approx(exact[inner], abs=1e-6)


def test_pieces_of_one_run_are_cut_in_time_and_pieces_of_several_stay_together(tmp_path):
    cut = write_log(tmp_path / "cut.csv", rows=100, gap_at=30)
    parts = split(read(cut, **ROLES, gaps="split"), 0.4)
    latest = max(float(run.t[-1]) for run in parts.training.trajectories)
    assert all(float(run.t[0]) > latest for _, run, _ in parts.held_out)
    other = write_log(tmp_path / "other.csv", rows=100, phase=1.0, gap_at=60)
    for seed in range(4):
        parts = split(read([cut, other], **ROLES, gaps="split"), 0.5, seed)
        held = {name.split(",")[0] for name, _, _ in parts.held_out}
        assert len(held) == 1
        assert len(parts.held_out) == len(parts.training.trajectories) == 2


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


def test_copies_of_a_run_are_on_one_side():
    data = runs(4)
    twice = Dataset([*data.trajectories, *data.trajectories])
    for seed in range(5):
        parts = split(twice, 0.5, seed)
        held = {float(run.q[0, 0]) for _, run, _ in parts.held_out}
        assert not held & set(first_positions(parts.training))
        assert len(parts.held_out) == 4
    parts = split(Dataset([data.trajectories[0]] * 3), 0.25)
    assert len(parts.training.trajectories) == len(parts.held_out) == 1


def test_run_that_is_held_out_by_name_is_not_trained_on_under_another():
    data = runs(4)
    parts = hold_out_runs(data, Dataset([data.trajectories[2]]))
    assert first_positions(parts.training) == [1.0, 2.0, 4.0]
    assert parts.notes == ("not trained on: run 2, which is the same as a held-out run",)
    with pytest.raises(ValueError, match="nothing to learn from"):
        hold_out_runs(data, data)


@pytest.mark.parametrize("way", ["plain", "relative", "symlink", "hard link", "pattern", "dots"])
def test_held_out_file_is_not_trained_on_by_any_name(way, tmp_path, monkeypatch):
    train, test = (write_log(tmp_path / f"{name}.csv") for name in ("train", "test"))
    monkeypatch.chdir(tmp_path)
    if way == "symlink":
        (tmp_path / "link.csv").symlink_to(test)
    elif way == "hard link":
        os.link(test, tmp_path / "link.csv")
    named = {
        "plain": [str(train), str(test)],
        "relative": ["train.csv", "test.csv"],
        "symlink": [str(train), "link.csv"],
        "hard link": [str(train), "link.csv"],
        "pattern": ["t*.csv"],
        "dots": [str(train), str(tmp_path / ".." / tmp_path.name / "test.csv")],
    }[way]
    trained, judged = separate_files(find_files(named), find_files([str(test)]))
    assert [path.resolve() for path in trained] == [train]
    assert judged == [test]


def test_file_that_is_named_twice_is_read_once(tmp_path):
    log = write_log(tmp_path / "a.csv")
    (tmp_path / "b.csv").symlink_to(log)
    assert len(separate_files([log, tmp_path / "b.csv"], [])[0]) == 1


def test_nothing_left_to_learn_from_is_refused(tmp_path):
    log = write_log(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="Every log is held out"):
        separate_files([log], [log])


@pytest.mark.parametrize("gap", [0, 7])
def test_spans_of_one_run_do_not_touch_and_leave_the_gap(gap):
    spans = split_runs([[50, 30, 20]], 0.4, gap=gap)
    first = {0: 0, 1: 50, 2: 80}
    rows = {
        held: sorted(
            first[span.segment] + row
            for span in spans
            if span.held_out == held
            for row in range(span.first, span.last + 1)
        )
        for held in (False, True)
    }
    assert rows[False] == list(range(60))
    assert rows[True] == list(range(60 + gap, 100))
    assert all(a.run == b.run == 0 for a, b in itertools.pairwise(spans))
