"""`mbdnode simulate`: one case, as it is or changed, into a file."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import parse_assignments
from mbdnode.cli.early_checks import (
    ANALYTIC,
    check_count,
    check_integrator,
    check_seed,
    check_step,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.data.files import check_destination
from mbdnode.errors import UserError, check_trajectory_size
from mbdnode.reproduction.cases import check_case
from mbdnode.reproduction.cases.catalog import catalog, check_names, check_values


def simulate(
    case: Annotated[str, typer.Argument(help="A name from `mbdnode cases`.")],
    out: Annotated[
        Path, typer.Option("--out", help="The trajectory's file, .csv or .parquet.", metavar="FILE")
    ],
    steps: Annotated[int | None, typer.Option(help="Number of steps.", metavar="N")] = None,
    dt: Annotated[float | None, typer.Option(help="Time step in seconds.", metavar="S")] = None,
    integrator: Annotated[
        str | None,
        typer.Option(help="Integrator, such as rk4, dopri8 or analytic.", metavar="NAME"),
    ] = None,
    initial: Annotated[
        list[str] | None,
        typer.Option(
            help="Initial coordinates and velocities. What is left out is as in the case, or "
            "follows from the constraints.",
            metavar="NAME=VALUE ...",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="Parameters of the mechanism.", metavar="NAME=VALUE ..."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the case's random inputs, 0 by default.", metavar="N"),
    ] = None,
) -> None:
    """Simulate a case and write its trajectory.

    Options default to the case's values. All are checked before anything is computed.
    """
    check_destination(out)
    if case.endswith(".toml"):
        raise UserError(
            f"{case!r} is a file, and simulate takes a case by its name (see `mbdnode cases`). The "
            "mechanism of a file is simulated by `mbdnode mechanism "
            f"{shlex.quote(case)} --steps 500 --out DIR`."
        )
    check_case(case)
    start = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    check_names(case, start, changes)
    check_values(case, changes)
    check_count("--steps", steps)
    check_step(dt, catalog()[case]["dt_s"])
    check_integrator(integrator, (ANALYTIC,))
    check_seed(seed)
    fields = catalog()[case]
    check_trajectory_size(
        fields["steps"] if steps is None else steps,
        2 * len(fields["coordinates"]) + len(fields["inputs"]),
    )

    # From here on, since an interrupt can get lost while JAX is being imported, too.
    with leaving_at_once():
        from mbdnode.data.logs.trajectory_files import write
        from mbdnode.report import summarize
        from mbdnode.reproduction.cases import get_case
        from mbdnode.reproduction.simulate import prepare_case

        run = prepare_case(
            get_case(case),
            steps=steps,
            dt_s=dt,
            integrator=integrator,
            initial=start,
            parameters=changes,
            seed=seed,
        )
        trajectory, seconds = run()
        summary = summarize(run.case.mechanism, trajectory, run.parameters)
    write(trajectory, out)
    typer.echo(f"Wrote {summary.rows:,} rows to {out}")
    for label, value in [*summary.lines(), ("compile and run", f"{seconds:.2f} s")]:
        typer.echo(f"  {label:<18} {value}")
    if not trajectory.status.ok:
        typer.echo(f"error: {trajectory.status}", err=True)
        raise typer.Exit(1)
    typer.echo(f"  {'status':<18} {trajectory.status}")
