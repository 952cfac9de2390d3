"""The paper's figures of what a model has not seen: other starts, a random force, long inputs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.multibody import Coordinate
from mbdnode.report import panels
from mbdnode.report.chapters import Chapter, Exhibit, Probe
from mbdnode.report.motion_figures import nothing_to_show
from mbdnode.report.style import COLOURS, MUTED, new_figure, styled, symbol
from mbdnode.report.titles import error_text
from mbdnode.trajectory import Trajectory

RANDOM_FORCE = "random-force"


@styled()
def draw_starts(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Portraits from other starts; the states of the training range lie faintly behind."""
    told = [
        (shown, probe)
        for shown in panels.shown_entries(chapter)
        for probe in shown.entry.probes
        if probe.name != RANDOM_FORCE
    ]
    if not told:
        return nothing_to_show(chapter)
    coordinate = panels.shown_coordinates(chapter, exhibit, told[0][1].truth)[0]
    columns = 2 if len(told) > 1 else 1
    rows = -(-len(told) // columns)
    figure = new_figure(4.4 * columns, 0.8 + 3.0 * rows)
    places = iter(figure.subplots(rows, columns, squeeze=False).flat)
    for number, (shown, probe) in enumerate(told):
        axes = next(places)
        _draw_known(axes, shown.truth, chapter, coordinate)
        both = panels.pair(probe.truth, probe.prediction)
        panels.draw_portrait(axes, both, coordinate, 0.0)
        panels.panel_title(axes, number, _probe_text(shown, probe, chapter))
    for axes in places:
        axes.set_axis_off()
    handles = [
        panels.line("-", "truth", COLOURS[0]),
        panels.line(":", "prediction", COLOURS[0]),
        panels.line("-", "states of the training range", MUTED),
    ]
    handles[0].set(linewidth=3.2, alpha=0.32)
    handles[2].set(linewidth=5.0, alpha=0.25)
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _draw_known(axes: Axes, truth: Trajectory, chapter: Chapter, coordinate: Coordinate) -> None:
    if chapter.train_end_s <= 0:
        return
    inside = np.asarray(truth.t) <= chapter.train_end_s
    q, v = np.asarray(truth[coordinate.name]), np.asarray(truth[coordinate.rate])
    axes.plot(q[inside], v[inside], color=MUTED, linewidth=5.0, alpha=0.25, zorder=1)


@styled()
def draw_forced(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The motion under a random force, and the force, one below the other."""
    for shown in panels.shown_entries(chapter):
        for probe in shown.entry.probes:
            if probe.name == RANDOM_FORCE:
                return _stack(chapter, exhibit, shown, probe)
    return nothing_to_show(chapter)


def _stack(chapter: Chapter, exhibit: Exhibit, shown: panels.Predicted, probe: Probe) -> Figure:
    both = panels.pair(probe.truth, probe.prediction)
    coordinates = panels.shown_coordinates(chapter, exhibit, probe.truth)
    columns = [(c.name, c.unit) for c in coordinates]
    columns += [(c.rate, f"{c.unit}/s") for c in coordinates]
    inputs = [(i.name, i.unit) for i in chapter.mechanism.inputs]
    figure = new_figure(8.4, 0.9 + 1.6 * (len(columns) + len(inputs)))
    grid = figure.subplots(len(columns) + len(inputs), 1, squeeze=False, sharex=True)[:, 0]
    for number, (axes, (name, unit)) in enumerate(zip(grid, columns, strict=False)):
        panels.draw_over_time(axes, both, [name], 0.0)
        panels.name_axis(axes, f"{symbol(name)} [{unit}]")
        text = _probe_text(shown, probe, chapter) if number == 0 else ""
        panels.panel_title(axes, number, text)
    for number, (axes, (name, unit)) in enumerate(
        zip(grid[len(columns) :], inputs, strict=True), len(columns)
    ):
        _draw_input(axes, both, name, unit)
        panels.panel_title(axes, number, "")
    grid[-1].set_xlabel("t [s]")
    panels.add_legend(figure, 0.0)
    return figure


@styled()
def draw_driven(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The independent coordinates with their velocities, and the inputs, in two columns."""
    entries = panels.shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    shown = entries[0]
    names = exhibit.columns or chapter.mechanism.independent or ()
    known = panels.moving(chapter.mechanism, shown.truth)
    coordinates = [c for c in known if c.name in names or not names]
    both = panels.pair(shown.truth, shown.prediction)
    columns = [pair for c in coordinates for pair in ((c.name, c.unit), (c.rate, f"{c.unit}/s"))]
    figure, grid = _two_columns(len(columns) + len(chapter.mechanism.inputs))
    for number, (axes, (name, unit)) in enumerate(zip(grid, columns, strict=False)):
        panels.draw_over_time(axes, both, [name], chapter.train_end_s, width=1.1)
        panels.name_axis(axes, f"{symbol(name)} [{unit}]")
        panels.panel_title(axes, number, panels.result_text(shown, both) if number == 0 else "")
    rest = zip(grid[len(columns) :], chapter.mechanism.inputs, strict=False)
    for number, (axes, given) in enumerate(rest, len(columns)):
        _draw_input(axes, both, given.name, given.unit)
        panels.panel_title(axes, number, "")
    panels.add_legend(figure, chapter.train_end_s)
    return figure


@styled()
def draw_dependent(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """All other coordinates that move on the left, their velocities on the right."""
    entries = panels.shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    shown = entries[0]
    independent = chapter.mechanism.independent or ()
    known = panels.moving(chapter.mechanism, shown.truth)
    coordinates = [
        c
        for c in known
        if c.name in exhibit.columns or (not exhibit.columns and c.name not in independent)
    ]
    both = panels.pair(shown.truth, shown.prediction)
    figure, grid = _two_columns(2 * len(coordinates), height=1.35)
    columns = [pair for c in coordinates for pair in ((c.name, c.unit), (c.rate, f"{c.unit}/s"))]
    for number, (axes, (name, unit)) in enumerate(zip(grid, columns, strict=True)):
        panels.draw_over_time(axes, both, [name], chapter.train_end_s, width=0.9)
        panels.name_axis(axes, f"{symbol(name)} [{unit}]")
        panels.panel_title(axes, number, panels.result_text(shown, both) if number == 0 else "")
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def _two_columns(count: int, height: float = 2.1) -> tuple[Figure, Sequence[Axes]]:
    rows = max(1, -(-count // 2))
    figure = new_figure(9.6, 0.9 + height * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
    for axes in grid[-1]:
        axes.set_xlabel("t [s]")
    flat = list(grid.flat)
    for axes in flat[count:]:
        axes.set_axis_off()
    return figure, flat[:count]


def _draw_input(axes: Axes, both: panels.Pair, name: str, unit: str) -> None:
    """A random signal: thin, so that it does not become a solid band."""
    t, values = both.truth["t"], both.truth[name]
    width = 0.8 if len(t) < 1_000 else 0.35
    axes.plot(t, values, color=MUTED, linewidth=width, drawstyle="steps-post")
    panels.name_axis(axes, f"{symbol(name)} [{unit}]")
    panels.time_axis(axes, t, 0.0)


def _probe_text(shown: panels.Predicted, probe: Probe, chapter: Chapter) -> str:
    several = len([s for s in panels.shown_entries(chapter) if s.entry.probes]) > 1
    who = f"{shown.title}, " if several else ""
    return f"{who}{probe.title}: mse {error_text(probe.mse)}"
