"""The paper's figures of motion: over time, in phase space, and what happens to the energy.

Which entries and coordinates of a chapter such figures show is decided here for all of them. The
figure in the folder of a single run is here too: dashed in the training range, dotted after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from mbdnode.evaluation import energy
from mbdnode.multibody import AbstractNamed, Coordinate
from mbdnode.report import panels
from mbdnode.report.style import INK, new_figure, styled
from mbdnode.reproduction.report.chapters import (
    Chapter,
    Entry,
    Exhibit,
    entry_title,
    make_palette,
    method_of,
)
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class Predicted:
    """An entry that has something to draw."""

    entry: Entry
    title: str
    truth: Trajectory
    prediction: Trajectory

    @property
    def runs(self) -> dict[str, Trajectory]:
        """Both, for the panels."""
        return {"truth": self.truth, "prediction": self.prediction}

    @property
    def result(self) -> str:
        """Who predicted, and how far off it is."""
        return panels.result_text(self.title, self.truth, self.prediction)


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
        for column, (axes, which) in enumerate(zip(row, (names, rates), strict=True)):
            panels.draw_motion(axes, chapter.mechanism, shown.runs, which, chapter.train_end_s)
            panels.panel_title(axes, 2 * number + column, "" if column else shown.result)
    for axes in grid[-1]:
        axes.set_xlabel("t [s]")
    figure.align_ylabels()
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
        for place, coordinate in enumerate(coordinates):
            axes = next(places)
            panels.draw_portrait(axes, [coordinate], shown.runs, chapter.train_end_s)
            panels.panel_title(axes, number, "" if place else shown.result)
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
    palette = make_palette([chapter])
    runs = {"truth": entries[0].truth} | {shown.title: shown.prediction for shown in entries}
    for axes in (portrait, joules):
        axes.set_prop_cycle(color=[palette.color(method_of(shown.entry)) for shown in entries])
    panels.draw_portrait(portrait, [coordinate], runs)
    energies = [(title, np.asarray(run.t), _energy(chapter, run)) for title, run in runs.items()]
    panels.draw_energy(joules, energies)
    panels.time_axis(joules, energies[0][1], chapter.train_end_s)
    level = energies[0][2]
    shown_joules = [level, *(_tame(found, level) for _, _, found in energies[1:])]
    panels.keep_in_view(joules.set_ylim, shown_joules, room=0.15, share=0.05)
    joules.set_xlabel("t [s]")
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


def _energy(chapter: Chapter, trajectory) -> np.ndarray:
    return np.asarray(energy(chapter.mechanism, trajectory, dict(chapter.parameters)))


def _tame(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The energies that are not out of all proportion to the truth's."""
    size = max(float(np.max(np.abs(truth))), 1e-12)
    return found[np.isfinite(found) & (np.abs(found) < 3 * size)]


_MOST_SHOWN = 6


@dataclass(frozen=True)
class Comparison:
    """What the figure shows.

    **Arguments:**

    - `title`: of the figure.
    - `system`: of both trajectories; six coordinates that move are shown at the most.
    - `truth`, `prediction`: at the same times.
    - `train_end_s`: where the training range ends; zero if there is none.
    - `history`: the loss of every epoch; empty for what has none, such as a regression.
    """

    title: str
    system: AbstractNamed
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
    truth, end_s = comparison.truth, comparison.train_end_s
    moving = [c for c in comparison.system.coordinates if np.ptp(np.asarray(truth[c.name])) > 1e-9][
        :_MOST_SHOWN
    ]
    runs = {"truth": truth, "prediction": comparison.prediction}
    figure = new_figure(13.0, 1.2 + 2.3 * (len(moving) + 1))
    figure.suptitle(comparison.title, fontsize=13)
    places = figure.subplots(len(moving) + 1, 3, squeeze=False, width_ratios=(1.5, 1.5, 1.0))
    for row, coordinate in zip(places, moving, strict=False):
        for axes, name in zip(row, (coordinate.name, coordinate.rate), strict=False):
            panels.draw_motion(axes, comparison.system, runs, [name], end_s)
        panels.draw_portrait(row[2], [coordinate], runs, end_s)
    error, loss, nothing = places[-1]
    panels.draw_error(error, truth, {"prediction": comparison.prediction}, end_s)
    for axes in (error, *places[:-1, :2].flat):
        axes.set_xlabel("t [s]")
    if comparison.history:
        panels.draw_loss(loss, {"training loss": comparison.history})
    else:
        loss.set_axis_off()
    nothing.set_axis_off()
    panels.add_legend(figure, end_s)
    return figure
