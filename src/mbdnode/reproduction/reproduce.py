"""The whole reproduction: a plan, its runs, their results, the report.

DIR/plan.json      what was asked for
DIR/runs/NAME/     a folder for every run, as `mbdnode run` writes it; error.txt if it failed
DIR/results.json   a row for every run
DIR/mbdnode.json   that this is a reproduction, and what belongs to it
and what `write_report` adds: tables/, figures/, report.html
"""

import shlex
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mbdnode.config import from_dict, to_dict
from mbdnode.data.files import read_json, write_json
from mbdnode.data.folders import CONFIG, check_folder, open_folder
from mbdnode.errors import UserError
from mbdnode.parallel import check_address, local_workers, remote_workers
from mbdnode.recipes import PAPER
from mbdnode.reproduction.cases import PAPER_CASES
from mbdnode.reproduction.chapters import Reproduction, gather
from mbdnode.reproduction.dispatch import Row, Watch, run_here, run_on
from mbdnode.reproduction.folder import is_finished, read_config
from mbdnode.reproduction.plan import Plan, PlannedRun, Request, default_models
from mbdnode.reproduction.report import write_report
from mbdnode.reproduction.results import Result, tidy

if TYPE_CHECKING:
    from distributed import Client

PLAN, RESULTS, RUNS, PAGE = "plan.json", "results.json", "runs", "report.html"
KIND = "reproduce"
_FILES = (PLAN, RESULTS, RUNS, PAGE, "tables", "figures")


@dataclass(frozen=True)
class Workplace:
    """Where to run: in this process unless one of the two is given.

    **Arguments:**

    - `jobs`: worker processes on this machine.
    - `cluster`: the address of a Dask scheduler.
    """

    jobs: int | None = None
    cluster: str | None = None

    def __post_init__(self):
        if self.jobs is not None and self.cluster is not None:
            raise UserError(
                "--jobs is for this machine's cores and --cluster for a Dask scheduler; give one "
                "of the two."
            )
        if self.jobs is not None and self.jobs < 1:
            raise UserError(f"--jobs is {self.jobs}; it must be at least 1.")
        if self.cluster is not None:
            check_address(self.cluster)


def unfinished(plan: Plan, out: Path, *, resume: bool) -> list[PlannedRun]:
    """The runs without a result; nothing is written.

    Raises `UserError` for a folder that must not be written to.
    """
    check_folder(out, KIND)
    stored = out / PLAN
    if not stored.is_file():
        if resume:
            raise UserError(f"There is no {PLAN} in '{out}', so there is nothing to resume there.")
        return list(plan.runs)
    if from_dict(Request, read_json(stored)) != plan.request:
        raise UserError(
            f"'{out}' holds the results of another request (see its {PLAN}). Name another folder, "
            "or ask for the same."
        )
    left = [run for run in plan.runs if not is_finished(out / RUNS / run.name, run.config)]
    for run in left:
        _check_same_run(out / RUNS / run.name, run)
    if left and not resume:
        raise UserError(
            f"In '{out}' {len(left)} of {len(plan.runs)} runs are not finished. Go on with "
            "--resume, or name another folder."
        )
    return left


def _check_same_run(folder: Path, run: PlannedRun) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file where a run has its folder. Remove it.")
    if (folder / CONFIG).is_file() and read_config(folder / CONFIG).asked != run.config.asked:
        raise UserError(
            f"'{folder}' holds a run with other settings than this version's. Remove that folder, "
            "or begin anew in another."
        )


def run_plan(
    plan: Plan, left: list[PlannedRun], out: Path, place: Workplace, watch: Watch
) -> dict[str, Row]:
    """Carry out what is left of a plan; the rows of these runs, by name."""
    workers = _workers(place, len(left))
    if workers is None:
        _begin(plan, out)
        return run_here(left, out / RUNS, watch)
    with workers as client:
        _begin(plan, out)
        return run_on(client, left, out / RUNS, watch)


def _workers(place: Workplace, count: int) -> "AbstractContextManager[Client] | None":
    if place.cluster is not None:
        return remote_workers(place.cluster)
    return None if place.jobs is None else local_workers(min(place.jobs, count))


def _begin(plan: Plan, out: Path) -> None:
    open_folder(out, KIND, _FILES)
    (out / RUNS).mkdir(exist_ok=True)
    for stale in (RESULTS, PAGE):  # They do not yet know of what is to be run now.
        (out / stale).unlink(missing_ok=True)
    write_json(out / PLAN, to_dict(plan.request))


def report(plan: Plan, rows: dict[str, Row], out: Path, place: Workplace) -> Reproduction:
    """Write results.json and the report from the folders of the runs."""
    failed = {name: row for name, row in rows.items() if row["outcome"] == "failed"}
    reproduction = gather(plan, failed, out / RUNS, command=command_line(plan.request, place, out))
    every = [dict(row) for result in reproduction.results for row in result.rows]
    write_json(out / RESULTS, every)
    write_report(reproduction, out)
    return reproduction


def is_reported(out: Path) -> bool:
    """Whether results and page are there."""
    return (out / RESULTS).is_file() and (out / PAGE).is_file()


def read_results(out: Path) -> tuple[Result, ...]:
    """The table of results.json."""
    return tidy(read_json(out / RESULTS))


def command_line(request: Request, place: Workplace, out: Path, *, resume: bool = False) -> str:
    """The command that asks for this, for people to copy."""
    usual_models = default_models(request.cases, request.recipes, quick=request.quick)
    words = ["mbdnode", "reproduce"]
    words += [] if request.cases == PAPER_CASES else ["--cases", ",".join(request.cases)]
    words += [] if request.models == usual_models else ["--models", ",".join(request.models)]
    usual_recipes = () if request.quick else (PAPER,)
    words += [] if request.recipes == usual_recipes else ["--recipe", ",".join(request.recipes)]
    words += [] if request.seeds == 1 else ["--seeds", str(request.seeds)]
    words += ["--quick"] if request.quick else []
    words += [] if request.samples is None else ["--samples", str(request.samples)]
    words += [] if place.jobs is None else ["--jobs", str(place.jobs)]
    words += [] if place.cluster is None else ["--cluster", place.cluster]
    words += ["--resume"] if resume else []
    return shlex.join([*words, "--out", str(out)])
