"""`mbdnode cases`: what can be simulated by name, for people and for programs."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from mbdnode.cli.output import new_console, new_table
from mbdnode.reproduction.cases.catalog import catalog


def cases(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all fields of every case as JSON.")
    ] = False,
) -> None:
    """List the paper's cases, by the names that simulate, run and reproduce take."""
    found = catalog().values()
    if as_json:
        typer.echo(json.dumps(list(found), indent=2))
    else:
        _print_table(found)


def _print_table(cases: Iterable[Mapping[str, Any]]) -> None:
    """One row for each case."""
    console = new_console()
    table = new_table(
        console,
        *("case\nmechanism", "coordinates", "DOF", "inputs"),
        *("dt [s]", "steps", "train", "integrator"),
        numbers=("DOF", "dt [s]", "steps", "train"),
        folding="coordinates",
    )
    for case in cases:
        table.add_row(
            f"{case['name']}\n[not bold dim]{case['mechanism']}[/]",
            " ".join(each["name"] for each in case["coordinates"]),
            str(case["degrees_of_freedom"]),
            " ".join(each["name"] for each in case["inputs"]) or "-",
            f"{case['dt_s']:.4g}",
            f"{case['steps']:,}",
            f"{case['train_steps']:,}" if case["train_steps"] else "-",
            case["integrator"],
        )
    console.print(table)
