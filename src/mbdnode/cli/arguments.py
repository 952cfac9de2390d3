"""Arguments of the form name=value, and a command as one types it."""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer.models

from mbdnode.errors import UserError

# Options that take name=value, once each or several after one another.
ASSIGNING = ("--initial", "--role", "--set")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*=")


def spread(arguments: Sequence[str]) -> list[str]:
    """Write `--initial a=1 b=2` as `--initial a=1 --initial b=2`, which Typer understands.

    **Arguments:**

    - `arguments`: as they were typed.

    **Returns:**

    The arguments for Typer. Raises `UserError` for an option with another one in place of a value,
    which Typer would take for the value.
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
        elif option and _ASSIGNMENT.match(argument):
            result.append(option)
        else:
            option = ""
        result.append(argument)
    return result


def split_assignments(option: str, pairs: Sequence[str], form: str, example: str) -> dict[str, str]:
    """Text by name.

    **Arguments:**

    - `option`: where they were given, for messages.
    - `pairs`: such as `["theta1=1.0"]`.
    - `form`, `example`: what a pair should look like, for messages.

    **Returns:**

    A dictionary. Raises `UserError` for what has no name or no value, or is given twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise UserError(f"{option} {pair!r} is not {form}, such as {option} {example}.")
        if name in values:
            raise UserError(f"{option} gives {name!r} twice. Give it once.")
        values[name] = text
    return values


def parse_assignments(option: str, pairs: Sequence[str]) -> dict[str, float]:
    """Numbers by name.

    **Arguments:**

    - `option`: where they were given, for messages.
    - `pairs`: such as `["theta1=1.0"]`.

    **Returns:**

    A dictionary. Raises `UserError` for what is not `name=number`, or given twice.
    """
    values: dict[str, float] = {}
    for name, text in split_assignments(option, pairs, "name=value", "theta=0.5").items():
        try:
            values[name] = float(text)
        except ValueError:
            raise UserError(
                f"{option} {name}={text}: {text!r} is not a number. Write it like {name}=0.5."
            ) from None
    return values


def typed_command(command: Callable, given: Mapping[str, Any]) -> str:
    """A command as one would type it, with every option that differs from its default.

    It goes by the command's own description of its options, so a new one cannot be forgotten.

    **Arguments:**

    - `command`: the function that carries it out.
    - `given`: the values of its parameters, by name.

    **Returns:**

    What to type to carry it out again.
    """
    places: list[str] = []
    options: list[str] = []
    for name, parameter in inspect.signature(command).parameters.items():
        value = given[name]
        if value == parameter.default or value is None:
            continue
        (kind,) = parameter.annotation.__metadata__
        values = [str(each) for each in value] if isinstance(value, (list, tuple)) else [str(value)]
        if isinstance(kind, typer.models.ArgumentInfo):
            places += values
            continue
        # Typer keeps a name that stands first as a default.
        names = [word for word in (kind.default, *(kind.param_decls or ())) if word is not ...]
        option = next(iter(names), f"--{name.replace('_', '-')}")
        options += [option] if value is True else [w for each in values for w in (option, each)]
    return shlex.join(["mbdnode", command.__name__, *places, *options])
