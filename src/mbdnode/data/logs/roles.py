"""Where the column of a role is in a file."""

from dataclasses import dataclass

from mbdnode.data.logs.columns import Columns, spelled
from mbdnode.data.logs.log import AbstractLog, column_name
from mbdnode.data.logs.units import Heading, Unit, find_unit, why_unclear
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# Columns that an error names.
_LISTED = 30


@dataclass(frozen=True)
class Found:
    """A role's column in one file.

    **Arguments:**

    - `index`: of the column.
    - `heading`: above it.
    - `unit`: None if it is not given, or not known.
    """

    index: int
    heading: Heading
    unit: Unit | None

    @property
    def label(self) -> str:
        """How to name it to a user."""
        return self.heading.raw or column_name(self.index)

    def plain(self, name: str, column: str) -> str:
        """The role's name, without a unit that the values no longer have."""
        is_heading = name == column == self.heading.raw
        return self.heading.name if is_heading and self.heading.unit else name

    @property
    def si_unit(self) -> str:
        """After conversion; empty if it is not known, or a bare number."""
        return self.unit.si if self.unit and self.unit.si != "1" else ""

    @property
    def factor(self) -> float:
        """To SI."""
        return self.unit.factor if self.unit else 1.0


def find_column(log: AbstractLog, wanted: str, columns: Columns) -> Found | None:
    """The column that a role names.

    **Arguments:**

    - `log`: where to look.
    - `wanted`: its whole heading, its name without the unit, or `column2` for the second.
    - `columns`: whose units go before those of the headings.

    **Returns:**

    The column; None if there is none. Raises `UserError` if there are several.
    """
    index = _index(log, wanted)
    if index is None:
        return None
    heading, stated = log.headings[index], columns.units
    names = (wanted, heading.raw, heading.name)
    text = next((stated[name] for name in names if name in stated), heading.unit)
    why = why_unclear(text)
    if why:
        raise UserError(
            f"Column {heading.raw or wanted!r} of '{log.name}' has the unit {text!r}, which is not "
            f"clear: it may be {why}. Correct the heading, or say which with "
            f"{spelled('units', {heading.name or wanted: '...'})}."
        )
    return Found(index, heading, find_unit(text) if text else None)


def _index(log: AbstractLog, wanted: str) -> int | None:
    for key in (
        lambda h: h.raw,
        lambda h: h.name,
        lambda h: h.raw.lower(),
        lambda h: h.name.lower(),
    ):
        sought = wanted if key(Heading("A", "A")) == "A" else wanted.lower()
        matching = [i for i, h in enumerate(log.headings) if key(h) == sought and sought]
        if len(matching) > 1:
            raws = [log.headings[i].raw for i in matching]
            if len(set(raws)) < len(raws):
                raws = [column_name(i) for i in matching]
            raise UserError(
                f"'{log.name}' has {len(matching)} columns called {wanted!r}. Say which is meant: "
                f"{' or '.join(raws)}."
            )
        if matching:
            return matching[0]
    numbered = [column_name(i) for i in range(len(log.headings))]
    return numbered.index(wanted) if wanted in numbered else None


def missing_column(log: AbstractLog, wanted: str, role: str) -> UserError:
    """The error for a role whose column is not there."""
    if wanted in log.left_out:
        return UserError(
            f"{wanted!r} of '{log.name}' cannot be used for {role}: it is {log.left_out[wanted]}."
        )
    known = [h.raw or column_name(i) for i, h in enumerate(log.headings)] + list(log.constants)
    known = [*known[:_LISTED], "..."] if len(known) > _LISTED else known
    reason = unknown_name(f"column in '{log.name}' for {role}:", wanted[:60], known)
    reason = UserError(f"{reason} Name one of these, or leave the file out where others have it.")
    units = [find_unit(h.unit) for h in log.headings if h.unit]
    si = {unit.si for unit in units if unit is not None}
    if role != "coordinates" or si & {"m", "rad"} or not si & {"m/s", "rad/s"}:
        return reason
    return UserError(
        f"{reason} Positions cannot be had from rates: their start is unknown and the noise would "
        "add up."
    )
