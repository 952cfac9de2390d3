"""The paper's cases as plain data, which can be listed and checked without loading JAX.

`catalog.json` is made from the cases themselves by

    python -m mbdnode.reproduction.cases.catalog

and a test compares it with them.
"""

import functools
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdnode.multibody import Parameter
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.reproduction.cases.case import Case

# Of a `Parameter`: what it must be.
_RULES = ("above", "at_least", "at_most")
_FILE = Path(__file__).with_name("catalog.json")


@functools.cache
def catalog() -> dict[str, dict[str, Any]]:
    """All fields of every case, by its name, in the paper's order."""
    return {fields["name"]: fields for fields in json.loads(_FILE.read_text("utf-8"))}


def check_names(case: str, initial: Iterable[str], parameters: Iterable[str]) -> None:
    """Raise `UserError` for names that a case does not have; nothing is loaded.

    **Arguments:**

    - `case`: its name, which is known.
    - `initial`: coordinates and velocities.
    - `parameters`: of its mechanism.
    """
    fields = catalog()[case]
    states = [each["name"] for each in (*fields["coordinates"], *fields["rates"])]
    own = [each["name"] for each in fields["parameters"]]
    for kind, given, known in (("coordinate", initial, states), ("parameter", parameters, own)):
        for name in given:
            if name not in known:
                raise unknown_name(kind, name, known)


def check_values(case: str, parameters: Mapping[str, float]) -> None:
    """Raise `UserError` for values that a case's parameters cannot have; nothing is loaded.

    **Arguments:**

    - `case`: its name, which is known.
    - `parameters`: of its mechanism, by names that are known.
    """
    fields = {each["name"]: each for each in catalog()[case]["parameters"]}
    for name, value in parameters.items():
        # JSON has no infinity, which is no bound.
        given = {key: x for key, x in fields[name].items() if x is not None}
        Parameter(**given).check(value)


def describe_case(case: "Case") -> dict[str, Any]:
    """Everything about a case, in types that JSON knows.

    **Arguments:**

    - `case`: any.

    **Returns:**

    Its fields by name.
    """
    from mbdnode.multibody import constraint_counts, resolve_parameters

    system = case.mechanism
    constraints = sum(constraint_counts(system, resolve_parameters(system, case.parameters)))
    return {
        "name": case.name,
        "title": case.title,
        "mechanism": type(system).__name__,
        "coordinates": [
            {"name": c.name, "unit": c.unit, "is_angle": c.is_angle} for c in system.coordinates
        ],
        "rates": [{"name": c.rate, "unit": f"{c.unit}/s"} for c in system.coordinates],
        "degrees_of_freedom": len(system.coordinates) - constraints,
        "inputs": [{"name": i.name, "unit": i.unit} for i in system.inputs],
        "parameters": [
            {
                "name": p.name,
                "default": float(case.parameters.get(p.name, p.default)),
                "unit": p.unit,
                "meaning": p.meaning,
                **{rule: _finite(getattr(p, rule)) for rule in _RULES},
            }
            for p in system.parameters
        ],
        "initial": {name: float(value) for name, value in case.initial.items()},
        "dt_s": case.dt_s,
        "steps": case.steps,
        "train_steps": case.train_steps,
        "integrator": case.integrator,
        "source": case.source,
    }


def _finite(bound: float) -> float | None:
    """JSON has no infinity, which is no bound."""
    return bound if math.isfinite(bound) else None


def write_catalog() -> None:
    """Make `catalog.json` anew."""
    from mbdnode.reproduction.cases import CASES

    described = [describe_case(case) for case in CASES.values()]
    _FILE.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    write_catalog()
