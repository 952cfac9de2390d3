"""Arguments of the form name=value."""

import re
from collections.abc import Sequence

from mbdnode.errors import UserError

# Options that take name=value, once each or several after one another.
ASSIGNING = ("--initial", "--role", "--set")
_ASSIGNMENT = re.compile(r"[^\W\d]\w*=")


def spread(arguments: Sequence[str]) -> list[str]:
    """Write `--initial a=1 b=2` as `--initial a=1 --initial b=2`, which Typer understands."""
    result: list[str] = []
    option, has_value = "", False
    for argument in arguments:
        head, equals, _ = argument.partition("=")
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
