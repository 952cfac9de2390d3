"""Runs in this process or on Dask workers, and the folders that they leave.

In this process a run writes its folder as it goes and keeps a checkpoint, so it can go on after an
interrupt. Elsewhere it works in a folder of its own and hands the files back, so that no disk need
be shared; the folder that they go to appears whole or not at all.

Workers tell of their progress through a topic of the scheduler; futures tell of the end. Both go
into one queue, which the calling thread reads, so that files are written, and the display is
changed, by one thread alone.
"""

import json
import os
import queue
import secrets
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mbdnode.cluster import NEW_WORKER_S, ClusterLost
from mbdnode.config import from_dict, to_dict
from mbdnode.data.files import read_json, replace_file
from mbdnode.data.folders import METRICS, open_folder, replace_folder
from mbdnode.errors import UserError
from mbdnode.reproduction.config import RunConfig, integrator_of
from mbdnode.reproduction.folder import CHECKPOINT, ERROR, FIRST_FILES, KIND, run_in_folder
from mbdnode.reproduction.plan import PlannedRun
from mbdnode.training.checkpoint import Interrupt, noted_interrupts

if TYPE_CHECKING:
    from distributed import Client, Future


_PART = ".part"


@dataclass(frozen=True)
class RunEvent:
    """What happened to one run.

    **Arguments:**

    - `run`: its name.
    - `state`: what it is doing now.
    - `where`: the process or worker that does it.
    - `done`, `total`: how far it is; zero as long as that is not known.
    - `stage`: what is counted: "epoch" of a network, "candidate" of a law.
    - `attempt`: above 1 for a run whose worker died.
    - `note`: the reason, for one that failed.
    """

    run: str
    state: Literal["waiting", "running", "finished", "failed"]
    where: str = ""
    done: int = 0
    total: int = 0
    stage: str = "epoch"
    attempt: int = 1
    note: str = ""


Watch = Callable[[RunEvent], None]
Row = dict[str, Any]


def run_here(runs: Sequence[PlannedRun], folder: Path, watch: Watch) -> dict[str, Row]:
    """Carry out the runs in this process, one after the other.

    **Arguments:**

    - `runs`: what to do.
    - `folder`: the folder of their folders.
    - `watch`: called with every event.

    **Returns:**

    The metrics by the run's name. A run that raised is a row that says so. Ctrl-C stops the running
    one at the end of its epoch and then raises `KeyboardInterrupt`.
    """
    rows: dict[str, Row] = {}
    where = f"process {os.getpid()}"
    with noted_interrupts() as interrupt:
        for run in runs:
            watch(RunEvent(run.name, "running", where))
            rows[run.name] = _run_one_here(run, folder / run.name, where, watch, interrupt)
            if interrupt.requested:
                raise KeyboardInterrupt
    return rows


def _progress(row: Mapping[str, Any], total: int) -> dict[str, Any]:
    """How far a run is, by a row of its history."""
    stage = row.get("stage", "epoch")
    return {"done": int(row["epoch"]) + 1, "total": total, "stage": stage}


def _run_one_here(
    run: PlannedRun, folder: Path, where: str, watch: Watch, interrupt: Interrupt
) -> Row:
    told = False

    def report(row: Mapping[str, Any], total: int) -> None:
        nonlocal told
        watch(RunEvent(run.name, "running", where, **_progress(row, total)))
        if interrupt.requested and not told:
            # Ctrl-C came before training began, which has to hear of it too in order to stop.
            told = True
            signal.raise_signal(signal.SIGINT)

    try:
        resume = (folder / CHECKPOINT).is_file()
        run_in_folder(folder, run.config, report=report, resume=resume)
        row = read_json(folder / METRICS)
    except Exception as error:
        return note_failure(run, folder, reason_of(error), _trace(error), watch, where)
    watch(RunEvent(run.name, "finished", where))
    return row


def note_failure(
    run: PlannedRun, folder: Path, reason: str, trace: str, watch: Watch, where: str = ""
) -> Row:
    """Keep the traceback of a failed run beside where its results would be.

    **Arguments:**

    - `run`: which.
    - `folder`: its own.
    - `reason`, `trace`: in a sentence, and in full.
    - `watch`, `where`: whom to tell, and where it happened.

    **Returns:**

    Its row among the results.
    """
    open_folder(folder, KIND, FIRST_FILES)
    replace_file(folder / ERROR, lambda file: file.write(trace.encode()))
    watch(RunEvent(run.name, "failed", where, note=reason))
    config = run.config
    return {
        "case": config.case,
        "model": config.model,
        "recipe": config.recipe,
        "integrator": integrator_of(config),
        "seed": config.seed,
        "mse": None,
        "status": reason,
        "outcome": "failed",
    }


def reason_of(error: BaseException) -> str:
    """The first line of what went wrong, with its kind where it is no mistake of the user."""
    lines = str(error).strip().splitlines()
    if isinstance(error, UserError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def place_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a run's folder whole or not at all, in place of an unfinished one.

    **Arguments:**

    - `folder`: where.
    - `files`: content by name.
    """
    if METRICS not in files:
        raise UserError(f"A finished run has a {METRICS}; these files are {', '.join(files)}.")

    def fill(part: Path) -> None:
        for name, content in files.items():
            if not (part / name).resolve().is_relative_to(part.resolve()):
                raise UserError(f"The file {name!r} of '{folder.name}' lies outside of its folder.")
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            replace_file(part / name, lambda file: file.write(content))  # noqa: B023

    replace_folder(folder, KIND, fill)


def remove_parts(folder: Path) -> None:
    """Remove what a killed call left of folders that it was writing."""
    for part in folder.glob(f".*{_PART}"):
        shutil.rmtree(part, ignore_errors=True)


_LOOK_S = 1.0


def run_on(
    client: "Client", runs: Sequence[PlannedRun], folder: Path, watch: Watch
) -> dict[str, Row]:
    """Carry out the runs on the workers of a Dask scheduler.

    **Arguments:**

    - `client`: of the scheduler.
    - `runs`: what to do.
    - `folder`: the folder of their folders, on this machine.
    - `watch`: called with every event, from the calling thread.

    **Returns:**

    The metrics by the run's name. A run that raised, or whose workers kept dying, is a row that
    says so. Raises `ClusterLost` when there is nobody left to do the work.
    """
    return _Campaign(client, runs, folder, watch).run()


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

    def run(self) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        topic = f"mbdnode-{secrets.token_hex(8)}"
        self.client.subscribe_topic(topic, lambda event: self.news.put(event[1]))
        try:
            for place, run in enumerate(_longest_first(self.runs.values())):
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
            run_elsewhere,
            run.name,
            to_dict(run.config),
            topic,
            # Tasks of one name wait at the scheduler for the next worker that is free. Of tasks
            # with names of their own, every worker is given its part at once.
            key=(topic, run.name),
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
        progress = {name: message[name] for name in ("done", "total", "stage")}
        if message["done"] == 0:
            self.attempts[name] += 1
        self.workers[name], self.places[name] = message["address"], message["where"]
        self.watch(
            RunEvent(name, "running", message["where"], **progress, attempt=self.attempts[name])
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
        self.watch(RunEvent(run.name, "finished", where))
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
                self.watch(RunEvent(name, "waiting", note="its worker is gone"))
        if crew:
            self.last_crew = now
        elif now - self.last_crew > NEW_WORKER_S:
            raise ClusterLost(
                f"The Dask scheduler has had no worker for {NEW_WORKER_S:.0f} s. Start some with "
                "`dask worker ADDRESS --nthreads 1`."
            )


def _longest_first(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """The order in which none is left over for one worker while the others have nothing to do.

    Networks take longer than laws, and the paper's cases grow.
    """
    return sorted(reversed(list(runs)), key=lambda run: run.config.finds_law)


def run_elsewhere(name: str, values: Mapping[str, Any], topic: str) -> dict[str, bytes]:
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
        "done": 0,
        "total": 0,
        "stage": "epoch",
    }

    def report(row: Mapping[str, Any], total: int) -> None:
        nonlocal told
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise InterruptedError("Nobody waits for this run any more.")
        if time.monotonic() - told >= _LOOK_S:
            told = time.monotonic()
            worker.log_event(topic, {**message, **_progress(row, total)})

    worker.log_event(topic, message)
    with tempfile.TemporaryDirectory(prefix="run-", dir=worker.local_directory) as place:
        folder = Path(place) / name
        run_in_folder(folder, from_dict(RunConfig, values), report=report)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
