"""Where the columns that a user names are in one log, and in which units."""

from dataclasses import dataclass, replace

from mbdnode.data.logs.columns import NAMED, Columns, spelled
from mbdnode.data.logs.log import AbstractLog, column_name
from mbdnode.data.logs.units import Heading, Unit, find_unit, why_unclear
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# Columns that an error names.
_LISTED = 30


@dataclass(frozen=True)
class ResolvedColumn:
    """A role's column in one file.

    **Arguments:**

    - `index`: of the column.
    - `heading`: above it.
    - `unit`: None if it is not given, or not known.
    - `name`: what it is called from here on: as the user says, but without a unit that the values
        no longer have.
    """

    index: int
    heading: Heading
    unit: Unit | None
    name: str = ""

    @property
    def label(self) -> str:
        """How to name it to a user."""
        return self.heading.raw or column_name(self.index)

    @property
    def si_unit(self) -> str:
        """After conversion; empty if it is not known, or a bare number."""
        return self.unit.si if self.unit and self.unit.si != "1" else ""

    @property
    def factor(self) -> float:
        """To SI."""
        return self.unit.factor if self.unit else 1.0


@dataclass(frozen=True)
class ResolvedColumns:
    """The columns of one log that are used.

    **Arguments:**

    - `log`: the log.
    - `columns`: what was asked for.
    - `time`, `coordinates`, `inputs`: their columns.
    - `rates`: None for one that is to be estimated.
    - `parameters`: a column or a number, by name.
    - `run`: the column that tells runs apart.
    """

    log: AbstractLog
    columns: Columns
    time: ResolvedColumn
    coordinates: tuple[ResolvedColumn, ...]
    rates: tuple[ResolvedColumn | None, ...]
    inputs: tuple[ResolvedColumn, ...]
    parameters: dict[str, ResolvedColumn | float]
    run: ResolvedColumn | None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """As the user wrote them."""
        return tuple(self.columns.named("coordinates"))

    @property
    def measured_rates(self) -> list[ResolvedColumn]:
        """Those that have a column."""
        return [found for found in self.rates if found is not None]

    @property
    def table(self) -> list[ResolvedColumn]:
        """Coordinates, measured rates and inputs, in this order."""
        return [*self.coordinates, *self.measured_rates, *self.inputs]


def resolve_columns(
    log: AbstractLog, columns: Columns, with_inputs: bool = True
) -> ResolvedColumns:
    """Find every role's column, those of inputs only if they have the states' times.

    The log gets notes of what is converted. Raises `UserError` for a column that is not there or
    holds words.
    """

    def find(wanted: str, role: str, name: str = "") -> ResolvedColumn:
        found = find_column(log, wanted, columns)
        if found is None:
            raise _missing_column(log, wanted, role)
        if role != "run" and log.is_text(found.index):
            way = "Write seconds, or 2024-05-31T12:00:00.25" if role == "time" else "Name another"
            raise UserError(
                f"Column {found.label!r} of '{log.name}' holds words, not numbers, so it cannot be "
                f"used for {role}. {way}."
            )
        is_heading = name in ("", wanted) and wanted == found.heading.raw
        plain = found.heading.name if is_heading and found.heading.unit else name or wanted
        return replace(found, name=plain)

    # A log of inputs alone need not have what else the roles name.
    inputs_alone = not columns.coordinates
    elsewhere = {*columns.named("inputs").values(), columns.input_time}
    for column in () if inputs_alone else columns.units:
        if column not in elsewhere and find_column(log, column, columns) is None:
            raise _missing_column(log, column, "units")
    parameters: dict[str, ResolvedColumn | float] = {}
    for name, column in columns.named("parameters").items():
        if not isinstance(column, str):
            parameters[name] = float(column)
        elif column in log.constants:
            parameters[name] = log.constants[column]
        elif not (inputs_alone and find_column(log, column, columns) is None):
            found = find(column, "parameters", name)
            parameters[found.name] = found
    run = columns.run
    if inputs_alone and run is not None and find_column(log, run, columns) is None:
        run = None
    coordinates, rates, inputs = map(columns.named, NAMED[:3])
    layout = ResolvedColumns(
        log=log,
        columns=columns,
        time=find(columns.time or "", "time"),
        coordinates=tuple(find(x, "coordinates", name) for name, x in coordinates.items()),
        rates=tuple(find(rates[name], "rates") if name in rates else None for name in coordinates),
        inputs=tuple(find(x, "inputs", name) for name, x in inputs.items() if with_inputs),
        parameters=parameters,
        run=find(run, "run") if run else None,
    )
    _check_units(layout)
    return layout


def _check_units(layout: ResolvedColumns) -> None:
    """Refuse units that cannot be meant; the log gets notes of the others."""
    log, time = layout.log, layout.time
    if time.unit is not None and time.unit.si not in ("s", "1"):
        raise UserError(
            f"Column {time.label!r} of '{log.name}' is named as the time, but its unit "
            f"{time.unit.symbol!r} is none of time. Name another column, or say its unit with "
            f"{spelled('units', {time.heading.name or time.label: 's'})}."
        )
    asked = layout.columns.named("coordinates").values()
    for column, found in zip(asked, layout.coordinates, strict=True):
        if found.unit is not None and found.unit.si not in ("m", "rad", "1"):
            raise UserError(
                f"Column {found.label!r} of '{log.name}' is named as a coordinate, but its unit "
                f"{found.unit.symbol!r} is neither one of length nor of angle. Name another "
                f"column, or say its unit with {spelled('units', {column: 'deg'})}; "
                "'1' takes the numbers as they are."
            )
    own = (found for found in layout.parameters.values() if isinstance(found, ResolvedColumn))
    for found in (time, *layout.table, *own):
        unit, written = found.unit, found.heading.unit
        if unit is None and written:
            log.warn(
                f"unit {written!r} of {found.label!r} is not known; the numbers are as they are"
            )
        elif unit is not None and unit.factor != 1.0:
            text = f"{found.label!r} from {unit.symbol} to {unit.si}, times {unit.factor:.6g}"
            log.note("converted", text)


def find_column(log: AbstractLog, wanted: str, columns: Columns) -> ResolvedColumn | None:
    """The column with a heading, whole or without the unit, or `column2` for the second; or None.

    Units of `columns` go before that of the heading. Raises `UserError` if several are called so.
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
    return ResolvedColumn(index, heading, find_unit(text) if text else None)


def _index(log: AbstractLog, wanted: str) -> int | None:
    raws, names = ([getattr(h, part) for h in log.headings] for part in ("raw", "name"))
    lower = wanted.lower()
    for sought, called in (
        (wanted, raws),
        (wanted, names),
        (lower, [raw.lower() for raw in raws]),
        (lower, [name.lower() for name in names]),
    ):
        matching = [i for i, one in enumerate(called) if one == sought and sought]
        if len(matching) > 1:
            others = [raws[i] for i in matching]
            if len(set(others)) < len(others):
                others = [column_name(i) for i in matching]
            raise UserError(
                f"'{log.name}' has {len(matching)} columns called {wanted!r}. Say which is meant: "
                f"{' or '.join(others)}."
            )
        if matching:
            return matching[0]
    numbered = [column_name(i) for i in range(len(log.headings))]
    return numbered.index(wanted) if wanted in numbered else None


def _missing_column(log: AbstractLog, wanted: str, role: str) -> UserError:
    if wanted in log.left_out:
        return UserError(
            f"{wanted!r} of '{log.name}' cannot be used for {role}: it is {log.left_out[wanted]}."
        )
    known = [*map(log.label, range(len(log.headings))), *log.constants]
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
