"""Where runs are carried out: in this process, on this machine's cores, or on a Dask cluster.

In this process a run writes its folder as it goes and keeps a checkpoint, so it can go on after an
interrupt. Elsewhere it works in a folder of its own and hands the files back, so that no disk need
be shared; the folder that they go to appears whole or not at all.
"""

import os
import shutil
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mbdnode.data.atomic import read_json, replace_file
from mbdnode.data.folders import open_folder, replace_folder
from mbdnode.errors import UserError
from mbdnode.experiments.configuration import integrator_of
from mbdnode.experiments.folder import CHECKPOINT, ERROR, FIRST_FILES, KIND, METRICS, carry_out
from mbdnode.experiments.plan import PlannedRun
from mbdnode.training.interrupt import Interrupt, noted_interrupts

_PART = ".part"


@dataclass(frozen=True)
class Sign:
    """A sign of life of one run.

    **Arguments:**

    - `run`: its name.
    - `state`: what it is doing now.
    - `where`: the process or worker that does it.
    - `epoch`, `epochs`: done, and in all; zero as long as it is not known.
    - `attempt`: above 1 for a run whose worker died.
    - `note`: the reason, for one that failed.
    """

    run: str
    state: Literal["waiting", "running", "finished", "failed"]
    where: str = ""
    epoch: int = 0
    epochs: int = 0
    attempt: int = 1
    note: str = ""


Watch = Callable[[Sign], None]
Row = dict[str, Any]


def run_here(runs: Sequence[PlannedRun], folder: Path, watch: Watch) -> dict[str, Row]:
    """Carry out the runs in this process, one after the other.

    **Arguments:**

    - `runs`: what to do.
    - `folder`: the folder of their folders.
    - `watch`: called with every sign of life.

    **Returns:**

    The metrics by the run's name. A run that raised is a row that says so. Ctrl-C stops the running
    one at the end of its epoch and then raises `KeyboardInterrupt`.
    """
    rows: dict[str, Row] = {}
    where = f"process {os.getpid()}"
    with noted_interrupts() as interrupt:
        for run in runs:
            watch(Sign(run.name, "running", where))
            rows[run.name] = _run_one_here(run, folder / run.name, where, watch, interrupt)
            if interrupt.requested:
                raise KeyboardInterrupt
    return rows


def _run_one_here(
    run: PlannedRun, folder: Path, where: str, watch: Watch, interrupt: Interrupt
) -> Row:
    told = False

    def report(row: Mapping[str, Any], epochs: int) -> None:
        nonlocal told
        watch(Sign(run.name, "running", where, int(row["epoch"]) + 1, epochs))
        if interrupt.requested and not told:
            # Ctrl-C came before training began, which has to hear of it too in order to stop.
            told = True
            signal.raise_signal(signal.SIGINT)

    try:
        resume = (folder / CHECKPOINT).is_file()
        carry_out(folder, run.config, report=report, resume=resume)
        row = read_json(folder / METRICS)
    except Exception as error:
        return note_failure(run, folder, reason_of(error), _trace(error), watch, where)
    watch(Sign(run.name, "finished", where))
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
    watch(Sign(run.name, "failed", where, note=reason))
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
