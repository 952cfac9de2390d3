"""`mbdnode simulate`: a case, a mechanism or a learned model, into a file."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mbdnode.cli.arguments import (
    InitialOption,
    IntegratorOption,
    MechanismOption,
    ModelArgument,
    ParametersOption,
    RolesOption,
    StepOption,
    check_at_least,
    check_step,
    parse_assignments,
    with_roles,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.models import DT_S, NamedModel, check_model, find_model
from mbdnode.cli.output import echo
from mbdnode.data.files import check_apart, check_destination, must_be_file
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from mbdnode.data.logs import Columns
    from mbdnode.trajectory import State, Trajectory

FIGURES, FILM = (".png", ".svg", ".pdf"), ".gif"


def simulate(
    model: ModelArgument,
    out: Annotated[
        Path, typer.Option("--out", help="The trajectory's file, .csv or .parquet.", metavar="FILE")
    ],
    initial: InitialOption = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            help="A log of times and inputs: the case's own by default, or zero. Inputs that "
            "--role inputs=... leaves out are zero.",
            metavar="FILE",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of steps, if not the case's.", metavar="N")
    ] = None,
    dt: StepOption = None,
    integrator: IntegratorOption = None,
    parameters: ParametersOption = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the case's random inputs, 0 by default.", metavar="N"),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="A figure of the motion (.png, .svg, .pdf), or an animation (.gif).",
            metavar="FILE",
        ),
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(help="Roles of the columns of --inputs.", metavar="MAP.toml"),
    ] = None,
    roles: RolesOption = None,
    mechanism: MechanismOption = "",
) -> None:
    """Simulate a case, a mechanism or a learned model, and write its trajectory.

    The file has the columns t, coordinates, velocities and inputs. Of a fit it also has standard
    deviations (`_std`) where parameters were found, and `outside`: 1 where state or inputs are
    farther from the training data than its samples are from one another.
    """
    check_destination(out)
    if plot is not None:
        check_destination(plot, (*FIGURES, FILM))
    start = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    written = [path for path in (out, plot) if path is not None]
    check_model(model, written, mechanism)
    check_at_least("--steps", steps, 1)
    check_at_least("--seed", seed, 0)
    for path in (inputs, columns):
        if path is not None:
            must_be_file(path)
    if (columns is not None or roles) and inputs is None:
        raise UserError("--columns and --role are those of a log: give it by --inputs FILE.")
    for path in written:
        check_apart(path, inputs, columns)

    # From here on, since an interrupt can get lost while JAX is being imported, too.
    with leaving_at_once():
        from mbdnode.data import write
        from mbdnode.data.logs import as_columns

        found = find_model(model, mechanism)
        check_step(dt, found.dt_s)
        if found.stored is not None:
            for path in written:
                check_apart(path, *found.stored.config.sources)
        asked = as_columns(found.columns, columns)
        asked = with_roles(asked, roles or (), lambda: found.model)
        given = (found, start, inputs, asked, changes)
        began = time.perf_counter()
        run, mu = _motion(*given, steps=steps, dt_s=dt, integrator=integrator, seed=seed)
        seconds = time.perf_counter() - began
        lines = _lines(found, run, mu)
    write(run, out)
    echo(f"Wrote {len(run.kept):,} rows to {out}")
    if plot is not None:
        with leaving_at_once():
            _draw(found, run, mu, plot)
        echo(f"Wrote {plot}")
    for label, value in [*lines, ("compile and run", f"{seconds:.2f} s")]:
        echo(f"  {label:<18} {value}")
    if not bool(run.status.ok):
        echo(f"error: {run.status}", err=True)
        raise typer.Exit(1)
    echo(f"  {'status':<18} {run.status}")


def _motion(
    found: NamedModel,
    start: Mapping[str, float],
    inputs: str | None,
    columns: "Columns",
    changes: Mapping[str, float],
    *,
    steps: int | None,
    dt_s: float | None,
    integrator: str | None,
    seed: int | None,
) -> "tuple[Trajectory, dict[str, float]]":
    """The motion, and the parameters that it was computed with."""
    import jax

    from mbdnode.multibody import AbstractSystem, resolve_parameters
    from mbdnode.simulation import simulate
    from mbdnode.workflow.driven_motion import times_and_inputs

    system, count = found.model, found.steps if steps is None else steps
    if seed is not None and (found.make_inputs is None or inputs is not None):
        raise UserError(
            f"{found.label!r} has no random inputs here, so a seed of {seed} would change nothing. "
            "Leave it out."
        )
    if inputs is None and count is None:
        raise UserError(
            f"How long {found.label!r} is to move is not known: give --steps, or --inputs FILE, "
            "whose times are taken."
        )
    usual = found.dt_s or DT_S
    size = usual if dt_s is None and inputs is None else dt_s
    if found.stored is not None:
        from mbdnode.workflow.predict import predict_from

        stored = found.stored.with_columns(columns)
        given = {"steps": steps, "dt_s": size, "parameters": changes, "integrator": integrator}
        return predict_from(stored, start, inputs, **given), {}
    if not isinstance(system, AbstractSystem):
        raise UserError(
            f"{found.label!r} holds a {type(system).__name__}, which goes on from a recorded "
            "motion, not from an initial state alone. `mbdnode run` has written what it predicts."
        )
    given = {"steps": count if inputs is None else steps, "dt_s": size}
    t, u, of_log = times_and_inputs(system, columns, inputs, **given)
    if inputs is None and found.make_inputs is not None:
        u = found.make_inputs(len(t) - 1, seed or 0)
    mu = {**of_log, **found.parameters, **changes}
    resolve_parameters(system, mu)
    state = _start(found, start, mu, float(t[0]))
    how = integrator or found.integrator or "rk4"
    run = simulate(system, t, state, inputs=u, parameters=mu, integrator=how)
    return jax.block_until_ready(run), mu


def _start(
    found: NamedModel, given: Mapping[str, float], parameters: Mapping[str, float], t: float
) -> "State":
    """The initial state that the user asks for, with the case's own values for the rest.

    In a constrained system the case gives as many positions as there are degrees of freedom. A user
    who gives another coordinate asks for a position that these would contradict, so then they are
    only the initial guess of the assembly. The same goes for velocities.
    """
    from mbdnode.multibody import consistent_state, constraint_counts, resolve_parameters

    system, known, guess = found.model, dict(given), {}
    constrained = sum(constraint_counts(system, resolve_parameters(system, parameters))) > 0
    for names in (system.coordinate_names, system.rate_names):
        of_case = {name: value for name, value in found.initial.items() if name in names}
        contradicts = any(name in names and name not in of_case for name in given)
        known |= {} if constrained and contradicts else {**of_case, **known}
        guess |= {name: value for name, value in of_case.items() if name in system.coordinate_names}
    return consistent_state(system, known, guess=guess, t=t, parameters=parameters)


def _lines(found: NamedModel, run: "Trajectory", mu: Mapping[str, float]) -> list[tuple[str, str]]:
    """What is said of a motion, with the verdict of the fit that it comes from."""
    from mbdnode.cli.predict import outside_lines
    from mbdnode.report import summarize

    if found.stored is None:
        return summarize(found.model, run, mu).lines()
    lines = outside_lines(run)
    return [*lines, ("the fit", found.stored.verdict)] if found.stored.verdict else lines


def _draw(found: NamedModel, run: "Trajectory", mu: Mapping[str, float], path: Path) -> None:
    """A figure over time, or an animation of what has a drawing."""
    from mbdnode import plot
    from mbdnode.report import save_figure
    from mbdnode.report.style import new_figure, styled

    system = getattr(found.model, "body", found.model)
    if path.suffix.lower() == FILM:
        from mbdnode.report.pictures import save_animation

        save_animation(system, run, path, mu, found.label)
    else:
        with styled():
            figure = new_figure(6.4, 4.8)
            axes = figure.add_subplot()
            plot.motion(system, run, ax=axes)
            if len(axes.lines) > 1:
                axes.legend()
            save_figure(figure, path, dpi=150)
