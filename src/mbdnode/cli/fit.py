"""`mbdnode fit`: a model from logs."""

from pathlib import Path
from typing import Annotated

import typer


def fit(
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Files or patterns: CSV and its relatives, Parquet, MAT, HDF5, NPZ.",
            metavar="LOG...",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The fit's folder.", metavar="DIR")],
    mechanism: Annotated[
        str,
        typer.Option(
            help="What moves: a TOML file, module:name in Python, or a name of the catalogue. "
            "Without one, what the log names.",
            metavar="FILE.toml|module:name",
        ),
    ] = "",
    columns: Annotated[
        Path | None,
        typer.Option(
            help="Which column is what; `mbdnode inspect LOG --write FILE` makes one.",
            metavar="MAP.toml",
        ),
    ] = None,
    roles: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            help="The same on the command line: time=t, coordinates=theta or theta1=theta, "
            "rates=omega, inputs=torque, run=trial, gaps=split; several names with commas.",
            metavar="ROLE=COLUMN ...",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="mbd-node, sonode, node, hnn, lnn, lstm or fcnn.", metavar="NAME")
    ] = "mbd-node",
    recipe: Annotated[
        str, typer.Option(help="fast, best, free or paper.", metavar="NAME")
    ] = "fast",
    holdout: Annotated[
        str,
        typer.Option(
            help="What is not trained on: a part of the runs (of one run: of its end), or files.",
            metavar="FRACTION|FILES",
        ),
    ] = "0.2",
    seed: Annotated[int, typer.Option(help="Of weights, order and draw.", metavar="N")] = 0,
    epochs: Annotated[
        int | None, typer.Option(help="Of a recipe that has them.", metavar="N")
    ] = None,
) -> None:
    """Fit a model to logs, judge it by runs it has not seen, and write a report.

    Everything is checked before anything is trained, and nothing is written before it is trained.
    """
    from mbdnode.cli.log_roles import columns_of, holdout_of

    asked = columns_of(columns, roles or ())
    fraction, held_logs = holdout_of(holdout)

    from mbdnode.cli.interrupts import leaving_at_once

    with leaving_at_once():
        from mbdnode.surrogate.configuration import FitConfig
        from mbdnode.surrogate.fitting import carry_out, prepare
        from mbdnode.surrogate.folder import PAGE, check_folder, write_folder

    check_folder(out)
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
    )
    from mbdnode.cli.progress import counting, training_progress

    with leaving_at_once(), counting("reading", "row") as counted:
        prepared = prepare(config, report=counted)
    for line in prepared.notes:
        typer.echo(line)

    with training_progress(prepared.training.epochs) as report:
        fitted = carry_out(prepared, report=report)
    write_folder(out, fitted, _command(logs, mechanism, columns, roles, model, recipe, holdout))
    typer.echo(f"Wrote {out}")
    for label, value in _lines(fitted):
        typer.echo(f"  {label:<18} {value}")
    typer.echo(f"  {'report':<18} {out / PAGE}")
    if fitted.fit.outcome in ("diverged", "interrupted"):
        raise typer.Exit(1)


def _command(logs, mechanism, columns, roles, model, recipe, holdout) -> str:
    """What made the fit, as one would type it."""
    import shlex

    words = ["mbdnode", "fit", *logs]
    words += ["--mechanism", mechanism] if mechanism else []
    words += ["--columns", str(columns)] if columns else []
    words += ["--role", *roles] if roles else []
    words += ["--model", model, "--recipe", recipe, "--holdout", holdout]
    return shlex.join(words)


def _lines(fitted) -> list[tuple[str, str]]:
    numbers = fitted.metrics()
    error = numbers["error"]
    said = "nothing was held out" if not fitted.held_out else "a prediction ended early"
    judged = said if error is None else f"{error:.2g} spreads of the motion (median, rms)"
    trusted = numbers["trusted_s"]
    lines = [
        ("training", numbers["status"]),
        ("held-out error", judged),
        (
            "trusted ahead",
            "not at all" if trusted is None else f"{trusted:.3g} s, error below 10 %",
        ),
    ]
    if numbers["outside"] is not None:
        lines.append(("outside the data", f"{100 * numbers['outside']:.1f} % of predicted rows"))
    if numbers["position_residual"]:
        lines.append(("position residual", f"{numbers['position_residual']:.1e}"))
    return lines
