"""What the page of a fitted model is made of: plain data, so that the page can be made again;
and what its numbers say, in a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mbdnode.evaluation import HeldOut, Horizon, Scores
from mbdnode.formatting import percent, seconds_text
from mbdnode.identification.parameters import IdentifiedParameters
from mbdnode.multibody import AbstractSystem
from mbdnode.report.playground import Play
from mbdnode.report.tables import Table


@dataclass(frozen=True)
class ReportData:
    """Everything that the page says, as plain data.

    `facts` are labels and values in order; `read` says line by line what was read, cut, unwrapped
    and estimated. `known` are the states and inputs of the training data by column name, thinned.
    `found` is what was found, as tables of parameters or as the text of a law. `play` is what the
    section "Try it" plays with. `seconds` says how long one waited for the fit, part by part; the
    page adds its own. The system may have no masses, and so no energy.
    """

    title: str
    command: str
    system: AbstractSystem
    parameters: Mapping[str, float]
    facts: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    held_out: tuple[HeldOut, ...]
    scores: Scores
    horizon: Horizon | None
    known: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    found: tuple[Table, ...] | str = ""
    play: Play | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)


def parameter_tables(found: IdentifiedParameters) -> tuple[Table, ...]:
    """Of parameters that were found: values, combinations, correlations, bootstrap, residuals."""
    values = Table("", "Parameters", ("parameter", "value", "standard error", "unit"), found.rows())
    tables = [values]
    if found.combinations:
        rows = tuple((str(one),) for one in found.combinations)
        tables.append(Table("", "Determined combinations", ("combination",), rows))
    names = (*found.parameters, *found.sensors)
    if len(names) > 1:
        rows = tuple(
            (name, *("-" if np.isnan(x) else f"{x:.2f}" for x in row))
            for name, row in zip(names, found.correlations, strict=True)
        )
        tables.append(Table("", "Correlations", ("", *names), rows))
    if found.bootstrap is not None:
        title = str(found.bootstrap).partition(":")[0].capitalize()
        head = ("parameter", "standard error", "95 % interval")
        tables.append(Table("", title, head, found.bootstrap.rows()))
    rows = tuple(
        (name, f"{rmse:.3g}", f"{found.noise[name]:.3g}") for name, rmse in found.rmse.items()
    )
    head = ("column", "RMSE in training", "noise")
    return (*tables, Table("", "Residuals", head, rows))


def waited(seconds: Mapping[str, float]) -> str:
    """The whole time that one waited, and its parts."""
    parts = ", ".join(f"{part} {seconds_text(value)}" for part, value in seconds.items())
    return f"{seconds_text(sum(seconds.values()))}: {parts}"


def verdict(report: ReportData) -> str:
    """How well on held-out runs, how far ahead, and where predictions leave the limit."""
    if not report.scores.runs:
        return "No run was held out, so it is not known how well the model predicts."
    left = [run for run in report.scores.runs if run.where]
    more = f" {left[0].name}: the error {left[0].divergence}." if left else ""
    if len(left) > 1:
        more += f" So it does in {len(left)} of {len(report.scores.runs)} runs."
    pieces = None if report.horizon is None else report.horizon.pieces
    spread = "" if pieces is None else f" NRMSE by where one begins: {pieces}."
    return f"{_accuracy(report.scores)}; {_reach(report.horizon)}.{spread}{more}"


def _accuracy(scores: Scores) -> str:
    count = len(scores.runs)
    where = "the held-out run" if count == 1 else f"{count} held-out runs"
    if scores.ended:
        failed = f" ({len(scores.ended)} of {count})" if count > 1 else ""
        return f"On {where} the prediction ends before the run does{failed}"
    if scores.nrmse is None:
        return f"On {where} nothing that was recorded moves, so there is no error to tell"
    known = [run.nrmse for run in scores.runs if run.nrmse is not None]
    columns = ", ".join(map(str, scores.columns))
    text = f"On {where} the NRMSE is {percent(scores.nrmse)} ({columns}"
    if count > 1:
        text += f"; run by run from {percent(min(known))} to {percent(max(known))}"
    return text + ")"


def _reach(horizon: Horizon | None) -> str:
    if horizon is None:
        return "the valid prediction time was not measured"
    if horizon.valid_s is None:
        return f"there is no valid prediction time ({horizon.told_range})"
    return f"the valid prediction time is {horizon} ({horizon.told_range})"
