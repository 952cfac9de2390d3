"""The application: its commands, its version, and what a mistake looks like, a user's or ours."""

import contextlib
import importlib
import io
import os
import platform
import shlex
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mbdnode import __version__
from mbdnode.cli.arguments import TYPED, repeat_options
from mbdnode.cli.interrupts import INTERRUPTED, exit_code, hear_termination
from mbdnode.errors import UserError
from mbdnode.naming import import_object
from mbdnode.waiting_notice import progress

# Every command is a function in a module of the same name; help lists them in this order.
COMMANDS = (
    *("cases", "simulate", "run", "mpc", "reproduce", "gallery", "mechanism", "inspect", "fit"),
    *("predict", "play", "export"),
)


def make_app() -> typer.Typer:
    """The application, ready to be called with arguments."""
    app = typer.Typer(
        name="mbdnode",
        help="Learn, simulate and control constrained multibody systems.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in COMMANDS:
        app.command()(getattr(importlib.import_module(f"mbdnode.cli.{name}"), name))
    return app


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"mbdnode {__version__}")
        raise typer.Exit
    return wanted


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            help="Compile everything anew. Else compiled programs are kept in $MBDNODE_CACHE, by "
            "default the user's cache folder.",
        ),
    ] = False,
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="module:name",
            help="Code of your own that a model's files name: a network, an activation, a class of "
            "models. Nothing is imported because a file names it. Once for each.",
        ),
    ] = None,
) -> None:
    if no_cache:
        os.environ["MBDNODE_CACHE"] = "off"
    for name in code or ():
        _import(name)


def _import(name: str) -> None:
    if not isinstance(found := import_object(name), type):
        return
    from mbdnode.models.base import AbstractModel
    from mbdnode.models.registry import register_model

    if issubclass(found, AbstractModel):
        register_model(name)


# As in sysexits.h: an internal error of the software.
BUG = 70


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    **Arguments:**

    - `arguments`: without the program's name; those of the process by default.

    **Returns:**

    The exit code: 0, 1 for a rollout that ended early, 2 for a request that cannot be met, 70
    for a mistake of this program, 130 for an interrupt, 143 for SIGTERM.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        # The whole process is ours. What overflows is told by a status, not by lines of source.
        warnings.simplefilter("ignore", RuntimeWarning)
        hear_termination()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # What it cannot show, it spells: θ as \u03b8.
                stream.reconfigure(errors="backslashreplace")
    TYPED[:] = given
    notice = contextlib.nullcontext() if arguments is not None else progress()
    try:
        with notice, _warnings_in_a_line():
            make_app()(repeat_options(given), prog_name="mbdnode")
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            typer.echo("interrupted", err=True)
            return exit_code()
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:  # Before the command has begun, or after its end.
        typer.echo("interrupted", err=True)
        return exit_code()
    except UserError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(_of_the_system(error))
    except Exception as error:
        if _is_out_of_memory(error):
            return _refuse(f"Not enough memory: {error or 'no more was given'}. Ask for less.")
        return _report_bug(error, given)
    return 0


@contextlib.contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Warnings of ours are for the user: a sentence, without the line of code that says it."""
    shown = warnings.showwarning

    def show(message, category, *place, **more):
        if category is UserWarning:
            typer.echo(f"warning: {message}", err=True)
        else:
            shown(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _refuse(message: str) -> int:
    """Say what is wrong in one line: a traceback would be for a mistake of ours."""
    typer.echo(f"error: {message}", err=True)
    return 2


def _of_the_system(error: OSError) -> str:
    """What the operating system refused; messages of our own have no number."""
    if error.errno is None or not error.strerror:
        return str(error) or type(error).__name__
    place = "" if error.filename is None else f" '{error.filename}'"
    return f"The system refused{place}: {error.strerror}."


def _is_out_of_memory(error: Exception) -> bool:
    """Python and NumPy have an exception of their own for it, XLA has a word in the message."""
    return isinstance(error, MemoryError) or (
        type(error).__name__ == "JaxRuntimeError" and "RESOURCE_EXHAUSTED" in str(error)
    )


def _report_bug(error: Exception, arguments: Sequence[str]) -> int:
    """Show the traceback, and whose mistake it is."""
    traceback.print_exception(error)
    place = _users_own_code(error)
    if place is not None:
        first = (str(error).strip().splitlines() or [""])[0]
        typer.echo(f"error: {place} raised {type(error).__name__}: {first}", err=True)
        return 2
    typer.echo(
        "internal error, please report it with this traceback: "
        f"{shlex.join(['mbdnode', *arguments])} "
        f"(mbdnode {__version__}, Python {platform.python_version()}, {platform.platform()})",
        err=True,
    )
    return BUG


def _users_own_code(error: Exception) -> str | None:
    """Where a user's own mechanism raised it; None if it was our code or a library's."""
    known = [Path(__file__).parents[1], *map(Path, sysconfig.get_paths().values())]
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in reversed(frames)]
    if isinstance(error, SyntaxError):  # It comes before any frame of its file.
        places.insert(0, (error.filename or "", error.lineno))
    for name, line in places:
        path = Path(name)
        if path.is_file() and not any(path.is_relative_to(place) for place in known):
            return f"'{path}', line {line},"
    return None
