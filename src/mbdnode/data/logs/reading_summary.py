"""What became of every row that was read, in numbers that add up and in sentences."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

from mbdnode.formatting import plural

_FATES = {
    "missing": "cut for a value that is missing or not finite",
    "repeated": "merged into a row of the same time",
    "without_input": "cut for lack of an input at that time",
    "too_short": "cut, in segments that are too short",
    "truncated": "cut at the end of a file, in the middle of a row",
}

# Places at which replaced values are named one by one.
_PLACES = 20


@dataclass(frozen=True)
class Account:
    """Rows by fate.

    **Arguments:**

    - `read`: in the file.
    - `kept`: in the trajectories.
    - `missing`, `repeated`, `without_input`, `too_short`, `truncated`: not kept, by reason.
    """

    read: int = 0
    kept: int = 0
    missing: int = 0
    repeated: int = 0
    without_input: int = 0
    too_short: int = 0
    truncated: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether every row that was read has one fate."""
        return self.read == self.kept + sum(getattr(self, name) for name in _FATES)

    def __add__(self, other: "Account") -> "Account":
        names = [f.name for f in fields(self)]
        return Account(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def lines(self) -> list[str]:
        """One line for each fate that some row had."""
        lines = [f"{plural(self.read, 'row')} read, {self.kept:,} kept"]
        for name, what in _FATES.items():
            count = getattr(self, name)
            if count:
                lines.append(f"{plural(count, 'row')} {what}")
        return lines


@dataclass(frozen=True)
class Note:
    """Something that was done, or that a user should know.

    **Arguments:**

    - `kind`: "read", "converted", "cut", "unwrapped", "replaced", "estimated", "inputs", "windows"
        or "warning".
    - `text`: a sentence without its full stop.
    - `place`: the file and the run.
    """

    kind: str
    text: str
    place: str = ""


@dataclass(frozen=True)
class RunSummary:
    """What became of one run.

    **Arguments:**

    - `place`: the file and the run.
    - `account`: of its rows.
    - `segments`: the length in rows of each trajectory that it gave.
    - `step_s`: the median time between rows.
    """

    place: str
    account: Account
    segments: tuple[int, ...]
    step_s: float


@dataclass(frozen=True)
class Summary:
    """What was read and what was done to it; `print` shows it.

    **Arguments:**

    - `runs`: in the order of the files.
    - `notes`: in the order in which they came up.
    - `angles`: the coordinates that are angles, by what the user says, the unit or the name; None
        where that was not asked.
    - `units`: in SI, of the coordinates, inputs and parameters whose unit is known, by name.
    """

    runs: tuple[RunSummary, ...]
    notes: tuple[Note, ...]
    angles: tuple[str, ...] | None = None
    units: tuple[tuple[str, str], ...] = ()

    @property
    def account(self) -> Account:
        """Of all rows."""
        return sum((run.account for run in self.runs), Account())

    @property
    def warnings(self) -> tuple[Note, ...]:
        """What a user should look at."""
        return tuple(note for note in self.notes if note.kind == "warning")

    def of_kind(self, kind: str) -> tuple[Note, ...]:
        """The notes of one kind."""
        return tuple(note for note in self.notes if note.kind == kind)

    def __str__(self) -> str:
        segments = sum(len(run.segments) for run in self.runs)
        into = "trajectory" if segments == 1 else "trajectories"
        runs = plural(len(self.runs), "run")
        first, *rest = self.account.lines()
        lines = [f"{runs}, {segments:,} {into}: {first}", *(f"  {line}" for line in rest)]
        return "\n".join([*lines, *(f"  {line}" for line in gathered(self.notes))])


def gathered(notes: Iterable[Note]) -> list[str]:
    """Notes as lines; those that differ in their numbers alone are written once.

    What was replaced is named place by place in the first twenty.
    """
    alike: dict[tuple[str, str], list[Note]] = {}
    replaced = 0
    for note in notes:
        replaced += note.kind == "replaced"
        if note.kind == "replaced" and replaced <= _PLACES:
            alike[note.kind, f"{replaced}"] = [note]
            continue
        alike.setdefault((note.kind, re.sub(r"[\d.,]+(e[+-]\d+)?", "#", note.text)), []).append(
            note
        )
    lines = []
    for (kind, _), several in alike.items():
        places = list(dict.fromkeys(note.place for note in several if note.place))
        more = f"; same in {len(places) - 1:,} more" if len(places) > 1 else ""
        at = f" ({places[0]}{more})" if places else ""
        lines.append(f"{kind}: {several[0].text}{at}")
    return lines
