"""Work that is shared gives what one worker gives, in the same order."""

import os
import threading

import numpy as np
import pytest

from mbdnode.errors import UserError
from mbdnode.parallel import check_address, usable_cores, workers


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_items_whichever_is_done_first(threads):
    turns = [threading.Event() for _ in range(3)]

    def late(item):
        if threads > 2 and item < 2:
            turns[item].wait(10)  # Until the one behind it is done.
        if 0 < item < 3:
            turns[item - 1].set()
        return item**2

    with workers(threads=threads) as crew:
        assert list(crew.map(late, range(20))) == [item**2 for item in range(20)]


def test_what_an_item_raises_is_raised_after_the_results_before_it():
    def at_most_three(item):
        if item > 3:
            raise KeyError(item)
        return item

    with workers(threads=2) as crew:
        found = crew.map(at_most_three, range(100))
        assert [next(found) for _ in range(4)] == [0, 1, 2, 3]
        with pytest.raises(KeyError, match="4"):
            next(found)


def test_few_results_are_made_ahead():
    made = []
    with workers(threads=2) as crew:
        found = crew.map(lambda item: made.append(item) or item, range(100))
        next(found)
        found.close()
    assert len(made) <= 4


def test_threads_see_the_floating_point_settings_of_their_caller():
    with (
        np.errstate(divide="raise"),
        workers(threads=2) as crew,
        pytest.raises(FloatingPointError),
    ):
        list(crew.map(lambda x: x / np.zeros(2), [np.ones(2)]))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no processes")
def test_a_process_that_is_bound_to_one_core_has_one():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_what_a_call_raises_is_raised_where_its_result_is_asked_for():
    with workers(threads=1) as crew:
        future = crew.submit(int, "no number")
        with pytest.raises(ValueError, match="no number"):
            crew.result(future)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tls://host-1.example:8786", "node1:1", "tcp://[::1]:8786"]
)
def test_address_of_a_scheduler_is_taken(address):
    check_address(address)


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://", "tcp://host", "a b:1", "host:port"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match="no address"):
        check_address(address)
