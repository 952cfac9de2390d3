"""`mbdnode mpc`: a control task, planned with the equations of motion or with a learned model."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import echo
from mbdnode.data.files import check_apart, check_path
from mbdnode.data.folders import check_folder
from mbdnode.errors import UserError
from mbdnode.reproduction.cases import check_control_task
from mbdnode.waiting_notice import counting_steps


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

    Options default to the task's values. With a learned model, the closed loop that plans with the
    equations of motion is run for comparison.
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
    options = {"horizon": horizon, "dt": dt, "relinearize": relinearize}
    changes: dict = {name: value for name, value in options.items() if value is not None}
    if terminal is not None:
        if terminal not in ("riccati", "none"):
            raise UserError(f"--terminal is {terminal!r}; it must be riccati or none.")
        changes["terminal"] = None if terminal == "none" else terminal

    with leaving_at_once(), counting_steps("controlling") as report:
        from mbdnode.reproduction.control import describe_control, run_control_task, write_control

        result = run_control_task(task, model, changes, steps, report)
    write_control(out, result)
    echo(f"Wrote {out}")
    for label, value in describe_control(result):
        echo(f"  {label:<18} {value}")
    if not bool(result.loop.status.ok):
        raise typer.Exit(1)
