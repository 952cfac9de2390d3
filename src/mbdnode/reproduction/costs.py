"""What accuracy costs: the error of every model and recipe against the time of its training.

A result is on the Pareto front if no other of its case is both as quick and as accurate, and better
in one of the two. A panel for each case shows error against seconds; all panels share their axes,
so that the same error stands at the same height everywhere.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import ROUND_OFF, as_printed, error_text, seconds_text
from mbdnode.recipes import PAPER
from mbdnode.report.panels import Panel, lay_out
from mbdnode.report.style import (
    ABOVE_ROUND_OFF,
    AMID_ROUND_OFF,
    FAINT,
    MIN_SHOWN,
    MUTED,
    mark_round_off,
    styled,
)
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.chapters import Chapter
from mbdnode.reproduction.palette import MARKS, Palette, make_palette
from mbdnode.reproduction.results import UNTRAINED, Result
from mbdnode.reproduction.titles import model_title, with_integrator
from mbdnode.reproduction.verdicts import printed_time

Limits = dict[str, tuple[float, float]]
# A prediction that is further off has run away, and would squeeze all others.
_MAX_ERROR, _MIN_SECONDS = 1e3, 1e-3
CAPTION = (
    "Error against seconds of training, both as medians over the seeds; thin bars reach from the "
    "min to the max. Several marks of one method are its integrators. A pale line to "
    "the right ends where the time to compile is added. The gray staircase is the Pareto front. "
    "Open marks are what the paper prints, on its own machine; a dotted line is an error that it "
    f"prints without a time. Errors below {as_printed(ROUND_OFF, 1)} are round-off, and all alike "
    f"in the band at the bottom; one above {as_printed(_MAX_ERROR, 1)} is drawn there."
)
# What the longest name in the legend takes.
_LEGEND_IN = 2.5


def placed(chapter: Chapter) -> list[Result]:
    """The results that have a place: an error, and a time of training."""
    return [result for result in chapter.results if result.cost is not None]


def has_trained(chapter: Chapter) -> bool:
    """Whether something was trained there."""
    return any(result.recipe != UNTRAINED for result in chapter.results)


def sum_up(chapter: Chapter) -> str:
    """The ends of a chapter's front in a sentence."""
    title, found = chapter.case.title, [r for r in placed(chapter) if r.on_front]
    if not found:
        return f"{title}: no model has an error and a time."
    quickest, finest = (min(found, key=key) for key in (_quickness, _accuracy))
    if len(placed(chapter)) == 1:
        return f"{title}: one method alone, {_told(quickest)}."
    if quickest is finest:
        return f"{title}: {_told(quickest)} is both the quickest and the most accurate."
    return f"{title}: the quickest is {_told(quickest)}; the most accurate is {_told(finest)}."


def _quickness(result: Result) -> tuple[float, float]:
    assert result.cost is not None
    return result.cost


def _accuracy(result: Result) -> tuple[float, float]:
    seconds, error = _quickness(result)
    return max(error, ROUND_OFF), seconds


def _told(result: Result) -> str:
    seconds, error = _quickness(result)
    compiling = result.compile_seconds
    told = f", compiled in {seconds_text(compiling)}" if compiling else ""
    trained = f"trained in {seconds_text(seconds)}{told}"
    return f"{result.full_title} (mse {error_text(error)}, {trained})"


@styled()
def draw_costs(chapters: Sequence[Chapter]) -> Figure | None:
    """Every case in a panel of its own; None where none has a trained model with an error."""
    palette, shown = make_palette(chapters), [chapter for chapter in chapters if placed(chapter)]
    if not shown:
        return None
    columns, limits = min(len(shown), 3), _limits(shown)
    drawn = [Panel(c.case.title, _draw_case, (c, palette, limits)) for c in shown]
    width_in = max(3.5 * columns, 6.6)
    figure = lay_out(drawn, columns, 2.9, width_in, 1.5, same_x=True, same_y=True)
    _add_legend(figure)
    return figure


def _limits(chapters: Sequence[Chapter]) -> Limits:
    """Limits that hold all marks, bars and compile times."""
    printed = [reference for chapter in chapters for reference in _printed(chapter)]
    seconds = [time for reference, time in printed if time is not None]
    errors = [reference.value for reference, _ in printed]
    for result in (result for chapter in chapters for result in placed(chapter)):
        times = result.values("train_seconds")
        seconds += [*times, _quickness(result)[0] + (result.compile_seconds or 0.0)]
        errors += result.values()
    low, high = _around([_shown(error) for error in errors])
    if any(error < ROUND_OFF for error in errors):
        low, high = MIN_SHOWN, max(high, ABOVE_ROUND_OFF)
    return {"xlim": _around([max(x, _MIN_SECONDS) for x in seconds]), "ylim": (low, high)}


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Room around the outermost marks, a part of an axis of two decades or more."""
    low, high = min(values), max(values)
    room = max(high / low, 100.0) ** 0.06
    return low / room, high * room


def _shown(error: float) -> float:
    """An error as it is drawn: all round-off alike, and nothing beyond the axis."""
    return AMID_ROUND_OFF if error < ROUND_OFF else min(error, _MAX_ERROR)


def _printed(chapter: Chapter) -> list[tuple[Reference, float | None]]:
    """The paper's errors with its times, but for those of another problem or of what is known."""
    references = chapter.case.references
    return [
        (r, time and time.value)
        for r in references
        if r.quantity == "mse" and not r.incomparable and r.model != NUMERICAL
        for time in [printed_time(references, r.model, r.integrator, PAPER)]
    ]


def _draw_case(axes: Axes, chapter: Chapter, palette: Palette, limits: Limits) -> None:
    axes.set(xscale="log", yscale="log", xlabel="training [s]", ylabel="mse", **limits)
    (_, right), (low, top) = axes.get_xlim(), axes.get_ylim()
    if low <= MIN_SHOWN:
        mark_round_off(axes)
    front = sorted(_quickness(r) for r in placed(chapter) if r.on_front)
    x = [max(seconds, _MIN_SECONDS) for seconds, _ in front]
    y = [_shown(error) for _, error in front]
    # The smallest error that any given time of training buys.
    look: Any = {"color": MUTED, "linewidth": 1.1, "zorder": 2, "label": "Pareto front"}
    axes.step([x[0], *x, right], [top, *y, y[-1]], where="post", **look)
    for reference, seconds in _printed(chapter):
        method = (reference.model, PAPER)
        look: Any = {"color": palette.color(method), "label": _printed_title(reference.model)}
        time = "no time" if seconds is None else f"training {seconds_text(seconds)}"
        who = with_integrator(model_title(reference.model), reference.integrator)
        look["gid"] = f"The paper's {who}, mse {as_printed(reference.value)}, {time}"
        if seconds is None:
            axes.axhline(reference.value, linewidth=0.9, linestyle=":", zorder=1, **look)
            continue
        look |= {"markerfacecolor": "white", "markersize": 6.5, "linestyle": "", "zorder": 3}
        axes.plot([seconds], [reference.value], marker=palette.mark(method), **look)
    for result in placed(chapter):
        _draw_result(axes, result, palette)


def _draw_result(axes: Axes, result: Result, palette: Palette) -> None:
    seconds, error = _quickness(result)
    x, y = max(seconds, _MIN_SECONDS), _shown(error)
    title = palette.title(result.method)
    # What the page says of it.
    look: Any = {"color": palette.color(result.method), "label": title, "gid": _told(result)}
    if result.compile_seconds:
        axes.plot([x, x + result.compile_seconds], [y, y], linewidth=3.0, alpha=0.25, **look)
    times, errors = result.values("train_seconds"), result.values()
    times = [max(time, _MIN_SECONDS) for time in (min(times), max(times))]
    axes.plot(times, [y, y], linewidth=0.9, zorder=3, **look)
    ends = [_shown(end) for end in (min(errors), max(errors))]
    axes.plot([x, x], ends, linewidth=0.9, zorder=3, **look)
    mark = palette.mark(result.method)
    axes.plot([x], [y], marker=mark, markersize=6, linestyle="", zorder=4, **look)


def _printed_title(model: str) -> str:
    return f"{model_title(model)}, printed in the paper"


def _add_legend(figure: Figure) -> None:
    """Every method by its mark, those of the paper that have only a line, and the front."""
    lines = [line for axes in figure.axes for line in axes.get_lines()]
    # Bars and times to compile are of a mark.
    named = [line for line in lines if line.get_linestyle() != "-" or line.get_gid() is None]
    handles: dict[object, Line2D] = {}
    for line in sorted(named, key=_has_mark, reverse=True):
        handles.setdefault(line.get_label(), line)
    handles["compiling"] = Line2D([], [], color=FAINT, linewidth=3.0, label="compiling")
    columns = max(2, int(figure.get_figwidth() / _LEGEND_IN))
    figure.legend(handles=list(handles.values()), loc="outside lower center", ncols=columns)


def _has_mark(line: Line2D) -> bool:
    return line.get_marker() in MARKS
