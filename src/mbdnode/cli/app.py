"""The application: its commands, its version, and what a user's mistake looks like."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mbdnode import __version__
from mbdnode.cli.arguments import spread
from mbdnode.cli.cases import cases
from mbdnode.cli.fit import fit
from mbdnode.cli.gallery import gallery
from mbdnode.cli.inspect import inspect
from mbdnode.cli.mechanism import mechanism
from mbdnode.cli.mpc import mpc
from mbdnode.cli.predict import predict
from mbdnode.cli.reproduce import reproduce
from mbdnode.cli.run import run
from mbdnode.cli.simulate import simulate

app = typer.Typer(
    name="mbdnode",
    help="Learn, simulate and control constrained multibody systems.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(cases)
app.command()(simulate)
app.command()(run)
app.command()(mpc)
app.command()(reproduce)
app.command()(gallery)
app.command()(mechanism)
app.command()(inspect)
app.command()(fit)
app.command()(predict)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"mbdnode {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say it and exit."),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    **Arguments:**

    - `arguments`: without the program's name; those of the process by default.

    **Returns:**

    The exit code: 0, 1 for a rollout that ended early, 2 for a request that cannot be met, 130
    for an interrupt.
    """
    try:
        app(spread(sys.argv[1:] if arguments is None else arguments), prog_name="mbdnode")
    except SystemExit as stop:
        if stop.code == 130:
            typer.echo("interrupted", err=True)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (ValueError, OSError, MemoryError) as error:
        return _refuse(error)
    return 0


def _refuse(error: Exception) -> int:
    """Say what is wrong in one line: a traceback would be for a mistake of ours."""
    message = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        message = f"Not enough memory: {message}. Take fewer steps."
    typer.echo(f"error: {message}", err=True)
    return 2
