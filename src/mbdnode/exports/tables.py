"""What the entries of an exported model's arrays are: names, units, start values, identifiers.

A name of a coordinate may be any text; an identifier may not. What is no letter, digit or
underscore becomes an underscore, and a keyword or a name that is taken gets a number.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mbdnode.errors import UserError
from mbdnode.exports.c_printer import C_KEYWORDS

_WORDS = """
arguments await class catch debugger delete enum eval export extends finally function implements
import in instanceof interface let new null package private protected public super this throw
try typeof undefined var void with yield NaN Infinity
"""
_JAVASCRIPT_KEYWORDS = frozenset(_WORDS.split())
KEYWORDS = C_KEYWORDS | _JAVASCRIPT_KEYWORDS
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Quantity:
    """One entry of an array of an exported model.

    **Arguments:**

    - `name`: the model's own.
    - `identifier`: in C and JavaScript, unique among the quantities of the model.
    - `unit`: as the model says.
    - `start`: a coordinate's and a velocity's value where the model is assembled, zero for an
        input, the default of a parameter; NaN for an output.
    - `low`, `high`: the bounds of a parameter.
    - `is_angle`: whether it is an angle, or the rate of one.
    - `renamed`: whether the identifier is another word than the name.
    """

    name: str
    identifier: str
    unit: str = ""
    start: float = float("nan")
    low: float = float("-inf")
    high: float = float("inf")
    is_angle: bool = False
    renamed: bool = False


@dataclass(frozen=True)
class QuantityTables:
    """All quantities of an exported model.

    **Arguments:**

    - `coordinates`, `rates`: the entries of `q` and `v`.
    - `inputs`, `parameters`, `outputs`: those of `u`, `p` and `y`.
    - `independent`: the coordinates that are independent where the model is assembled, by index.
    - `independent_rates`: the same for velocities.
    """

    coordinates: tuple[Quantity, ...]
    rates: tuple[Quantity, ...]
    inputs: tuple[Quantity, ...]
    parameters: tuple[Quantity, ...]
    outputs: tuple[Quantity, ...]
    independent: tuple[int, ...]
    independent_rates: tuple[int, ...]

    def groups(self) -> tuple[tuple[str, str, tuple[Quantity, ...]], ...]:
        """Each kind with the letter of its array."""
        return (
            ("coordinate", "q", self.coordinates),
            ("rate", "v", self.rates),
            ("input", "u", self.inputs),
            ("parameter", "p", self.parameters),
            ("output", "y", self.outputs),
        )

    def renamed(self) -> tuple[Quantity, ...]:
        """The quantities whose names are no identifiers of their own."""
        return tuple(x for _, _, group in self.groups() for x in group if x.renamed)


def check_identifier(name: str) -> None:
    """Raise `UserError` unless a program may have this name.

    **Arguments:**

    - `name`: prefix of everything in the printed code.
    """
    if not _IDENTIFIER.fullmatch(name) or name in KEYWORDS or len(name) > 63:
        raise UserError(
            f"{name!r} cannot be the name of an exported model: it starts names in C, so it has "
            "letters, digits and underscores only, begins with a letter, is no keyword and has at "
            "most 63 characters. Give another one, such as 'plant'."
        )


def identifiers(names: Iterable[str]) -> list[str]:
    """An identifier for each name, all different.

    **Arguments:**

    - `names`: any text.

    **Returns:**

    The names themselves where they can be.
    """
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not plain or not plain[0].isalpha():
            plain = f"x{plain}"
        # Index macros are in upper case, where names must differ too.
        base, number = plain, 1
        while plain in KEYWORDS or plain.upper() in taken:
            number += 1
            plain = f"{base}_{number}"
        taken.add(plain.upper())
        found.append(plain)
    return found
