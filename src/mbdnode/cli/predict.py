"""`mbdnode predict`: a recorded motion as a fitted model predicts it."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import (
    MechanismOption,
    ParametersOption,
    RolesOption,
    parse_assignments,
    with_roles,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.models import read_fit
from mbdnode.cli.output import echo
from mbdnode.data.files import check_apart, check_destination, must_be_file
from mbdnode.data.folders import find_result


def predict(
    folder: Annotated[Path, typer.Argument(help="The folder of a fit.", metavar="DIR")],
    like: Annotated[
        str,
        typer.Option(help="Initial state, times and inputs as in this log.", metavar="LOG"),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="The prediction's file, .csv or .parquet.", metavar="FILE")
    ],
    inputs: Annotated[
        str | None,
        typer.Option(
            help="The file of the log's inputs, if those have their own files.", metavar="FILE"
        ),
    ] = None,
    parameters: ParametersOption = None,
    columns: Annotated[
        Path | None,
        typer.Option(
            help="Roles of columns that differ from those of the fit.", metavar="MAP.toml"
        ),
    ] = None,
    roles: RolesOption = None,
    mechanism: MechanismOption = "",
) -> None:
    """Predict the motion of a log with a fitted model, and compare the two.

    The file has the columns t, coordinates, velocities, inputs, standard deviations (`_std`) where
    parameters were found, and `outside`: 1 where state or inputs are farther from the training data
    than its samples are from one another. A motion from any other initial state is `mbdnode
    simulate DIR`.
    """
    check_destination(out)
    changes = parse_assignments("--set", parameters or ())
    find_result(folder, "fit", ["config.json"])
    for path in (like, inputs, columns):
        if path is not None:
            must_be_file(path)
    check_apart(out, folder, like, inputs, columns)

    with leaving_at_once():
        from mbdnode.data import write
        from mbdnode.data.logs import as_columns
        from mbdnode.workflow.predict import predict_like

        stored = read_fit(folder, mechanism)
        asked = as_columns(stored.config.columns, columns)
        stored = stored.with_columns(with_roles(asked, roles or (), lambda: stored.model))
        check_apart(out, *stored.config.sources)
        run, scores = predict_like(stored, like, inputs=inputs, parameters=changes)
    write(run, out)
    echo(f"Wrote {len(run.kept):,} rows to {out}")
    lines = [*outside_lines(run), *_score_lines(scores)]
    if stored.verdict:
        lines.append(("the fit", stored.verdict))
    for label, value in lines:
        echo(f"  {label:<18} {value}")
    if not bool(run.status.ok):
        echo(f"error: {run.status}", err=True)
        raise typer.Exit(1)
    echo(f"  {'status':<18} {run.status}")


def outside_lines(run) -> list[tuple[str, str]]:
    """Of a prediction: how much of it is outside the training data, and its residual."""
    import numpy as np

    outside = np.asarray(run.outside)[: len(run.kept)]
    first = float(run.t[int(np.argmax(outside))]) if outside.any() else None
    share = f"{100 * float(np.mean(outside)):.1f} % of the rows"
    lines = [("outside the data", share + ("" if first is None else f", first at {first:g} s"))]
    lines.append(("units", "SI, as logs are read: angles in rad, initial values too"))
    missed = float(np.fmax.reduce(np.asarray(run.position_residual)))
    if missed > 0:  # Of constraints, if there are any and they are known.
        lines.append(("position residual", f"{missed:.1e}"))
    return lines


def _score_lines(scores) -> list[tuple[str, str]]:
    """Of a prediction beside its log: the errors, and when they pass the limit."""
    lines = [("against the log", str(scores))]
    if scores.runs[0].where:
        lines.append(("beyond the limit", f"the error {scores.runs[0].divergence}"))
    return lines
