"""The cost-quality study as plain data for the page's plots."""

from collections.abc import Sequence
from typing import Any

from mbdnode.evaluation.verdict import as_printed
from mbdnode.report.chapters import PAPER
from mbdnode.report.cost_quality import CaseCosts, Point, Printed, Range
from mbdnode.report.cost_view import (
    View,
    named_methods,
    printed_methods,
    shown_error,
    shown_seconds,
    stairs,
    view_of,
)
from mbdnode.report.palette import Method, Palette, method_of
from mbdnode.report.titles import error_text, integrator_title, model_title, seconds_text


def make_cost_plots(cases: Sequence[CaseCosts], palette: Palette) -> dict[str, Any]:
    """What the plots of the study show.

    **Arguments:**

    - `cases`: each with at least one point that has a place.
    - `palette`: the report's.

    **Returns:**

    Plain data: the methods, those that the paper prints, the limits of the axes that all cases
    share, and the cases.
    """
    view = view_of(cases)
    return {
        "methods": [
            {"title": title, **_look(method, palette)}
            for method, title in named_methods(cases, palette)
        ],
        "printed": [
            {"title": title, **_look(method, palette)}
            for method, title in printed_methods(cases, palette)
        ],
        "seconds": view.seconds,
        "errors": view.errors,
        "roundOff": view.round_off,
        "cases": [_case(case, palette, view) for case in cases],
    }


def _case(case: CaseCosts, palette: Palette, view: View) -> dict[str, Any]:
    x, y = stairs(case, view)
    return {
        "title": case.title,
        "points": [_point(*placed, palette) for placed in case.placed],
        "printed": [_printed(one, palette) for one in case.printed],
        "front": {"x": x, "y": y},
    }


def _point(point: Point, training: Range, error: Range, palette: Palette) -> dict[str, Any]:
    seconds, compiling = shown_seconds(training.median), point.compiling_s or 0.0
    told = error_text(error.median)
    if error.least < error.greatest:
        told += f" ({as_printed(error.least)} to {as_printed(error.greatest)})"
    lines = [
        point.title,
        f"mse {told}",
        f"training {seconds_text(training.median)}, compiling {seconds_text(compiling)}",
    ]
    return {
        "title": point.title,
        **_look(method_of(point.entry), palette),
        "seconds": seconds,
        "secondsRange": [shown_seconds(training.least), shown_seconds(training.greatest)],
        "error": shown_error(error.median),
        "errorRange": [shown_error(error.least), shown_error(error.greatest)],
        "compiling": compiling,
        "text": "<br>".join(lines),
    }


def _printed(one: Printed, palette: Palette) -> dict[str, Any]:
    who = f"{model_title(one.model)} {integrator_title(one.integrator)}".removesuffix(" -")
    time = "no time" if one.seconds is None else f"training {seconds_text(one.seconds)}"
    return {
        **_look((one.model, PAPER), palette),
        "seconds": one.seconds,
        "error": one.error,
        "text": f"The paper's {who}<br>mse {as_printed(one.error)}<br>{time}",
    }


def _look(method: Method, palette: Palette) -> dict[str, int]:
    return {"place": palette.methods[method], "mark": palette.recipes[method[1]]}
