"""The named quantities of a system: coordinates, inputs and parameters, with their units."""

import math
from dataclasses import dataclass
from typing import Any

from mbdnode.errors import UserError


@dataclass(frozen=True)
class Coordinate:
    """One generalized coordinate; its velocity is called `<name>_dot`.

    **Arguments:**

    - `name`: of its column.
    - `unit`: empty for none.
    - `is_angle`: whether the mechanics depends on it through sine and cosine.
    """

    name: str
    unit: str = "m"
    is_angle: bool = False

    @property
    def rate(self) -> str:
        """The name of the velocity."""
        return f"{self.name}_dot"


def length(name: str) -> Coordinate:
    """A coordinate called `name`, in meters."""
    return Coordinate(name)


def angle(name: str) -> Coordinate:
    """A coordinate called `name`, in radians; mechanics depends on its sine and cosine."""
    return Coordinate(name, unit="rad", is_angle=True)


@dataclass(frozen=True)
class Input:
    """One external load or signal, by `name` and `unit`."""

    name: str
    unit: str = "N"


@dataclass(frozen=True)
class Parameter:
    """One number of the design, with the range in which it makes sense.

    **Arguments:**

    - `name`, `unit`: the unit is empty for none.
    - `default`: the value used when the user gives none.
    - `above`: the value must be greater (a mass is above zero).
    - `at_least`, `at_most`: the value must not be less, or greater.
    - `meaning`: what it is, where the name does not say it.
    """

    name: str
    default: float
    unit: str = ""
    above: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf
    meaning: str = ""

    def contains(self, value: Any) -> Any:
        """Whether `value`, which may be traced, is finite and keeps the rule."""
        inside = (value > self.above) & (value >= self.at_least) & (value <= self.at_most)
        return inside & (abs(value) < math.inf)

    def check(self, value: float) -> None:
        """Raise `UserError` if `value` is not finite or breaks the rule."""
        if not math.isfinite(value):
            raise UserError(f"Parameter {self.name!r} is {value}; it must be a finite number.")
        unit = f" {self.unit}" if self.unit else ""
        way_out = f"Its default is {self.default:g}{unit}."
        if not value > self.above:
            raise UserError(
                f"Parameter {self.name!r} is {value:g}{unit}; it must be above {self.above:g}. "
                + way_out
            )
        if not self.at_least <= value <= self.at_most:
            bound, side = (
                (self.at_least, "at least") if value < self.at_least else (self.at_most, "at most")
            )
            raise UserError(
                f"Parameter {self.name!r} is {value:g}{unit}; it must be {side} {bound:g}. "
                + way_out
            )


def positive(name: str, default: float, unit: str = "", meaning: str = "") -> Parameter:
    """A parameter that must be above zero, as masses and lengths must.

    **Arguments:**

    - `name`, `default`, `unit`, `meaning`: as of `Parameter`.
    """
    return Parameter(name, default, unit, above=0.0, meaning=meaning)


def nonnegative(name: str, default: float, unit: str = "", meaning: str = "") -> Parameter:
    """A parameter that may be zero but not less, as stiffness and damping may.

    **Arguments:**

    - `name`, `default`, `unit`, `meaning`: as of `Parameter`.
    """
    return Parameter(name, default, unit, at_least=0.0, meaning=meaning)
