"""Names in printed code: which are allowed, and what becomes of those that are not.

A name of a coordinate may be any text; an identifier may not. What is no letter, digit or
underscore becomes an underscore, and a keyword or a name that is taken gets a number.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from mbdnode.errors import UserError

# What the folder of an export is marked as.
KIND = "export"
_C_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while _Bool _Complex _Imaginary bool true false main NULL EOF asm typeof
alignas alignof constexpr nullptr static_assert thread_local y0 y1 yn j0 j1 jn gamma signgam
"""
C_KEYWORDS = frozenset(_C_WORDS.split())
_WORDS = """
arguments await class catch debugger delete enum eval export extends finally function implements
import in instanceof interface let new null package private protected public super this throw
try typeof undefined var void with yield NaN Infinity
"""
_JAVASCRIPT_KEYWORDS = frozenset(_WORDS.split())
KEYWORDS = C_KEYWORDS | _JAVASCRIPT_KEYWORDS
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def check_identifier(name: str) -> None:
    """Raise `UserError` unless the code of a program can begin its names with this one."""
    if not _IDENTIFIER.fullmatch(name) or name in KEYWORDS or len(name) > 63:
        raise UserError(
            f"{name!r} cannot be the name of an exported model: it starts names in C, so it has "
            "letters, digits and underscores only, begins with a letter, is no keyword and has at "
            "most 63 characters. Give another one, such as 'plant'."
        )


def identifiers(names: Iterable[str]) -> list[str]:
    """An identifier for each name, all different; the names themselves where they can be."""
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


def identifier_of(path: Path) -> str:
    """A name for what is written to a path."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", path.resolve().stem)
    return plain if plain[:1].isalpha() else f"model_{plain}".rstrip("_")
