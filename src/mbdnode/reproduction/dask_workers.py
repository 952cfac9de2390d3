"""Where Dask workers come from: this machine's cores, or a cluster that somebody else started.

That is the only difference between the two; runs are given to either in the same way. Dask notices
a worker that dies and gives its run to another one, a few times; a run that raises is not tried
again, because it would raise again.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mbdnode import __version__
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from distributed import Client


_CONNECT_S = 5.0
_FIRST_WORKER_S = 10.0


class ClusterLost(OSError):
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
                # Ctrl-C goes to every process of the terminal; only this one is to answer it.
                client.run(_ignore_interrupts)
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
    from distributed import Client

    way_out = "Start one with `dask scheduler`, and give the address that it prints."
    with _quiet():
        try:
            client = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UserError(f"No Dask scheduler answers at {address!r}. {way_out}") from error
        try:
            _check_workers(client, address)
            yield client
        finally:
            with _undisturbed():
                client.close(timeout=_CONNECT_S)


def _check_workers(client: "Client", address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
    except TimeoutError:
        raise UserError(
            f"The Dask scheduler at {address!r} has no workers. Start some with "
            f"`dask worker {address} --nthreads 1`."
        ) from None
    try:
        versions: Any = client.run(_version)
    except ImportError as error:
        raise UserError(
            f"The workers of {address!r} cannot load mbdnode ({error}). Install it where they run."
        ) from error
    other = {worker: found for worker, found in versions.items() if found != __version__}
    for worker, found in other.items():
        raise UserError(
            f"The worker {worker} has mbdnode {found}, but this is {__version__}. Results of two "
            "versions do not belong in one table; install the same on both."
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
    """Several processes that each use every core would only get in each other's way."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"
    return {"XLA_FLAGS": flags.strip(), "OPENBLAS_NUM_THREADS": "1"}


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _version() -> str:
    return __version__
