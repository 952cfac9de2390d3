"""Panels that figures and `mbdnode.plot` share: motion, portrait, error, energy, residual, loss.

The truth fills every panel: a prediction that runs away leaves the picture instead of shrinking
the rest of it.
"""

import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.formatting import ROUND_OFF, error_text
from mbdnode.multibody import AbstractNamed, Coordinate
from mbdnode.report.style import (
    COLORS,
    INK,
    MUTED,
    SHADE,
    draw_round_off,
    new_figure,
    symbol,
)
from mbdnode.trajectory import Trajectory

# More points than this cannot be told apart in a panel.
MOST_POINTS, _MOST_RESIDUALS = 2_000, 200
# Above it there is nothing to compare, and below it nothing to see and no logarithm.
_MOST_ERROR, _LEAST_RESIDUAL = 1e100, 1e-17
# The broad line that others are compared with.
REFERENCE = {"color": MUTED, "linewidth": 3.4, "alpha": 0.45}
# Of a title's size: what the letters of our font need on average; and what is left of a panel.
_LETTERS_PER_INCH, _BESIDE_INCHES = 13, 0.6

Runs = Mapping[str, Trajectory]
# Its label; the times, and what is drawn across and up.
Curve = tuple[str, Sequence[np.ndarray]]


def squared_error(truth: Trajectory, prediction: Trajectory) -> np.ndarray:
    """The squared error of each time, the mean over components; not a number where there is none.

    A zero is round-off among errors that are, and not a number among others: at the start every
    prediction is exact.
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


def moving(system: AbstractNamed, truth: Trajectory) -> list[Coordinate]:
    """The coordinates that move in a trajectory; all of them if none does."""
    spans = np.ptp(np.asarray(truth.kept.q), axis=0)
    found = [c for c, span in zip(system.coordinates, spans, strict=True) if span > 1e-9]
    return found or list(system.coordinates)


def training_and_test(
    t: np.ndarray, train_end_s: float | None
) -> Iterator[tuple[np.ndarray, Literal["-", "--", ":"]]]:
    """The rows inside and after the training range, each with its style; all if there is none."""
    if train_end_s is None:
        yield np.ones(len(t), bool), "-"
        return
    inside = t <= train_end_s * (1 + 1e-9)
    if train_end_s > 0:
        yield inside, "--"
    # The first row after the range joins the last one inside, so that the line has no gap.
    after = ~inside if train_end_s > 0 else np.ones(len(t), bool)
    if np.any(after) and not after[0]:
        after[np.argmax(after) - 1] = True
    yield after, ":"


def columns_by_name(run: Trajectory) -> dict[str, np.ndarray]:
    """All columns by name, by NumPy: a program compiled for every length would take long."""
    return dict(zip(run.columns, np.asarray(run).T, strict=True))


def draw_curves(
    axes: Axes,
    curves: Sequence[Curve],
    train_end_s: float | None = None,
    *,
    one_color: bool = False,
    drawstyle: str = "default",
    fold: bool = False,
) -> Any:
    """Curves over one another, the first of several broad and pale; the color of the last.

    Until `train_end_s` the others are dashed, then dotted; without it they are solid. With
    `one_color` they have the first one's color, which is gray if not.
    """
    width = 1.4 if len(curves[0][1][0]) < 5_000 else 0.9
    color: Any = None
    for place, (label, columns) in enumerate(curves):
        t, x, y = (values[thinned(len(values), MOST_POINTS)] for values in columns)
        if place == 0 and len(curves) > 1:
            look: dict[str, Any] = REFERENCE | ({"color": None} if one_color else {})
            (line,) = axes.plot(*folded(x, y, fold), label=label, drawstyle=drawstyle, **look)
            color = line.get_color()
            continue
        color = color if one_color else None
        for rows, style in training_and_test(t, None if len(curves) == 1 else train_end_s):
            look = {"color": color, "linewidth": width, "drawstyle": drawstyle, "label": label}
            (line,) = axes.plot(*folded(x[rows], y[rows], fold), style, **look)
            color, label = line.get_color(), "_nolegend_"
    return color


def draw_motion(
    axes: Axes,
    system: AbstractNamed,
    runs: Runs,
    names: Sequence[str],
    train_end_s: float | None = None,
) -> None:
    """Columns over time; color tells the column, or of a single column the run.

    The first run fills the panel. An input that is the same in all runs is drawn once.
    """
    tables = {label: columns_by_name(run) for label, run in runs.items()}
    label, first = next(iter(tables.items()))
    for name in names:
        driven = any(name == given.name for given in system.inputs)
        same = driven and all(
            np.array_equal(table[name], first[name], equal_nan=True) for table in tables.values()
        )
        if same:
            t, width = first["t"], 0.8 if len(first["t"]) < 1_000 else 0.35
            look = {"color": MUTED, "linewidth": width, "drawstyle": "steps-post", "label": label}
            axes.plot(t, first[name], **look)
        else:
            several = len(names) > 1
            curves = [
                (
                    ", ".join(filter(None, (symbol(name) if several else "", label))),
                    [table[column] for column in ("t", "t", name)],
                )
                for label, table in tables.items()
            ]
            style = "steps-post" if driven else "default"
            draw_curves(axes, curves, train_end_s, one_color=several, drawstyle=style)
    keep_in_view(axes.set_ylim, [first[name] for name in names])
    axes.set_ylabel(axis_text(system, names))
    time_axis(axes, first["t"], train_end_s)


def draw_portrait(
    axes: Axes,
    coordinates: Sequence[Coordinate],
    runs: Runs,
    train_end_s: float | None = None,
) -> None:
    """Velocity over coordinates of one unit, a dot at the start.

    Color tells the coordinate, or of a single one the run. More than one turn is folded into one.
    """
    tables = {label: columns_by_name(run) for label, run in runs.items()}
    first, several = next(iter(tables.values())), len(coordinates) > 1
    across = []
    for one in coordinates:
        q, v = first[one.name], first[one.rate]
        fold = one.is_angle and float(np.nanmax(np.abs(q))) > np.pi
        curves = [
            (symbol(one.name) if several else label, [table[c] for c in ("t", one.name, one.rate)])
            for label, table in tables.items()
        ]
        color = draw_curves(axes, curves, train_end_s, one_color=several, fold=fold)
        start, speed = folded(q[:1], v[:1], fold)
        axes.plot(start, speed, "o", color=color, markersize=4, zorder=5)
        across.append(np.array([-np.pi, np.pi]) / 1.4 if fold else q)
    keep_in_view(axes.set_xlim, across)
    keep_in_view(axes.set_ylim, [first[one.rate] for one in coordinates])
    unit, rate = plain(coordinates[0].unit), rate_unit(coordinates[0])
    axes.set_xlabel(with_unit("position" if several else shown_name(coordinates[0].name), unit))
    axes.set_ylabel(with_unit("velocity" if several else shown_name(coordinates[0].rate), rate))


def draw_error(
    axes: Axes, truth: Trajectory, predictions: Runs, train_end_s: float | None = None
) -> None:
    """The squared error of each prediction over time, its mean over components."""
    errors = np.array([squared_error(truth, run) for run in predictions.values()])
    axes.set_yscale("log")
    shown = draw_round_off(axes, np.minimum(errors, _MOST_ERROR))
    for label, values in zip(predictions, shown, strict=True):
        axes.plot(np.asarray(truth.t), values, label=label, linewidth=1.0)
    axes.set_ylabel("squared error")
    time_axis(axes, np.asarray(truth.t), train_end_s)


def draw_energy(
    axes: Axes, curves: Sequence[tuple[str, np.ndarray, np.ndarray]], train_end_s=None
) -> None:
    """Energies over time, each with its label; the first fills the panel."""
    draw_curves(axes, [(label, (t, t, joules)) for label, t, joules in curves], train_end_s)
    _, t, first = curves[0]
    # Where energy is kept, its round-off should not fill the panel.
    keep_in_view(axes.set_ylim, [first], share=0.05)
    axes.set_ylabel("energy [J]")
    time_axis(axes, t, train_end_s)


def draw_residuals(axes: Axes, runs: Runs, train_end_s: float | None = None) -> None:
    """By how much constraints are broken over time; of many rows, the largest of each part.

    Thousands of round-off errors side by side are only noise.
    """
    axes.set_yscale("log")
    for name, run in runs.items():
        t, starts = np.asarray(run.t), thinned(len(run), _MOST_RESIDUALS)
        for what, residual in (
            ("positions", run.position_residual),
            ("velocities", run.velocity_residual),
        ):
            largest = np.fmax.reduceat(np.abs(np.asarray(residual)), starts)
            label = ", ".join(filter(None, (name, what)))
            axes.plot(t[starts], np.maximum(largest, _LEAST_RESIDUAL), label=label, linewidth=0.9)
    axes.set_ylabel("residual")
    time_axis(axes, np.asarray(next(iter(runs.values())).t), train_end_s)


def draw_loss(axes: Axes, losses: Mapping[str, Sequence[float]], label: str = "") -> None:
    """Losses by name over the epochs; `label` is for more than one, or names one in general."""
    for name, values in losses.items():
        axes.semilogy(np.arange(1, len(values) + 1), values, label=name, linewidth=1.4)
    axes.set_xlabel("epoch")
    axes.set_ylabel(label or ("loss" if len(losses) > 1 else next(iter(losses))))


def rate_unit(coordinate: Coordinate) -> str:
    """The unit of its velocity."""
    return f"{plain(coordinate.unit)}/s" if coordinate.unit else ""


def axis_text(system: AbstractNamed, names: Sequence[str]) -> str:
    """The one column with its unit, or the unit of all of them, or each with its own."""
    units = {c.name: plain(c.unit) for c in system.coordinates}
    units |= {c.rate: rate_unit(c) for c in system.coordinates}
    units |= {i.name: plain(i.unit) for i in system.inputs}
    if len(names) > 1 and len({units.get(name, "") for name in names}) == 1:
        return with_unit("", units.get(names[0], ""))
    return ", ".join(with_unit(shown_name(name), units.get(name, "")) for name in names)


def shown_name(name: str) -> str:
    """A column's symbol, or its name where it has none."""
    shown = symbol(name)
    return plain(name) if shown == name else shown


def with_unit(text: str, unit: str) -> str:
    """The unit in brackets behind it, if there is one."""
    return f"{text} [{unit}]".strip() if unit else text


def plain(text: str) -> str:
    """Text in which Matplotlib reads no mathematics."""
    return text.replace("$", r"\$")


def folded(q: np.ndarray, v: np.ndarray, fold: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Angles within one turn, the line broken where it leaves the picture."""
    if not fold:
        return q, v
    inside = np.mod(q + np.pi, 2 * np.pi) - np.pi
    breaks = np.flatnonzero(np.abs(np.diff(inside)) > np.pi) + 1
    return np.insert(inside, breaks, np.nan), np.insert(v, breaks, np.nan)


def time_axis(axes: Axes, t: np.ndarray, train_end_s: float | None = None) -> None:
    """Name and limits of the time axis, with the training range shaded."""
    axes.set_xlabel("t [s]")
    axes.set_xlim(float(t[0]), float(t[-1]))
    if train_end_s:
        axes.axvspan(float(t[0]), train_end_s, color=SHADE, zorder=0)


def keep_in_view(
    set_limits, columns: Sequence[np.ndarray], room: float = 0.2, share: float = 0.0
) -> None:
    """Limits that the truth fills, however far a bad prediction goes.

    Around it is `room` in parts of its range, or `share` in parts of its largest value.
    """
    values = np.concatenate([np.asarray(column) for column in columns])
    values = values[np.isfinite(values)]
    if values.size == 0:
        return
    low, high = float(np.min(values)), float(np.max(values))
    largest = max(abs(low), abs(high))
    margin = max(room * (high - low), share * largest)
    # Round-off of what stands still should not fill the panel.
    if margin < 1e-9 * max(largest, 1.0):
        margin = 1.0
    set_limits(low - margin, high + margin)


class Panel(NamedTuple):
    """One pair of axes of a figure: its title, what draws on them, given what, in which colors."""

    title: str
    draw: Callable[..., None]
    given: tuple[Any, ...]
    colors: Sequence[str] = COLORS


def lay_out(
    drawn: Sequence[Panel | None],
    columns: int,
    height_in: float,
    width_in: float = 9.6,
    beside_in: float = 0.9,
    *,
    same_x: bool = False,
    same_y: bool = False,
    widths: Sequence[float] | None = None,
) -> Figure:
    """Panels in rows, with a letter each; `beside_in` is for legend and labels.

    Where they share an axis, the last of each column, or the first of each row, names it.
    """
    rows = -(-len(drawn) // columns)
    figure = new_figure(width_in, beside_in + height_in * rows)
    grid: dict[str, Any] = {"sharex": "col" if same_x else False, "sharey": same_y}
    places = figure.subplots(rows, columns, squeeze=False, width_ratios=widths, **grid)
    number = 0
    for axes, panel in itertools.zip_longest(places.flat, drawn):
        if panel is None:
            axes.set_axis_off()
            continue
        axes.set_prop_cycle(color=panel.colors)
        panel.draw(axes, *panel.given)
        panel_title(axes, number, panel.title)
        number += 1
    for column in places.T if same_x else ():
        *others, last = [axes for axes in column if axes.axison]
        for axes in others:
            axes.set_xlabel("")
        last.tick_params(labelbottom=True)
    for axes in places[:, 1:].flat if same_y else ():
        axes.set_ylabel("")
    if same_x and not same_y:
        figure.align_ylabels()
    return figure


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


def letter(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    head, tail = divmod(number, 26)
    return (letter(head - 1) if head else "") + "abcdefghijklmnopqrstuvwxyz"[tail]


def result_text(title: str, truth: Trajectory, prediction: Trajectory) -> str:
    """Who predicted, and how far off it is."""
    count = len(truth.coordinates)
    found, exact = np.asarray(prediction), np.asarray(truth)
    states = slice(1, 1 + 2 * count)
    with np.errstate(over="ignore", invalid="ignore"):
        mse = float(np.mean((found[:, states] - exact[:, states]) ** 2))
    if np.isfinite(mse):
        return f"{title}: mse {error_text(mse)}"
    good = np.flatnonzero(np.all(np.isfinite(found[:, states]), axis=1))
    return f"{title}: ended at t = {exact[good[-1] if good.size else 0, 0]:g} s"


def add_legend(figure: Figure, train_end_s: float, columns: Sequence[str] = ()) -> None:
    """One legend for the whole figure, below it: colors first, then what the lines mean."""
    handles = [
        Line2D([], [], color=color, linewidth=2.4, label=symbol(name))
        for name, color in zip(columns, itertools.cycle(COLORS), strict=False)
    ]
    handles.append(Line2D([], [], **REFERENCE, label="truth"))
    if train_end_s > 0:
        handles.append(line("--", "prediction, training range"))
        handles.append(line(":", "prediction, after it"))
    else:
        handles.append(line(":", "prediction"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def line(style: Literal["-", "--", ":"], label: str, color: str = INK) -> Line2D:
    """A line for a legend."""
    return Line2D([], [], color=color, linestyle=style, linewidth=1.5, label=label)
