"""The cost-quality study drawn: as a figure, and as plain data for the page's plots.

A panel for each case shows error against seconds of training. All panels share their axes, so that
the same error stands at the same height everywhere.
"""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import ROUND_OFF, as_printed, error_text, seconds_text
from mbdnode.report.panels import panel_title
from mbdnode.report.style import FAINT, INK, MUTED, mark_round_off, new_figure, styled
from mbdnode.reproduction.report.chapters import (
    PAPER,
    Method,
    Palette,
    Reproduction,
    integrator_title,
    make_palette,
    method_of,
    model_title,
)
from mbdnode.reproduction.report.cost_table import (
    MAX_ERROR,
    CaseCosts,
    Point,
    Printed,
    Range,
    View,
    cost_view,
    gather_costs,
    named_methods,
    printed_methods,
    shown_error,
    shown_seconds,
    stairs,
)

CAPTION = (
    "Error against seconds of training, both as medians over the seeds; thin bars reach from the "
    "min to the max. Several marks of one method are its integrators. A pale line to "
    "the right ends where the time to compile is added. The gray staircase is the Pareto front. "
    "Open marks are what the paper prints, on its own machine; a dotted line is an error that it "
    f"prints without a time. Errors below {as_printed(ROUND_OFF, 1)} are round-off, and all alike "
    f"in the band at the bottom; one above {as_printed(MAX_ERROR, 1)} is drawn there."
)
# What the longest name in the legend takes.
_LEGEND_IN = 2.5


@styled()
def draw_costs(reproduction: Reproduction) -> Figure | None:
    """Every case in a panel of its own.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A figure; None where no case has a trained model with an error.
    """
    cases = [case for case in gather_costs(reproduction) if case.placed]
    if not cases:
        return None
    palette, view = make_palette(reproduction.chapters), cost_view(cases)
    columns = min(len(cases), 3)
    rows = math.ceil(len(cases) / columns)
    figure = new_figure(max(3.5 * columns, 6.6), 1.5 + 2.9 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    grid[0, 0].set(xscale="log", yscale="log", xlim=view.seconds, ylim=view.errors)
    for number, axes in enumerate(grid.flat):
        if number >= len(cases):
            axes.set_axis_off()
            continue
        _draw_case(axes, cases[number], palette, view)
        panel_title(axes, number, cases[number].title)
        if number + columns >= len(cases):  # Nothing below it.
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("training [s]")
    for axes in grid[:, 0]:
        axes.set_ylabel("mse")
    _add_legend(figure, cases, palette)
    return figure


def _draw_case(axes: Axes, case: CaseCosts, palette: Palette, view: View) -> None:
    if view.round_off is not None:
        mark_round_off(axes)
    axes.plot(*stairs(case, view), color=MUTED, linewidth=1.1, zorder=2)
    for printed in case.printed:
        _draw_printed(axes, printed, palette)
    for point, training, error in case.placed:
        _draw_point(axes, point, training, error, palette)


def _draw_point(axes: Axes, point: Point, training: Range, error: Range, palette: Palette) -> None:
    method = method_of(point.entry)
    color, mark = palette.color(method), palette.mark(method)
    x, y = shown_seconds(training.median), shown_error(error.median)
    if point.compiling_s:
        axes.plot([x, x + point.compiling_s], [y, y], color=color, linewidth=3.0, alpha=0.25)
    seconds = [shown_seconds(training.min), shown_seconds(training.max)]
    errors = [shown_error(error.min), shown_error(error.max)]
    axes.plot(seconds, [y, y], color=color, linewidth=0.9, zorder=3)
    axes.plot([x, x], errors, color=color, linewidth=0.9, zorder=3)
    axes.plot([x], [y], mark, color=color, markersize=6, zorder=4, label=point.title)


def _draw_printed(axes: Axes, printed: Printed, palette: Palette) -> None:
    method = (printed.model, PAPER)
    color = palette.color(method)
    if printed.seconds is None:
        axes.axhline(printed.error, color=color, linewidth=0.9, linestyle=":", zorder=1)
        return
    axes.plot(
        [printed.seconds],
        [printed.error],
        palette.mark(method),
        color=color,
        markerfacecolor="white",
        markersize=6.5,
        zorder=3,
    )


def _add_legend(figure: Figure, cases: Sequence[CaseCosts], palette: Palette) -> None:
    """Methods first, then what the lines mean."""
    handles = [
        _entry(color=palette.color(method), mark=palette.mark(method), label=title)
        for method, title in named_methods(cases, palette)
    ]
    printed = [one for case in cases for one in case.printed]
    handles += [
        _entry(color=palette.color(method), mark=palette.mark(method), label=title, fill="white")
        for method, title in printed_methods(cases, palette)
    ]
    if any(one.seconds is None for one in printed):
        handles.append(Line2D([], [], color=INK, linestyle=":", label="printed without a time"))
    handles.append(Line2D([], [], color=FAINT, linewidth=3.0, label="compiling"))
    handles.append(Line2D([], [], color=MUTED, linewidth=1.1, label="Pareto front"))
    columns = max(2, int(figure.get_figwidth() / _LEGEND_IN))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def _entry(*, color: str, mark: str, label: str, fill: str | None = None) -> Line2D:
    return Line2D(
        [],
        [],
        color=color,
        marker=mark,
        markerfacecolor=fill or color,
        linestyle="",
        label=label,
    )


def make_cost_plots(cases: Sequence[CaseCosts], palette: Palette) -> dict[str, Any]:
    """What the plots of the study show.

    **Arguments:**

    - `cases`: each with at least one point that has a place.
    - `palette`: the report's.

    **Returns:**

    Plain data: the methods, those that the paper prints, the limits of the axes that all cases
    share, and the cases.
    """
    view = cost_view(cases)
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
    if error.min < error.max:
        told += f" ({as_printed(error.min)} to {as_printed(error.max)})"
    lines = [
        point.title,
        f"mse {told}",
        f"training {seconds_text(training.median)}, compiling {seconds_text(compiling)}",
    ]
    return {
        "title": point.title,
        **_look(method_of(point.entry), palette),
        "seconds": seconds,
        "secondsRange": [shown_seconds(training.min), shown_seconds(training.max)],
        "error": shown_error(error.median),
        "errorRange": [shown_error(error.min), shown_error(error.max)],
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
