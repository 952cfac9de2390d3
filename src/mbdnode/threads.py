"""The cores of this process: results in order, while threads compute the next ones.

NumPy, Arrow and XLA let other threads compute while they do, so that work in pieces of a tenth of a
second or more, each on its own, takes as many cores as there are. Which thread computes what
changes no number.

`threaded_map` has a function called for many items; no more results are held than there are
threads, and one. `ThreadedCalls` makes calls before their results are asked for, as
`mbdnode.cluster.CallsAhead` does on other machines.
"""

import contextvars
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

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


def _usual_threads() -> int:
    return min(usable_cores(), _MOST)


def threaded_map(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None
) -> Generator[Result, None, None]:
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
    count = _usual_threads() if threads is None else threads
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


class ThreadedCalls:
    """Calls that threads make before their results are asked for, by name.

    It is used like `mbdnode.cluster.CallsAhead`, but whoever asks has no cores to spare for what
    may never be asked for: `workers`, of which there is one for each such call, is zero.

    **Arguments:**

    - `threads`: how many; as many as there are cores if not given, up to four.
    """

    workers = 0

    def __init__(self, threads: int | None = None):
        count = _usual_threads() if threads is None else threads
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="mbdnode")
        self._begun: dict[str, Future[Any]] = {}

    def __enter__(self) -> "ThreadedCalls":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def share(self, *values: Any) -> None:
        """Nothing to do: threads have the caller's own values."""

    def begin(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Have a thread call a function, unless a call of this name has begun.

        **Arguments:**

        - `name`: of the result.
        - `function`: without side effects that anybody relies on.
        - `args`: its arguments, among them what `begin` returned.

        **Returns:**

        What stands for the result among the arguments of another call.
        """
        if name not in self._begun:
            context = contextvars.copy_context()
            self._begun[name] = self._pool.submit(context.run, _call, function, args)
        return self._begun[name]

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    def result(self, name: str) -> Any:
        """What a call gives, or raises."""
        return self._begun[name].result()

    def drop(self) -> None:
        """Forget all calls; those that no thread makes yet are not made."""
        for future in self._begun.values():
            future.cancel()
        self._begun.clear()


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # What was begun before is being computed, or is done, so that this ends.
    return function(*(one.result() if isinstance(one, Future) else one for one in args))
