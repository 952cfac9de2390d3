"""`mbdnode mechanism`: what a mechanism file says, how it can move, and how it looks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbdnode.cli.arguments import parse_assignments
from mbdnode.cli.early_checks import (
    check_columns,
    check_count,
    check_described,
    check_mechanism_file,
    check_step,
    names_in,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import new_console, new_table
from mbdnode.data.files import check_apart, must_be_file
from mbdnode.data.folders import check_folder, open_folder
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar import Analysis, PlanarKinematics, PlanarMechanism

# What --out holds.
PICTURES, TRAJECTORY, ANIMATION = ("mechanism.png", "mechanism.svg"), "trajectory.csv", "motion.gif"


def mechanism(
    file: Annotated[Path, typer.Argument(help="A mechanism's TOML file.", metavar="FILE")],
    initial: Annotated[
        list[str] | None,
        typer.Option(
            help="Coordinates and velocities to assemble it with; the others follow.",
            metavar="NAME=VALUE ...",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameters of the mechanism.", metavar="NAME=VALUE ..."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of steps to simulate, with zero inputs.", metavar="N")
    ] = None,
    dt: Annotated[float, typer.Option(help="Time step in seconds.", metavar="S")] = 0.01,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for drawing, trajectory and animation.", metavar="DIR"),
    ] = None,
) -> None:
    """Check a mechanism file; print its degrees of freedom (DOF), draw it, simulate it.

    The drawing is written as PNG and SVG, the trajectory as CSV and as an animated GIF.
    """
    known = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    _check_request(file, steps, dt, out, known, changes)

    # From here on, since an interrupt can get lost while JAX is being imported, too.
    with leaving_at_once():
        from mbdnode.mechanisms.planar import analyze, read_mechanism

        system = read_mechanism(file)
        found = analyze(system, known, parameters=changes)
    _print_parts(system)
    _print_analysis(system, found)
    if out is None:
        return
    with leaving_at_once():
        trajectory = None if steps is None else _simulate(system, found, changes, steps, dt)
    status = _write(system, found, changes, trajectory, out)
    if status is None:
        return
    if not status.ok:
        typer.echo(f"error: {status}", err=True)
        raise typer.Exit(1)
    typer.echo(f"status: {status}")


def _check_request(
    file: Path,
    steps: int | None,
    dt: float,
    out: Path | None,
    known: dict[str, float],
    changes: dict[str, float],
) -> None:
    """Before anything is loaded."""
    must_be_file(file)
    if steps is not None and out is None:
        raise UserError("--steps needs --out DIR, where the trajectory is to go. Add it.")
    check_count("--steps", steps)
    check_step(dt)
    if out is not None:
        check_folder(out, "mechanism")
        check_apart(out, file)
    described = check_mechanism_file(str(file))
    check_described(described, known, changes)
    check_columns(steps, names_in(described))


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


def _simulate(system, found: "Analysis", changes: dict[str, float], steps: int, dt: float):
    import numpy as np

    from mbdnode.simulation import simulate
    from mbdnode.trajectory import check_trajectory_size

    check_trajectory_size(steps, 2 * len(system.coordinates) + len(system.inputs))
    return simulate(system, dt * np.arange(steps + 1), found.state, parameters=changes)


def _write(system, found: "Analysis", changes: dict[str, float], trajectory, out: Path):
    """All files; returns how the motion ended, if there is one."""
    import numpy as np

    from mbdnode.data import write
    from mbdnode.report.animation import save_animation
    from mbdnode.report.planar_drawing import draw_mechanism, save_picture

    open_folder(out, "mechanism", (*PICTURES, TRAJECTORY, ANIMATION))
    figure = draw_mechanism(system, np.asarray(found.state.q), changes)
    for name in PICTURES:
        save_picture(figure, out / name)
        typer.echo(f"Wrote {out / name}")
    if trajectory is None:
        return None
    write(trajectory, out / TRAJECTORY)
    typer.echo(f"Wrote {out / TRAJECTORY}, {len(trajectory.kept.t):,} rows")
    save_animation(system, trajectory, out / ANIMATION, changes, system.description.name)
    typer.echo(f"Wrote {out / ANIMATION}")
    return trajectory.status
