"""Segments side by side: what the lanes do, and which variant held-out pieces choose."""

import itertools

import numpy as np
import pytest

from mbdnode.identification.parameters.cross_validation import simplest
from mbdnode.identification.parameters.schedule import lanes_and_steps, make_schedules


@pytest.mark.parametrize(
    ("lengths", "segments", "jobs"), [((100,), 1, 11), ((90, 40, 7), 4, 3), ((30,) * 20, 3, 2)]
)
def test_every_row_of_every_fit_is_simulated_once_and_in_order(lengths, segments, jobs):
    rows, blocks = max(lengths), []
    for run, length in enumerate(lengths):
        edges = np.linspace(0, length, segments + 1).astype(int)
        pairs = itertools.pairwise(edges)
        blocks += [(run, i, slice(int(a), int(b))) for i, (a, b) in enumerate(pairs)]
    lanes, steps = lanes_and_steps(len(lengths), rows, 10)
    done: set[int] = set()
    for own, schedule in make_schedules(blocks, rows, jobs, lanes, steps):
        done |= set(own)
        busy = schedule.rows >= 0
        assert not busy[schedule.steps :].any()
        for job in range(len(own)):
            found = schedule.rows[busy & (schedule.jobs == job)]
            expected = [run * rows + i for run, _, x in blocks for i in range(x.start, x.stop)]
            assert sorted(found) == sorted(expected)
        # A lane goes through a segment row by row, and rests no row of it.
        starts = {run * rows + block.start for run, _, block in blocks}
        for lane in range(lanes):
            own_rows = schedule.rows[busy[:, lane], lane]
            for before, after in itertools.pairwise(own_rows):
                assert after == before + 1 or after in starts
    assert done == set(range(jobs))


def test_few_lanes_serve_data_that_would_not_fit_beside_itself():
    lanes, steps = lanes_and_steps(1, 10_000_000, 12)
    assert lanes == 1
    assert steps >= 10_000_000


def test_simplest_variant_within_one_standard_error_of_the_best_is_taken():
    # Squares of the misses of four pieces: the second is 0.1 worse than the third, give or take
    # 0.2; the first is 3 worse, give or take nothing.
    best = np.array([1.0, 2.0, 3.0, 4.0])
    close = best + 0.1 + np.array([0.4, -0.4, 0.4, -0.4])
    missed = [np.sqrt(one)[:, None] for one in (best + 3.0, close, best)]
    assert simplest(missed) == 1
    # Without the scatter a variant that is worse is not taken.
    missed = [np.sqrt(one)[:, None] for one in (best + 3.0, best + 0.1, best)]
    assert simplest(missed) == 2
    broken = np.full((4, 1), np.inf)
    assert simplest([broken, np.sqrt(best)[:, None]]) == 1
