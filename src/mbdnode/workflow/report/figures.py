"""The figures of a fitted model: held-out runs, error against horizon, energy, residuals.

The truth is a broad gray line and the prediction a narrow blue one. Where the prediction lies
outside the training data, the background is orange.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from mbdnode import plot
from mbdnode.evaluation import HeldOut, Horizon
from mbdnode.evaluation.predictions import predicted_rows
from mbdnode.formatting import percent
from mbdnode.multibody import AbstractMechanism, AbstractSystem, resolve_parameters
from mbdnode.report import panels
from mbdnode.report.style import COLORS, MUTED, new_figure, styled
from mbdnode.trajectory import Trajectory
from mbdnode.workflow.results import ReportData

FOUND, BEYOND, BEYOND_SHADE = COLORS[0], COLORS[1], "#fbe6d6"


@styled()
def draw_run(system: AbstractSystem, run: HeldOut) -> Figure:
    """Every recorded column of a held-out run over time, and the inputs that drove it."""
    names = _shown_columns(run)
    figure, places = _grid(len(names), 1.75)
    for number, (axes, name) in enumerate(zip(places, names, strict=True)):
        is_input, shown = name in run.truth.inputs, {"truth": run.truth}
        shade_outside(axes, run)
        if not is_input:
            shown["prediction"] = run.prediction
            _shade_band(axes, run.prediction, name)
        plot.motion(system, shown, name, axes)
        kind = "input" if is_input else ""
        panels.panel_title(axes, number, "not scored" if name in run.biased else kind)
    _finish_times(figure, places, [run])
    return figure


@styled()
def draw_horizon(horizon: Horizon) -> Figure:
    """The error against the time ahead, with the limit and the time until which it is kept."""
    figure = new_figure(9.6, 3.9)
    axes, ahead = figure.add_subplot(), np.asarray(horizon.ahead_s)
    low, middle, high, still = (
        _positive(100 * np.asarray(values))
        for values in (horizon.low, horizon.middle, horizon.high, horizon.persistence)
    )
    axes.fill_between(
        ahead,
        low,
        high,
        color=FOUND,
        alpha=0.18,
        linewidth=0,
        label="interquartile range",
    )
    axes.plot(ahead, middle, color=FOUND, linewidth=1.8, label="median")
    axes.plot(ahead, still, ":", color=MUTED, linewidth=1.6, label="predicting no motion")
    axes.axhline(100.0, color=MUTED, linewidth=0.8, label="predicting the mean")
    limit = f"limit, {percent(horizon.limit)}"
    axes.axhline(100 * horizon.limit, color=BEYOND, linewidth=1.0, linestyle="--", label=limit)
    if horizon.valid_s is not None:
        axes.axvspan(0.0, horizon.valid_s, color="#e9f4ee", zorder=0)
        label = f"valid prediction time, {horizon}"
        axes.axvline(horizon.valid_s, color=COLORS[2], linewidth=1.6, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(0.0, float(ahead[-1]))
    axes.set_xlabel("time ahead [s]")
    axes.set_ylabel("largest error so far [%]")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def has_energy(report: ReportData) -> bool:
    """Whether masses and potential of what moves are known."""
    if not isinstance(report.system, AbstractMechanism) or not report.held_out:
        return False
    mu = resolve_parameters(report.system, report.parameters)
    return report.system.potential_energy(report.held_out[0].truth.q[0], mu) is not None


@styled()
def draw_energy(report: ReportData, runs: Sequence[HeldOut]) -> Figure:
    """The energy of truth and prediction, a panel for each run."""
    figure, places = _grid(len(runs), 2.0)
    for number, (axes, run) in enumerate(zip(places, runs, strict=True)):
        shade_outside(axes, run)
        both = {"truth": run.truth, "prediction": run.prediction}
        plot.energy(report.system, both, report.parameters, axes)
        panels.panel_title(axes, number, panels.plain(run.name))
    _finish_times(figure, places, runs)
    return figure


@styled()
def draw_residuals(runs: Sequence[HeldOut]) -> Figure:
    """By how much the predictions break the constraints, a panel for each run."""
    figure, places = _grid(len(runs), 2.0)
    for number, (axes, run) in enumerate(zip(places, runs, strict=True)):
        plot.residual(run.prediction, axes)
        panels.panel_title(axes, number, panels.plain(run.name))
    _time_labels(places)
    handles, _ = places[0].get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def shade_outside(axes: Axes, run: HeldOut) -> None:
    """Shade the times at which the prediction lies outside the data; mark where it fails."""
    t, count = np.asarray(run.prediction.t), predicted_rows(run.prediction)
    starts = panels.thinned(len(t), panels.MOST_POINTS)
    # What was not predicted lies nowhere.
    beyond = np.asarray(run.outside, bool) & (np.arange(len(t)) < count)
    shares = np.add.reduceat(beyond.astype(float), starts) / np.diff(np.append(starts, len(t)))
    # A row stands for the time halfway to its neighbors.
    edges = np.concatenate([t[:1], (t[starts[1:] - 1] + t[starts[1:]]) / 2, t[-1:]])
    cuts = [0, *(np.flatnonzero(np.diff(shares)) + 1), len(shares)]
    spans = [(a, b) for a, b in pairwise(cuts) if shares[a] > 0]
    if spans:
        bars = axes.broken_barh(
            [(float(edges[a]), float(edges[b] - edges[a])) for a, b in spans],
            (0.0, 1.0),
            transform=axes.get_xaxis_transform(),
        )
        # Paler where only some of many rows are outside, but never so pale as to be missed.
        colors = [to_rgba(BEYOND_SHADE, max(0.35, float(shares[a]))) for a, _ in spans]
        bars.set(facecolors=colors, edgecolors=colors, linewidth=0.4, zorder=0)
    if count < len(t):
        axes.axvline(float(t[max(count - 1, 0)]), **_END)


# Between these many standard deviations lie nine tenths of a normal distribution.
_NINE_TENTHS = 1.645


def _shade_band(axes: Axes, run: Trajectory, name: str) -> None:
    """What the uncertainty of the model's numbers makes of a column."""
    if run.spread is None:
        return
    names = (*run.coordinates, *run.rates)
    deviations = np.concatenate([np.asarray(run.spread.q), np.asarray(run.spread.v)], axis=1)
    rows = panels.thinned(len(run), panels.MOST_POINTS)
    half = _NINE_TENTHS * deviations[rows, names.index(name)]
    middle = np.asarray(run[name])[rows]
    axes.fill_between(np.asarray(run.t)[rows], middle - half, middle + half, **_BAND)


_BAND = {"color": FOUND, "alpha": 0.25, "linewidth": 0, "label": "90 % band"}
_END = {"color": COLORS[8], "linewidth": 1.1, "linestyle": "--", "label": "the prediction fails"}


def _shown_columns(run: HeldOut) -> list[str]:
    """Recorded ones, each velocity beside its coordinate, then the inputs that are used."""
    pairs = zip(run.truth.coordinates, run.truth.rates, strict=True)
    states = [name for both in pairs for name in both if name in run.recorded]
    moves = lambda name: np.ptp(np.asarray(run.truth[name])) > 0  # noqa: E731
    used = [n for n in run.truth.inputs if n in run.recorded or moves(n)]
    return states + used


def _grid(count: int, height_in: float) -> tuple[Figure, list[Axes]]:
    """Panels in two columns, or one that is wide."""
    across = 1 if count == 1 else 2
    down = max(1, -(-count // across))
    figure = new_figure(9.6, 0.9 + height_in * down)
    places = list(figure.subplots(down, across, squeeze=False).flat)
    for axes in places[count:]:
        axes.remove()
    return figure, places[:count]


def _finish_times(figure: Figure, places: Sequence[Axes], runs: Sequence[HeldOut]) -> None:
    handles: list[Artist] = [Line2D([], [], **panels.REFERENCE, label="truth")]
    handles.append(panels.line("-", "prediction", FOUND))
    counts = [predicted_rows(run.prediction) for run in runs]
    if any(run.prediction.spread is not None for run in runs):
        handles.append(Patch(**_BAND))
    if any(np.any(run.outside[:count]) for run, count in zip(runs, counts, strict=True)):
        handles.append(Patch(facecolor=BEYOND_SHADE, label="outside the training data"))
    if any(count < len(run.truth) for run, count in zip(runs, counts, strict=True)):
        handles.append(Line2D([], [], **_END))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    _time_labels(places)


def _time_labels(places: Sequence[Axes]) -> None:
    """Below the last panels only."""
    for axes in places[:-2]:
        axes.set_xlabel("")


def _positive(values: np.ndarray) -> np.ndarray:
    """What a logarithmic axis can show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)
