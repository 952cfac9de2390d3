"""The page of a model that was fitted to logs: one HTML file that needs no network.

Template and style lie in `mbdnode/report/page/`. Every text from outside goes through the
template's escaping; the data of the film is JSON in which no tag can begin.
"""

import io
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from mbdnode.evaluation import HeldOut, RunScore
from mbdnode.evaluation.predictions import predicted_rows
from mbdnode.formatting import as_printed, percent, seconds_text
from mbdnode.multibody import AbstractMechanism, constraint_counts, resolve_parameters
from mbdnode.report.drawings import find_drawing
from mbdnode.report.html import (
    asset,
    make_film,
    render,
    small_png,
    write_page,
)
from mbdnode.report.pictures import (
    draw_ground,
    draw_pose,
    make_stage,
    parameter_values,
    view_of,
)
from mbdnode.report.playground_html import TITLE as TRY_IT
from mbdnode.report.playground_html import make_try_it, playground_css, playground_scripts
from mbdnode.report.style import styled
from mbdnode.workflow.report.figures import (
    draw_energy,
    draw_horizon,
    draw_residuals,
    draw_run,
    has_energy,
)
from mbdnode.workflow.report.state_space_figure import draw_space
from mbdnode.workflow.results import ReportData, verdict, waited

# So many held-out runs are drawn; all of them are in the table.
_MOST_RUNS = 6
_DPI = 150


def write_fit_page(report: ReportData, path: Path) -> None:
    """Write the page; an existing file is replaced whole or not at all."""
    write_page(make_fit_page(report), path)


def make_fit_page(report: ReportData) -> str:
    """The whole page as HTML."""
    scores, shown = report.scores.runs, report.held_out[:_MOST_RUNS]
    film = _film(report)
    tried = [] if report.play is None else [make_try_it(report.play, "fit")]
    scripts = () if film is None else ("drawing_parts.js", "film.js")
    started = time.perf_counter()
    parts = [
        _part("facts", "The model") if report.facts else None,
        _found(report),
        _motion(report, film),
        _part("try-it", TRY_IT) if tried else None,
        _held_out(report),
        _horizon(report),
        _space(report),
        _energy(report, shown),
        _residuals(report, shown),
        _part("read", "Data", () if report.read else ("No summary of the data was kept.",)),
        _part("made", "Reproduce", ("This command makes the model and this report again:",)),
    ]
    return render(
        "fit.html.j2",
        css=Markup(asset("page.css") + asset("fit.css") + playground_css(tried)),
        title=report.title,
        verdict=verdict(report),
        warnings=report.warnings,
        parts=[part for part in parts if part is not None],
        tables=() if isinstance(report.found, str) else report.found,
        law=report.found if isinstance(report.found, str) else "",
        film=film,
        script=Markup("".join(asset(name) for name in scripts)),
        tried=tried[0].html if tried else "",
        playground_scripts=playground_scripts(tried, scripts),
        scores=[_row(score) for score in scores],
        runs=[_run(report, run, score) for run, score in zip(shown, scores, strict=False)],
        read=report.read,
        command=report.command,
        versions=list(report.versions.items()),
        facts=_facts(report, time.perf_counter() - started),  # Last: it has the time of the others.
    )


def _facts(report: ReportData, drawing: float) -> list[tuple[str, str]]:
    """With the whole time that one waited, the drawing of this page included."""
    if not report.seconds:
        return list(report.facts)
    return [*report.facts, ("time", waited({**report.seconds, "drawing this report": drawing}))]


def _part(
    name: str, title: str, texts: Sequence[str] = (), figures: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    return {"id": name, "title": title, "texts": texts, "figures": figures}


def _found(report: ReportData) -> dict[str, Any] | None:
    """The parameters or the law; None for a network."""
    if not report.found:
        return None
    if isinstance(report.found, str):
        return _part("found", "The law")
    text = (
        "A standard error is that of the noise alone; where residuals are far above the noise or "
        "correlated, the values are less certain than it says."
    )
    return _part("found", "Parameters", (text,))


def _motion(report: ReportData, film: dict[str, Any] | None) -> dict[str, Any] | None:
    """The film, or a still picture of what has no masses and so no chapter of its own."""
    if not report.held_out or find_drawing(report.system) is None:
        return None
    run = report.held_out[0]
    if film is not None:
        text = f"{run.name}, held out: the prediction in color over the truth in gray."
        return _part("motion", "In motion", (text,))
    caption = f"{run.name}, held out: the last predicted pose."
    return _part("motion", "In motion", (), (_picture(_still(report, run), caption, caption),))


def _film(report: ReportData) -> dict[str, Any] | None:
    if not report.held_out or not isinstance(report.system, AbstractMechanism):
        return None
    run = report.held_out[0]
    return make_film(report.system, report.parameters, run.truth, {run.name: run.prediction})


@styled()
def _still(report: ReportData, run: HeldOut) -> Figure:
    drawing = find_drawing(report.system)
    assert drawing is not None
    mu = parameter_values(report.system, report.parameters)
    last = max(predicted_rows(run.prediction) - 1, 0)
    q, truth = np.asarray(run.prediction.q)[last], np.asarray(run.truth.q)
    figure, axes = make_stage(view_of(drawing, truth[[0, last]], mu))
    draw_ground(axes, drawing, truth, mu)
    draw_pose(axes, drawing, q, mu)
    return figure


def _held_out(report: ReportData) -> dict[str, Any]:
    count = len(report.held_out)
    if not count:
        return _part("held-out", "Held-out runs", ("No run was held out.",))
    texts = [
        "The model predicts each of these runs from its initial state and its inputs alone. The "
        "error is the NRMSE: the root mean square over rows and recorded columns, in percent of "
        "each column's standard deviation over all held-out runs; predicting the mean has 100 %. "
        "Columns that were estimated and not recorded do not count.",
        f"Over all runs: {', '.join(str(column) for column in report.scores.columns)}.",
    ]
    if report.horizon is not None and report.horizon.pieces is not None:
        texts.append(
            f"By where one begins: NRMSE {report.horizon.pieces}. The pieces overlap, and one "
            "model predicts them all: this is no spread over other training data."
        )
    if count > _MOST_RUNS:
        texts.append(
            f"The first {_MOST_RUNS} runs are plotted; {count - _MOST_RUNS} more are in the table."
        )
    return _part("held-out", "Held-out runs", texts)


def _row(score: RunScore) -> dict[str, str | bool]:
    return {
        "name": score.name,
        "length": seconds_text(score.seconds),
        "rows": f"{score.rows:,}",
        "error": "-" if score.nrmse is None else percent(score.nrmse),
        "outside": percent(score.outside),
        "left": score.divergence,
        "ended": score.ended_s is not None,
    }


def _run(report: ReportData, run: HeldOut, score: RunScore) -> dict[str, Any]:
    caption = f"{run.name}: recorded columns (gray) and their prediction (blue). "
    if run.prediction.spread is not None:
        caption += "The blue band is 1.645 standard deviations of the prediction to either side. "
    if math.isnan(score.outside):
        numbers = "not predicted"
        caption += "Not one row could be predicted."
    else:
        numbers = "no error to tell" if score.nrmse is None else f"NRMSE {percent(score.nrmse)}"
        numbers += f", {percent(score.outside)} outside the training data"
        shaded = " (orange)." if score.outside > 0 else "."
        caption += f"{percent(score.outside)} of the predicted rows lie outside the training data"
        caption += shaded
    if score.ended_s is not None:
        numbers += f", ended at t = {score.ended_s:.4g} s"
        caption += f" The prediction ended at t = {score.ended_s:.4g} s"
        caption += "." if bool(run.prediction.status.ok) else f": {run.prediction.status}."
    if score.where:
        caption += f" The error {score.where}."
    alt = f"Recorded columns of {run.name} over time, truth and prediction."
    figure = _picture(draw_run(report.system, run), caption, alt)
    return {"name": run.name, "numbers": numbers, "figure": figure}


def _horizon(report: ReportData) -> dict[str, Any]:
    title, horizon = "Valid prediction time", report.horizon
    if horizon is None:
        text = "There was nothing to measure the error against the time ahead on."
        return _part("horizon", title, (text,))
    caption = (
        "The largest error up to a time predicted ahead, over predictions from "
        f"{horizon.predictions} initial states in the held-out runs, each to the end of its run: "
        "the median and the interquartile range, in percent of the standard deviation. A "
        f"prediction is valid until its error first exceeds {percent(horizon.limit)}; the valid "
    )
    times = f"of times from {horizon.shortest_s:.3g} to {horizon.longest_s:.3g} s."
    median = "zero, so there is none," if horizon.valid_s is None else f"{horizon},"
    caption += f"prediction time is the median, {median} {times}"
    alt = "Error against the time predicted ahead, with the error of predicting that nothing moves."
    return _part("horizon", title, (), (_picture(draw_horizon(horizon), caption, alt),))


def _space(report: ReportData) -> dict[str, Any]:
    title, figure = "Training domain", draw_space(report)
    if figure is None:
        return _part("space", title, ("The states of the training data were not kept.",))
    rows = sum(predicted_rows(run.prediction) for run in report.held_out)
    beyond = sum(
        int(np.sum(run.outside[: predicted_rows(run.prediction)])) for run in report.held_out
    )
    caption = (
        "Velocity over position of every independent coordinate, and a histogram of each input: "
        "training data in gray, predictions on top. Angles are wrapped to one turn; those far "
        "outside the data are outside the frame."
    )
    if rows:
        caption += (
            f" {beyond:,} of {rows:,} predicted rows ({percent(beyond / rows)}) lie outside the "
            "training data."
        )
    alt = "Training data and predictions in state space."
    return _part("space", title, (), (_picture(figure, caption, alt),))


def _energy(report: ReportData, shown: Sequence[HeldOut]) -> dict[str, Any] | None:
    if not has_energy(report):
        return None
    caption = "Kinetic and potential energy of truth and prediction, from the mechanism's masses."
    alt = "Energy over time of truth and prediction."
    return _part("energy", "Energy", (), (_picture(draw_energy(report, shown), caption, alt),))


def _residuals(report: ReportData, shown: Sequence[HeldOut]) -> dict[str, Any] | None:
    mu = resolve_parameters(report.system, report.parameters)
    if not shown or not sum(constraint_counts(report.system, mu)):
        return None
    largest = [_largest(report, name) for name in ("position_residual", "velocity_residual")]
    caption = (
        "The largest residual of the constraints over time. Over all held-out predictions it is at "
        f"most {as_printed(largest[0])} for positions and {as_printed(largest[1])} for velocities."
    )
    figure = _picture(draw_residuals(shown), caption, "Residuals of the constraints over time.")
    return _part("residuals", "Constraints", (), (figure,))


def _largest(report: ReportData, name: str) -> float:
    values = [np.abs(np.asarray(getattr(run.prediction, name))) for run in report.held_out]
    return float(np.fmax.reduce(np.concatenate(values)))


def _picture(figure: Figure, caption: str, alt: str) -> dict[str, Any]:
    drawn = io.BytesIO()
    with styled():
        figure.savefig(drawn, format="png", dpi=_DPI)
    return {"caption": caption, "alt": alt, **small_png(drawn.getvalue(), _DPI)}
