"""Panels that figures share: a column over time, a phase portrait, titles and legends.

The truth fills every panel: a prediction that runs away leaves the picture instead of shrinking
the rest of it.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import ROUND_OFF, error_text
from mbdnode.multibody import AbstractMechanism, Coordinate
from mbdnode.report.style import COLORS, INK, MUTED, SHADE, symbol
from mbdnode.trajectory import Trajectory

# More points than this cannot be told apart in a panel.
_MOST_POINTS = 2_000
# Of a title's size: what the letters of our font need on average; and what is left of a panel.
_LETTERS_PER_INCH, _BESIDE_INCHES = 13, 0.6


@dataclass(frozen=True)
class Pair:
    """Truth and prediction as plain arrays by column, thinned for drawing.

    **Arguments:**

    - `truth`, `found`: columns by name, with "t" among them; not numbers after a failure.
    - `mse`: over all rows, before thinning; None if the prediction is not whole.
    - `end_s`: the last time at which the prediction is a number.
    """

    truth: dict[str, np.ndarray]
    found: dict[str, np.ndarray]
    mse: float | None
    end_s: float


def pair(truth: Trajectory, prediction: Trajectory, most: int = _MOST_POINTS) -> Pair:
    """Both trajectories ready to draw.

    **Arguments:**

    - `truth`, `prediction`: at the same times.
    - `most`: how many rows to keep.

    **Returns:**

    A `Pair`.
    """
    full, found = np.asarray(truth.table), np.asarray(prediction.table)
    states = slice(1, 1 + 2 * len(truth.coordinates))
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean((found[:, states] - full[:, states]) ** 2))
    good = np.flatnonzero(np.all(np.isfinite(found[:, states]), axis=1))
    kept = thinned(len(full), most)
    return Pair(
        dict(zip(truth.columns, full[kept].T, strict=True)),
        dict(zip(prediction.columns, found[kept].T, strict=True)),
        error if np.isfinite(error) else None,
        float(full[good[-1], 0]) if good.size else float(full[0, 0]),
    )


def squared_error(truth: Trajectory, prediction: Trajectory) -> np.ndarray:
    """The squared error of each time, the mean over components.

    A zero is round-off among errors that are, and not a number among others: at the start every
    prediction is exact.

    **Arguments:**

    - `truth`, `prediction`: at the same times.

    **Returns:**

    One number for each time; not a number where there is nothing to draw.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.concatenate(
            [
                np.asarray(prediction.q) - np.asarray(truth.q),
                np.asarray(prediction.v) - np.asarray(truth.v),
            ],
            axis=1,
        )
        mean = np.mean(difference**2, axis=1)
    others = mean[mean > 0]
    if others.size and not np.any(others < ROUND_OFF):
        return np.where(mean > 0, mean, np.nan)
    return mean


def thinned(count: int, most: int) -> np.ndarray:
    """Evenly spread rows, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def moving(mechanism: AbstractMechanism, truth: Trajectory) -> list[Coordinate]:
    """The coordinates that move in a trajectory; all of them if none does."""
    spans = np.ptp(np.asarray(truth.kept.q), axis=0)
    found = [c for c, span in zip(mechanism.coordinates, spans, strict=True) if span > 1e-9]
    return found or list(mechanism.coordinates)


def training_and_test(
    t: np.ndarray, train_end_s: float
) -> Iterator[tuple[np.ndarray, Literal["--", ":"]]]:
    """The rows inside and after the training range, each with its style."""
    inside = t <= train_end_s * (1 + 1e-9)
    if train_end_s > 0:
        yield inside, "--"
    # The first row after the range joins the last one inside, so that the line has no gap.
    after = ~inside if train_end_s > 0 else np.ones(len(t), bool)
    if np.any(after) and not after[0]:
        after[np.argmax(after) - 1] = True
    yield after, ":"


def draw_over_time(
    axes: Axes, both: Pair, names: Sequence[str], train_end_s: float, width: float = 1.5
) -> None:
    """Columns over time, each in a color of its own.

    **Arguments:**

    - `axes`: to draw on.
    - `both`: truth and prediction.
    - `names`: of the columns.
    - `train_end_s`: where the training range ends; zero if there is none.
    - `width`: of the prediction's line.
    """
    t = both.truth["t"]
    for name, color in zip(names, colors_for(names), strict=True):
        axes.plot(t, both.truth[name], color=color, linewidth=2.2 * width, alpha=0.32)
        for rows, style in training_and_test(t, train_end_s):
            axes.plot(t[rows], both.found[name][rows], style, color=color, linewidth=width)
    keep_in_view(axes.set_ylim, [both.truth[name] for name in names])
    time_axis(axes, t, train_end_s)


def draw_portrait(
    axes: Axes, both: Pair, coordinate: Coordinate, train_end_s: float, color: str = COLORS[0]
) -> None:
    """Velocity over coordinate; angles of more than one turn are folded into it."""
    q, v = both.truth[coordinate.name], both.truth[coordinate.rate]
    x, w = both.found[coordinate.name], both.found[coordinate.rate]
    fold = coordinate.is_angle and float(np.max(np.abs(q))) > np.pi
    axes.plot(*folded(q, v, fold), color=color, linewidth=3.2, alpha=0.32)
    for rows, style in training_and_test(both.truth["t"], train_end_s):
        axes.plot(*folded(x[rows], w[rows], fold), style, color=color, linewidth=1.4)
    axes.plot(q[:1], v[:1], "o", color=color, markersize=4, zorder=5)
    keep_in_view(axes.set_xlim, [np.array([-np.pi, np.pi]) / 1.4 if fold else q])
    keep_in_view(axes.set_ylim, [v])
    axes.set_xlabel(f"{symbol(coordinate.name)} [{coordinate.unit}]")
    axes.set_ylabel(f"{symbol(coordinate.rate)} [{coordinate.unit}/s]")


def folded(q: np.ndarray, v: np.ndarray, fold: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Angles within one turn, the line broken where it leaves the picture."""
    if not fold:
        return q, v
    inside = np.mod(q + np.pi, 2 * np.pi) - np.pi
    breaks = np.flatnonzero(np.abs(np.diff(inside)) > np.pi) + 1
    return np.insert(inside, breaks, np.nan), np.insert(v, breaks, np.nan)


def colors_for(names: Sequence[object]) -> list[str]:
    """One color for each, starting again when they run out."""
    return [COLORS[place % len(COLORS)] for place in range(len(names))]


def time_axis(axes: Axes, t: np.ndarray, train_end_s: float) -> None:
    """Limits of the time axis, with the training range shaded."""
    axes.set_xlim(float(t[0]), float(t[-1]))
    if train_end_s > 0:
        axes.axvspan(float(t[0]), train_end_s, color=SHADE, zorder=0)


def keep_in_view(set_limits, columns: Sequence[np.ndarray], room: float = 0.2) -> None:
    """Limits that the truth fills, however far a bad prediction goes."""
    values = np.concatenate([np.asarray(column) for column in columns])
    values = values[np.isfinite(values)]
    if values.size == 0:
        return
    low, high = float(np.min(values)), float(np.max(values))
    margin = room * max(high - low, 1e-9)
    set_limits(low - margin, high + margin)


def panel_title(axes: Axes, number: int, text: str) -> None:
    """A letter and what the panel shows, flush left, in lines as long as the panel is wide."""
    place, figure = axes.get_subplotspec(), axes.figure
    part = len(place.colspan) / place.get_gridspec().ncols if place is not None else 1.0
    width = figure.bbox.width / figure.dpi * part
    text = textwrap.fill(
        f"({letter(number)})  {text}".rstrip(), int(_LETTERS_PER_INCH * (width - _BESIDE_INCHES))
    )
    # A title that has its height need not look for it among the labels, which takes long.
    axes.set_title(text, loc="left", fontsize=9, y=1.0)


def name_axis(axes: Axes, text: str) -> None:
    """The vertical axis's name, at the same distance in every panel of a column."""
    axes.set_ylabel(text)
    axes.yaxis.set_label_coords(-0.105, 0.5)


def letter(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    head, tail = divmod(number, 26)
    return (letter(head - 1) if head else "") + "abcdefghijklmnopqrstuvwxyz"[tail]


def result_text(title: str, both: Pair) -> str:
    """Who predicted, and how far off it is."""
    if both.mse is None:
        return f"{title}: ended at t = {both.end_s:g} s"
    return f"{title}: mse {error_text(both.mse)}"


def add_legend(figure: Figure, train_end_s: float, columns: Sequence[str] = ()) -> None:
    """One legend for the whole figure, below it: colors first, then what the lines mean."""
    handles = [
        Line2D([], [], color=color, linewidth=2.4, label=symbol(name))
        for name, color in zip(columns, colors_for(columns), strict=True)
    ]
    handles.append(Line2D([], [], color=MUTED, linewidth=3.2, alpha=0.45, label="truth"))
    if train_end_s > 0:
        handles.append(line("--", "prediction, training range"))
        handles.append(line(":", "prediction, after it"))
    else:
        handles.append(line(":", "prediction"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def line(style: Literal["-", "--", ":"], label: str, color: str = INK) -> Line2D:
    """A line for a legend."""
    return Line2D([], [], color=color, linestyle=style, linewidth=1.5, label=label)
