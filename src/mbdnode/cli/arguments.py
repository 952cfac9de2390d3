"""Arguments that several commands share: name=value, the roles of columns, what is held out.

Also a command as one types it, for the report that it makes.
"""

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.data.logs.columns import Columns

# The arguments of the command that runs, as they were typed.
TYPED: list[str] = []
# Arguments and options that several commands have, in the same words.
ModelArgument = Annotated[
    str,
    typer.Argument(
        help="A name from `mbdnode cases`, a mechanism's TOML file, a mechanism in Python, or a "
        "folder of `mbdnode fit` or `mbdnode run`.",
        metavar="CASE|FILE|module:name|DIR",
    ),
]
InitialOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Initial coordinates and velocities. What is left out is as in the case, follows from "
        "the constraints, or is zero.",
        metavar="NAME=VALUE ...",
    ),
]
StepOption = Annotated[
    float | None,
    typer.Option(help="Time step in seconds: the case's, or 0.01.", metavar="S"),
]
IntegratorOption = Annotated[
    str | None,
    typer.Option(
        help="Integrator, such as rk4, dopri8 or analytic: the case's or the fit's, or rk4.",
        metavar="NAME",
    ),
]
RolesOption = Annotated[
    list[str] | None,
    typer.Option("--role", help="The same on the command line.", metavar="ROLE=COLUMN ..."),
]
ParametersOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Parameters of the system.", metavar="NAME=VALUE ..."),
]
MechanismOption = Annotated[
    str, typer.Option(help="The mechanism of a fit, if it is in Python.", metavar="module:name")
]

# Options that take name=value, once each or several after one another.
ASSIGNING = ("--initial", "--role", "--set", "--unknown")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*=")
# Of unknown parameters a name alone will do; a log has an ending, or a folder before it.
_NAME = re.compile(r"[^\W\d]\w*(,[^\W\d]\w*)*$")


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Write `--initial a=1 b=2` as `--initial a=1 --initial b=2`, which Typer understands.

    Raises `UserError` for an option with another one in place of a value, which Typer would take
    for the value.
    """
    result: list[str] = []
    option, has_value = "", False
    for argument in arguments:
        head, equals, _ = argument.partition("=")
        if option and not has_value and argument.startswith("-"):
            raise UserError(
                f"{option} has no value: {argument!r} follows it. Write name=value after it, or "
                "leave it out."
            )
        if head in ASSIGNING:
            option, has_value = head, bool(equals)
        elif option and not has_value:
            has_value = True
        elif option and (
            _ASSIGNMENT.match(argument) or (option == "--unknown" and _NAME.match(argument))
        ):
            result.append(option)
        else:
            option = ""
        result.append(argument)
    return result


def split_assignments(option: str, pairs: Sequence[str], form: str, example: str) -> dict[str, str]:
    """Text by name, from pairs such as `["theta1=1.0"]`; `form` and `example` are for messages.

    Raises `UserError` for what has no name or no value, or is given twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        # Where the locale is C, Python keeps the bytes of what is typed; names in files are UTF-8.
        pair = pair.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise UserError(f"{option} {pair!r} is not {form}, such as {option} {example}.")
        if name in values:
            raise UserError(f"{option} gives {name!r} twice. Give it once.")
        values[name] = text
    return values


def parse_assignments(option: str, pairs: Sequence[str]) -> dict[str, float]:
    """Numbers by name, from pairs such as `["theta1=1.0"]`.

    Raises `UserError` for what is not `name=number`, or given twice.
    """
    values: dict[str, float] = {}
    for name, text in split_assignments(option, pairs, "name=value", "theta=0.5").items():
        try:
            values[name] = float(text)
        except ValueError:
            raise UserError(
                f"{option} {name}={text}: {text!r} is not a number. Write it like {name}=0.5."
            ) from None
        if not math.isfinite(values[name]):
            raise UserError(f"{option} {name}={text}: {name!r} must be a finite number.")
    return values


def parse_unknown(texts: Sequence[str]) -> dict[str, tuple[float | None, float | None] | None]:
    """Bounds of unknown parameters by name, None for none, from `["m,c", "L=0.1:2", "k=0:"]`."""
    found: dict[str, tuple[float | None, float | None] | None] = {}
    for text in (part.strip() for given in texts for part in given.split(",")):
        name, equals, bounds = text.partition("=")
        if not name:
            raise UserError(f"--unknown {text!r} names no parameter. Write --unknown m L=0.1:2.")
        if name in found:
            raise UserError(f"--unknown names {name!r} twice. Name it once.")
        found[name] = _bounds(name, bounds) if equals else None
    return found


def _bounds(name: str, text: str) -> tuple[float | None, float | None]:
    try:
        ends = [float(end) if end else None for end in text.split(":")]
        low, high = ends
    except ValueError:
        raise UserError(
            f"--unknown {name}={text}: bounds are two numbers with a colon between them, such as "
            f"{name}=0.1:2; leave one out where there is none: {name}=0.1:."
        ) from None
    if low is not None and high is not None and not low < high:
        raise UserError(
            f"--unknown {name}={text}: the lower bound must be below the upper one. Write them "
            f"like {name}=0.1:2."
        )
    return low, high


def with_roles(
    columns: "Columns", roles: Sequence[str], find_system: Callable[[], Any] | None = None
) -> "Columns":
    """Columns as `--role` changes them, such as `["time=t", "theta1=theta", "units=theta:deg"]`.

    The names of a system may stand in place of a role; `find_system` gives it, and is called only
    where it is needed. Raises `UserError` for what is not understood.
    """
    from mbdnode.data.logs.columns import as_columns

    changes: dict[str, Any] = {}
    single: dict[str, str] = {}
    known = [f.name for f in fields(columns)]
    for role, text in split_assignments("--role", roles, "role=column", "time=t").items():
        if not text:
            raise UserError(f"--role {role}= names no column. Write it like --role time=t.")
        if role in known:
            changes[role] = _role(role, text)
        else:
            single[role] = text
    if "units" in changes:
        changes["units"] = {**columns.units, **changes["units"]}
    columns = as_columns(columns, changes)
    return _with_single(columns, single, find_system) if single else columns


def _with_single(
    columns: "Columns", single: Mapping[str, str], find_system: Callable[[], Any] | None
) -> "Columns":
    """`theta1=theta`: the column of one of the system's own names."""
    from mbdnode.data.logs.columns import NAMED, as_columns

    known = [f.name for f in fields(columns)]
    if find_system is None:
        name, column = next(iter(single.items()))
        raise UserError(
            f"{unknown_name('role', name, known)} If {name!r} is what a coordinate or an input "
            f"should be called, write --role coordinates={name}:{column} or inputs={name}:{column}."
        )
    system = find_system()
    rates = dict(zip(system.rate_names, system.coordinate_names, strict=True))
    named = {role: columns.named(role) for role in NAMED}
    for name, column in single.items():
        if name in system.coordinate_names:
            named["coordinates"][name] = column
        elif name in rates:
            named["rates"][rates[name]] = column
        elif name in system.input_names:
            named["inputs"][name] = column
        elif name in system.parameter_names:
            named["parameters"][name] = _number_or_text(column)
        else:
            names = (*system.coordinate_names, *rates, *system.input_names)
            raise unknown_name("role, or name of the mechanism:", name, (*known, *names))
    return as_columns(columns, named)


def typed_roles(columns: "Columns") -> str:
    """Columns as `--role` has them; empty for names with the marks that part names there."""
    words = []
    for role, value in columns.given().items():
        pairs = value.items() if isinstance(value, Mapping) else ()
        listed = [value] if isinstance(value, str) else [*value]
        if any(mark in str(name) for name in (*listed, *dict(pairs).values()) for mark in ",:"):
            return ""
        named = [f"{name}:{column}" for name, column in pairs]
        words.append(f"{role}={','.join(map(str, named or listed))}")
    return f"--role {shlex.join(words)}"


def _role(role: str, text: str) -> Any:
    """A word or a number; names with commas; `name:column` where a name is not the column's."""
    from mbdnode.data.logs.columns import NAMED

    if role == "longest_step_s":
        return _number(role, text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if role in ("angles", "input_files"):
        return parts
    if role == "units":
        pairs = [part.rpartition(":") for part in parts]
        if not all(name and colon and unit for name, colon, unit in pairs):
            raise UserError(f"--role {role}={text} is not name:value, such as {role}=theta:deg.")
        return {name: unit for name, _, unit in pairs}
    if role not in NAMED:
        return text
    if not any(":" in part for part in parts):
        return parts
    pairs = [part.partition(":") for part in parts]
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise UserError(f"--role {role}={text} names one twice. Name each once.")
    value = _number_or_text if role == "parameters" else str
    return {name: value(column) if colon else name for name, colon, column in pairs}


def _number_or_text(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _number(role: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"--role {role}={text}: {text!r} is not a number.") from None


def holdout_of(text: str) -> float | tuple[str, ...]:
    """A part of the runs, such as "0.2", or files, such as "last.csv,other.csv"."""
    try:
        return float(text)
    except ValueError:
        return tuple(part.strip() for part in text.split(",") if part.strip())


def typed_command() -> str:
    """The command that runs; who types it again begins anew, so it resumes nothing."""
    return shlex.join(["mbdnode", *(word for word in TYPED if word != "--resume")])


def check_step(dt: float | None, usual: float | None = None) -> None:
    """Raise `UserError` for a time step that is not above zero; the `usual` one is the case's."""
    if dt is not None and not (math.isfinite(dt) and dt > 0):
        way_out = "" if usual is None else f" The case's own is {usual:g} s."
        raise UserError(f"--dt is {dt:g} s; it must be above zero and finite.{way_out}")


def check_at_least(option: str, value: int | None, least: int) -> None:
    """Raise `UserError` for a number of steps or a seed that is too small."""
    if value is not None and value < least:
        raise UserError(f"{option} is {value}; it must be at least {least}.")
