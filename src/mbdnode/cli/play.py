"""`mbdnode play`: a page on which anyone can play with a mechanism or with what was learned."""

from pathlib import Path
from typing import Annotated

import typer

from mbdnode.cli.arguments import (
    InitialOption,
    IntegratorOption,
    MechanismOption,
    ModelArgument,
    ParametersOption,
    StepOption,
    check_step,
    parse_assignments,
)
from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.cli.models import CASE, FIT, MECHANISM, PYTHON, check_model, read_fit
from mbdnode.cli.output import echo
from mbdnode.data.files import check_destination


def play(
    what: ModelArgument,
    out: Annotated[Path, typer.Option("--out", help="The page, an HTML file.", metavar="FILE")],
    initial: InitialOption = None,
    parameters: ParametersOption = None,
    dt: StepOption = None,
    integrator: IntegratorOption = None,
    mechanism: MechanismOption = "",
) -> None:
    """Write a page with the model's own code in JavaScript: drag it, throw it, drive it.

    It is one file and needs no network. Of a folder, mechanism and model move side by side.
    """
    check_destination(out, (".html", ".htm"))
    start = parse_assignments("--initial", initial or ())
    changes = parse_assignments("--set", parameters or ())
    kind = check_model(what, [out], mechanism)
    check_step(dt)

    # From here on, since an interrupt can get lost while JAX is being imported, too.
    with leaving_at_once():
        from mbdnode.report.playground_html import write_play_page

        given = {"parameters": changes, "dt_s": dt}
        if integrator is not None:
            given["integrator"] = integrator
        shown = _play(kind, what, start, mechanism, given)
        write_play_page(shown, out)
    echo(f"Wrote {out}, {out.stat().st_size / 1000:,.0f} kB. Open it in a browser.")


def _play(kind: str, what: str, start: dict[str, float], mechanism: str, given: dict):
    if kind == FIT:
        from mbdnode.workflow.play import play_fit

        return play_fit(Path(what), read_fit(Path(what), mechanism), start, **given)
    if kind in (MECHANISM, PYTHON):
        from mbdnode.workflow.play import play_mechanism

        return play_mechanism(what, start, **given)
    from mbdnode.reproduction.play import play_case, play_run

    return play_case(what, start, **given) if kind == CASE else play_run(Path(what), start, **given)
