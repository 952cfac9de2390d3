"""What is sought: parameters of the system and of its sensors, with bounds and priors."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody import AbstractSystem, Parameter
from mbdnode.naming import unknown_name

# A parameter that must stay above a bound may lose this part of its distance in an iteration.
_APPROACH = 0.8
# In units of a parameter's size, the standard deviation of a prior that says nothing.
_WEAK = 1e4


@dataclass(frozen=True)
class Unknown:
    """What is known of an unknown parameter.

    **Arguments:**

    - `start`: where the search begins; the system's default if not given.
    - `low`, `high`: bounds, within those of the parameter itself.
    - `mean`, `std`: a prior, such as the value and the tolerance of a drawing.
    """

    start: float | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None

    def __post_init__(self):
        if (self.mean is None) != (self.std is None):
            raise UserError(
                f"A prior has mean {self.mean} and std {self.std}; give both, or neither."
            )
        if self.std is not None and not self.std > 0:
            raise UserError(f"The std of a prior is {self.std}; it must be above zero.")


@dataclass(frozen=True)
class Unknowns:
    """The parameters that are sought, as arrays.

    **Arguments:**

    - `names`: of them.
    - `start`: where the search begins.
    - `low`, `high`: bounds; `open_low` where the lower one itself is excluded, as zero for a mass.
    - `scale`: a usual size of each, to compare them by.
    - `prior_mean`, `prior_std`: what is known of them besides the data; where that is nothing, the
        start, so weakly that it only decides what the data leaves open.
    """

    names: tuple[str, ...]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_low: np.ndarray
    scale: np.ndarray
    prior_mean: np.ndarray
    prior_std: np.ndarray

    def inside(self, values: np.ndarray) -> np.ndarray:
        """The nearest values within the bounds, and off those that are excluded."""
        low = np.where(self.open_low, self.low + 1e-3 * self.scale, self.low)
        return np.clip(values, low, self.high)

    def limited(self, values: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The values after a step, within the bounds."""
        new = np.clip(values + step, self.low, self.high)
        low = np.where(self.open_low, self.low, 0.0)
        nearest = low + (1 - _APPROACH) * (values - low)
        return np.where(self.open_low, np.maximum(new, nearest), new)


@dataclass(frozen=True)
class SensorTerm:
    """An unknown of a sensor: what it reads is `gain column + offset + feedthrough input`.

    **Arguments:**

    - `column`: that it reads.
    - `kind`: "gain" or "offset", or the input that it also reads.
    """

    column: str
    kind: str

    @property
    def name(self) -> str:
        """Among the unknown parameters."""
        plain = self.kind in ("gain", "offset")
        return f"{self.column} {self.kind}" if plain else f"{self.column} per {self.kind}"


def make_unknowns(system: AbstractSystem, unknown: Any) -> Unknowns:
    """The unknown parameters as arrays, checked."""
    given = dict(unknown) if isinstance(unknown, Mapping) else dict.fromkeys(unknown)
    if not given:
        raise UserError(
            "No unknown parameter is named; name some of "
            f"{', '.join(system.parameter_names) or 'them (this system has none)'}."
        )
    by_name = {p.name: p for p in system.parameters}
    rows = []
    for name, value in given.items():
        if name not in by_name:
            raise unknown_name("parameter", name, system.parameter_names)
        rows.append(_make_unknown(by_name[name], value))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Unknowns(tuple(given), *columns)


def _make_unknown(parameter: Parameter, value: Any) -> tuple[float | bool, ...]:
    if value is not None and not isinstance(value, Unknown):
        try:
            low, high = value
        except (TypeError, ValueError) as error:
            raise UserError(
                f"Unknown parameter {parameter.name!r} is given as {value!r}; give bounds (low, "
                "high), an Unknown(start=..., low=..., high=..., mean=..., std=...), or None."
            ) from error
        value = Unknown(low=low, high=high)
    given = value or Unknown()
    lowest = max(parameter.at_least, parameter.above)
    low = lowest if given.low is None else max(lowest, float(given.low))
    high = parameter.at_most if given.high is None else min(parameter.at_most, float(given.high))
    if not low < high:
        raise UserError(
            f"Unknown parameter {parameter.name!r} has bounds {low:g} and {high:g}; the lower one "
            "must be below the upper one."
        )
    open_low = low == parameter.above and np.isfinite(low)
    start = _start_of(parameter, given)
    if not (low <= start <= high) or (open_low and start == low):
        raise UserError(
            f"Unknown parameter {parameter.name!r} starts at {start:g}; it must lie between its "
            f"bounds {low:g} and {high:g}. Give start=... in an Unknown."
        )
    # Not a number where nothing tells it yet; the data will.
    scale = abs(start) or (high - low if np.isfinite(high - low) else np.nan)
    if given.std is not None and start == 0:
        scale = given.std
    mean = start if given.mean is None else float(given.mean)
    std = _WEAK * scale if given.std is None else float(given.std)
    return start, low, high, bool(open_low), scale, mean, std


def _start_of(parameter: Parameter, given: Unknown) -> float:
    """The given start; else the mean of the prior, the default, or the middle of the bounds."""
    if given.start is not None:
        return float(given.start)
    if given.mean is not None:
        return float(given.mean)
    low = -np.inf if given.low is None else given.low
    high = np.inf if given.high is None else given.high
    if low <= parameter.default <= high:
        return parameter.default
    return float((low + high) / 2 if np.isfinite(low + high) else max(low, min(high, 0.0)))


def make_sensor_terms(sensors, columns: tuple[str, ...], inputs: tuple[str, ...]):
    """What is unknown of the sensors, checked."""
    terms = []
    for column, kinds in sensors.items():
        if column not in columns:
            raise unknown_name("recorded column", column, columns)
        for kind in (kinds,) if isinstance(kinds, str) else kinds:
            if kind not in ("gain", "offset", *inputs):
                raise unknown_name("unknown of a sensor", kind, ("gain", "offset", *inputs))
            terms.append(SensorTerm(column, kind))
    return tuple(terms)


def with_sensors(unknowns: Unknowns, terms, motion: dict, driving: dict) -> Unknowns:
    """The parameters, and then what is unknown of the sensors, without bounds."""
    rows = []
    for term in terms:
        size = motion[term.column] / driving.get(term.kind, 1.0)
        start, scale = (1.0, 1.0) if term.kind == "gain" else (0.0, size)
        rows.append((start, -np.inf, np.inf, False, scale, start, _WEAK * scale))
    extra = [np.array(column) for column in zip(*rows, strict=True)] if rows else [()] * 7
    old = (getattr(unknowns, f.name) for f in fields(unknowns)[1:])
    joined = [np.concatenate([a, b]).astype(a.dtype) for a, b in zip(old, extra, strict=True)]
    return Unknowns((*unknowns.names, *(term.name for term in terms)), *joined)


def with_scales(unknowns: Unknowns, scale: np.ndarray) -> Unknowns:
    """With the scales that were not known, and priors that follow from them."""
    std = np.where(np.isnan(unknowns.prior_std), _WEAK * scale, unknowns.prior_std)
    scale = np.where(np.isnan(unknowns.scale), scale, unknowns.scale)
    return replace(unknowns, scale=scale, prior_std=std)
