"""`mbdnode cases`: what can be simulated by name."""

import json
from typing import Annotated

import typer


def cases(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """List the cases."""
    from mbdnode.cli.interrupts import leaving_at_once

    with leaving_at_once():
        from mbdnode.cli.listing import describe, print_table
        from mbdnode.experiments import CASES

        if as_json:
            typer.echo(json.dumps([describe(case) for case in CASES.values()], indent=2))
        else:
            print_table(list(CASES.values()))
