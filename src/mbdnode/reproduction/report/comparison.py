"""Truth and prediction in one figure, as in the paper: dashed while training, dotted after it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.multibody import Coordinate
from mbdnode.report.panels import keep_in_view, squared_error, time_axis
from mbdnode.report.style import INK, MUTED, draw_round_off, new_figure, styled, symbol
from mbdnode.trajectory import Trajectory

_MOST_SHOWN = 6
# Around the truth, as a part of its range.
_ROOM = 0.25


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

    A figure, for `save`.
    """
    moving = [
        c for c in comparison.coordinates if np.ptp(np.asarray(comparison.truth[c.name])) > 1e-9
    ][:_MOST_SHOWN]
    figure = new_figure(13.0, 1.2 + 2.3 * (len(moving) + 1))
    figure.suptitle(comparison.title, fontsize=13)
    places = figure.subplots(len(moving) + 1, 3, squeeze=False, width_ratios=(1.5, 1.5, 1.0))
    for row, coordinate in zip(places, moving, strict=False):
        _over_time(row[0], comparison, coordinate.name, coordinate.unit)
        _over_time(row[1], comparison, coordinate.rate, f"{coordinate.unit}/s")
        _portrait(row[2], comparison, coordinate)
    _error(places[-1][0], comparison)
    if comparison.history:
        _loss(places[-1][1], comparison)
    else:
        places[-1][1].set_axis_off()
    places[-1][2].set_axis_off()
    handles, labels = places[0][0].get_legend_handles_labels()
    places[-1][2].legend(handles, labels, loc="center", frameon=False)
    return figure


def _pieces(comparison: Comparison):
    """The prediction's style inside and after the training range."""
    t = np.asarray(comparison.prediction.t)
    inside = t <= comparison.train_end_s
    return (
        (inside, "--", "prediction, training range"),
        (~inside, ":", "prediction, after it" if comparison.train_end_s > 0 else "prediction"),
    )


def _over_time(axes: Axes, comparison: Comparison, name: str, unit: str) -> None:
    t, truth = np.asarray(comparison.truth.t), np.asarray(comparison.truth[name])
    found = np.asarray(comparison.prediction[name])
    axes.plot(t, truth, color=MUTED, linewidth=2.2, alpha=0.6, label="truth")
    for mask, style, label in _pieces(comparison):
        if np.any(mask):
            axes.plot(t[mask], found[mask], style, color="C0", linewidth=1.5, label=label)
    keep_in_view(axes.set_ylim, [truth], _ROOM)
    axes.set_ylabel(f"{symbol(name)} [{unit}]")
    _time_axis(axes, comparison)


def _portrait(axes: Axes, comparison: Comparison, coordinate: Coordinate) -> None:
    q, v = (np.asarray(comparison.truth[n]) for n in (coordinate.name, coordinate.rate))
    axes.plot(q, v, color=MUTED, linewidth=2.2, alpha=0.6)
    x, w = (np.asarray(comparison.prediction[n]) for n in (coordinate.name, coordinate.rate))
    for mask, style, _ in _pieces(comparison):
        axes.plot(x[mask], w[mask], style, color="C0", linewidth=1.3)
    keep_in_view(axes.set_xlim, [q], _ROOM)
    keep_in_view(axes.set_ylim, [v], _ROOM)
    axes.set_xlabel(f"{symbol(coordinate.name)} [{coordinate.unit}]")
    axes.set_ylabel(f"{symbol(coordinate.rate)} [{coordinate.unit}/s]")


def _error(axes: Axes, comparison: Comparison) -> None:
    mean = squared_error(comparison.truth, comparison.prediction)
    axes.set_yscale("log")
    axes.plot(comparison.truth.t, draw_round_off(axes, mean), color=INK, linewidth=1.0)
    axes.set_ylabel("squared error")
    _time_axis(axes, comparison)


def _loss(axes: Axes, comparison: Comparison) -> None:
    axes.semilogy(np.arange(1, len(comparison.history) + 1), comparison.history, color=INK)
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss")


def _time_axis(axes: Axes, comparison: Comparison) -> None:
    axes.set_xlabel("t [s]")
    time_axis(axes, np.asarray(comparison.truth.t), comparison.train_end_s)
