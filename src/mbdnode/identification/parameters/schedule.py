"""Which lane simulates which segment, and when: segments of several fits side by side.

A step of a small mechanism takes longer to start than to compute, so a few lanes that each simulate
a segment at the same time cost about twice as much as one, and do several times the work. Segments,
of one fit or of several that go on side by side, are given to the lanes one after another, the
longest first, each to the lane that is free first. How many lanes and steps there are at most does
not depend on how the runs are cut, so one compiled program serves them all.
"""

import heapq
from dataclasses import dataclass

import numpy as np

# Lanes at least and at most, and how many numbers of derivatives are held at once.
_FEWEST, _MOST, _NUMBERS = 8, 32, 1 << 26


@dataclass(frozen=True)
class Schedule:
    """What the lanes do.

    **Arguments:**

    - `rows`: `(steps at most, lanes)`, the row that a lane comes to, counted through all runs;
        minus one where it rests.
    - `jobs`: of which fit.
    - `steps`: after so many all are done.
    """

    rows: np.ndarray
    jobs: np.ndarray
    steps: int


def lanes_and_steps(runs: int, rows: int, numbers: int) -> tuple[int, int]:
    """How many lanes there are, and room for how many steps."""
    lanes = int(np.clip(runs, _FEWEST, _MOST))
    while lanes > 1 and lanes * rows * numbers > _NUMBERS:
        lanes //= 2
    # A segment is begun, at the latest, when all lanes have done their share of the others.
    return lanes, rows + -(-runs * rows // lanes)


def make_schedules(
    blocks: list[tuple[int, int, slice]], rows: int, jobs: int, lanes: int, steps: int
) -> list[tuple[range, Schedule]]:
    """Give every segment of every fit to a lane.

    The fits that go together, by number, with what the lanes do for them.
    """
    total = sum(block.stop - block.start for _, _, block in blocks)
    longest = max(block.stop - block.start for _, _, block in blocks)
    together = max((steps - longest) * lanes // total, lanes // len(blocks))
    together = min(together, lanes)
    order = sorted(blocks, key=lambda one: one[2].start - one[2].stop)
    found = []
    for first in range(0, jobs, together):
        own = range(first, min(jobs, first + together))
        found.append((own, _pack(order, rows, len(own), lanes, steps)))
    return found


def _pack(blocks, rows: int, jobs: int, lanes: int, steps: int) -> Schedule:
    places = np.full((steps, lanes), -1, int)
    owners = np.zeros((steps, lanes), int)
    free = [(0, lane) for lane in range(lanes)]
    for run, _, block in blocks:
        for job in range(jobs):
            begin, lane = heapq.heappop(free)
            end = begin + block.stop - block.start
            places[begin:end, lane] = run * rows + np.arange(block.start, block.stop)
            owners[begin:end, lane] = job
            heapq.heappush(free, (end, lane))
    return Schedule(places, owners, int(max(end for end, _ in free)))
