"""What the stored numbers of a column stand for, by its attributes (the CF conventions of NetCDF).

A stored value `p` stands for `scale_factor * p + add_offset`. One that is `_FillValue` or
`missing_value`, or outside `valid_range`, is missing; all of these are stated of stored values.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.errors import UserError


@dataclass(frozen=True)
class Packing:
    """How stored values are turned into those that are meant.

    **Arguments:**

    - `factor`, `offset`: of a value.
    - `missing`: stored values that stand for none.
    - `low`, `high`: outside of these, a stored value stands for none.
    """

    factor: float = 1.0
    offset: float = 0.0
    missing: tuple[Any, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if (self.factor, self.offset) == (1.0, 0.0):
            return ""
        return f"as {self.factor:g} times what is stored + {self.offset:g}"

    def unpack(self, stored: Any) -> Any:
        """The values that are meant; missing ones are not a number."""
        if self == Packing():
            return stored
        stored = np.asarray(stored)
        values = self.factor * stored.astype(float) + self.offset
        inside = (stored >= self.low) & (stored <= self.high) & ~np.isin(stored, self.missing)
        return np.where(inside, values, np.nan)


def read_packing(what: str, attributes: Mapping[str, Any]) -> Packing:
    """The packing that attributes state: numbers, arrays of them, or text, by name.

    `what` is the column and its file. Raises `UserError` for attributes that are no numbers.
    """

    def numbers(name: str, how_many: str, count: int | None = None) -> list[Any]:
        if name not in attributes:
            return []
        given = np.ravel(np.asarray(attributes[name]))
        try:
            found = [x.item() if given.dtype.kind in "biuf" else float(x) for x in given]
        except (TypeError, ValueError):
            found = []
        if not found or count not in (None, len(found)):
            raise UserError(
                f"{name} of {what} is {attributes[name]!r}; it must be {how_many}. Write it again, "
                "or leave it out."
            )
        return found

    def one(name: str, default: float) -> float:
        return float((numbers(name, "one number", 1) or [default])[0])

    factor, offset = one("scale_factor", 1.0), one("add_offset", 0.0)
    if not (math.isfinite(factor) and factor):
        raise UserError(f"scale_factor of {what} is {factor}; it must be finite and not zero.")
    if not math.isfinite(offset):
        raise UserError(f"add_offset of {what} is {offset}; it must be finite.")
    low, high = numbers("valid_range", "two numbers", 2) or (-math.inf, math.inf)
    missing = (numbers(name, "a number") for name in ("_FillValue", "missing_value"))
    return Packing(
        factor,
        offset,
        tuple(value for values in missing for value in values),
        max(float(low), one("valid_min", -math.inf)),
        min(float(high), one("valid_max", math.inf)),
    )


def stated_unit(attributes: Mapping[str, Any]) -> str:
    """The unit that attributes state; empty if there is none."""
    for name in ("units", "unit", "Units", "Unit"):
        value = attributes.get(name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, str):
            return value
    return ""
