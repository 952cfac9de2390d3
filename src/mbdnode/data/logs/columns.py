"""What the columns of logs are, and how logs are read: one description for everybody.

`Columns` holds the keyword arguments of `read`, the content of a file of roles in TOML, the
`columns` of a fit's configuration, and what `--role` changes on the command line. It is checked
where it is made, and nowhere else.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from mbdnode.config import parse_toml, read_toml
from mbdnode.data.files import check_new_file, replace_file
from mbdnode.data.logs.units import find_unit, why_unclear
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# Roles that several columns have, each with a name.
NAMED = ("coordinates", "rates", "inputs", "parameters")
CHOICES = {
    "interpolation": ("held", "linear"),
    "gaps": ("refuse", "split"),
    "outliers": ("replace", "keep"),
}


@dataclass(frozen=True)
class Columns:
    """What the columns of logs are, and how they are read.

    A column is named by its heading, with or without its unit, or as `column2` for the second one.
    A mapping goes from names to columns; in a list of columns each has its own name.

    **Arguments:**

    - `time`: the column of times.
    - `coordinates`: columns of positions.
    - `rates`: a column for each coordinate, in the same order, None for one to be estimated; or a
        mapping from coordinates to columns. All are estimated if not given.
    - `inputs`: columns of what drives the system.
    - `parameters`: columns, or single numbers in a MAT, HDF5 or NPZ file, that are constant in a
        run; or a mapping from names to columns or numbers.
    - `run`: the column that tells runs apart, if a file holds several.
    - `input_time`, `input_files`: the column, and the files, of inputs that have their own times;
        one file for each of states (by name, else by order), or one for all.
    - `interpolation`: of those inputs, "held" or "linear".
    - `units`: by column, where a heading does not say it or is wrong; '1' converts nothing.
    - `angles`: coordinates that may be wrapped to one turn; by unit and name if not given.
    - `gaps`: "refuse" to raise at a gap, a missing value or a time that goes back, "split" to cut
        there.
    - `longest_step_s`: a longer step is a gap; five median steps of the run if not given.
    - `outliers`: "replace" for one to three coordinates or measured rates in a row that are far
        from what their neighbors say to take that value, "keep" to leave them.
    """

    time: str | None = None
    coordinates: Sequence[str] | Mapping[str, str] = ()
    rates: Sequence[str | None] | Mapping[str, str | None] = ()
    inputs: Sequence[str] | Mapping[str, str] = ()
    parameters: Sequence[str] | Mapping[str, str | float] = ()
    run: str | None = None
    input_time: str | None = None
    input_files: Sequence[str] = ()
    interpolation: str = "held"
    units: Mapping[str, str] = field(default_factory=dict)
    angles: Sequence[str] | None = None
    gaps: str = "refuse"
    longest_step_s: float | None = None
    outliers: str = "replace"

    def __post_init__(self):
        for role in NAMED:
            self._set(role, _named(role, getattr(self, role)))
        if isinstance(self.parameters, Mapping):
            pairs = self.parameters.items()
            self._set("parameters", {n: float(x) if type(x) is int else x for n, x in pairs})
        files = self.input_files
        self._set("input_files", (files,) if isinstance(files, str) else tuple(files))
        if self.angles is not None:
            self._set("angles", _listed("angles", self.angles))
        self._check_choices()
        self._check_rates()
        self._check_units()
        self._check_columns()
        for name in self.angles or ():
            _check_name("coordinate in angles", name, self.named("coordinates"))

    def named(self, role: str) -> dict[str, Any]:
        """The columns of a role by name, however they were given.

        Rates are called by their coordinates, and those to be estimated are left out.
        """
        given = getattr(self, role)
        if not isinstance(given, Mapping):
            names = list(self.named("coordinates")) if role == "rates" and given else given
            given = dict(zip(names, given, strict=True))
        return {name: column for name, column in given.items() if column is not None}

    @property
    def inputs_apart(self) -> bool:
        """Whether the inputs have their own times."""
        return self.input_time is not None or bool(self.input_files)

    def given(self) -> dict[str, Any]:
        """What is not as by default, by name, as `read` takes it."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in own.items() if value != getattr(_BLANK, name)}

    def to_toml(self) -> str:
        """The content of a file of roles."""
        content = self.given()
        if None in self.rates:  # TOML has no None.
            content["rates"] = self.named("rates")
        return "".join(f"{name} = {_toml(value)}\n" for name, value in content.items())

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a new file of roles, for the user to correct."""
        path = check_new_file(path)
        text = self.to_toml().encode("utf-8")
        replace_file(path, lambda file: file.write(text))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_choices(self) -> None:
        for name, known in CHOICES.items():
            _check_name(f"value of {name}", getattr(self, name), known)
        longest = self.longest_step_s
        if longest is not None:
            if not _is_number(longest) or not longest > 0:
                raise UserError(f"longest_step_s is {longest!r}; it must be more than 0 seconds.")
            self._set("longest_step_s", float(longest))
        if self.inputs_apart and not self.inputs:
            raise UserError(
                "Inputs have their own times, but none is named. Name them with inputs=...."
            )
        if self.interpolation != "held" and not self.inputs_apart:
            raise UserError(
                f"interpolation is {self.interpolation!r}, but the inputs have the states' times. "
                "Leave it out, or say where their own are: input_time=... or input_files=...."
            )

    def _check_rates(self) -> None:
        names = list(self.named("coordinates"))
        if self.rates and not names:
            raise UserError(
                "A log needs at least one coordinate, but rates were given without coordinates. "
                "Positions cannot be had from rates: their start is unknown and the noise would "
                "add up. Record the positions."
            )
        if isinstance(self.rates, Mapping):
            for name in self.rates:
                _check_name("coordinate in rates", name, names)
        elif self.rates and len(self.rates) != len(self.coordinates):
            raise UserError(
                f"{len(self.rates)} rates for {len(names)} coordinates ({', '.join(names)}). Give "
                "one for each in the same order, None for one to be estimated, or none at all."
            )

    def _check_units(self) -> None:
        if not isinstance(self.units, Mapping):
            raise UserError(
                f"units is {self.units!r}; give them by column, such as "
                f"{spelled('units', {'theta': 'deg'})}."
            )
        for column, unit in self.units.items():
            if not isinstance(unit, str):
                raise UserError(
                    f"The unit of {column!r} is {unit!r}; give it as text, such as 'deg'."
                )
            if why := why_unclear(unit):
                raise UserError(
                    f"Unit {unit!r} of {column!r} is not clear, for capitals count and some mean "
                    f"two things. Write {why}."
                )
            if find_unit(unit) is None:
                raise UserError(
                    f"Unit {unit!r} is not known. Give one such as deg, rpm, mm or ms, or '1' to "
                    "keep the numbers as they are."
                )

    def _check_columns(self) -> None:
        """Raise `UserError` for what cannot be a column, and for a column in two roles."""
        seen: dict[str, str] = {}
        for role in ("time", "run", "input_time", *NAMED):
            given = getattr(self, role)
            columns = given.values() if isinstance(given, Mapping) else given
            for column in columns if role in NAMED else [given]:
                if column is None or (role == "parameters" and _is_number(column)):
                    continue
                if role == "parameters" and isinstance(column, bool):
                    raise UserError(f"A parameter is {column}; give a column or a number.")
                if not (isinstance(column, str) and column):
                    raise UserError(
                        f"A column is called {column!r}; give its heading as text, or its place as "
                        "'column2'."
                    )
                if role in ("run", "input_time"):
                    continue
                if column in seen:
                    both = f"in {seen[column]} and {role}"
                    where = f"twice in {role}" if seen[column] == role else both
                    raise UserError(f"Column {column!r} is {where}. Give each column one role.")
                seen[column] = role


Given = Columns | Mapping[str, Any] | str | os.PathLike[str] | None


def as_columns(*given: Given) -> Columns:
    """One description of several.

    **Arguments:**

    - `given`: each a `Columns`, the arguments of it by name, or the path of a TOML file with them.
        What a later one says goes before what an earlier one says; None says nothing.

    **Returns:**

    `Columns`. Raises `UserError` for a name that is not known or a value that cannot be used.
    """
    content: dict[str, Any] = {}
    for one in given:
        content |= _content(one)
    return Columns(**content)


def _content(given: Given) -> dict[str, Any]:
    if isinstance(given, Columns):
        return given.given()
    if isinstance(given, (str, os.PathLike)):
        label = f"'{os.fspath(given)}'"
        content = parse_toml(read_toml(given, "a file of roles"), label, "Correct that line.")
        try:
            return as_columns(content).given()
        except UserError as error:
            raise UserError(f"In {label}: {error}") from None
    known = [f.name for f in fields(Columns)]
    for name in given or {}:
        _check_name("role or setting", name, known)
    content = {name: value for name, value in (given or {}).items() if value is not None}
    if "input_files" in content:
        files = content["input_files"]
        files = [files] if isinstance(files, (str, os.PathLike)) else files
        content["input_files"] = [os.fspath(file) for file in files]
    return content


def _check_name(what: str, name: Any, known: Iterable[str]) -> None:
    if name not in known:
        raise unknown_name(what, name, list(known))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def spelled(name: str, value: Any) -> str:
    """How a role is written in Python, and on the command line after `--role`: `gaps="split"`."""
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


def _listed(role: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = given if isinstance(given, str) else "theta"
        raise UserError(
            f"{role} is {given!r}; give a list of columns, such as {json.dumps([example])}."
        )
    return tuple(given)


def _named(role: str, given: Any) -> tuple[Any, ...] | dict[str, Any]:
    """A list of columns as a tuple, names and columns as a dictionary."""
    if not isinstance(given, Mapping) or not given:
        return _listed(role, given)
    given = {str(name): column for name, column in given.items()}
    for name, column in given.items():
        if not name.strip() or column == "":
            raise UserError(
                f"One of the {role} has no name, or none of a column. Give both, such as "
                f"{spelled(role, {'theta1': 'theta'})}."
            )
    return given


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(k)} = {_toml(x)}' for k, x in value.items())} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


_BLANK = Columns()
