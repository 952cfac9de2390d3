"""The paper's figures of motion: over time, in phase space, and what happens to the energy.

Which entries and coordinates of a chapter such figures show is decided here for all of them. The
figure in the folder of a single run is here too: dashed in the training range, dotted after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.evaluation import energy
from mbdnode.multibody import Coordinate
from mbdnode.report import panels
from mbdnode.report.style import COLORS, INK, MUTED, draw_round_off, new_figure, styled, symbol
from mbdnode.reproduction.report.chapters import (
    Chapter,
    Entry,
    Exhibit,
    entry_title,
    make_palette,
    method_of,
)
from mbdnode.trajectory import Trajectory

_MOST_ERROR = 1e100


@dataclass(frozen=True)
class Predicted:
    """An entry that has something to draw."""

    entry: Entry
    title: str
    truth: Trajectory
    prediction: Trajectory


def predicted(chapter: Chapter) -> list[Predicted]:
    """The entries of a chapter that have a prediction, in their order."""
    return [
        Predicted(entry, entry_title(entry, chapter), entry.truth, entry.prediction)
        for entry in chapter.entries
        if entry.truth is not None and entry.prediction is not None
    ]


def shown_entries(chapter: Chapter) -> list[Predicted]:
    """The entries that the paper's figures show: those with a printed error, and better recipes.

    The paper trains one model with several integrators only to time them.
    """
    printed = {(r.model, r.integrator) for r in chapter.references if r.quantity == "mse"}
    models = {model for model, _ in printed}
    return [
        shown
        for shown in predicted(chapter)
        if (shown.entry.model, shown.entry.integrator) in printed
        or shown.entry.model not in models
        or not shown.entry.is_papers
    ]


def shown_coordinates(chapter: Chapter, exhibit: Exhibit, truth: Trajectory) -> list[Coordinate]:
    """Those that the exhibit names, or all that move."""
    known = {c.name: c for c in chapter.mechanism.coordinates}
    if exhibit.columns:
        unknown = [name for name in exhibit.columns if name not in known]
        if unknown:
            raise ValueError(
                f"The figure {exhibit.label!r} names the column {unknown[0]!r}; the coordinates of "
                f"{chapter.name!r} are {', '.join(known)}."
            )
        return [known[name] for name in exhibit.columns]
    return panels.moving(chapter.mechanism, truth)


@styled()
def draw_time_rows(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """A row for each entry: its coordinates on the left, its velocities on the right."""
    entries = shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    coordinates = shown_coordinates(chapter, exhibit, entries[0].truth)
    names, rates = [c.name for c in coordinates], [c.rate for c in coordinates]
    figure = new_figure(9.6, 0.9 + 1.75 * len(entries))
    grid = figure.subplots(len(entries), 2, squeeze=False, sharex=True)
    for number, (row, shown) in enumerate(zip(grid, entries, strict=True)):
        both = panels.pair(shown.truth, shown.prediction)
        for column, (axes, which) in enumerate(zip(row, (names, rates), strict=True)):
            panels.draw_over_time(axes, both, which, chapter.train_end_s)
            text = panels.result_text(shown.title, both) if column == 0 else ""
            panels.panel_title(axes, 2 * number + column, text)
        panels.name_axis(row[0], _axis_text([(c.name, c.unit) for c in coordinates]))
        panels.name_axis(row[1], _axis_text([(c.rate, f"{c.unit}/s") for c in coordinates]))
    for axes in grid[-1]:
        axes.set_xlabel("t [s]")
    panels.add_legend(figure, chapter.train_end_s, names if len(names) > 1 else ())
    return figure


@styled()
def draw_portraits(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """A row for each entry, a column for each coordinate; side by side if there is but one."""
    entries = shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    coordinates = shown_coordinates(chapter, exhibit, entries[0].truth)
    rows, columns = len(entries), len(coordinates)
    if columns == 1:
        columns = min(rows, 3)
        rows = -(-rows // columns)
    figure = new_figure(max(3.3 * columns, 6.6), 0.8 + 2.7 * rows)
    places = iter(figure.subplots(rows, columns, squeeze=False).flat)
    number = 0
    for shown in entries:
        both = panels.pair(shown.truth, shown.prediction)
        for place, coordinate in enumerate(coordinates):
            axes = next(places)
            panels.draw_portrait(
                axes, both, coordinate, chapter.train_end_s, COLORS[place % len(COLORS)]
            )
            text = panels.result_text(shown.title, both) if place == 0 else ""
            panels.panel_title(axes, number, text)
            number += 1
    for axes in places:
        axes.set_axis_off()
    panels.add_legend(figure, chapter.train_end_s)
    return figure


@styled()
def draw_portrait_and_energy(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """All entries in one phase plot, and the energy of each over time."""
    entries = shown_entries(chapter)
    if not entries:
        return nothing_to_show(chapter)
    coordinate = shown_coordinates(chapter, exhibit, entries[0].truth)[0]
    figure = new_figure(9.6, 4.3)
    portrait, joules = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    first = panels.pair(entries[0].truth, entries[0].prediction)
    q, v = first.truth[coordinate.name], first.truth[coordinate.rate]
    portrait.plot(q, v, color=MUTED, linewidth=5.0, alpha=0.4, label="truth")
    level = _energy(chapter, entries[0].truth)
    t = first.truth["t"]
    rows = panels.thinned(len(level), len(t))
    joules.plot(t, level[rows], color=MUTED, linewidth=5.0, alpha=0.4)
    shown_joules = [level]
    palette = make_palette([chapter])
    for shown in entries:
        color = palette.color(method_of(shown.entry))
        both = panels.pair(shown.truth, shown.prediction)
        x, w = both.found[coordinate.name], both.found[coordinate.rate]
        portrait.plot(x, w, color=color, linewidth=1.0, label=shown.title)
        found = _energy(chapter, shown.prediction)
        joules.plot(t, found[rows], color=color, linewidth=1.2)
        shown_joules.append(_tame(found, level))
    panels.keep_in_view(portrait.set_xlim, [q], room=0.3)
    panels.keep_in_view(portrait.set_ylim, [v], room=0.3)
    joules.set_ylim(*_energy_limits(shown_joules))
    panels.time_axis(joules, t, chapter.train_end_s)
    portrait.set_xlabel(f"{symbol(coordinate.name)} [{coordinate.unit}]")
    portrait.set_ylabel(f"{symbol(coordinate.rate)} [{coordinate.unit}/s]")
    joules.set_xlabel("t [s]")
    joules.set_ylabel("energy [J]")
    panels.panel_title(portrait, 0, "phase space")
    panels.panel_title(joules, 1, "energy")
    handles, labels = portrait.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    return figure


def nothing_to_show(chapter: Chapter) -> Figure:
    """A figure that says why there are no lines in it."""
    figure = new_figure(6.6, 1.4)
    figure.text(
        0.5,
        0.5,
        f"{chapter.title}: no finished run to show.",
        ha="center",
        va="center",
        color=INK,
    )
    return figure


def _axis_text(columns: list[tuple[str, str]]) -> str:
    """The one column with its unit, or the unit of all of them, or each with its own."""
    units = list(dict.fromkeys(unit for _, unit in columns))
    if len(columns) > 1 and len(units) == 1:
        return f"[{units[0]}]"
    return ", ".join(f"{symbol(name)} [{unit}]" for name, unit in columns)


def _energy(chapter: Chapter, trajectory) -> np.ndarray:
    return np.asarray(energy(chapter.mechanism, trajectory, dict(chapter.parameters)))


def _tame(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The energies that are not out of all proportion to the truth's."""
    size = max(float(np.max(np.abs(truth))), 1e-12)
    return found[np.isfinite(found) & (np.abs(found) < 3 * size)]


def _energy_limits(shown_joules: list[np.ndarray]) -> tuple[float, float]:
    """Room around what is shown, and never so little that round-off looks like drift."""
    values = np.concatenate(shown_joules)
    low, high = float(np.min(values)), float(np.max(values))
    margin = max(0.15 * (high - low), 0.05 * max(abs(low), abs(high)), 1e-9)
    return low - margin, high + margin


_MOST_SHOWN = 6


@dataclass(frozen=True)
class Comparison:
    """What the figure shows.

    **Arguments:**

    - `title`: of the figure.
    - `coordinates`: of both trajectories; those that move are shown, six at the most.
    - `truth`, `prediction`: at the same times.
    - `train_end_s`: where the training range ends; zero if there is none.
    - `history`: the loss of every epoch; empty for what has none, such as a regression.
    """

    title: str
    coordinates: Sequence[Coordinate]
    truth: Trajectory
    prediction: Trajectory
    train_end_s: float
    history: Sequence[float]


@styled()
def draw_comparison(comparison: Comparison) -> Figure:
    """Every coordinate and its velocity over time, its phase portrait, and the loss if any.

    **Arguments:**

    - `comparison`: what to show.

    **Returns:**

    A figure, for `save_figure`.
    """
    moving = [
        c for c in comparison.coordinates if np.ptp(np.asarray(comparison.truth[c.name])) > 1e-9
    ][:_MOST_SHOWN]
    both, end_s = panels.pair(comparison.truth, comparison.prediction), comparison.train_end_s
    figure = new_figure(13.0, 1.2 + 2.3 * (len(moving) + 1))
    figure.suptitle(comparison.title, fontsize=13)
    places = figure.subplots(len(moving) + 1, 3, squeeze=False, width_ratios=(1.5, 1.5, 1.0))
    for row, coordinate in zip(places, moving, strict=False):
        units = (coordinate.name, coordinate.unit), (coordinate.rate, f"{coordinate.unit}/s")
        for axes, (name, unit) in zip(row, units, strict=False):
            panels.draw_over_time(axes, both, [name], end_s)
            axes.set_ylabel(f"{symbol(name)} [{unit}]")
            axes.set_xlabel("t [s]")
        panels.draw_portrait(row[2], both, coordinate, end_s)
    _error(places[-1][0], comparison)
    if comparison.history:
        _loss(places[-1][1], comparison)
    else:
        places[-1][1].set_axis_off()
    places[-1][2].set_axis_off()
    panels.add_legend(figure, end_s)
    return figure


def _error(axes: Axes, comparison: Comparison) -> None:
    # What has diverged this far is far enough; the squares of the rest are more than an axis holds.
    mean = np.minimum(panels.squared_error(comparison.truth, comparison.prediction), _MOST_ERROR)
    axes.set_yscale("log")
    axes.plot(comparison.truth.t, draw_round_off(axes, mean), color=INK, linewidth=1.0)
    axes.set_ylabel("squared error")
    axes.set_xlabel("t [s]")
    panels.time_axis(axes, np.asarray(comparison.truth.t), comparison.train_end_s)


def _loss(axes: Axes, comparison: Comparison) -> None:
    axes.semilogy(np.arange(1, len(comparison.history) + 1), comparison.history, color=INK)
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss")
