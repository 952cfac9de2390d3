"""`mbdnode fit`: a model from logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mbdnode.cli.arguments import holdout_of, parse_unknown, typed_command, with_roles
from mbdnode.cli.interrupts import INTERRUPTED, leaving_at_once, saying
from mbdnode.cli.output import echo
from mbdnode.data.files import check_apart
from mbdnode.data.folders import check_folder
from mbdnode.formatting import one_of
from mbdnode.recipes import RECIPES
from mbdnode.waiting_notice import counting_rows, counting_steps

# Runs that diverge are listed up to this line; all of them are in the report.
_MOST_LINES = 6


def fit(
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Files or patterns: delimited text such as CSV, Parquet, MAT, HDF5, NPZ.",
            metavar="LOG...",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The fit's folder.", metavar="DIR")],
    mechanism: Annotated[
        str,
        typer.Option(
            help="The mechanism: a TOML file, module:name in Python, or a name of the catalog. "
            "Without one, the log's coordinates, without constraints.",
            metavar="FILE.toml|module:name",
        ),
    ] = "",
    columns: Annotated[
        Path | None,
        typer.Option(
            help="Roles of the columns; `mbdnode inspect LOG --write FILE` makes one.",
            metavar="MAP.toml",
        ),
    ] = None,
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            help="The same on the command line: time=t, coordinates=theta, rates=omega, "
            "inputs=torque, run=trial, gaps=split, units=theta:deg; several names with commas; "
            "theta1=theta for the column of one of the mechanism's own names.",
            metavar="ROLE=COLUMN ...",
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="auto (parameters if some are unknown, law, law plus network, network: the "
            "simplest that the data asks for), parameters, law, mbd-node, sonode, node, hnn, lnn, "
            "lstm or fcnn.",
            metavar="NAME",
        ),
    ] = "auto",
    unknown: Annotated[
        list[str] | None,
        typer.Option(
            "--unknown",
            help="Parameters of the mechanism to find, with bounds if there are any.",
            metavar="NAME[=LOW:HIGH] ...",
        ),
    ] = None,
    recipe: Annotated[str, typer.Option(help=f"{one_of(RECIPES)}.", metavar="NAME")] = "fast",
    holdout: Annotated[
        str,
        typer.Option(
            help="Held-out data: a fraction of the runs (of a single run, of its end), or files.",
            metavar="FRACTION|FILES",
        ),
    ] = "0.2",
    seed: Annotated[
        int, typer.Option(help="Seed of weights, random features and order.", metavar="N")
    ] = 0,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs, of a recipe that has them.", metavar="N")
    ] = None,
    structure: Annotated[
        str,
        typer.Option(
            help="Structure of an mbd-node: free, mechanical or lagrangian; the recipe's own by "
            "default.",
            metavar="NAME",
            show_default=False,
        ),
    ] = "",
    bootstrap: Annotated[
        int,
        typer.Option(
            help="Fit unknown parameters so many times again, to resampled runs, for standard "
            "errors that do not assume that the model is right.",
            metavar="N",
            show_default=False,
        ),
    ] = 0,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786, whose workers share "
            "the search for a law or for unknown parameters, or train networks that are compared. "
            "For a law they read the logs and fit it to them; they must find the files under the "
            "same paths.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the fit that was interrupted or killed in --out: the same command, "
            "the same logs.",
        ),
    ] = False,
) -> None:
    """Fit a model to logs, score it on held-out runs, and write a report.

    All options are checked before training. What is done is kept in the folder until all is.
    """
    check_folder(out, "fit")
    bounds = parse_unknown(unknown or ())
    with leaving_at_once():
        from mbdnode.data.logs import as_columns
        from mbdnode.workflow.from_logs import fit_logs
        from mbdnode.workflow.resume_fit import how_to_resume
        from mbdnode.workflow.systems import find_system

        find = (lambda: find_system(mechanism)) if mechanism else None
        asked = with_roles(as_columns(columns), roles or (), find)
        check_apart(out, columns)
        farewell = how_to_resume(out)
    fitted = fit_logs(
        logs,
        out,
        columns=asked,
        mechanism=mechanism,
        model=model,
        unknown=bounds,
        recipe=recipe,
        holdout=holdout_of(holdout),
        seed=seed,
        epochs=epochs,
        structure=structure,
        bootstrap=bootstrap,
        resume=resume,
        cluster=cluster,
        around=partial(_around, farewell),
        command=typed_command(),
    )
    _print_result(fitted, out)
    if fitted.fit.outcome == "interrupted":
        echo(farewell.rstrip(), err=True)
        raise typer.Exit(INTERRUPTED)
    if fitted.fit.outcome == "diverged":
        raise typer.Exit(1)


@contextmanager
def _around(farewell: str, part: str, prepared: Any) -> Iterator[Any]:
    """What is shown of a part of a fit, and what Ctrl-C does in it."""
    if part == "reading":
        with leaving_at_once(), counting_steps("reading", "row") as counted:
            yield counted
    elif part == "writing":
        with saying(farewell):
            yield
    else:
        for line in prepared.notes:
            echo(line)
        # Without epochs there is nothing to keep; with them, what was learned until Ctrl-C is.
        leaving = leaving_at_once(0.0 if prepared.finds_law else None, farewell)
        with saying(farewell), leaving, counting_rows() as report:
            yield report


def _print_result(fitted: Any, out: Path) -> None:
    from mbdnode.workflow.folder import PAGE
    from mbdnode.workflow.results import waited

    for line in _found(fitted):
        echo(line)
    echo(f"Wrote {out}")
    for label, value in _lines(fitted):
        echo(f"  {label:<18} {value}")
    echo(f"  {'time':<18} {waited(fitted.seconds)}")
    echo(f"  {'report':<18} {out / PAGE}")


def _judged(fitted) -> list[tuple[str, str]]:
    """How well held-out runs are predicted, and the valid prediction time."""
    scores, horizon = fitted.scores, fitted.horizon
    if not scores.runs:
        return [("held-out error", "nothing was held out")]
    lines = [("held-out error", str(scores))]
    if horizon is not None:
        lines.append(("valid prediction", f"{horizon}; {horizon.told_range}"))
    for run in scores.runs:
        if run.where:
            lines.append(("beyond the limit", f"{run.name}: the error {run.divergence}"))
    return lines[:_MOST_LINES]


def _found(fitted) -> list[str]:
    """The parameters that were found, with what the data says of them, or the law's equations."""
    from mbdnode.identification import Identified
    from mbdnode.identification.parameters import IdentifiedParameters

    found = fitted.fit
    if isinstance(found, Identified):
        return str(found.equations).splitlines()
    if not isinstance(found, IdentifiedParameters):
        return []
    from mbdnode.workflow.results import parameter_tables

    lines = []
    for table in parameter_tables(found):
        rows = [tuple(map(str, row)) for row in (table.headings, *table.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(table.headings))]
        lines.append(f"{table.title}:")
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines


def _lines(fitted) -> list[tuple[str, str]]:
    numbers = fitted.metrics()
    lines = [("model", fitted.model_name), ("training", numbers["status"])]
    if fitted.network_summary:
        lines.append(("network", fitted.network_summary))
    if fitted.choice_summary:
        lines.append(("choice", fitted.choice_summary))
    lines += _judged(fitted)
    if fitted.residual_summary:
        lines.append(("residuals", fitted.residual_summary))
    if numbers["outside"] is not None:
        lines.append(("outside the data", f"{100 * numbers['outside']:.1f} % of predicted rows"))
    if numbers["position_residual"]:
        lines.append(("position residual", f"{numbers['position_residual']:.1e}"))
    return lines
