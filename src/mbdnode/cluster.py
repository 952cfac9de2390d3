"""Where Dask workers come from: this machine's cores, or a cluster that somebody else started.

That is the only difference between the two; work is given to either in the same way. Dask notices
a worker that dies and gives what it did to another one, a few times; what raises is not tried
again, because it would raise again.

`spread` has a function called for many items, where the workers are. `spread_and_merge` also makes
one result of all, two at a time and on the workers, in an order that depends on the items alone
(`mbdnode.factors`), so that no more than one result comes back, and the same one whoever did what.
`CallsAhead` makes calls before their results are asked for, some of which never are.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdnode import __version__
from mbdnode.errors import UserError
from mbdnode.factors import merge_all

if TYPE_CHECKING:
    from distributed import Client, Future


_CONNECT_S = 5.0
# How often a connection is tried that the scheduler answers in an unusual way.
_GREETINGS = 3
_FIRST_WORKER_S = 10.0
# How often those who wait look after the workers, and how long they wait for a new one after the
# last has left.
_LOOK_S, NEW_WORKER_S = 1.0, 60.0
# Threads of one worker would change each other's number of BLAS threads, and with it the bits.
_NUMERICS = threading.Lock()

Report = Callable[[int, int], None]


class ClusterLost(UserError, OSError):
    """The scheduler, or the last of its workers, is gone."""


@contextmanager
def local_workers(jobs: int) -> Iterator["Client"]:
    """A client of `jobs` worker processes on this machine, which end with it."""
    import dask.config
    from distributed import Client, LocalCluster

    settings = {
        "distributed.worker.multiprocessing-method": "spawn",  # JAX does not survive a fork.
        "distributed.scheduler.allowed-failures": 3,
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with _quiet(), dask.config.set(settings):
        cluster = LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,  # pyright: ignore[reportArgumentType]
            memory_limit=0,  # The system decides what is too much, not a share of it.
            silence_logs=logging.CRITICAL,
            env=_one_thread(),
        )
        try:
            with Client(cluster, set_as_default=False) as client:
                client.run(ignore_interrupts)
                yield client
        finally:
            with _undisturbed():
                cluster.close(timeout=10)


@contextmanager
def remote_workers(address: str) -> Iterator["Client"]:
    """A client of the Dask scheduler at an address, whose workers have this package.

    **Arguments:**

    - `address`: such as "tcp://127.0.0.1:8786".
    """
    _check_address(address)
    way_out = "Start one with `dask scheduler`, and give the address that it prints."
    with _quiet():
        try:
            client = _connected(address)
        except OSError as error:
            raise UserError(f"No Dask scheduler answers at {address!r}. {way_out}") from error
        try:
            _check_workers(client, address)
            yield client
        finally:
            with _undisturbed():
                client.close(timeout=_CONNECT_S)


class _UnusualGreeting(OSError):
    """The scheduler answered with more than its greeting."""


def _connected(address: str) -> "Client":
    """A client of the scheduler. Raises `OSError` if there is none."""
    from distributed import Client

    class ClosedIfRefused(Client):
        async def _ensure_connected(self, timeout=None):
            try:
                await super()._ensure_connected(timeout)
            except AssertionError as error:
                # Dask asserts that the greeting comes alone, which was not so now and then. After
                # an OSError, and no other, it closes the client.
                raise _UnusualGreeting("more than a greeting") from error

    for _ in range(_GREETINGS):
        with suppress(_UnusualGreeting):
            return ClosedIfRefused(address, timeout=_CONNECT_S, set_as_default=False)
    raise _UnusualGreeting(f"more than a greeting, {_GREETINGS} times")


def _check_address(address: str) -> None:
    """Raise `UserError` for what is no address.

    A client that fails over one is not closed by Dask, and waits for its connection at the end of
    the process.
    """
    from distributed.comm.addressing import get_address_host_port

    try:
        host, port = get_address_host_port(address)
    except (TypeError, ValueError):
        host, port = "", 0
    if not (host and 0 < int(port) < 1 << 16):
        raise UserError(
            f"The cluster is {address!r}, which is no address. Start a scheduler with `dask "
            "scheduler`, and give the address that it prints, such as tcp://127.0.0.1:8786."
        )


def _check_workers(client: "Client", address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
    except TimeoutError:
        raise UserError(
            f"The Dask scheduler at {address!r} has no workers. Start some with "
            f"`dask worker {address} --nthreads 1`."
        ) from None
    versions: Any = client.run(_version, on_error="return")
    for worker, found in versions.items():
        if isinstance(found, Exception):
            raise UserError(
                f"The worker {worker} of {address!r} cannot load mbdnode ({found}). Install it "
                "where it runs."
            )
        if found != __version__:
            raise UserError(
                f"The worker {worker} has mbdnode {found}, but this is {__version__}. Results of "
                "two versions do not belong together; install the same on both."
            )


def check_files(client: "Client", files: Sequence[Path]) -> None:
    """Raise `UserError` unless every worker finds the same files as this process.

    **Arguments:**

    - `client`: of the workers.
    - `files`: absolute paths.
    """
    own = _sizes([str(path) for path in files])
    found: Any = client.run(_sizes, list(own))
    for worker, sizes in found.items():
        for name, size in sizes.items():
            if size == own[name]:
                continue
            what = "does not find" if size is None else "finds another file as"
            raise UserError(
                f"The worker {worker} {what} '{name}'. Files are read where the workers are: put "
                "them in a folder that all machines share, under the same path, or copy them to "
                "that path on each."
            )


def _sizes(names: list[str]) -> dict[str, int | None]:
    """In bytes; None for what is not there, or may not be read."""
    return {name: os.stat(name).st_size if os.access(name, os.R_OK) else None for name in names}


def spread(
    client: "Client",
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    where: Sequence[str | None] | None = None,
    report: Report | None = None,
) -> list[Any]:
    """Call a function for every item, on the workers.

    **Arguments:**

    - `client`: of the workers.
    - `function`: without side effects that anybody relies on: where a worker dies, it is called
        again elsewhere.
    - `items`: its arguments.
    - `where`: the worker that should do each, if it is there and free; None for any.
    - `report`: called with how many are done, of how many.

    **Returns:**

    Its results, in the order of the items. Raises what it raises, and `ClusterLost`.
    """
    futures = _submitted(client, function, items, where)
    _await(client, futures, report)
    return [_result(client, future) for future in futures]


def spread_and_merge(
    client: "Client",
    function: Callable[[Any], Any],
    items: Sequence[Any],
    merged: Callable[[Any, Any], Any],
    *,
    where: Sequence[str | None] | None = None,
    report: Report | None = None,
) -> Any:
    """The same, and its results merged on the workers, in the order of the items.

    **Arguments:**

    - `client`, `function`, `items`, `where`, `report`: as for `spread`.
    - `merged`: makes one result of two.

    **Returns:**

    One result. Raises what is raised, and `ClusterLost`.
    """
    futures = _submitted(client, function, items, where)

    def both(one: "Future", other: "Future") -> "Future":
        return client.submit(call_alone, merged, one, other, pure=False)

    last = merge_all(futures, both)
    _await(client, futures, report)
    return _result(client, last)


class CallsAhead:
    """Calls that workers make before their results are asked for, by name.

    Each goes to the worker with the fewest of them; if that one dies, to another.

    **Arguments:**

    - `client`: of the workers.
    """

    def __init__(self, client: "Client"):
        self._client: Any = client
        self._shared: list[tuple[Any, Future]] = []
        self._begun: dict[str, tuple[Future, str | None]] = {}
        self.workers = len(_crew(client))

    def share(self, *values: Any) -> None:
        """Send values once to each worker that needs them, in place of with every call.

        **Arguments:**

        - `values`: recognized by identity among the arguments of `begin`. All calls on a worker
            are given the same copy.
        """
        import dask.config

        # In the scheduler's hands, so that a worker that dies takes nothing along.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            self._shared += [(one, self._client.submit(_same, one, pure=False)) for one in values]

    def begin(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Have a worker call a function, unless a call of this name has begun.

        **Arguments:**

        - `name`: of the result.
        - `function`: as for `spread`.
        - `args`: its arguments, among them what is shared and what `begin` returned.

        **Returns:**

        What stands for the result among the arguments of another call.
        """
        if name in self._begun:
            return self._begun[name][0]
        crew = dict.fromkeys(_crew(self._client), 0)
        for future, worker in self._begun.values():
            if worker in crew and not future.done():
                crew[worker] += 1
        place = min(crew, key=lambda worker: crew[worker], default=None)
        given = [next((own for x, own in self._shared if x is one), one) for one in args]
        found = _submit(self._client, place, function, *given)
        self._begun[name] = found, place
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    def result(self, name: str) -> Any:
        """What a call gives, or raises; and `ClusterLost`."""
        return _result(self._client, self._begun[name][0])

    def drop(self) -> None:
        """Forget all calls; those that no worker makes yet are not made."""
        futures = [future for future, _ in self._begun.values()]
        self._begun.clear()
        # Whether the scheduler is still there will show when it is needed.
        with suppress(OSError, TimeoutError):
            self._client.cancel(futures)


@contextmanager
def calls_ahead(cluster: str | None) -> Iterator[CallsAhead | None]:
    """Calls on the workers of a cluster.

    **Arguments:**

    - `cluster`: the address of its scheduler; None for no cluster.

    **Returns:**

    A context with the `CallsAhead`; with None if there is no cluster.
    """
    if cluster is None:
        yield None
        return
    with remote_workers(cluster) as client:
        yield CallsAhead(client)


def call_alone(function: Callable[..., Any], *args: Any) -> Any:
    """On a worker: call a function with one BLAS thread, and nothing of ours beside it."""
    from threadpoolctl import threadpool_limits

    with _NUMERICS, threadpool_limits(1, "blas"):
        return function(*args)


def _submitted(client: "Client", function, items, where) -> list["Future"]:
    places = where or [None] * len(items)
    return [
        _submit(client, place, function, item) for item, place in zip(items, places, strict=True)
    ]


def _submit(client: "Client", place: str | None, function: Callable[..., Any], *args: Any) -> Any:
    return client.submit(
        call_alone,
        function,
        *args,
        pure=False,
        workers=None if place is None else [place],
        allow_other_workers=place is not None,
    )


def _await(client: "Client", futures: Sequence["Future"], report: Report | None) -> None:
    """Until all are done for the first time; results may be lost again with their worker."""
    for number, future in enumerate(futures):
        _result(client, future, fetched=False)
        if report is not None:
            report(number + 1, len(futures))


def _result(client: "Client", future: "Future", *, fetched: bool = True) -> Any:
    """What a task gives, as long as there is a worker to wait for."""
    from distributed import CancelledError, KilledWorker, wait

    last_crew = time.monotonic()
    while True:
        try:
            with client.as_current():
                wait([future], timeout=_LOOK_S)
            if fetched or future.status == "error":
                return future.result(timeout=_LOOK_S)
            return None
        except KilledWorker as error:
            raise UserError(
                f"Workers died {error.allowed_failures + 1} times over the same piece of work, "
                f"the last of them {error.last_worker.address}. Look at its log; give workers more "
                "memory if that was it."
            ) from error
        except CancelledError as error:
            raise ClusterLost("The Dask scheduler is gone, and with it what it held.") from error
        except TimeoutError:
            last_crew = _look_after(client, last_crew)


def _look_after(client: "Client", last_crew: float) -> float:
    """When there was a worker last."""
    crew = _crew(client)
    now = time.monotonic()
    if not crew and now - last_crew > NEW_WORKER_S:
        raise ClusterLost(
            f"The Dask scheduler has had no worker for {NEW_WORKER_S:.0f} s. Start some with "
            "`dask worker ADDRESS --nthreads 1`."
        )
    return now if crew else last_crew


def _crew(client: "Client") -> Any:
    """The addresses of the workers."""
    try:
        # Not `scheduler_info`: a thread of Dask's own overwrites its answer now and then with one
        # that names no workers.
        return client.nthreads()
    except (OSError, TimeoutError) as error:
        raise ClusterLost(f"The Dask scheduler does not answer any more: {error}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own log tells of every lost connection; what matters of it is said by us."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    before = {handler: handler.level for logger in loggers for handler in logger.handlers}
    for handler in before:
        handler.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for handler, level in before.items():
            handler.setLevel(level)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """An impatient second Ctrl-C must not leave processes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread hears of it, and may decide.
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _one_thread() -> dict[str, str]:
    """Several processes that each use every core would only get in each other's way.

    With a pool of one thread, XLA cuts no operation into parts: an update of a network takes half
    the time, and nothing waits for a thread (see `mbdnode.numerics`).
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if flags[:1] in ("", "-"):  # XLA takes what does not begin with a dash for a file of options.
        flags = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    return {"XLA_FLAGS": flags, "OPENBLAS_NUM_THREADS": "1", "PJRT_NPROC": "1"}


def _same(value: Any) -> Any:
    return value


def ignore_interrupts() -> None:
    """In a process for others: Ctrl-C goes to all of a terminal, and who asked is to answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _version() -> str:
    return __version__
