"""`mbdnode inspect`: what is in logs, and what can be done with them."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.errors import UserError


def inspect(
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Files or patterns: CSV and its relatives, Parquet, MAT, HDF5, NPZ.",
            metavar="LOG...",
            show_default=False,
        ),
    ],
    write: Annotated[
        Path | None,
        typer.Option(help="Write the guessed roles to this new TOML file.", metavar="FILE"),
    ] = None,
) -> None:
    """Say what is in logs: columns, likely roles, units, sampling, gaps, noise and ranges.

    Nothing is changed, and no guess is used: write down what is right.
    """
    from mbdnode.data.atomic import find_files

    found_files = find_files(logs)

    from mbdnode.cli.inspecting import print_advice, print_failure, print_total, print_view
    from mbdnode.data.logs import open_logs
    from mbdnode.data.logs.columns_file import write_columns
    from mbdnode.data.logs.inspection import look_at

    if write is not None and write.exists():
        raise UserError(f"'{write}' exists already. Name another file, or remove it.")
    views, failed, good = [], 0, []
    for path in found_files:
        # One bad file must not hide the others.
        try:
            found = [look_at(log) for log in open_logs(path)]
        except UserError as error:
            print_failure(path, error)
            failed += 1
            continue
        for view in found:
            print_view(view)
        views += found
        good.append(path)
    if len(views) + failed > 1:
        print_total(views, failed)
    if views:
        if write is not None:
            write_columns(views[0].guess, write)
        print_advice(views[0], good, logs if not failed else map(str, good), write)
        if write is not None:
            typer.echo(f"Wrote {write}")
    if failed:
        raise typer.Exit(2)
