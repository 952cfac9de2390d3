"""`mbdnode mpc`: a control task, planned with the equations of motion or with a learned model."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.option_checks import check_count, check_step
from mbdnode.cli.output import counting
from mbdnode.data.files import check_apart, check_path, read_json
from mbdnode.data.folders import CONFIG, check_folder
from mbdnode.errors import UserError
from mbdnode.reproduction.cases import LISTED, check_control_task


def mpc(
    task: Annotated[
        str,
        typer.Argument(
            help="cart-pole, cart-pole:as-printed, cart-pole:swing-up or slider-crank.",
            metavar="TASK",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the result.", metavar="DIR")],
    model: Annotated[
        str,
        typer.Option(
            help="The controller's prediction model: truth, or the folder of a finished run.",
            metavar="truth|RUN_DIR",
        ),
    ] = "truth",
    horizon: Annotated[
        int | None, typer.Option(help="Prediction horizon in steps.", metavar="N")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Number of steps of the closed loop.", metavar="N")
    ] = None,
    dt: Annotated[
        float | None, typer.Option(help="Sampling time of the controller in seconds.", metavar="S")
    ] = None,
    relinearize: Annotated[
        str | None,
        typer.Option(
            help="Linearize once, at the target; or each step, along the predicted trajectory.",
            metavar="each|once",
        ),
    ] = None,
    terminal: Annotated[
        str | None,
        typer.Option(
            help="Terminal cost: infinite-horizon cost-to-go (riccati), or none.",
            metavar="riccati|none",
        ),
    ] = None,
) -> None:
    """Control a plant by model predictive control (MPC), and write trajectories and figures.

    Options default to the task's values. All are checked before the first step. With a
    learned model, the closed loop that plans with the equations of motion is run for comparison.
    """
    case = check_control_task(task)
    check_folder(out, "mpc")
    check_path(Path(model))
    if model != "truth" and not (Path(model) / "model.safetensors").is_file():
        raise UserError(
            f"--model is {model!r}, where there is no model.safetensors. Give 'truth', or the "
            f"folder of a finished run, such as that of: mbdnode run {case} --recipe best --out "
            "RUN_DIR"
        )
    if model != "truth":
        check_apart(out, model)
        _check_same_system(Path(model), task, case)
    options = {"horizon": horizon, "dt": dt, "relinearize": relinearize}
    changes: dict = {name: value for name, value in options.items() if value is not None}
    if terminal is not None:
        if terminal not in ("riccati", "none"):
            raise UserError(f"--terminal is {terminal!r}; it must be riccati or none.")
        changes["terminal"] = None if terminal == "none" else terminal
    if relinearize is not None and relinearize not in ("each", "once"):
        raise UserError(f"--relinearize is {relinearize!r}; it must be each or once.")
    check_count("--horizon", horizon)
    check_count("--steps", steps)
    check_step(dt)

    with leaving_at_once(), counting("controlling") as report:
        from mbdnode.reproduction.control import describe_control, run_control_task, write_control

        result = run_control_task(task, model, changes, steps, report)
    write_control(out, result)
    typer.echo(f"Wrote {out}")
    for label, value in describe_control(result):
        typer.echo(f"  {label:<18} {value}")
    if not bool(result.loop.status.ok):
        raise typer.Exit(1)


def _check_same_system(folder: Path, task: str, case: str) -> None:
    """Raise `UserError` for the run of a case whose system is not that of the task."""
    found = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    run_of = found.get("case") if isinstance(found, dict) else None
    if run_of in LISTED and LISTED[run_of].coordinates != LISTED[case].coordinates:
        has, needs = (", ".join(LISTED[x].coordinates.split()) for x in (run_of, case))
        raise UserError(
            f"--model is '{folder}', a run of {run_of!r}, whose coordinates are {has}; the task "
            f"{task!r} is of another system, whose coordinates are {needs}. Train a model of that "
            f"one: mbdnode run {case} --recipe best --out RUN_DIR; or leave --model out."
        )
