"""The whole reproduction: a plan, its runs, their results, the report.

DIR/plan.json      what was asked for
DIR/runs/NAME/     a folder for every run, as `mbdnode run` writes it; error.txt if it failed
DIR/results.json   a row for every run
DIR/mbdnode.json   that this is a reproduction, and what belongs to it
and what `write_report` adds: tables/, figures/, report.html

The table that `mbdnode reproduce` prints is made here too, with one row over the seeds for each
case, model, integrator and recipe.
"""

import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbdnode.config import from_dict, to_dict
from mbdnode.data.files import read_json, write_json
from mbdnode.data.folders import CONFIG, METRICS, check_folder, open_folder
from mbdnode.errors import UserError
from mbdnode.formatting import as_printed
from mbdnode.recipes import LAW, PAPER, RECIPES
from mbdnode.report.tables import Verdict
from mbdnode.reproduction.cases import CASES, PAPER_CASES
from mbdnode.reproduction.dispatch import Row, Watch, run_here
from mbdnode.reproduction.finished_runs import gather
from mbdnode.reproduction.folder import is_finished, read_config
from mbdnode.reproduction.plan import Plan, PlannedRun, Request, default_models, shortened
from mbdnode.reproduction.reference import (
    Reference,
    is_answered_by,
    judge_printed,
    judge_unprinted,
    median_of_all,
)
from mbdnode.reproduction.report.chapters import Reproduction, structure_text
from mbdnode.reproduction.report.paper_tables import ABOUT_LAWS
from mbdnode.reproduction.report.writing import write_report

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


def unfinished(plan: Plan, out: Path, *, resume: bool) -> list[PlannedRun]:
    """What is left to do; nothing is written.

    **Arguments:**

    - `plan`: what is asked for.
    - `out`: the folder of the results.
    - `resume`: whether to go on with what is there.

    **Returns:**

    The runs without a result. Raises `UserError` for a folder that must not be written to.
    """
    check_folder(out, KIND)
    stored = out / PLAN
    if not stored.is_file():
        if resume:
            raise UserError(f"There is no {PLAN} in '{out}', so there is nothing to resume there.")
        return list(plan.runs)
    if _read_request(stored) != plan.request:
        raise UserError(
            f"'{out}' holds the results of another request (see its {PLAN}). Name another folder, "
            "or ask for the same."
        )
    left = [run for run in plan.runs if not _is_done(out / RUNS / run.name, run)]
    for run in left:
        _check_same_run(out / RUNS / run.name, run)
    if left and not resume:
        raise UserError(
            f"In '{out}' {len(left)} of {len(plan.runs)} runs are not finished. Go on with "
            "--resume, or name another folder."
        )
    return left


def _is_done(folder: Path, run: PlannedRun) -> bool:
    """Whether there is a result to keep: of a training that ended, with all that is reported."""
    if not is_finished(folder, run.config):
        return False
    metrics = read_json(folder / METRICS)
    return metrics["outcome"] != "interrupted" and "nrmse" in metrics


def _check_same_run(folder: Path, run: PlannedRun) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file where a run has its folder. Remove it.")
    if (folder / CONFIG).is_file() and read_config(folder / CONFIG).asked != run.config.asked:
        raise UserError(
            f"'{folder}' holds a run with other settings than this version's. Remove that folder, "
            "or begin anew in another."
        )


def _read_request(path: Path) -> Request:
    return from_dict(Request, read_json(path))


def run_plan(
    plan: Plan, left: list[PlannedRun], out: Path, place: Workplace, watch: Watch
) -> dict[str, Row]:
    """Carry out what is left of a plan.

    **Arguments:**

    - `plan`, `left`: all of it, and what `unfinished` returned.
    - `out`: the folder of the results.
    - `place`: where to run.
    - `watch`: called with every event.

    **Returns:**

    The rows of the runs that were carried out now, by name.
    """
    if place.cluster is not None:
        from mbdnode.cluster import remote_workers
        from mbdnode.reproduction.dispatch import run_on

        with remote_workers(place.cluster) as client:
            _begin(plan, out)
            return run_on(client, left, out / RUNS, watch)
    _begin(plan, out)
    if place.jobs is not None:
        from mbdnode.cluster import local_workers
        from mbdnode.reproduction.dispatch import run_on

        with local_workers(min(place.jobs, len(left))) as client:
            return run_on(client, left, out / RUNS, watch)
    return run_here(left, out / RUNS, watch)


def _begin(plan: Plan, out: Path) -> None:
    open_folder(out, KIND, _FILES)
    (out / RUNS).mkdir(exist_ok=True)
    for stale in (RESULTS, PAGE):  # They do not yet know of what is to be run now.
        (out / stale).unlink(missing_ok=True)
    write_json(out / PLAN, to_dict(plan.request))


def report(plan: Plan, rows: dict[str, Row], out: Path, place: Workplace) -> Reproduction:
    """Write results.json and the report from the folders of the runs.

    **Arguments:**

    - `plan`: all of whose runs have ended.
    - `rows`: what `run_plan` returned; runs that failed are in no folder.
    - `out`: the folder of the results.
    - `place`: where they ran, for the command that is shown.

    **Returns:**

    What the report was made of.
    """
    failed = {name: row for name, row in rows.items() if row["outcome"] == "failed"}
    reproduction = gather(plan, failed, out / RUNS, command=command_line(plan.request, place, out))
    write_json(out / RESULTS, result_rows(reproduction))
    write_report(reproduction, out, figures_elsewhere=(place.jobs or 1) > 1)
    return reproduction


def is_reported(out: Path) -> bool:
    """Whether results and page are there."""
    return (out / RESULTS).is_file() and (out / PAGE).is_file()


def read_results(out: Path) -> list[Row]:
    """The rows of results.json."""
    return read_json(out / RESULTS)


def result_rows(reproduction: Reproduction) -> list[Row]:
    """Every row, in the order of the chapters."""
    return [
        dict(row)
        for chapter in reproduction.chapters
        for entry in chapter.entries
        for row in entry.rows
    ]


def command_line(request: Request, place: Workplace, out: Path, *, resume: bool = False) -> str:
    """The command that asks for this, for people to copy.

    **Arguments:**

    - `request`, `place`, `out`: what, where it runs, where the results go.
    - `resume`: to go on with it.

    **Returns:**

    One line.
    """
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


TABLE_COLUMNS = ("case", "model", "by", "recipe", "paper", "ours", "verdict", "time [s]")
TABLE_NUMBERS = ("paper", "time [s]")


def is_good(row: Mapping[str, Any]) -> bool:
    """Whether the run ended as it should: trained to its end, and its rollout finite."""
    return row["outcome"] in ("completed", "stopped") and row["mse"] is not None


def table_sections(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The tables: of networks, and of laws apart from them where there are both.

    **Arguments:**

    - `rows`: of the runs, as results.json has them.

    **Returns:**

    Of each its title, empty for the only one, and its rows, below `TABLE_COLUMNS`.
    """
    networks = [row for row in rows if row["model"] != LAW]
    laws = [row for row in rows if row["model"] == LAW]
    if not networks or not laws:
        yield "", list(table_rows(rows))
        return
    yield "The paper's networks", list(table_rows(networks))
    yield ABOUT_LAWS, list(table_rows(laws))


def table_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The table's rows.

    **Arguments:**

    - `rows`: of the runs, as results.json has them.

    **Returns:**

    The texts below `TABLE_COLUMNS`, row by row.
    """
    last = ""
    for (case, model, integrator, recipe), mine in _groups(rows).items():
        reference = _reference(case, model, integrator, recipe)
        yield (
            case if case != last else "",
            model + structure_text(mine),
            integrator,
            recipe,
            _printed(reference, integrator),
            _median_and_range([row["mse"] for row in mine]),
            _verdict(mine, reference).kind,
            _times(mine),
        )
        last = case


def table_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is to be known of the table's numbers, line by line.

    **Arguments:**

    - `rows`: as for `table_rows`.

    **Returns:**

    The lines to print below the table.
    """
    yield "Errors are MSE over all components and steps; 'by' is the integrator."
    yield "The paper's are of MBD-NODE for a law, and by its own integrator where one is named."
    yield from _studies(_groups(rows))
    for (case, model, *_), mine in _groups(rows).items():
        without = [x for row in mine if (x := row.get("mse_without_layers")) is not None]
        if "affine" in structure_text(mine):
            yield (
                f"The affine part of {model} says nearly all of {case}: mse "
                f"{as_printed(statistics.median(without))} without its layers"
            )
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        yield f"Recipe {recipe}: {RECIPES[recipe].description}."
    yield "The time is that of training (median) + compiling (max)."
    for recipe in dict.fromkeys(row["recipe"] for row in rows if row.get("quick")):
        yield f"Quick: recipe {recipe} with {shortened(recipe)}; its own numbers differ."


def _groups(
    rows: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """The runs that differ by their seed alone."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        names = tuple(row[name] for name in ("case", "model", "integrator", "recipe"))
        groups.setdefault(names, []).append(row)
    return groups


def _printed(reference: Reference | None, integrator: str) -> str:
    """The paper's error; with its integrator where ours is another one."""
    if reference is None:
        return "-"
    of = "" if reference.integrator == integrator else f" ({reference.integrator})"
    return f"{as_printed(reference.value)}{of}"


def _verdict(rows: Sequence[Mapping[str, Any]], printed: Reference | None) -> Verdict:
    if printed is None:
        return judge_unprinted([row.get("nrmse") for row in rows])
    return judge_printed([row["mse"] for row in rows], printed)


def _studies(groups: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """How many studies are accurate, and which are not."""
    kinds: dict[str, list[str]] = {}
    for (case, model, integrator, recipe), rows in groups.items():
        for name in dict.fromkeys(name for row in rows for name in row.get("probes", {})):
            errors = [row.get("probes", {}).get(name, {}).get("nrmse") for row in rows]
            who = f"{name} of {case} ({model} {integrator}, {recipe})"
            kinds.setdefault(judge_unprinted(errors).kind, []).append(who)
    for kind, found in kinds.items():
        named = "" if kind == "accurate" else f": {', '.join(found)}"
        yield f"Studies without a printed number: {len(found)} {kind}{named}"


def _reference(case: str, model: str, integrator: str, recipe: str) -> Reference | None:
    """The paper's error for this row, if it prints one."""
    references = CASES[case].references
    for reference in references:
        if reference.quantity == "mse" and is_answered_by(
            reference, references, model, integrator, recipe
        ):
            return reference
    return None


def _median_and_range(errors: Sequence[float | None]) -> str:
    """The median; with several seeds also min and max."""
    median = median_of_all(errors)
    found = [error for error in errors if error is not None]
    text = "failed" if median is None else as_printed(median)
    if len(errors) == 1 or not found:
        return text
    largest = as_printed(max(found)) if len(found) == len(errors) else "failed"
    return f"{text} [{as_printed(min(found))}, {largest}]"


def _times(rows: Sequence[Mapping[str, Any]]) -> str:
    """The median time to train, and the longest to compile, which later seeds need not do."""
    both = [
        [row[quantity] for row in rows if row.get(quantity) is not None]
        for quantity in ("train_seconds", "compile_seconds")
    ]
    if not all(both):
        return "-"
    return f"{statistics.median(both[0]):.1f}+{max(both[1]):.1f}"
