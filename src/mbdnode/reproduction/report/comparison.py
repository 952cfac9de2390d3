"""Truth and prediction in one figure, as in the paper: dashed while training, dotted after it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.multibody import Coordinate
from mbdnode.report.panels import (
    add_legend,
    draw_over_time,
    draw_portrait,
    pair,
    squared_error,
    time_axis,
)
from mbdnode.report.style import INK, draw_round_off, new_figure, styled, symbol
from mbdnode.trajectory import Trajectory

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
    both, end_s = pair(comparison.truth, comparison.prediction), comparison.train_end_s
    figure = new_figure(13.0, 1.2 + 2.3 * (len(moving) + 1))
    figure.suptitle(comparison.title, fontsize=13)
    places = figure.subplots(len(moving) + 1, 3, squeeze=False, width_ratios=(1.5, 1.5, 1.0))
    for row, coordinate in zip(places, moving, strict=False):
        units = (coordinate.name, coordinate.unit), (coordinate.rate, f"{coordinate.unit}/s")
        for axes, (name, unit) in zip(row, units, strict=False):
            draw_over_time(axes, both, [name], end_s)
            axes.set_ylabel(f"{symbol(name)} [{unit}]")
            axes.set_xlabel("t [s]")
        draw_portrait(row[2], both, coordinate, end_s)
    _error(places[-1][0], comparison)
    if comparison.history:
        _loss(places[-1][1], comparison)
    else:
        places[-1][1].set_axis_off()
    places[-1][2].set_axis_off()
    add_legend(figure, end_s)
    return figure


def _error(axes: Axes, comparison: Comparison) -> None:
    mean = squared_error(comparison.truth, comparison.prediction)
    axes.set_yscale("log")
    axes.plot(comparison.truth.t, draw_round_off(axes, mean), color=INK, linewidth=1.0)
    axes.set_ylabel("squared error")
    axes.set_xlabel("t [s]")
    time_axis(axes, np.asarray(comparison.truth.t), comparison.train_end_s)


def _loss(axes: Axes, comparison: Comparison) -> None:
    axes.semilogy(np.arange(1, len(comparison.history) + 1), comparison.history, color=INK)
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss")
