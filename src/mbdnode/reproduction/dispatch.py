"""Runs in this process or on Dask workers, and the folders that they leave.

In this process a run writes its folder as it goes and keeps a checkpoint, so it can go on after an
interrupt. Elsewhere runs are submitted to an executor and taken as they are completed. There a run
works in a folder of its own and hands the files back, so that no disk need be shared; the folder
that they go to appears whole or not at all. Workers tell of their progress through a topic of the
scheduler.
"""

import json
import os
import queue
import secrets
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mbdnode.config import from_dict, to_dict
from mbdnode.data.files import read_json, replace_file
from mbdnode.data.folders import METRICS, open_folder, replace_folder
from mbdnode.errors import UserError
from mbdnode.parallel import ClusterLost, look_after
from mbdnode.reproduction.config import RunConfig, integrator_of
from mbdnode.reproduction.folder import CHECKPOINT, ERROR, FIRST_FILES, KIND, run_in_folder
from mbdnode.reproduction.plan import PlannedRun
from mbdnode.training.interrupts import Interrupt, noted_interrupts

if TYPE_CHECKING:
    from distributed import Client

# How often workers tell of progress, and the caller looks after them.
_LOOK_S = 1.0


@dataclass(frozen=True)
class RunEvent:
    """What happened to one run, and where.

    `done` and `total` count the stage: "epoch" of a network, "candidate" of a law. The attempt is
    above 1 for a run whose worker died; `note` is why it failed.
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
    """Carry out the runs in this process; the metrics by the run's name.

    A run that raised is a row that says so. Ctrl-C stops the running one at the end of its epoch
    and then raises `KeyboardInterrupt`.
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
        return _note_failure(run, folder, error, watch, where)
    watch(RunEvent(run.name, "finished", where))
    return row


def _progress(row: Mapping[str, Any], total: int) -> dict[str, Any]:
    stage = row.get("stage", "epoch")
    return {"done": int(row["epoch"]) + 1, "total": total, "stage": stage}


def _note_failure(
    run: PlannedRun, folder: Path, error: BaseException, watch: Watch, where: str, reason: str = ""
) -> Row:
    """Keep the traceback of a failed run beside where its results would be."""
    reason = reason or _reason_of(error)
    open_folder(folder, KIND, FIRST_FILES)
    trace = "".join(traceback.format_exception(error))
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


def _reason_of(error: BaseException) -> str:
    """The first line of what went wrong, with its kind where it is no mistake of the user."""
    lines = str(error).strip().splitlines()
    if isinstance(error, UserError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def run_on(
    client: "Client", runs: Sequence[PlannedRun], folder: Path, watch: Watch
) -> dict[str, Row]:
    """Carry out the runs on the workers of a Dask scheduler; the metrics by the run's name.

    A run that raised, or whose workers kept dying, is a row that says so. `watch` is called from
    this thread alone. Raises `ClusterLost` when there is nobody left to do the work.
    """
    rows: dict[str, Row] = {}
    places: dict[str, str] = {}
    attempts: Counter[str] = Counter()
    news: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    topic = f"mbdnode-{secrets.token_hex(8)}"
    client.subscribe_topic(topic, lambda event: news.put(event[1]))
    executor = client.get_executor(pure=False)
    # Tasks of one name wait at the scheduler for the next worker that is free. Of tasks with names
    # of their own, every worker is given its part at once.
    pending = {
        executor.submit(
            run_elsewhere,
            run.name,
            to_dict(run.config),
            topic,
            key=(topic, run.name),
            priority=-place,
        ): run
        for place, run in enumerate(_longest_first(runs))
    }
    last_crew = time.monotonic()
    try:
        while pending:
            done, _ = wait(pending, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            while not news.empty():
                told = news.get()
                name, where, progress = told["run"], told["where"], told["progress"]
                attempts[name] += not progress
                places[name] = where
                if any(run.name == name for run in pending.values()):
                    attempt = attempts[name]
                    watch(RunEvent(name, "running", where, attempt=attempt, **progress))
            for future in done:
                run = pending.pop(future)
                where = places.get(run.name, "")
                rows[run.name] = _take(run, future, folder / run.name, watch, where)
            last_crew = look_after(client, last_crew)
    finally:
        if client.status == "running":
            for future in pending:
                future.cancel()
    client.unsubscribe_topic(topic)
    return rows


def _take(
    run: PlannedRun, future: "Future[dict[str, bytes]]", folder: Path, watch: Watch, where: str
) -> Row:
    from distributed import KilledWorker

    if future.cancelled():
        raise ClusterLost("The Dask scheduler is gone, and with it the runs under way.")
    error = future.exception()
    if isinstance(error, KilledWorker):
        times, last = error.allowed_failures + 1, error.last_worker.address
        reason = f"its worker died {times} times, the last at {last}"
        return _note_failure(run, folder, error, watch, where, reason)
    if error is not None:
        return _note_failure(run, folder, error, watch, where)
    files = future.result()
    place_folder(folder, files)
    watch(RunEvent(run.name, "finished", where))
    return json.loads(files[METRICS])


def _longest_first(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Networks take longer than laws, and the paper's cases grow."""
    return sorted(reversed(list(runs)), key=lambda run: run.config.finds_law)


def place_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a run's folder whole or not at all, in place of an unfinished one."""

    def fill(part: Path) -> None:
        for name, content in files.items():
            replace_file(part / name, lambda file, content=content: file.write(content))

    replace_folder(folder, KIND, fill)


def run_elsewhere(name: str, values: Mapping[str, Any], topic: str) -> dict[str, bytes]:
    """On a worker: carry out a run in a folder of its own, and hand its files back by name."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    where = f"{worker.address.removeprefix('tcp://')} (pid {os.getpid()})"
    last = time.monotonic()

    def tell(progress: dict[str, Any]) -> None:
        worker.log_event(topic, {"run": name, "where": where, "progress": progress})

    def report(row: Mapping[str, Any], total: int) -> None:
        nonlocal last
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise InterruptedError("Nobody waits for this run any more.")
        if time.monotonic() - last >= _LOOK_S:
            last = time.monotonic()
            tell(_progress(row, total))

    tell({})
    with tempfile.TemporaryDirectory(prefix="run-", dir=worker.local_directory) as place:
        folder = Path(place) / name
        run_in_folder(folder, from_dict(RunConfig, values), report=report)
        return {path.name: path.read_bytes() for path in folder.iterdir()}
