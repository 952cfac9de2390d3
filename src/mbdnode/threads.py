"""The cores of this process: results in order, while threads compute the next ones.

NumPy, Arrow and XLA let other threads compute while they do, so that work in pieces of a tenth of a
second or more, each on its own, takes as many cores as there are. Which thread computes what
changes no number: results are asked for in the order of the items, and no more of them are held
than there are threads, and one.
"""

import contextvars
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

# More of them wait for Python's own lock, and hold memory.
_MOST = 4


def usable_cores() -> int:
    """How many this process may compute on, as the system says."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threaded_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Iterator[Result]:
    """Call a function for every item, some of them at a time.

    **Arguments:**

    - `function`: called by several threads at a time; with one BLAS thread each, so that numbers
        do not depend on how many there are.
    - `items`: its arguments.
    - `threads`: how many; as many as there are cores if not given, up to four.

    **Returns:**

    An iterator over its results, in the order of the items. Raises what it raises; items after that
    one may have been computed in vain.
    """
    count = min(usable_cores(), _MOST) if threads is None else threads
    with threadpool_limits(1, "blas"):
        if count < 2:
            yield from map(function, items)
            return
        waiting: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(count, thread_name_prefix="mbdnode")
        try:
            for item in items:
                # With settings such as `numpy.errstate` as they are where this is called.
                waiting.append(pool.submit(contextvars.copy_context().run, function, item))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
