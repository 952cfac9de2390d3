"""`mbdnode cases`: what can be simulated by name, for people and for programs."""

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbdnode.cli.output import echo, new_console, new_table
from mbdnode.reproduction.cases import LISTED

if TYPE_CHECKING:
    from mbdnode.reproduction.cases import Case

# Of a `Parameter`: what it must be.
_RULES = ("above", "at_least", "at_most")


def cases(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all fields of every case as JSON.")
    ] = False,
) -> None:
    """List the paper's cases, by the names that simulate, run and reproduce take."""
    if as_json:
        from mbdnode.reproduction.cases import CASES

        found = [describe_case(case) for case in CASES.values()]
        echo(json.dumps(found, indent=2))
    else:
        _print_table()


def _print_table() -> None:
    """One row for each case."""
    console = new_console()
    table = new_table(
        console,
        *("case\nmechanism", "coordinates", "DOF", "inputs"),
        *("dt [s]", "steps", "train", "integrator"),
        numbers=("DOF", "dt [s]", "steps", "train"),
        folding="coordinates",
    )
    for name, case in LISTED.items():
        table.add_row(
            f"{name}\n[not bold dim]{case.mechanism}[/]",
            case.coordinates,
            str(case.degrees_of_freedom),
            case.inputs or "-",
            f"{case.dt_s:.4g}",
            f"{case.steps:,}",
            f"{case.train_steps:,}" if case.train_steps else "-",
            case.integrator,
        )
    console.print(table)


def describe_case(case: "Case") -> dict[str, Any]:
    """All fields of a case by name, in types that JSON knows."""
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
