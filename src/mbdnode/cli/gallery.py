"""`mbdnode gallery`: every case, as a table and as pictures."""

from pathlib import Path
from typing import Annotated

import typer


def gallery(
    out: Annotated[
        Path, typer.Option("--out", help="Directory for the figures.", metavar="DIR")
    ] = Path("gallery"),
) -> None:
    """Simulate every case, print a table and draw figures."""
    from mbdnode.data.folders import check_folder, folder_name, open_folder

    check_folder(out, "gallery")

    from mbdnode.cli.interrupts import leaving_at_once

    # An interrupt can get lost while JAX is being imported.
    with leaving_at_once():
        from mbdnode.cli.exhibits import HEADINGS, NUMBERS, exhibit
        from mbdnode.cli.tables import new_console, new_table
        from mbdnode.experiments import CASES
        from mbdnode.report import draw_case, draw_overview, save

    console = new_console()
    table = new_table(console, *HEADINGS, numbers=NUMBERS, folding="case")
    # A case of control has a mechanism that another one shows already.
    shown_cases = [case for case in CASES.values() if case.control is None]
    files = {case.name: f"{folder_name(case.name)}.png" for case in shown_cases}
    open_folder(out, "gallery", ["overview.png", *files.values()])
    scenes, failures = [], []
    with console.status("Starting") as progress:
        for case in shown_cases:
            progress.update(f"Simulating and drawing {case.name}")
            with leaving_at_once():
                shown = exhibit(case)
                figure = draw_case(shown.scene) if shown.failure is None else None
            table.add_row(*shown.row)
            if figure is None:
                failures.append(shown.failure)
                continue
            save(figure, out / files[case.name])
            scenes.append(shown.scene)
        progress.update("Drawing the overview")
        save(draw_overview(scenes), out / "overview.png")
    console.print(table)
    typer.echo()
    typer.echo("Residuals and energy drift are the largest of the whole motion; '-' where there")
    typer.echo("are no constraints, or where energy is not constant by nature (dampers, inputs).")
    typer.echo(f"Figures: {out / 'overview.png'}, and one for each case beside it.")
    for failure in failures:
        typer.echo(f"error: {failure}", err=True)
    if failures:
        raise typer.Exit(1)
