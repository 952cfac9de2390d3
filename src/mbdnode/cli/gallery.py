"""`mbdnode gallery`: every case, as a table and as pictures."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import new_console, new_table
from mbdnode.data.folders import check_folder, folder_name, open_folder


def gallery(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the figures.", metavar="DIR")
    ] = Path("gallery"),
) -> None:
    """Simulate every case, print a table of residuals and times, and draw figures."""
    check_folder(out, "gallery")

    # An interrupt can get lost while JAX is being imported.
    with leaving_at_once():
        from mbdnode.report import draw_case, draw_overview, save_figure
        from mbdnode.reproduction.cases import CASES
        from mbdnode.reproduction.gallery import GALLERY_COLUMNS, GALLERY_NUMBERS, simulate_entry

    console = new_console()
    table = new_table(console, *GALLERY_COLUMNS, numbers=GALLERY_NUMBERS, folding="case")
    # A case of control has a mechanism that another one shows already.
    shown_cases = [case for case in CASES.values() if case.control is None]
    files = {case.name: f"{folder_name(case.name)}.png" for case in shown_cases}
    open_folder(out, "gallery", ["overview.png", *files.values()])
    scenes, failures = [], []
    with console.status("Starting") as progress:
        for case in shown_cases:
            progress.update(f"Simulating and drawing {case.name}")
            with leaving_at_once():
                entry = simulate_entry(case)
                figure = draw_case(entry.scene) if entry.failure is None else None
            table.add_row(*entry.row)
            if figure is None:
                failures.append(entry.failure)
                continue
            save_figure(figure, out / files[case.name])
            scenes.append(entry.scene)
        progress.update("Drawing the overview")
        save_figure(draw_overview(scenes), out / "overview.png")
    console.print(table)
    typer.echo()
    typer.echo("Residuals and energy drift are maxima over the trajectory; '-' where there are no")
    typer.echo("constraints, or where the energy is not conserved (dampers, inputs).")
    typer.echo(f"Figures: {out / 'overview.png'}, and one for each case beside it.")
    for failure in failures:
        typer.echo(f"error: {failure}", err=True)
    if failures:
        raise typer.Exit(1)
