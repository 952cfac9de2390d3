"""`mbdnode run`: train a model on a case and measure it."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import split_assignments
from mbdnode.cli.interrupts import GRACE_S, leaving_at_once, saying
from mbdnode.cli.output import echo
from mbdnode.data.files import check_apart, must_be_file
from mbdnode.data.folders import CONFIG, check_folder, folder_name
from mbdnode.errors import UserError
from mbdnode.formatting import one_of
from mbdnode.naming import is_own
from mbdnode.recipes import PAPER, RECIPES
from mbdnode.waiting_notice import counting_rows


def run(
    case: Annotated[
        str | None, typer.Argument(help="A name from `mbdnode cases`.", show_default=False)
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="law (of the recipes fast and best), mbd-node, sonode, node, hnn, lnn, lstm, fcnn "
            "or numerical; the recipe's usual one by default.",
            metavar="NAME",
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help=f"{one_of(RECIPES)}; {PAPER} by default.", metavar="NAME"),
    ] = None,
    integrator: Annotated[
        str | None, typer.Option(help="Integrator of loss and rollout.", metavar="NAME")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of weights, samples and their order, 0 by default.", metavar="N"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's folder, runs/... by default.", metavar="DIR"),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Fields of the run's configuration, such as epochs, width, window, batch_size, "
            "constraints, loss, samples.",
            metavar="KEY=VALUE ...",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Repeat the run of this config.json.", metavar="FILE")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Resume an interrupted run from its checkpoint.")
    ] = False,
) -> None:
    """Train a model on a case, roll it out, and write model, errors and trajectories to a folder.

    All options are checked before anything is computed.
    """
    if (case is None) == (config is None):
        raise UserError("Name a case, or give --config FILE to repeat a run.")
    options = {"model": model, "recipe": recipe, "integrator": integrator, "seed": seed}
    given = {name: value for name, value in options.items() if value is not None}
    if config is not None and given:
        raise UserError(
            f"--config repeats a run as it was, so it cannot take --{', --'.join(given)}. Leave "
            "them out, or name the case instead; --set can change single fields."
        )

    texts = split_assignments("--set", changes or (), "key=value", "epochs=100")
    if config is not None:
        must_be_file(config)
    if out is not None:
        check_folder(out, "run")
        if config is not None and not _is_of(config, out):
            check_apart(out, config)
        if resume and not (out / "config.json").is_file():
            raise UserError(f"There is no run in '{out}', so there is nothing to resume there.")

    with leaving_at_once():
        from mbdnode.models.registry import register_model
        from mbdnode.reproduction.config import configure, with_changes

        if model is not None and is_own(model):
            register_model(model)
        chosen = None if case is None else configure(case, **given)
        # After the names are checked, since it takes half as long again to load.
        from mbdnode.reproduction.folder import open_run_folder, read_config, write_result
        from mbdnode.reproduction.run import check, run_case

        if config is not None:
            chosen = read_config(config)
        assert chosen is not None
        chosen = with_changes(chosen, texts)
        check(chosen)
        name = folder_name(chosen.case, chosen.model, chosen.recipe, chosen.seed)
        folder = out or Path("runs") / name
    checkpoint = open_run_folder(folder, chosen, resume=resume)

    again = ["mbdnode", "run", "--config", f"{folder / 'config.json'}", "--out", f"{folder}"]
    farewell = f"Go on with: {shlex.join([*again, '--resume'])}\n"
    with saying(farewell):
        with leaving_at_once(GRACE_S, farewell), counting_rows() as report:
            result = run_case(chosen, report=report, checkpoint=checkpoint, resume=resume)
        write_result(folder, result)
    _print(result, folder, texts)
    if result.fit.outcome == "diverged" or not result.prediction.status.ok:
        raise typer.Exit(1)


def _is_of(config: Path, folder: Path) -> bool:
    """Whether it is the folder's own configuration, which stays what it is when a run goes on."""
    return (folder / CONFIG).is_file() and (folder / CONFIG).samefile(config)


def _print(result, folder: Path, changes: dict[str, str]) -> None:
    summary = result.summary()
    echo(f"Wrote {folder}")
    changed = "".join(f", {name}={value}" for name, value in changes.items())
    echo(f"  {'model':<18} {summary['model']}, recipe {summary['recipe']}{changed}")
    if "structure" in summary:
        echo(f"  {'structure':<18} {summary['structure']}")
    keys = ["mse", "mse_id", "mse_ood", "mse_sum", "position_residual", "velocity_residual"]
    if "mse_without_layers" in summary:
        keys.insert(1, "mse_without_layers")
    for key in keys:
        value = summary[key]
        echo(f"  {key:<18} {'-' if value is None else f'{value:.3e}'}")
    echo(
        f"  {'training':<18} {summary['updates']:,} updates in {summary['train_seconds']:.1f} s, "
        f"compiled in {summary['compile_seconds']:.1f} s"
    )
    echo(f"  {'status':<18} {summary['status']}")
    echo(f"  {'rollout':<18} {summary['rollout']}")
