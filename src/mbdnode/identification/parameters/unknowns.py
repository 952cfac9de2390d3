"""What is sought: parameters of the system and of its sensors, with bounds and priors."""

from collections.abc import Iterable, Mapping
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
# By how much a profile changes from end to end before the data says more, in units of its size.
_USUAL_VARIATION = 0.1


@dataclass(frozen=True)
class Unknown:
    """What is known of an unknown parameter.

    **Arguments:**

    - `start`: where the search begins; the system's default if not given.
    - `low`, `high`: bounds, within those of the parameter itself.
    - `mean`, `std`: a prior, such as the value and the tolerance of a drawing.
    - `variation`: of a profile: by how much it changes from end to end, as a standard deviation in
        units of its size; chosen on held-out pieces of the data if not given.
    """

    start: float | None = None
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    variation: float | None = None

    def __post_init__(self):
        if self.variation is not None and not self.variation > 0:
            raise UserError(
                f"The variation of a profile is {self.variation}; it must be above zero. For a "
                "constant use a parameter in place of a profile."
            )
        if (self.mean is None) != (self.std is None):
            raise UserError(
                f"A prior has mean {self.mean} and std {self.std}; give both, or neither."
            )
        if self.std is not None and not self.std > 0:
            raise UserError(f"The std of a prior is {self.std}; it must be above zero.")


@dataclass(frozen=True)
class UnknownProfile:
    """A smooth function of a coordinate whose values are sought.

    **Arguments:**

    - `name`: of it.
    - `first`, `count`: which of the unknown parameters are its values.
    - `variation`: as `Unknown` has it; None if the data is to choose it.
    """

    name: str
    first: int
    count: int
    variation: float | None


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
    - `profiles`: those whose values are among the parameters.
    """

    names: tuple[str, ...]
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open_low: np.ndarray
    scale: np.ndarray
    prior_mean: np.ndarray
    prior_std: np.ndarray
    profiles: tuple[UnknownProfile, ...] = ()

    @property
    def open_profiles(self) -> tuple[str, ...]:
        """Those whose variation the data is to choose."""
        return tuple(one.name for one in self.profiles if one.variation is None)

    def smoothness(self) -> np.ndarray:
        """Rows of a prior: times the parameters they are zero, with a standard deviation of one.

        A profile is a random walk along its coordinate, whose ends differ by its variation.
        """
        rows = [np.zeros((0, len(self.names)))]
        for one in self.profiles:
            values = slice(one.first, one.first + one.count)
            size = float(np.mean(self.scale[values]))
            change = (one.variation or _USUAL_VARIATION) * size / np.sqrt(one.count - 1)
            block = np.zeros((one.count - 1, len(self.names)))
            block[:, values] = np.diff(np.eye(one.count), axis=0) / change
            rows.append(block)
        return np.concatenate(rows)

    def with_variation(self, variation: float) -> "Unknowns":
        """With this variation of every profile that has none of its own."""
        changed = (
            replace(one, variation=variation) if one.variation is None else one
            for one in self.profiles
        )
        return replace(self, profiles=tuple(changed))

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
    """An unknown of a sensor: what it reads is `gain column + offset + feedthrough input`; or the
    delay of an input.

    **Arguments:**

    - `column`: that it reads, or the input.
    - `kind`: "gain" or "offset", or the input that it also reads; "delay" of an input.
    """

    column: str
    kind: str

    @property
    def name(self) -> str:
        """Among the unknown parameters."""
        plain = self.kind in ("gain", "offset", "delay")
        return f"{self.column} {self.kind}" if plain else f"{self.column} per {self.kind}"


def make_unknowns(system: AbstractSystem, unknown: Any) -> Unknowns:
    """The `unknown` parameters of `system` as arrays, checked."""
    if not isinstance(unknown, Iterable):
        raise UserError(f"unknown is {unknown!r}; name parameters, such as ['m'].")
    given = dict(unknown) if isinstance(unknown, Mapping) else dict.fromkeys(unknown)
    if not given:
        raise UserError(
            "No unknown parameter is named; name some of "
            f"{', '.join(system.parameter_names) or 'them (this system has none)'}."
        )
    by_name = {p.name: p for p in system.parameters}
    groups = {one.name: one.names for one in system.profiles}
    rows, names, profiles = [], [], []
    for name, value in given.items():
        if name not in by_name and name not in groups:
            raise unknown_name("parameter", name, (*system.parameter_names, *groups))
        variation = value.variation if isinstance(value, Unknown) else None
        if name in groups:
            profiles.append(UnknownProfile(name, len(names), len(groups[name]), variation))
        elif variation is not None:
            raise UserError(
                f"Unknown parameter {name!r} has a variation, but is one number; leave it out, or "
                f"name a profile ({', '.join(groups) or 'this system has none'})."
            )
        for one in groups.get(name, (name,)):
            if one in names:
                raise UserError(f"Parameter {one!r} is named as unknown twice; name it once.")
            names.append(one)
            rows.append(_make_unknown(by_name[one], value))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Unknowns(tuple(names), *columns, profiles=tuple(profiles))


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
    """What is unknown of the sensors and then of the inputs, checked."""
    terms = []
    for column, kinds in sensors.items():
        if column not in (*columns, *inputs):
            raise unknown_name("recorded column or input", column, (*columns, *inputs))
        known = ("delay",) if column in inputs else ("gain", "offset", *inputs)
        what = "unknown of an input" if column in inputs else "unknown of a sensor"
        for kind in (kinds,) if isinstance(kinds, str) else kinds:
            if kind not in known:
                raise unknown_name(what, kind, known)
            terms.append(SensorTerm(column, kind))
    return tuple(sorted(terms, key=lambda term: term.kind == "delay"))


def with_sensors(unknowns: Unknowns, terms, motion: dict, driving: dict, step: float) -> Unknowns:
    """The parameters, and then what is unknown of the sensors, without bounds, and delays, which
    are not negative and of about the data's step.
    """
    rows = []
    for term in terms:
        if term.kind == "delay":
            rows.append((0.0, 0.0, np.inf, False, step, 0.0, _WEAK * step))
            continue
        size = motion[term.column] / driving.get(term.kind, 1.0)
        start, scale = (1.0, 1.0) if term.kind == "gain" else (0.0, size)
        rows.append((start, -np.inf, np.inf, False, scale, start, _WEAK * scale))
    extra = [np.array(column) for column in zip(*rows, strict=True)] if rows else [()] * 7
    arrays = [f.name for f in fields(unknowns) if f.name not in ("names", "profiles")]
    old = (getattr(unknowns, name) for name in arrays)
    joined = [np.concatenate([a, b]).astype(a.dtype) for a, b in zip(old, extra, strict=True)]
    names = (*unknowns.names, *(term.name for term in terms))
    return replace(unknowns, names=names, **dict(zip(arrays, joined, strict=True)))


def with_scales(unknowns: Unknowns, scale: np.ndarray) -> Unknowns:
    """With the scales that were not known, and priors that follow from them."""
    std = np.where(np.isnan(unknowns.prior_std), _WEAK * scale, unknowns.prior_std)
    scale = np.where(np.isnan(unknowns.scale), scale, unknowns.scale)
    return replace(unknowns, scale=scale, prior_std=std)
