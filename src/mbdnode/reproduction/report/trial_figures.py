"""The paper's figures of what a model has not seen: other initial states, a random force,
long inputs, and closed loops whose controller plans with the equations of motion or a learned
model.
"""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import error_text
from mbdnode.multibody import AbstractMechanism, Coordinate
from mbdnode.report import panels
from mbdnode.report.style import COLORS, MUTED, new_figure, styled
from mbdnode.reproduction.report.chapters import Chapter, Exhibit, Probe
from mbdnode.reproduction.report.motion_figures import (
    Predicted,
    nothing_to_show,
    shown_coordinates,
    shown_entries,
)
from mbdnode.trajectory import Trajectory

RANDOM_FORCE = "random-force"
_KNOWN = {"color": COLORS[4], "linewidth": 5.0, "alpha": 0.3}


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
        runs = {"truth": probe.truth, "prediction": probe.prediction}
        panels.draw_portrait(axes, [coordinate], runs, 0.0)
        panels.panel_title(axes, number, _probe_text(shown, probe, chapter))
    for axes in places:
        axes.set_axis_off()
    handles = [Line2D([], [], **panels.REFERENCE, label="truth")]
    handles.append(panels.line(":", "prediction", COLORS[0]))
    if chapter.train_end_s > 0:
        handles.append(Line2D([], [], **_KNOWN, label="states of the training range"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_known(axes: Axes, truth: Trajectory, chapter: Chapter, coordinate: Coordinate) -> None:
    if chapter.train_end_s <= 0:
        return
    inside = np.asarray(truth.t) <= chapter.train_end_s
    q, v = np.asarray(truth[coordinate.name]), np.asarray(truth[coordinate.rate])
    axes.plot(q[inside], v[inside], **_KNOWN, zorder=1)


@styled()
def draw_forced(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The motion under a random force, and the force, one below the other."""
    for shown in shown_entries(chapter):
        for probe in shown.entry.probes:
            if probe.name == RANDOM_FORCE:
                return _stack(chapter, exhibit, shown, probe)
    return nothing_to_show(chapter)


def _stack(chapter: Chapter, exhibit: Exhibit, shown: Predicted, probe: Probe) -> Figure:
    coordinates = shown_coordinates(chapter, exhibit, probe.truth)
    names = [c.name for c in coordinates] + [c.rate for c in coordinates]
    names += chapter.mechanism.input_names
    figure = new_figure(8.4, 0.9 + 1.6 * len(names))
    grid = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    text = _probe_text(shown, probe, chapter)
    runs = {"truth": probe.truth, "prediction": probe.prediction}
    _draw_columns(grid, chapter.mechanism, runs, names, text)
    grid[-1].set_xlabel("t [s]")
    panels.add_legend(figure, 0.0)
    return figure


def _draw_columns(places, mechanism, runs: panels.Runs, names, title: str, train_end_s=0.0) -> None:
    """A panel for each column, the title above the first."""
    for number, (axes, name) in enumerate(zip(places, names, strict=True)):
        panels.draw_motion(axes, mechanism, runs, [name], train_end_s)
        panels.panel_title(axes, number, "" if number else title)
    if len(places):
        places[0].figure.align_ylabels()


@styled()
def draw_driven(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The independent coordinates with their velocities, and the inputs, in two columns."""
    names = exhibit.columns or chapter.mechanism.independent or ()
    inputs = chapter.mechanism.input_names
    return _draw_some(chapter, lambda c: c.name in names or not names, inputs, height=2.1)


@styled()
def draw_dependent(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """All other coordinates that move on the left, their velocities on the right."""
    independent = chapter.mechanism.independent or ()

    def is_shown(c: Coordinate) -> bool:
        return c.name in exhibit.columns if exhibit.columns else c.name not in independent

    return _draw_some(chapter, is_shown, (), height=1.35)


def _draw_some(
    chapter: Chapter, is_shown: Callable[[Coordinate], bool], inputs: Sequence[str], height: float
) -> Figure:
    """Of the first entry: coordinates that move, each beside its velocity, and inputs."""
    entries = shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    first = entries[0]
    known = panels.moving(chapter.mechanism, first.truth)
    names = [name for c in known if is_shown(c) for name in (c.name, c.rate)] + [*inputs]
    figure, grid = _two_columns(len(names), height)
    _draw_columns(grid, chapter.mechanism, first.runs, names, first.result, chapter.train_end_s)
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def _two_columns(count: int, height: float) -> tuple[Figure, Sequence[Axes]]:
    rows = max(1, -(-count // 2))
    figure = new_figure(9.6, 0.9 + height * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
    for axes in grid[-1]:
        axes.set_xlabel("t [s]")
    flat = list(grid.flat)
    for axes in flat[count:]:
        axes.set_axis_off()
    return figure, flat[:count]


def _probe_text(shown: Predicted, probe: Probe, chapter: Chapter) -> str:
    several = len([s for s in shown_entries(chapter) if s.entry.probes]) > 1
    who = f"{shown.title}, " if several else ""
    return f"{who}{probe.title}: mse {error_text(probe.mse)}"


_EXACT = "planned with the equations of motion"


def draw_controlled(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Every state and input of the chapter's loop, and by how much the learned ones differ."""
    shown = shown_entries(chapter)
    if not shown:
        return nothing_to_show(chapter)
    found = {one.title: one.prediction for one in shown}
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
    found = {} if exact is None else {"the learned model": loop}
    figure = _draw_loops(mechanism, found, loop if exact is None else exact)
    figure.suptitle(title[:1].upper() + title[1:], fontsize=12)
    return figure


@styled()
def _draw_loops(mechanism: AbstractMechanism, found: panels.Runs, truth: Trajectory) -> Figure:
    columns = _columns(mechanism, truth)
    count = len(columns) + bool(found)
    rows = -(-count // 2)
    figure = new_figure(9.6, 0.9 + 2.1 * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
    flat = list(grid.flat)
    _draw_columns(flat[: len(columns)], mechanism, {_EXACT: truth, **found}, columns, "")
    if found:
        _draw_difference(flat[len(columns)], columns, truth, found)
        panels.panel_title(flat[len(columns)], len(columns), "largest difference of all columns")
    for axes in flat[count:]:
        axes.set_axis_off()
    for axes in flat[max(0, count - 2) : count]:
        axes.set_xlabel("t [s]")
        axes.tick_params(labelbottom=True)
    _legend(figure, list(found))
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
        found = {one.title: _named(one.entry.probes, probe.name).prediction for one in shown}
        runs = {_EXACT: probe.truth, **found}
        for axes, name in zip(grid[:, place], columns[place], strict=False):
            panels.draw_motion(axes, chapter.mechanism, runs, [name], 0.0)
            first = name == columns[place][0]
            panels.panel_title(axes, number, probe.title if first else "")
            number += 1
        for axes in grid[len(columns[place]) :, place]:
            axes.set_axis_off()
        grid[len(columns[place]) - 1, place].set_xlabel("t [s]")
    _legend(figure, [one.title for one in shown])
    return figure


def _named(probes: Sequence[Probe], name: str) -> Probe:
    return next(probe for probe in probes if probe.name == name)


def _columns(mechanism: AbstractMechanism, truth: Trajectory) -> list[str]:
    """Independent positions, their velocities, and the inputs that are used."""
    names = mechanism.independent or mechanism.coordinate_names
    chosen = [c for c in mechanism.coordinates if c.name in names]
    used = [name for name in mechanism.input_names if np.ptp(np.asarray(truth[name])) > 0]
    return [*(c.name for c in chosen), *(c.rate for c in chosen), *used]


def _draw_difference(
    axes: Axes, names: Sequence[str], truth: Trajectory, found: panels.Runs
) -> None:
    """In percent of each column's range, on a logarithmic scale."""
    t = np.asarray(truth.t)
    for loop in found.values():
        parts = [
            np.abs(np.asarray(loop[name]) - np.asarray(truth[name]))
            / max(float(np.ptp(np.asarray(truth[name]))), 1e-12)
            for name in names
        ]
        # Below round-off there is nothing to see, and no logarithm.
        axes.plot(t, np.maximum(100 * np.max(parts, axis=0), 1e-16), linewidth=0.9)
    axes.set_yscale("log")
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_ylabel("percent of the range")
    panels.time_axis(axes, t, 0.0)


def _legend(figure: Figure, titles: Sequence[str]) -> None:
    handles = [Line2D([], [], **panels.REFERENCE, label=_EXACT)]
    handles += [
        panels.line(":", f"planned with {title}", COLORS[place % len(COLORS)])
        for place, title in enumerate(titles)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))
