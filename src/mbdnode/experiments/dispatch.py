"""Giving runs to Dask workers, and taking back what comes of them.

Workers tell of their progress through a topic of the scheduler; futures tell of the end. Both go
into one queue, which the calling thread reads, so that files are written, and the display is
changed, by one thread alone.
"""

import json
import os
import queue
import secrets
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdnode.config import from_dict, to_dict
from mbdnode.experiments.cluster import ClusterLost
from mbdnode.experiments.configuration import RunConfig
from mbdnode.experiments.folder import METRICS, carry_out
from mbdnode.experiments.plan import PlannedRun
from mbdnode.experiments.workers import Row, Sign, Watch, note_failure, place_folder, reason_of

if TYPE_CHECKING:
    from distributed import Client, Future

# How long a campaign waits for a new worker after the last one has left.
NEW_WORKER_S = 60.0
_LOOK_S = 1.0


def run_on(
    client: "Client", runs: Sequence[PlannedRun], folder: Path, watch: Watch
) -> dict[str, Row]:
    """Carry out the runs on the workers of a Dask scheduler.

    **Arguments:**

    - `client`: of the scheduler.
    - `runs`: what to do.
    - `folder`: the folder of their folders, on this machine.
    - `watch`: called with every sign of life, from the calling thread.

    **Returns:**

    The metrics by the run's name. A run that raised, or whose workers kept dying, is a row that
    says so. Raises `ClusterLost` when there is nobody left to do the work.
    """
    return _Campaign(client, runs, folder, watch).carry_out()


class _Campaign:
    """What is under way, and who does it."""

    def __init__(self, client: "Client", runs: Sequence[PlannedRun], folder: Path, watch: Watch):
        self.client, self.folder, self.watch = client, folder, watch
        self.runs = {run.name: run for run in runs}
        self.pending: dict[str, Future] = {}
        self.workers: dict[str, str] = {}  # The address of the one that does it, by run.
        self.places: dict[str, str] = {}  # The same for people, kept when the worker is gone.
        self.attempts = dict.fromkeys(self.runs, 0)
        self.news: queue.SimpleQueue[dict[str, Any] | str] = queue.SimpleQueue()
        self.last_look = self.last_crew = time.monotonic()

    def carry_out(self) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        topic = f"mbdnode-{secrets.token_hex(8)}"
        self.client.subscribe_topic(topic, lambda event: self.news.put(event[1]))
        try:
            # The paper's cases grow. The longest goes first, so that it is not left over for one
            # worker while the others have nothing to do.
            for place, run in enumerate(reversed(self.runs.values())):
                self.pending[run.name] = self._submit(run, topic, priority=-place)
            while self.pending:
                news = self._next()
                if isinstance(news, str):
                    rows[news] = self._take(self.runs[news], self.pending[news])
                    del self.pending[news]
                elif news is not None:
                    self._hear(news)
                self._look_after_workers()
        finally:
            if self.pending and self.client.status == "running":
                self.client.cancel(list(self.pending.values()), force=True)
        self.client.unsubscribe_topic(topic)
        return rows

    def _submit(self, run: PlannedRun, topic: str, priority: int) -> "Future":
        future = self.client.submit(
            carry_out_elsewhere,
            run.name,
            to_dict(run.config),
            topic,
            key=f"{run.name}-{topic}",
            pure=False,
            priority=priority,
        )
        future.add_done_callback(lambda _: self.news.put(run.name))
        return future

    def _next(self) -> dict[str, Any] | str | None:
        try:
            return self.news.get(timeout=_LOOK_S)
        except queue.Empty:
            return None

    def _hear(self, message: Mapping[str, Any]) -> None:
        name = message["run"]
        if name not in self.pending:
            return
        if message["epoch"] == 0:
            self.attempts[name] += 1
        self.workers[name], self.places[name] = message["address"], message["where"]
        self.watch(
            Sign(
                name,
                "running",
                message["where"],
                message["epoch"],
                message["epochs"],
                self.attempts[name],
            )
        )

    def _take(self, run: PlannedRun, future: "Future") -> Row:
        from distributed import KilledWorker

        place = self.folder / run.name
        where = self.places.get(run.name, "")
        if future.status not in ("finished", "error"):
            raise ClusterLost("The Dask scheduler is gone, and with it the runs under way.")
        error: Any = future.exception()
        if isinstance(error, KilledWorker):
            times = error.allowed_failures + 1
            reason = f"its worker died {times} times, the last at {error.last_worker.address}"
            return note_failure(run, place, reason, str(error), self.watch, where)
        if error is not None:
            trace = "".join(traceback.format_exception(error))
            return note_failure(run, place, reason_of(error), trace, self.watch, where)
        files = future.result()
        place_folder(place, files)
        self.watch(Sign(run.name, "finished", where))
        return json.loads(files[METRICS])

    def _look_after_workers(self) -> None:
        """Show runs that lost their worker as waiting; give up when no worker comes back."""
        now = time.monotonic()
        if now - self.last_look < _LOOK_S or not self.pending:
            return
        self.last_look = now
        try:
            # Not `scheduler_info`: a thread of Dask's own overwrites its answer now and then with
            # one that names no workers.
            crew: Any = self.client.nthreads()
        except (OSError, TimeoutError) as error:
            raise ClusterLost(f"The Dask scheduler does not answer any more: {error}") from error
        for name, address in list(self.workers.items()):
            future = self.pending.get(name)
            # A run that has ended does not miss its worker; that it has is among the news.
            if future is not None and not future.done() and address not in crew:
                del self.workers[name]
                self.watch(Sign(name, "waiting", note="its worker is gone"))
        if crew:
            self.last_crew = now
        elif now - self.last_crew > NEW_WORKER_S:
            raise ClusterLost(
                f"The Dask scheduler has had no worker for {NEW_WORKER_S:.0f} s. Start some with "
                "`dask worker ADDRESS --nthreads 1`."
            )


def carry_out_elsewhere(name: str, values: Mapping[str, Any], topic: str) -> dict[str, bytes]:
    """On a worker: carry out a run in a folder of its own.

    **Arguments:**

    - `name`: of the run.
    - `values`: its configuration.
    - `topic`: where to tell of progress.

    **Returns:**

    The content of each of its files, by their path in the folder.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    address = worker.address
    told = time.monotonic()
    message = {
        "run": name,
        "address": address,
        "where": f"{address.removeprefix('tcp://')} (pid {os.getpid()})",
        "epoch": 0,
        "epochs": 0,
    }

    def report(row: Mapping[str, Any], epochs: int) -> None:
        nonlocal told
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise InterruptedError("Nobody waits for this run any more.")
        if time.monotonic() - told >= _LOOK_S:
            told = time.monotonic()
            worker.log_event(topic, {**message, "epoch": int(row["epoch"]) + 1, "epochs": epochs})

    worker.log_event(topic, message)
    with tempfile.TemporaryDirectory(prefix="run-", dir=worker.local_directory) as place:
        folder = Path(place) / name
        carry_out(folder, from_dict(RunConfig, values), report=report)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
