"""What is read from a file of another program: names that ours allow, and what is not taken over.

Other programs have contacts, limits, sensors and tags of their own. Nothing of it is dropped in
silence: one warning names every kind and how many there are.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from mbdnode.errors import UserError
from mbdnode.mechanisms.spatial.description import GROUND

# As in mechanism files: names become columns of files and words of a command line.
_OTHER = re.compile(r"[^A-Za-z0-9_]")
# No model of a robot is larger; a file may be made to be slow.
_LARGEST_BYTES = 30_000_000
# As many as a mechanism file may have.
_MOST_PARTS = 1_000
# How many names of a kind a warning shows.
_SHOWN = 3


class Imported:
    """Keeps account of names and omissions while a file is read.

    **Arguments:**

    - `path`: of the file.
    """

    def __init__(self, path: Path):
        self.path = path
        self._taken = {GROUND, "t"}
        self._noted: dict[str, list[str]] = {}
        self._omitted: Counter[str] = Counter()

    def name(self, given: str, otherwise: str) -> str:
        """A name for a part, as given where it can be: unique, of letters, digits, underscores.

        **Arguments:**

        - `given`: in the file.
        - `otherwise`: what to add to a name that another part has.

        **Returns:**

        The name. A part that gets another name than it has is named in the warning.
        """
        name = self.new_name(given, otherwise)
        if name != given:
            self.note("renamed", f"{given} ({name})")
        return name

    def new_name(self, wanted: str, otherwise: str) -> str:
        """A name for a part that has none in the file; arguments as those of `name`."""
        plain = _OTHER.sub("_", wanted)
        plain = plain if plain[:1].isalpha() else f"{otherwise}{plain}"
        name, number = plain, 1
        while name in self._taken:
            name = f"{plain}_{otherwise}" if number == 1 else f"{plain}_{otherwise}{number}"
            number += 1
        self._taken.add(name)
        return name

    def omit(self, kind: str, count: int = 1) -> None:
        """Note what is not taken over; `kind` is in the plural, such as "sensors"."""
        self._omitted[kind] += count

    def note(self, kind: str, name: str) -> None:
        """Note what a user should know, such as the name of a body whose inertia no body has."""
        self._noted.setdefault(kind, []).append(name)

    def check_count(self, parts: Collection[object]) -> None:
        """Raise `UserError` for more parts than a mechanism may have."""
        if len(parts) > _MOST_PARTS:
            raise UserError(
                f"{self.path} has {len(parts):,} bodies; a mechanism has at most {_MOST_PARTS:,}. "
                "Leave some out."
            )

    def warn(self) -> None:
        """Warn of all that was not taken over or has another name."""
        said = [f"{count} {kind}" for kind, count in self._omitted.items() if count]
        sentences = [f"not taken over: {', '.join(said)}."] if said else []
        for kind, names in self._noted.items():
            more = len(names) - _SHOWN
            listed = [*names[:_SHOWN], *([f"{more} more"] if more > 0 else [])]
            sentences.append(f"{kind}: {', '.join(listed)}.")
        if sentences:
            warnings.warn(f"{self.path}: {' '.join(sentences)}", stacklevel=4)


def read_bytes(path: Path) -> bytes:
    """The content of a model's file; raises `UserError` for what is no regular file."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if path.is_file() and size <= _LARGEST_BYTES else None
    except FileNotFoundError:
        raise UserError(f"There is no file '{path}'. Check the name, or where you are.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read: {error}.") from error
    if content is None:
        raise UserError(f"'{path}' is no regular file of at most {_LARGEST_BYTES:,} bytes.")
    return content
