"""Computing in parallel: a `concurrent.futures.Executor`, and results in the order of the calls.

The executor is a pool of threads of this process, or that of a Dask cluster. NumPy, Arrow and XLA
release Python's lock while they compute, so calls of a tenth of a second or more use all cores.
Dask repeats the calls of a worker that died on another one; it does not repeat what raised.

Every call uses one BLAS thread, and the process that asks takes the results in the order of its
calls. So numbers depend neither on how many workers there are nor on which one made a call.
"""

import contextvars
import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits

from mbdnode import __version__
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

# More threads wait for Python's own lock, and hold memory.
_MOST_THREADS = 4
_CONNECT_S, _FIRST_WORKER_S = 10.0, 10.0
# How often workers are looked after, and how long a new one is waited for after the last has left.
_LOOK_S, _NEW_WORKER_S = 1.0, 60.0
# Threads of one Dask worker would change each other's number of BLAS threads.
_NUMERICS = threading.Lock()


class ClusterLost(UserError, OSError):
    """The scheduler, or the last of its workers, is gone."""


class Workers:
    """Calls on an executor that makes `count` at a time; `client` is that of a Dask scheduler."""

    def __init__(self, executor: Executor, count: int, client: "Client | None" = None):
        self.count, self.client, self._executor = count, client, executor
        self._shared: list[tuple[Any, Any]] = []

    def share(self, *values: Any) -> None:
        """Send large values once to each worker that needs them, in place of with every call.

        They are recognized by identity among the arguments of `submit`.
        """
        if self.client is None:
            return
        import dask.config

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            # As tasks, which are repeated when a worker dies; scattered data would go with it.
            self._shared += [(x, self.client.submit(_same, x, pure=False)) for x in values]

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a worker call a function; the future is for `result`.

        Nobody may rely on side effects: where a worker dies, it is called again elsewhere.
        """
        if self.client is None:
            # With settings such as `numpy.errstate` as they are where this is called.
            return self._executor.submit(contextvars.copy_context().run, function, *args)
        given = [next((sent for x, sent in self._shared if x is arg), arg) for arg in args]
        return self._executor.submit(_alone, function, *given)

    def result(self, future: Future[Any]) -> Any:
        """What a call returns, or raises; `ClusterLost` if nobody is left to make it."""
        if self.client is None:
            return future.result()
        from distributed import KilledWorker

        last_seen = time.monotonic()
        while not wait([future], _LOOK_S).done:
            last_seen = look_after(self.client, last_seen)
        try:
            return future.result()
        except CancelledError as error:
            raise ClusterLost("The Dask scheduler is gone, and with it what it held.") from error
        except KilledWorker as error:
            raise UserError(
                f"Workers died {error.allowed_failures + 1} times over the same piece of work, "
                f"the last of them {error.last_worker.address}. Look at its log; give workers more "
                "memory if that was it."
            ) from error

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Generator[Any, None, None]:
        """Results for every item, in their order; a few for each worker are made ahead at most."""
        # Machines of a cluster differ in speed: none waits for the slowest before it goes on.
        ahead = self.count if self.client is None else 4 * self.count
        waiting: deque[Future[Any]] = deque()
        try:
            for item in items:
                waiting.append(self.submit(function, item))
                if len(waiting) > ahead:
                    yield self.result(waiting.popleft())
            while waiting:
                yield self.result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def usable_cores() -> int:
    """How many this process may compute on, as the system says."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def workers(cluster: str | None = None, *, threads: int | None = None) -> Iterator[Workers]:
    """The workers of the Dask scheduler at an address, or threads of this process.

    There are as many threads as cores if not told otherwise, up to four.
    """
    if cluster is not None:
        with remote_workers(cluster) as client:
            crew: Any = client.nthreads()
            yield Workers(client.get_executor(pure=False), len(crew), client)
        return
    count = threads or min(usable_cores(), _MOST_THREADS)
    pool = ThreadPoolExecutor(count, thread_name_prefix="mbdnode")
    with threadpool_limits(1, "blas"):
        try:
            yield Workers(pool, count)
        finally:
            pool.shutdown(cancel_futures=True)


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
    with (
        _quiet(),
        dask.config.set(settings),
        LocalCluster(
            n_workers=jobs,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,  # pyright: ignore[reportArgumentType]
            memory_limit=0,  # The system decides what is too much, not a share of it.
            silence_logs=logging.CRITICAL,
            env=_one_thread(),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(ignore_interrupts)
        yield client


@contextmanager
def remote_workers(address: str) -> Iterator["Client"]:
    """A client of the Dask scheduler at an address, whose workers have this package."""
    from distributed import Client

    check_address(address)
    with _quiet():
        try:
            client = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except OSError as error:
            raise UserError(
                f"No Dask scheduler answers at {address!r}. Start one with `dask scheduler`, and "
                "give the address that it prints."
            ) from error
        try:
            _check_workers(client, address)
            yield client
        finally:
            client.close(timeout=_CONNECT_S)


def check_files(client: "Client", files: Sequence[Path], way_out: str) -> None:
    """Raise `UserError` unless every worker finds the same files, by their absolute paths, as here.

    `way_out` is what to do otherwise, as a sentence.
    """
    own = _sizes([str(path) for path in files])
    found: Any = client.run(_sizes, list(own))
    for worker, sizes in found.items():
        for name, size in sizes.items():
            if size != own[name]:
                what = "does not find" if size is None else "finds another file as"
                raise UserError(f"The worker {worker} {what} '{name}'. {way_out}")


def look_after(client: "Client", last_seen: float) -> float:
    """When the scheduler had a worker last, by `time.monotonic`; at first the time when it began.

    Raises `ClusterLost` if it does not answer, or if no worker comes back for a minute.
    """
    try:
        # Not `scheduler_info`, whose answer names no workers now and then.
        crew: Any = client.nthreads()
    except (OSError, TimeoutError) as error:
        raise ClusterLost(f"The Dask scheduler does not answer any more: {error}") from error
    now = time.monotonic()
    if not crew and now - last_seen > _NEW_WORKER_S:
        raise ClusterLost(
            f"The Dask scheduler has had no worker for {_NEW_WORKER_S:.0f} s. Start some with "
            "`dask worker ADDRESS --nthreads 1`."
        )
    return now if crew else last_seen


def ignore_interrupts() -> None:
    """In a process for others: Ctrl-C goes to all of a terminal, and who asked is to answer it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_address(address: str) -> None:
    """Raise `UserError` for what cannot be the address of a Dask scheduler.

    A client that fails over it would wait for its connection when Python ends.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        usable = parts.scheme in ("tcp", "tls", "ws", "wss") and parts.hostname and parts.port
        usable = usable and address.split() == [address]  # A blank within it is none of a name.
    except ValueError:  # Of a port that there cannot be.
        usable = False
    if not usable:
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


def _one_thread() -> dict[str, str]:
    """Several processes that each use every core would only get in each other's way.

    With a pool of one thread, XLA cuts no operation into parts: an update of a network takes half
    the time, and nothing waits for a thread (see `mbdnode.numerics`).
    """
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if flags[:1] in ("", "-"):  # XLA takes what does not begin with a dash for a file of options.
        flags = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    return {"XLA_FLAGS": flags, "OPENBLAS_NUM_THREADS": "1", "PJRT_NPROC": "1"}


def _alone(function: Callable[..., Any], *args: Any) -> Any:
    """On a Dask worker: a call with one BLAS thread, and none of ours beside it."""
    with _NUMERICS, threadpool_limits(1, "blas"):
        return function(*args)


def _same(value: Any) -> Any:
    return value


def _sizes(names: list[str]) -> dict[str, int | None]:
    """In bytes; None for what is not there, or may not be read."""
    return {name: os.stat(name).st_size if os.access(name, os.R_OK) else None for name in names}


def _version() -> str:
    return __version__
