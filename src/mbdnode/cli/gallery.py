"""`mbdnode gallery`: every case, as a table and as pictures."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import echo, new_console, new_table
from mbdnode.data.folders import check_folder, folder_name, open_folder
from mbdnode.waiting_notice import counting_steps


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

    # A case of control has a mechanism that another one shows already.
    shown_cases = [case for case in CASES.values() if case.control is None]
    files = {case.name: f"{folder_name(case.name)}.png" for case in shown_cases}
    open_folder(out, "gallery", ["overview.png", *files.values()])
    entries, scenes = [], []
    with counting_steps("simulating and drawing", "case") as count:
        for number, case in enumerate(shown_cases):
            count(number + 1, len(shown_cases))
            with leaving_at_once():
                entries.append(simulate_entry(case))
                failed = entries[-1].failure is not None
                figure = None if failed else draw_case(entries[-1].scene)
            if figure is not None:
                save_figure(figure, out / files[case.name])
                scenes.append(entries[-1].scene)
        save_figure(draw_overview(scenes), out / "overview.png")
    console = new_console()
    table = new_table(console, *GALLERY_COLUMNS, numbers=GALLERY_NUMBERS, folding="case")
    for entry in entries:
        table.add_row(*entry.row)
    console.print(table)
    echo()
    echo("Residuals and energy drift are maxima over the trajectory; '-' where there are no")
    echo("constraints, or where the energy is not conserved (dampers, inputs).")
    echo(f"Figures: {out / 'overview.png'}, and one for each case beside it.")
    failures = [entry.failure for entry in entries if entry.failure is not None]
    for failure in failures:
        echo(f"error: {failure}", err=True)
    if failures:
        raise typer.Exit(1)
