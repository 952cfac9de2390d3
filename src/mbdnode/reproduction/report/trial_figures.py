"""The paper's figures of what a model has not seen: other initial states, a random force,
long inputs, and closed loops whose controller plans with the equations of motion or a learned
model.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import error_text
from mbdnode.multibody import AbstractMechanism, Coordinate
from mbdnode.report import panels
from mbdnode.report.style import COLORS, MUTED, new_figure, styled, symbol
from mbdnode.reproduction.report.chapters import Chapter, Exhibit, Probe
from mbdnode.reproduction.report.motion_figures import (
    Predicted,
    nothing_to_show,
    shown_coordinates,
    shown_entries,
)
from mbdnode.trajectory import Trajectory

RANDOM_FORCE = "random-force"


@styled()
def draw_starts(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Portraits of other motions; the states of the training range lie faintly behind."""
    told = [
        (shown, probe)
        for shown in shown_entries(chapter)
        for probe in shown.entry.probes
        if probe.name != RANDOM_FORCE
    ]
    if not told:
        return nothing_to_show(chapter)
    coordinate = shown_coordinates(chapter, exhibit, told[0][1].truth)[0]
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
    handles = [panels.line("-", "truth", COLORS[0]), panels.line(":", "prediction", COLORS[0])]
    handles[0].set(linewidth=3.2, alpha=0.32)
    if chapter.train_end_s > 0:
        handles.append(panels.line("-", "states of the training range", MUTED))
        handles[-1].set(linewidth=5.0, alpha=0.25)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
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
    for shown in shown_entries(chapter):
        for probe in shown.entry.probes:
            if probe.name == RANDOM_FORCE:
                return _stack(chapter, exhibit, shown, probe)
    return nothing_to_show(chapter)


def _stack(chapter: Chapter, exhibit: Exhibit, shown: Predicted, probe: Probe) -> Figure:
    both = panels.pair(probe.truth, probe.prediction)
    coordinates = shown_coordinates(chapter, exhibit, probe.truth)
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
    entries = shown_entries(chapter)
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
        text = panels.result_text(shown.title, both) if number == 0 else ""
        panels.panel_title(axes, number, text)
    rest = zip(grid[len(columns) :], chapter.mechanism.inputs, strict=False)
    for number, (axes, given) in enumerate(rest, len(columns)):
        _draw_input(axes, both, given.name, given.unit)
        panels.panel_title(axes, number, "")
    panels.add_legend(figure, chapter.train_end_s)
    return figure


@styled()
def draw_dependent(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """All other coordinates that move on the left, their velocities on the right."""
    entries = shown_entries(chapter)
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
        text = panels.result_text(shown.title, both) if number == 0 else ""
        panels.panel_title(axes, number, text)
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


def _probe_text(shown: Predicted, probe: Probe, chapter: Chapter) -> str:
    several = len([s for s in shown_entries(chapter) if s.entry.probes]) > 1
    who = f"{shown.title}, " if several else ""
    return f"{who}{probe.title}: mse {error_text(probe.mse)}"


_EXACT = "planned with the equations of motion"

# Titles and loops that were planned with learned models.
Loops = Sequence[tuple[str, Trajectory]]


def draw_controlled(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Every state and input of the chapter's loop, and by how much the learned ones differ."""
    shown = shown_entries(chapter)
    if not shown:
        return nothing_to_show(chapter)
    found = [(one.title, one.prediction) for one in shown]
    return _draw_loops(chapter.mechanism, found, shown[0].truth)


@styled()
def draw_loops(
    mechanism: AbstractMechanism, title: str, loop: Trajectory, exact: Trajectory | None
) -> Figure:
    """One loop, beside the one that plans with the equations of motion.

    **Arguments:**

    - `mechanism`: the plant.
    - `title`: of the figure.
    - `loop`: to be shown.
    - `exact`: to compare it with; None if it is the loop itself.

    **Returns:**

    A figure, for `save`.
    """
    found = [] if exact is None else [("the learned model", loop)]
    figure = _draw_loops(mechanism, found, loop if exact is None else exact)
    figure.suptitle(title[:1].upper() + title[1:], fontsize=12)
    return figure


@styled()
def _draw_loops(mechanism: AbstractMechanism, found: Loops, truth: Trajectory) -> Figure:
    columns = _columns(mechanism, truth)
    count = len(columns) + bool(found)
    rows = -(-count // 2)
    figure = new_figure(9.6, 0.9 + 2.1 * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
    flat = list(grid.flat)
    for number, (axes, (name, unit)) in enumerate(zip(flat, columns, strict=False)):
        _draw(axes, name, unit, truth, found)
        panels.panel_title(axes, number, "")
    if found:
        _draw_difference(flat[len(columns)], [name for name, _ in columns], truth, found)
        panels.panel_title(flat[len(columns)], len(columns), "largest difference of all columns")
    for axes in flat[count:]:
        axes.set_axis_off()
    for axes in flat[max(0, count - 2) : count]:
        axes.set_xlabel("t [s]")
        axes.tick_params(labelbottom=True)
    _legend(figure, [title for title, _ in found])
    return figure


@styled()
def draw_control_trials(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """A column for each of the chapter's other loops."""
    shown = [one for one in shown_entries(chapter) if one.entry.probes]
    if not shown:
        return nothing_to_show(chapter)
    trials = shown[0].entry.probes
    columns = [_columns(chapter.mechanism, probe.truth) for probe in trials]
    rows = max(map(len, columns))
    figure = new_figure(max(5.4, 4.8 * len(trials)), 0.9 + 1.7 * rows)
    grid = figure.subplots(rows, len(trials), squeeze=False, sharex="col")
    number = 0
    for place, probe in enumerate(trials):
        found = [(one.title, _named(one.entry.probes, probe.name).prediction) for one in shown]
        for axes, (name, unit) in zip(grid[:, place], columns[place], strict=False):
            _draw(axes, name, unit, probe.truth, found)
            first = name == columns[place][0][0]
            panels.panel_title(axes, number, probe.title if first else "")
            number += 1
        for axes in grid[len(columns[place]) :, place]:
            axes.set_axis_off()
        grid[len(columns[place]) - 1, place].set_xlabel("t [s]")
    _legend(figure, [one.title for one in shown])
    return figure


def _named(probes: Sequence[Probe], name: str) -> Probe:
    return next(probe for probe in probes if probe.name == name)


def _columns(mechanism: AbstractMechanism, truth: Trajectory) -> list[tuple[str, str]]:
    """Independent positions, their velocities, and the inputs that are used, with their units."""
    names = mechanism.independent or mechanism.coordinate_names
    chosen = [c for c in mechanism.coordinates if c.name in names]
    used = [i for i in mechanism.inputs if np.ptp(np.asarray(truth[i.name])) > 0]
    return [
        *((c.name, c.unit) for c in chosen),
        *((c.rate, f"{c.unit}/s") for c in chosen),
        *((i.name, i.unit) for i in used),
    ]


def _draw(axes: Axes, name: str, unit: str, truth: Trajectory, found: Loops) -> None:
    t = np.asarray(truth.t)
    style = "steps-post" if name in truth.inputs else "default"
    axes.plot(t, np.asarray(truth[name]), color=MUTED, linewidth=3.4, alpha=0.45, drawstyle=style)
    for (_, loop), color in zip(found, panels.colors_for(found), strict=True):
        values = np.asarray(loop[name])
        axes.plot(t, values, ":", color=color, linewidth=1.5, drawstyle=style)
    panels.keep_in_view(axes.set_ylim, [np.asarray(truth[name])])
    panels.name_axis(axes, f"{symbol(name)} [{unit}]")
    panels.time_axis(axes, t, 0.0)


def _draw_difference(axes: Axes, names: Sequence[str], truth: Trajectory, found: Loops) -> None:
    """In percent of each column's range, on a logarithmic scale."""
    t = np.asarray(truth.t)
    for (_, loop), color in zip(found, panels.colors_for(found), strict=True):
        parts = [
            np.abs(np.asarray(loop[name]) - np.asarray(truth[name]))
            / max(float(np.ptp(np.asarray(truth[name]))), 1e-12)
            for name in names
        ]
        # Below round-off there is nothing to see, and no logarithm.
        axes.plot(t, np.maximum(100 * np.max(parts, axis=0), 1e-16), color=color, linewidth=0.9)
    axes.set_yscale("log")
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_ylabel("percent of the range")
    panels.time_axis(axes, t, 0.0)


def _legend(figure: Figure, titles: Sequence[str]) -> None:
    handles = [Line2D([], [], color=MUTED, linewidth=3.4, alpha=0.45, label=_EXACT)]
    handles += [
        panels.line(":", f"planned with {title}", COLORS[place % len(COLORS)])
        for place, title in enumerate(titles)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))
