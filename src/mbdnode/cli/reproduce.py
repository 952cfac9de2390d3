"""`mbdnode reproduce`: the paper's tables and figures, from one command."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from mbdnode.cli.interrupts import GRACE_S, leaving_at_once, saying
from mbdnode.cli.output import echo, new_console, new_table, runs_progress
from mbdnode.data.folders import check_folder
from mbdnode.errors import UserError
from mbdnode.formatting import one_of
from mbdnode.recipes import PAPER, RECIPES

if TYPE_CHECKING:
    from mbdnode.reproduction.dispatch import Row
    from mbdnode.reproduction.plan import Plan, PlannedRun
    from mbdnode.reproduction.reproduce import Workplace


def reproduce(
    out: Annotated[
        Path, typer.Option(help="Folder for runs, tables, figures and report.", metavar="DIR")
    ],
    cases: Annotated[
        str | None, typer.Option(help="Only these cases, separated by commas.", metavar="NAMES")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Only these models, separated by commas.", metavar="NAMES")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help=f"{one_of(RECIPES)}; several separated by commas; {PAPER} by default.",
            metavar="NAMES",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of seeds of each run, from 0 on.", metavar="N")
    ] = 1,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="The paper's network, one of its baselines and a law on every system. With "
            "--recipe, its usual model, and networks are trained more briefly.",
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Training samples of the slider-crank; the paper has 10000000.", metavar="N"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Worker processes on this machine; none by default: all runs in this process.",
            metavar="N",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler to run on, in place of --jobs.", metavar="ADDRESS"
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume; runs that failed are tried again.")
    ] = False,
) -> None:
    """Run the paper's cases and models, and write its tables, figures and a report.

    All options are checked before anything is computed. A failed run is listed in the tables.
    """
    chosen_cases, chosen_models, recipes = (
        None if text is None else _split(text) for text in (cases, models, recipe)
    )
    check_folder(out, "reproduce")

    # An interrupt can get lost while JAX is being imported.
    with leaving_at_once():
        from mbdnode.reproduction.plan import make_plan

        plan = make_plan(
            cases=chosen_cases,
            models=chosen_models,
            recipes=recipes,
            seeds=seeds,
            quick=quick,
            samples=samples,
        )
        # After the names are checked, as it loads what draws the report.
        from mbdnode.reproduction.reproduce import Workplace, is_reported, report, unfinished

        place = Workplace(jobs, cluster)
        left = unfinished(plan, out, resume=resume)
    done = len(plan.runs) - len(left)
    if not left and is_reported(out):
        echo(f"Nothing to do: all {done} runs in {out} are finished, and so is the report.")
        raise typer.Exit(_print_results(out))
    if done:
        echo(f"{done} of {len(plan.runs)} runs are finished already.", err=True)
    rows = _run_plan(plan, left, out, place) if left else {}
    echo("Writing the report", err=True)
    report(plan, rows, out, place)
    raise typer.Exit(_print_results(out))


def _split(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"{text!r} names nothing. Write names with commas between them, as a,b.")
    return names


def _run_plan(
    plan: "Plan", left: "list[PlannedRun]", out: Path, place: "Workplace"
) -> "dict[str, Row]":
    from mbdnode.parallel import ClusterLost
    from mbdnode.reproduction.reproduce import command_line, run_plan

    again = command_line(plan.request, place, out, resume=True)
    # Workers are told to stop and are waited for; this process alone can simply end.
    alone = place.jobs is None and place.cluster is None
    farewell = f"Stopped. What is finished is kept; go on with:\n  {again}\n"
    names = [run.name for run in left]
    leaving = leaving_at_once(GRACE_S, farewell) if alone else nullcontext()
    try:
        with saying(farewell), leaving, runs_progress(names, elsewhere=not alone) as watch:
            return run_plan(plan, left, out, place, watch)
    except ClusterLost as error:
        echo(f"error: {error}\nWhat is finished is kept; go on with:\n  {again}", err=True)
        raise typer.Exit(1) from None


def _print_results(out: Path) -> int:
    """The table; 0 if every row is good, 1 otherwise."""
    from mbdnode.report.tables import cell_text
    from mbdnode.reproduction import terminal
    from mbdnode.reproduction.reproduce import PAGE, RESULTS, read_results
    from mbdnode.reproduction.results import is_good

    results, console = read_results(out), new_console()
    for one in terminal.tables(results):
        if one.title:
            console.print(f"\n[bold]{escape(one.title)}[/]\n")
        table = new_table(console, *one.headings, numbers=("paper", "time [s]"), folding="case")
        last = ""
        for row in one.rows:
            case, *texts = map(cell_text, row)
            table.add_row(*map(escape, (case if case != last else "", *texts)))
            last = case
        console.print(table)
    console.print()
    for note in terminal.notes(results):
        console.print(escape(note))
    bad = [row for result in results for row in result.rows if not is_good(row)]
    for row in bad:
        run = f"{row['case']}, {row['model']}, seed {row['seed']}"
        echo(f"{run}: {row['status']}", err=True)
    echo(f"Results: {out / RESULTS}\nReport:  {out / PAGE}")
    return 1 if bad else 0
