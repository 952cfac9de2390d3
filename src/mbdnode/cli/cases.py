"""`mbdnode cases`: what can be simulated by name, for people and for programs."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.output import new_console, new_table

if TYPE_CHECKING:
    from mbdnode.reproduction.cases import Case


def cases(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all fields of every case as JSON.")
    ] = False,
) -> None:
    """List the paper's cases, by the names that simulate, run and reproduce take."""
    # An interrupt can get lost while JAX is being imported.
    with leaving_at_once():
        from mbdnode.reproduction.cases import CASES

        if as_json:
            typer.echo(json.dumps([_describe(case) for case in CASES.values()], indent=2))
        else:
            _print_table(CASES.values())


def _print_table(cases: "Iterable[Case]") -> None:
    """One row for each case."""
    from mbdnode.multibody import constraint_counts, resolve_parameters

    console = new_console()
    table = new_table(
        console,
        *("case\nmechanism", "coordinates", "DOF", "inputs"),
        *("dt [s]", "steps", "train", "integrator"),
        numbers=("DOF", "dt [s]", "steps", "train"),
        folding="coordinates",
    )
    for case in cases:
        system = case.mechanism
        constraints = sum(constraint_counts(system, resolve_parameters(system, case.parameters)))
        table.add_row(
            f"{case.name}\n[not bold dim]{type(system).__name__}[/]",
            " ".join(system.coordinate_names),
            str(len(system.coordinates) - constraints),
            " ".join(system.input_names) or "-",
            f"{case.dt_s:.4g}",
            f"{case.steps:,}",
            f"{case.train_steps:,}" if case.train_steps else "-",
            case.integrator,
        )
    console.print(table)


def _describe(case: "Case") -> dict[str, Any]:
    """Everything about a case, in types that JSON knows."""
    system = case.mechanism
    return {
        "name": case.name,
        "title": case.title,
        "coordinates": [
            {"name": c.name, "unit": c.unit, "is_angle": c.is_angle} for c in system.coordinates
        ],
        "rates": [{"name": c.rate, "unit": f"{c.unit}/s"} for c in system.coordinates],
        "inputs": [{"name": i.name, "unit": i.unit} for i in system.inputs],
        "parameters": [
            {
                "name": p.name,
                "default": float(case.parameters.get(p.name, p.default)),
                "unit": p.unit,
                "meaning": p.meaning,
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
