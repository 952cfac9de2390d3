"""`mbdnode fit`: a model from logs."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbdnode.cli.arguments import holdout_of, parse_unknown, typed_command, with_roles
from mbdnode.cli.interrupts import INTERRUPTED, leaving_at_once, saying
from mbdnode.cli.option_checks import (
    check_address,
    check_count,
    check_seed,
)
from mbdnode.cli.output import counting, training_progress
from mbdnode.data.files import check_apart, find_files, must_be_file, separate_files
from mbdnode.data.folders import check_begun, check_folder
from mbdnode.errors import UserError
from mbdnode.formatting import one_of
from mbdnode.naming import is_own, unknown_name
from mbdnode.recipes import (
    AUTO,
    MODEL_NAMES,
    PARAMETERS,
    RECIPES,
    STRUCTURE_NAMES,
    check_trained_by,
    get_recipe,
)

if TYPE_CHECKING:
    from mbdnode.data.logs.columns import Columns

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
    # Who types it again begins anew: there is nothing left to resume.
    command, started = typed_command(fit, {**locals(), "resume": False}), time.perf_counter()
    check_folder(out, "fit")
    get_recipe(recipe)
    if model not in (AUTO, PARAMETERS):
        named = (model,) if is_own(model) else ()
        check_trained_by(recipe, model, (AUTO, PARAMETERS, *MODEL_NAMES, *named))
    if epochs is not None and RECIPES[recipe].finds_law:
        raise UserError(f"--epochs is {epochs}, but the recipe {recipe!r} has none. Leave it out.")
    check_seed(seed)
    check_address(cluster)
    if resume:
        check_begun(out, "fit")
    if structure and structure not in STRUCTURE_NAMES:
        raise unknown_name("structure", structure, STRUCTURE_NAMES)
    fraction, held_logs = holdout_of(holdout)
    sought = parse_unknown(unknown or ())
    if sought and not mechanism:
        raise UserError(
            f"--unknown {' '.join(sought)}: parameters are those of a mechanism. Give it with "
            "--mechanism FILE.toml or module:name."
        )
    check_count("--bootstrap", bootstrap or None)
    if bootstrap and not mechanism:
        raise UserError(
            f"--bootstrap is {bootstrap}; it is for unknown parameters of a mechanism. Give it "
            "with --mechanism FILE.toml or module:name, or leave it out."
        )
    with leaving_at_once():
        asked = _check_request(out, logs, held_logs, columns, roles or (), mechanism)

        from mbdnode.models.registry import register_model
        from mbdnode.recipes import TrainingConfig
        from mbdnode.workflow.config import FitConfig
        from mbdnode.workflow.fit import fit_and_score, read_and_check
        from mbdnode.workflow.folder import PAGE, write_folder
        from mbdnode.workflow.results import waited
        from mbdnode.workflow.resume_fit import check_resume, how_to_resume, keeping

    if is_own(model):
        register_model(model)
    config = FitConfig(
        logs=tuple(logs),
        columns=asked,
        mechanism=mechanism,
        model=model,
        recipe=recipe,
        seed=seed,
        holdout=fraction,
        holdout_logs=held_logs,
        epochs=epochs,
        structure=structure,
        unknown=sought,
        bootstrap=bootstrap,
    )
    if resume:
        check_resume(out, config)
    with leaving_at_once(), counting("reading", "row") as counted:
        prepared = read_and_check(config, report=counted, cluster=cluster)
    prepared = replace(prepared, prepare_seconds=time.perf_counter() - started)
    for line in prepared.notes:
        typer.echo(line)

    # Without epochs there is nothing to keep; with them, what was learned until Ctrl-C is.
    grace_s = None if isinstance(prepared.training, TrainingConfig) else 0.0
    farewell = how_to_resume(out)
    with (
        prepared,
        keeping(out, prepared, resume=resume) as kept,
        saying(farewell),
        leaving_at_once(grace_s, farewell),
        training_progress() as report,
    ):
        fitted = fit_and_score(prepared, report=report, kept=kept)
    begun = time.perf_counter()
    with saying(farewell):
        write_folder(out, fitted, command)
    seconds = {**fitted.seconds, "writing": time.perf_counter() - begun}
    for line in _found(fitted):
        typer.echo(line)
    typer.echo(f"Wrote {out}")
    for label, value in _lines(fitted):
        typer.echo(f"  {label:<18} {value}")
    typer.echo(f"  {'time':<18} {waited(seconds)}")
    typer.echo(f"  {'report':<18} {out / PAGE}")
    if fitted.fit.outcome == "interrupted":
        typer.echo(farewell, nl=False, err=True)
        raise typer.Exit(INTERRUPTED)
    if fitted.fit.outcome == "diverged":
        raise typer.Exit(1)


def _check_request(
    out: Path,
    logs: Sequence[str],
    held_logs: Sequence[str],
    columns: Path | None,
    roles: Sequence[str],
    mechanism: str,
) -> "Columns":
    """What the columns are, and an error for a wrong path, name or role before anything is read."""
    files = find_files(logs)
    if held_logs:
        separate_files(files, find_files(held_logs))
    if columns is not None:
        must_be_file(columns)

    from mbdnode.data.logs.columns import as_columns
    from mbdnode.data.logs.formats import open_logs
    from mbdnode.data.logs.reading import make_request
    from mbdnode.data.logs.runs import lay_out

    asked = with_roles(as_columns(columns), roles, _finder(mechanism))
    request = make_request([*logs, *held_logs], asked)
    check_apart(out, columns, mechanism, *request.files, *request.input_files)
    for log in open_logs(request.files[0]):  # A name that is wrong is so in every file.
        lay_out(log, asked, with_inputs=not asked.inputs_apart)
    return asked


def _finder(mechanism: str):
    """What gives the mechanism's names, for who needs them; None if there is none."""
    if not mechanism:
        return None

    def find():
        from mbdnode.workflow.systems import find_system

        return find_system(mechanism)

    return find


def _judged(fitted) -> list[tuple[str, str]]:
    """How well held-out runs are predicted, and the valid prediction time."""
    from mbdnode.formatting import percent

    scores, horizon = fitted.scores, fitted.horizon
    if not scores.runs:
        return [("held-out error", "nothing was held out")]
    each = ", ".join(str(column) for column in scores.columns)
    told = f"NRMSE {percent(scores.nrmse)} ({each})" if scores.nrmse is not None else each
    lines = [("held-out error", told)]
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
    if fitted.told_network:
        lines.append(("network", fitted.told_network))
    if fitted.told_choice:
        lines.append(("choice", fitted.told_choice))
    lines += _judged(fitted)
    if fitted.told_residuals:
        lines.append(("residuals", fitted.told_residuals))
    if numbers["outside"] is not None:
        lines.append(("outside the data", f"{100 * numbers['outside']:.1f} % of predicted rows"))
    if numbers["position_residual"]:
        lines.append(("position residual", f"{numbers['position_residual']:.1e}"))
    return lines
