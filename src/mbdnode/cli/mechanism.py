"""`mbdnode mechanism`: what a mechanism file says, how it can move, and how it looks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbdnode.cli.arguments import ParametersOption, parse_assignments
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import new_console, new_table
from mbdnode.data.files import check_apart, must_be_file
from mbdnode.data.folders import check_folder, open_folder

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar import Analysis, PlanarKinematics, PlanarMechanism

# What --out holds.
PICTURES = ("mechanism.png", "mechanism.svg")


def mechanism(
    file: Annotated[Path, typer.Argument(help="A mechanism's TOML file.", metavar="FILE")],
    initial: Annotated[
        list[str] | None,
        typer.Option(
            help="Coordinates and velocities to assemble it with; the others follow.",
            metavar="NAME=VALUE ...",
        ),
    ] = None,
    parameters: ParametersOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the drawing.", metavar="DIR"),
    ] = None,
) -> None:
    """Check a mechanism file, print its degrees of freedom (DOF), and draw it as PNG and SVG.

    `mbdnode simulate FILE` simulates it.
    """
    known = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    must_be_file(file)
    if out is not None:
        check_folder(out, "mechanism")
        check_apart(out, file)

    # From here on, since an interrupt can get lost while JAX is being imported, too.
    with leaving_at_once():
        from mbdnode.mechanisms import read_mechanism
        from mbdnode.mechanisms.planar import analyze

        system = read_mechanism(file)
        found = analyze(system, known, parameters=changes)
    _print_parts(system)
    _print_analysis(system, found)
    if out is not None:
        with leaving_at_once():
            _draw(system, found, changes, out)


def _print_parts(system: "PlanarMechanism | PlanarKinematics") -> None:
    description, console = system.description, new_console()
    table = new_table(
        *(console, "body", "mass [kg]", "inertia [kg m^2]", "coordinates"),
        numbers=("mass [kg]", "inertia [kg m^2]"),
        folding="coordinates",
    )
    for body in description.bodies:
        known = ["-" if value is None else f"{value:g}" for value in (body.mass, body.inertia)]
        table.add_row(body.name, *known, ", ".join(body.coordinates))
    typer.echo(f"{description.name}\n")
    console.print(table)
    if description.joints:
        joints = new_table(console, "joint", "type", "between", numbers=(), folding="between")
        for joint in description.joints:
            joints.add_row(joint.name, joint.type, " and ".join(joint.bodies))
        for drive in description.drives:
            joints.add_row(drive.name, f"drive ({drive.motion})", f"of {drive.joint}")
        typer.echo()
        console.print(joints)
    for label, names in (("inputs", system.input_names), ("parameters", system.parameter_names)):
        if names:
            typer.echo(f"\n{label}: {', '.join(names)}")


def _print_analysis(system: "PlanarMechanism | PlanarKinematics", found: "Analysis") -> None:
    count, number = len(system.coordinates), len(found.constraints)
    typer.echo(f"\ncoordinates             {count}")
    typer.echo(f"constraints             {number}")
    typer.echo(f"degrees of freedom      {found.degrees_of_freedom}")
    typer.echo(f"independent             {', '.join(found.independent) or 'none'}")
    typer.echo(f"redundant constraints   {len(found.redundant)}")
    for redundancy in found.redundant:
        typer.echo(f"  {redundancy.constraint}, which follows from {', '.join(redundancy.repeats)}")
    if found.redundant and not system.allow_redundant:
        typer.echo(
            "  Remove them, or set allow_redundant = true in the file to solve without them."
        )
    typer.echo(f"assembled, with a largest residual of {found.residual:.1e}:")
    q, v = found.state.q, found.state.v
    for place, name in enumerate(system.coordinate_names):
        typer.echo(f"  {name:<24} {float(q[place]):>12.6g} {float(v[place]):>12.6g} per s")


def _draw(system, found: "Analysis", changes: dict[str, float], out: Path) -> None:
    import numpy as np

    from mbdnode.report import save_figure
    from mbdnode.report.pictures import draw_mechanism

    open_folder(out, "mechanism", PICTURES)
    figure = draw_mechanism(system, np.asarray(found.state.q), changes)
    for name in PICTURES:
        save_figure(figure, out / name, dpi=150)
        typer.echo(f"Wrote {out / name}")
