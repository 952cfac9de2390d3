"""`mbdnode reproduce`: the paper's tables and figures, from one command."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbdnode.errors import UserError

if TYPE_CHECKING:
    from mbdnode.experiments.plan import Plan, PlannedRun
    from mbdnode.experiments.reproduce import Place
    from mbdnode.experiments.workers import Row


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of all results.", metavar="DIR")],
    cases: Annotated[
        str | None, typer.Option(help="Some cases only, such as a,b.", metavar="NAMES")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Some models only, such as m,n.", metavar="NAMES")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="How to train, such as fast or paper,best; paper if not given, with --quick best.",
            metavar="NAMES",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each, from seed 0 on.", metavar="N")] = 1,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Laws alone; with --recipe, its usual model, gradient descent cut short.",
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(help="Draws for the slider-crank; the paper's are 10000000.", metavar="N"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes on this machine; one, this one, if not given.", metavar="N"),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler to run on, in place of --jobs.", metavar="ADDRESS"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on, and try again what failed.")
    ] = False,
) -> None:
    """Run the paper's cases and models, and write tables, figures and one page.

    Everything is checked before anything is computed. A run that fails is a row that says so.
    """
    names = [None if text is None else _split(text) for text in (cases, models)]

    from mbdnode.cli.interrupts import leaving_at_once
    from mbdnode.data.folders import check_folder
    from mbdnode.experiments import check_case

    check_folder(out, "reproduce")
    for name in names[0] or ():
        check_case(name)
    if resume and not (out / "plan.json").is_file():
        raise UserError(
            f"There is no reproduction in '{out}', so there is nothing to resume there."
        )

    # An interrupt can get lost while JAX is being imported.
    with leaving_at_once():
        from mbdnode.experiments.plan import QUICK_RECIPES, make_plan
        from mbdnode.experiments.reproduce import Place, is_reported, report, unfinished

        place = Place(jobs, cluster)
        plan = make_plan(
            cases=names[0],
            models=names[1],
            recipes=_split(recipe) if recipe else QUICK_RECIPES if quick else ("paper",),
            seeds=seeds,
            quick=quick,
            samples=samples,
        )
        left = unfinished(plan, out, resume=resume)
    done = len(plan.runs) - len(left)
    if not left and is_reported(out):
        typer.echo(f"Nothing to do: all {done} runs in {out} are finished, and so is the report.")
        raise typer.Exit(_print_results(out))
    if done:
        typer.echo(f"{done} of {len(plan.runs)} runs are finished already.", err=True)
    rows = _carry_out(plan, left, out, place) if left else {}
    typer.echo("Writing the report", err=True)
    report(plan, rows, out, place)
    raise typer.Exit(_print_results(out))


def _split(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UserError(f"{text!r} names nothing. Write names with commas between them, as a,b.")
    return names


def _carry_out(
    plan: "Plan", left: "list[PlannedRun]", out: Path, place: "Place"
) -> "dict[str, Row]":
    from mbdnode.cli.campaign import campaign_progress
    from mbdnode.cli.interrupts import CODE, GRACE_S, leaving_at_once
    from mbdnode.experiments.cluster import ClusterLost
    from mbdnode.experiments.reproduce import carry_out_plan, command_line

    again = command_line(plan.request, place, out, resume=True)
    # Workers are told to stop and are waited for; this process alone can simply end.
    alone = place.jobs is None and place.cluster is None
    farewell = f"Stopped. What is finished is kept; go on with:\n  {again}\n"
    leaving = leaving_at_once(GRACE_S, farewell) if alone else nullcontext()
    try:
        with leaving, campaign_progress([run.name for run in left]) as watch:
            return carry_out_plan(plan, left, out, place, watch)
    except KeyboardInterrupt:
        typer.echo(farewell, err=True, nl=False)
        raise typer.Exit(CODE) from None
    except ClusterLost as error:
        typer.echo(f"error: {error}\nWhat is finished is kept; go on with:\n  {again}", err=True)
        raise typer.Exit(1) from None


def _print_results(out: Path) -> int:
    """The table; 0 if every row is good, 1 otherwise."""
    from mbdnode.cli.results import is_good, print_results
    from mbdnode.experiments.reproduce import PAGE, RESULTS, read_results

    rows = read_results(out)
    print_results(rows)
    bad = [row for row in rows if not is_good(row)]
    for row in bad:
        run = f"{row['case']}, {row['model']}, seed {row['seed']}"
        typer.echo(f"{run}: {row['status']}", err=True)
    typer.echo(f"Results: {out / RESULTS}\nReport:  {out / PAGE}")
    return 1 if bad else 0
