"""`mbdnode export`: a model as code that runs without Python."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import (
    IntegratorOption,
    MechanismOption,
    ModelArgument,
    ParametersOption,
    StepOption,
    parse_assignments,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.models import DT_S, check_model, find_model
from mbdnode.cli.output import echo
from mbdnode.data.files import check_destination
from mbdnode.data.folders import check_folder
from mbdnode.errors import UserError
from mbdnode.exports.names import KIND, check_identifier, identifier_of
from mbdnode.exports.targets import target_for


def export(
    model: ModelArgument,
    out: Annotated[
        Path,
        typer.Option("--out", help="The folder, or the file, to write.", metavar="PATH"),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            help="c, javascript, fmu, onnx, casadi, simulink; by default what --out says.",
            metavar="TARGET",
        ),
    ] = None,
    fmi: Annotated[
        int | None,
        typer.Option(help="The version of an FMU: 3, by default, or 2.", metavar="2|3"),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="With which all names in the code begin.", metavar="NAME"),
    ] = None,
    integrator: IntegratorOption = None,
    dt: StepOption = None,
    parameters: ParametersOption = None,
    precision: Annotated[
        str, typer.Option(help="Of all numbers.", metavar="float64|float32")
    ] = "float64",
    mechanism: MechanismOption = "",
) -> None:
    """Write a mechanism or a learned model as code that runs without Python.

    To c it is a folder with header, source, an example and a CMake file, which need nothing but
    libm; to javascript a single file. All is checked before anything is computed.
    """
    kind, target = target_for(out, to)
    target.check_version(fmi)
    changes = parse_assignments("--set", parameters or ())
    word = identifier_of(out) if name is None else name
    check_identifier(word)
    if precision not in ("float64", "float32"):
        raise UserError(f"--precision is {precision!r}; it must be float64 or float32.")
    if target.suffix:
        check_destination(out, (target.suffix,))
    else:
        check_folder(out, KIND)
    check_model(model, [out], mechanism)

    with leaving_at_once():
        from mbdnode.exports.writing import export as write_export

        found = find_model(model, mechanism)
        write_export(
            found.model,
            out,
            kind,
            name=word,
            integrator=integrator or found.integrator or "rk4",
            dt_s=found.dt_s or DT_S if dt is None else dt,
            parameters={**found.parameters, **changes},
            precision=precision,
            fmi=fmi,
        )
    echo(f"Wrote {out}")
    files = sorted(out.iterdir()) if out.is_dir() else [out]
    for file in files:
        echo(f"  {file.name:<18} {file.stat().st_size:,} bytes")
