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
    """The packing that attributes state.

    **Arguments:**

    - `what`: the column and its file, for messages.
    - `attributes`: by name: numbers, arrays of them, or text.

    **Returns:**

    A `Packing`. Raises `UserError` for attributes that are no numbers.
    """

    def numbers(name: str, *counts: int) -> list[Any]:
        if name not in attributes:
            return []
        given = np.ravel(np.asarray(attributes[name]))
        try:
            found = [x.item() if given.dtype.kind in "biuf" else float(x) for x in given]
        except (TypeError, ValueError):
            found = []
        if not found or (counts and len(found) not in counts):
            how_many = "two numbers" if 2 in counts else "one number" if counts else "a number"
            raise UserError(
                f"{name} of {what} is {attributes[name]!r}; it must be {how_many}. Write it again, "
                "or leave it out."
            )
        return found

    factor, offset = (numbers(name, 1) for name in ("scale_factor", "add_offset"))
    if factor and not (math.isfinite(factor[0]) and factor[0]):
        raise UserError(f"scale_factor of {what} is {factor[0]}; it must be finite and not zero.")
    if offset and not math.isfinite(offset[0]):
        raise UserError(f"add_offset of {what} is {offset[0]}; it must be finite.")
    low, high = numbers("valid_range", 2) or (-math.inf, math.inf)
    return Packing(
        float((factor or [1.0])[0]),
        float((offset or [0.0])[0]),
        tuple(numbers("_FillValue") + numbers("missing_value")),
        float(max([low, *numbers("valid_min", 1)])),
        float(min([high, *numbers("valid_max", 1)])),
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
