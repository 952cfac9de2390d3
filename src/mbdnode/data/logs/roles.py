"""Which column is what, as the user says it, and where that column is in a file."""

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mbdnode.data.logs.log import AbstractLog, column_name
from mbdnode.data.logs.units import Heading, Unit, find_unit, why_unclear
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

GAPS = ("refuse", "split")
OUTLIERS = ("replace", "keep")
# Columns that an error names.
_LISTED = 30
INTERPOLATIONS = ("held", "linear")
# Whether who reads a message types options, or writes Python.
_TYPES_OPTIONS: ContextVar[bool] = ContextVar("types options", default=False)


@contextlib.contextmanager
def hints_as_options() -> Iterator[None]:
    """While this lasts, messages show settings as options of the command line."""
    token = _TYPES_OPTIONS.set(True)
    try:
        yield
    finally:
        _TYPES_OPTIONS.reset(token)


def setting(role: str, value: str | Mapping[str, str] | None = None) -> str:
    """How a user writes a setting of `read` where they are.

    **Arguments:**

    - `role`: an argument of `read`.
    - `value`: a word, or names and columns; None if any value will do.

    **Returns:**

    `gaps='split'` in Python, `--role gaps=split` on the command line.
    """
    if not are_options():
        return f"{role}={'...' if value is None else repr(value)}"
    text = "..." if value is None else value
    if isinstance(text, Mapping):
        text = ",".join(f"{name}:{column}" for name, column in text.items())
    return f"--role {shlex.quote(f'{role}={text}')}"


def argument(name: str, option: str) -> str:
    """How a user writes an argument where they are: its name in Python, or an option."""
    return option if are_options() else name


def are_options() -> bool:
    """Whether messages show settings as options of the command line."""
    return _TYPES_OPTIONS.get()


@dataclass(frozen=True)
class Roles:
    """What the columns are.

    **Arguments:**

    - `time`: a column.
    - `coordinates`, `inputs`: pairs of a name and a column.
    - `rates`: a column for each coordinate, None for one that is to be estimated.
    - `parameters`: pairs of a name and a column, or a number.
    - `run`: a column that tells runs apart; None if there is one run in a file.
    - `input_time`: the column of the inputs' own times; None if they have the states' times.
    - `units`: by column, for those whose heading does not say it, or wrongly.
    - `angles`: coordinates that are angles; None to go by unit and name.
    """

    time: str
    coordinates: tuple[tuple[str, str], ...]
    rates: tuple[str | None, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str | float], ...] = ()
    run: str | None = None
    input_time: str | None = None
    units: tuple[tuple[str, str], ...] = ()
    angles: tuple[str, ...] | None = None


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


def make_roles(
    time: Any,
    coordinates: Any,
    rates: Any,
    inputs: Any,
    parameters: Any,
    run: Any,
    input_time: Any,
    units: Any,
    angles: Any,
) -> Roles:
    """The roles in one form, checked as far as they can be without a file.

    **Arguments:**

    - as for `read`.

    **Returns:**

    `Roles`.
    """
    pairs = _pairs("coordinates", coordinates)
    if not pairs:
        what = (
            f"rates {_listed(rates)} were given without coordinates" if rates else "none is given"
        )
        raise UserError(
            f"A log needs at least one coordinate, but {what}. Positions cannot be had from rates: "
            "their start is unknown and the noise would add up. Record the positions."
        )
    names = [name for name, _ in pairs]
    if isinstance(rates, Mapping):
        for name in rates:
            if name not in names:
                raise unknown_name("coordinate in rates", name, names)
        columns = tuple(rates.get(name) for name in names)
    else:
        columns = tuple(_several("rates", rates))
        if columns and len(columns) != len(pairs):
            raise UserError(
                f"{len(columns)} rates for {len(pairs)} coordinates ({', '.join(names)}). Give one "
                "for each in the same order, None for one to be estimated, or none at all."
            )
    if units is not None and not isinstance(units, Mapping):
        raise UserError(f"units is {units!r}; give them by column, such as {{'theta': 'deg'}}.")
    for column, unit in (units or {}).items():
        if not isinstance(unit, str):
            raise UserError(f"The unit of {column!r} is {unit!r}; give it as text, such as 'deg'.")
        why = why_unclear(unit)
        if why:
            raise UserError(
                f"Unit {unit!r} of {column!r} is not clear, for capitals count and some mean two "
                f"things. Write {why}."
            )
        if find_unit(unit) is None:
            raise UserError(
                f"Unit {unit!r} is not known. Give one such as deg, rpm, mm or ms, or '1' to keep "
                "the numbers as they are."
            )
    for name in _several("angles", angles):
        if name not in names:
            raise unknown_name("coordinate in angles", name, names)
    given = [time, run, input_time, *columns, *(column for _, column in pairs)]
    for column in [*given, *(column for _, column in _pairs("inputs", inputs))]:
        if column is not None and not isinstance(column, str):
            raise UserError(
                f"A column is called {column!r}; give its heading as text, or its place as "
                "'column2'."
            )
    roles = Roles(
        time=time,
        coordinates=pairs,
        rates=columns or (None,) * len(pairs),
        inputs=_pairs("inputs", inputs),
        parameters=_pairs("parameters", parameters),
        run=run,
        input_time=input_time,
        units=tuple((units or {}).items()),
        angles=None if angles is None else tuple(angles),
    )
    _check_once(roles)
    return roles


def _several(role: str, given: Any) -> list:
    if isinstance(given, str):
        raise UserError(f"{role} is {given!r}; give a list of columns, such as [{given!r}].")
    if given is not None and not isinstance(given, Iterable):
        raise UserError(f"{role} is {given!r}; give a list of columns, such as ['theta'].")
    return [] if given is None else list(given)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names)


def _pairs(role: str, given: Any) -> tuple[tuple[str, Any], ...]:
    if isinstance(given, Mapping):
        pairs = tuple((str(name), column) for name, column in given.items())
    else:
        pairs = tuple((str(name), str(name)) for name in _several(role, given))
    for name, column in pairs:
        if not name.strip() or column == "":
            raise UserError(
                f"One of the {role} has no name, or none of a column. Give both, such as "
                f"{setting(role, {'theta1': 'theta'})}."
            )
    return pairs


def _check_once(roles: Roles) -> None:
    """Raise `UserError` for a column in two roles."""
    said = {"time": [roles.time], "coordinates": [c for _, c in roles.coordinates]}
    said |= {"rates": [c for c in roles.rates if c], "inputs": [c for _, c in roles.inputs]}
    said |= {"parameters": [c for _, c in roles.parameters if isinstance(c, str)]}
    seen: dict[str, str] = {}
    for role, columns in said.items():
        for column in columns:
            if column in seen:
                twice = (
                    f"twice in {role}" if seen[column] == role else f"in {seen[column]} and {role}"
                )
                raise UserError(f"Column {column!r} is {twice}. Give each column one role.")
            seen[column] = role


def find_column(log: AbstractLog, wanted: str, roles: Roles) -> Found | None:
    """The column that a role names.

    **Arguments:**

    - `log`: where to look.
    - `wanted`: its whole heading, its name without the unit, or `column2` for the second.
    - `roles`: whose units go before those of the headings.

    **Returns:**

    The column; None if there is none. Raises `UserError` if there are several.
    """
    index = _index(log, wanted)
    if index is None:
        return None
    heading, stated = log.headings[index], dict(roles.units)
    names = (wanted, heading.raw, heading.name)
    text = next((stated[name] for name in names if name in stated), heading.unit)
    why = why_unclear(text)
    if why:
        raise UserError(
            f"Column {heading.raw or wanted!r} of '{log.name}' has the unit {text!r}, which is not "
            f"clear: it may be {why}. Correct the heading, or say which with "
            f"{setting('units', {heading.name or wanted: '...'})}."
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
