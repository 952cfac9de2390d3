"""`mbdnode predict`: what a fitted model says."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import columns_of, parse_assignments
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.data.files import check_apart, check_destination, must_be_file
from mbdnode.data.folders import find_result
from mbdnode.errors import UserError


def predict(
    folder: Annotated[Path, typer.Argument(help="The folder of a fit.", metavar="DIR")],
    out: Annotated[
        Path, typer.Option("--out", help="The prediction's file, .csv or .parquet.", metavar="FILE")
    ],
    like: Annotated[
        str | None,
        typer.Option(help="Initial state, times and inputs as in this log.", metavar="LOG"),
    ] = None,
    initial: Annotated[
        list[str] | None,
        typer.Option(
            help="Initial state; the rest follows from the constraints, or is zero.",
            metavar="NAME=VALUE ...",
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            help="A log of times and inputs, read as those of the fit. With --like, the file of "
            "its inputs, if those have their own files.",
            metavar="FILE",
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps.", metavar="N")] = None,
    dt: Annotated[float | None, typer.Option(help="Time step in seconds.", metavar="S")] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameters of the system.", metavar="NAME=VALUE ..."),
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(
            help="Roles of columns that differ from those of the fit.", metavar="MAP.toml"
        ),
    ] = None,
    roles: Annotated[
        list[str] | None,
        typer.Option("--role", help="The same on the command line.", metavar="ROLE=COLUMN ..."),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(help="The mechanism of the fit, if it is in Python.", metavar="module:name"),
    ] = "",
) -> None:
    """Predict a motion with a fitted model, and mark where it leaves the training data.

    The file has the columns t, coordinates, velocities, inputs, standard deviations (`_std`) where
    parameters were found, and `outside`: 1 where state or inputs are farther from the training data
    than its samples are from one another.
    """
    check_destination(out)
    start = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    _check_request(folder, like, bool(start), inputs, steps, dt, columns)
    check_apart(out, folder, like, inputs, columns)

    from mbdnode.data.logs.roles import hints_as_options

    with leaving_at_once(), hints_as_options():
        from mbdnode.data import write
        from mbdnode.workflow.folder import read_folder
        from mbdnode.workflow.predict import predict_from, predict_like
        from mbdnode.workflow.systems import find_system

        known = find_system(mechanism) if mechanism else None
        stored = read_folder(folder, known)
        asked = columns_of(columns, roles or (), lambda: stored.model)
        if asked:
            config = replace(stored.config, columns={**stored.config.columns, **asked})
            stored = replace(stored, config=config)
        check_apart(out, *stored.config.sources)
        scores = None
        if like is not None:
            run, scores = predict_like(stored, like, inputs=inputs, parameters=changes)
        else:
            run = predict_from(stored, start, inputs, steps=steps, dt_s=dt, parameters=changes)
    write(run, out)
    typer.echo(f"Wrote {len(run.kept):,} rows to {out}")
    lines = _lines(run, scores)
    if stored.verdict:
        lines.append(("the fit", stored.verdict))
    for label, value in lines:
        typer.echo(f"  {label:<18} {value}")
    if not bool(run.status.ok):
        typer.echo(f"error: {run.status}", err=True)
        raise typer.Exit(1)
    typer.echo(f"  {'status':<18} {run.status}")


def _check_request(
    folder: Path,
    like: str | None,
    has_start: bool,
    inputs: str | None,
    steps: int | None,
    dt: float | None,
    columns: Path | None,
) -> None:
    """What can be said before anything is loaded."""
    if like is not None:
        given = {"--initial": has_start, "--steps": steps is not None, "--dt": dt is not None}
        wrong = [option for option, is_given in given.items() if is_given]
        if wrong:
            raise UserError(
                f"--like gives initial state and times, so leave {' and '.join(wrong)} out; or "
                "give --initial with --inputs FILE instead."
            )
    elif not has_start and inputs is None and steps is None:
        raise UserError(
            "Give --like LOG, or --initial with --inputs FILE (or with --steps and --dt)."
        )
    find_result(folder, "fit", ["config.json"])
    for path in (like, inputs, columns):
        if path is not None:
            must_be_file(path)


def _lines(run, scores) -> list[tuple[str, str]]:
    import numpy as np

    from mbdnode.formatting import percent

    outside = np.asarray(run.outside)[: len(run.kept)]
    first = float(run.t[int(np.argmax(outside))]) if outside.any() else None
    share = f"{100 * float(np.mean(outside)):.1f} % of the rows"
    lines = [("outside the data", share + ("" if first is None else f", first at {first:g} s"))]
    lines.append(("units", "SI, as logs are read: angles in rad, initial values too"))
    missed = float(np.fmax.reduce(np.asarray(run.position_residual)))
    if missed > 0:  # Of constraints, if there are any and they are known.
        lines.append(("position residual", f"{missed:.1e}"))
    if scores is not None:
        each = ", ".join(str(column) for column in scores.columns)
        told = "" if scores.nrmse is None else f"NRMSE {percent(scores.nrmse)}, "
        lines.append(("against the log", told + each))
        if scores.runs[0].where:
            lines.append(("beyond the limit", f"the error {scores.runs[0].divergence}"))
    return lines
