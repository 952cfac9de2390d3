"""The variables of an FMU: names, units, start values, and what an importer may do with each.

Value references come in blocks, in the order in which `instance.h` counts them: time, the step of
the integrator, parameters, inputs, coordinates, velocities, outputs, rates of the states, states.

The independent coordinates have exact start values; those of the others are guesses, from which
initialization completes them. A state bears its coordinate's name where the choice of independent
coordinates is fixed. Where the program chooses, and chooses again along the motion, states are
`independent[1]`, ..., with no unit, and all coordinates are outputs with names and units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.data.logs.units import find_unit
from mbdnode.exports.fmu.motion import Motion

# What FMI calls the base units, and where they stand in a dimension.
_BASE = {"m": 0, "kg": 1, "s": 2, "A": 3, "rad": 4}


@dataclass(frozen=True)
class Variable:
    """One variable of the model description, in FMI's words; None where FMI wants nothing."""

    name: str
    reference: int
    causality: str
    variability: str = "continuous"
    initial: str = ""
    start: float | None = None
    unit: str = ""
    nominal: float | None = None
    low: float | None = None
    high: float | None = None
    derivative_of: int | None = None  # the reference of the state whose rate it is
    depends_on: tuple[int, ...] | None = None  # references, None for all
    description: str = ""


def variables_of(tables: Any, motion: Motion, dt_s: float) -> list[Variable]:
    """All variables in the order of their references; states that the program chooses come last."""
    free, names, found = _states(tables, motion), _Names(), list[Variable]()

    def add(name: str, causality: str, **facts: Any) -> None:
        found.append(Variable(names.free(name), len(found), causality, **facts))

    first = np.cumsum([2, *map(len, (tables.parameters, tables.inputs, tables.coordinates))])
    at_u, at_q, at_v = map(int, first[1:])
    at_x = at_v + len(tables.rates) + len(tables.outputs) + len(free)
    references = [
        at_x + i if motion.exchanges else (at_q if i < motion.positions else at_v) + index
        for i, index in enumerate(free)
    ]
    states = tuple(references) if motion.has_rates else None
    positions = tuple(references[: motion.positions]) if motion.has_rates else None
    inputs = tuple(at_u + i for i in range(len(tables.inputs)))
    scale = np.asarray(motion.partition.scale)

    found.append(Variable("time", 0, "independent", unit="s", description="time"))
    exact = {"variability": "fixed", "initial": "exact"}
    what = "the longest step of the integrator in Co-Simulation"
    step = {"start": dt_s, "unit": "s", "low": 0.0, "description": what}
    add("integrator_step", "parameter", **exact, **step)
    for one in tables.parameters:
        limits = {"low": _finite(one.low), "high": _finite(one.high)}
        add(one.name, "parameter", **exact, start=one.start, unit=one.unit, **limits)
    for one in tables.inputs:
        add(one.name, "input", start=0.0, unit=one.unit)
    held = free[: motion.positions], free[motion.positions :]
    known = positions, states
    for level, table in enumerate((tables.coordinates, tables.rates)):
        for i, one in enumerate(table):
            is_held = i in held[level]
            own = is_held and motion.has_rates and not motion.exchanges
            add(
                one.name,
                "output",
                initial="exact" if is_held else "approx",
                start=one.start,
                unit=one.unit,
                nominal=float(scale[i]),
                depends_on=(len(found),) if own else known[level],
                description="independent" if is_held else "follows from the constraints",
            )
    for one in tables.outputs:
        add(one.name, "output", initial="calculated", unit=one.unit, depends_on=states)
    if not motion.has_rates:
        return found
    labels = [
        f"independent[{i + 1}]" if motion.exchanges else found[r].name
        for i, r in enumerate(references)
    ]
    for label, reference in zip(labels, references, strict=True):
        add(
            f"der({label})",
            "local",
            initial="calculated",
            unit="" if motion.exchanges else _per_second(found[reference].unit),
            derivative_of=reference,
            depends_on=(*references, *inputs),
        )
    for i, label in enumerate(labels if motion.exchanges else ()):
        table = tables.coordinates if i < motion.positions else tables.rates
        add(
            label,
            "local",
            initial="calculated",
            nominal=float(scale[free[i]]),
            description=f"{table[free[i]].name} at the start values, and another where that "
            "becomes ill-conditioned",
        )
    return found


def unit_definitions(variables: Sequence[Variable]) -> dict[str, dict[str, str]]:
    """The units in use, each with the exponents of FMI's base units; none for an unknown one."""
    found = {}
    for unit in sorted({one.unit for one in variables if one.unit}):
        known = find_unit(unit)
        if known is None:
            found[unit] = {}
            continue
        powers = {name: known.dimension[place] for name, place in _BASE.items()}
        attributes = {name: str(power) for name, power in powers.items() if power}
        if known.factor != 1.0:
            attributes["factor"] = repr(known.factor)
        found[unit] = attributes
    return found


def _states(tables: Any, motion: Motion) -> list[int]:
    """Which coordinates, then which velocities, are independent where the model is assembled."""
    split = motion.partition
    return [*map(int, split.position.independent), *map(int, split.velocity.independent)]


class _Names:
    """Names that are unique: one that clashes gets an underscore."""

    def __init__(self):
        self.taken = {"time"}

    def free(self, name: str) -> str:
        name = " ".join(name.split()) or "unnamed"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _per_second(unit: str) -> str:
    if not unit:
        return ""
    return f"{unit[:-2]}/s^2" if unit.endswith("/s") else f"{unit}/s"
