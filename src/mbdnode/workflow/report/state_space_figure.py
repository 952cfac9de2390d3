"""Where in state space the training data lies, and where predictions left it."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.evaluation import HeldOut
from mbdnode.evaluation.predictions import predicted_rows
from mbdnode.multibody import Coordinate, choose_partition, constraint_counts, resolve_parameters
from mbdnode.report import panels
from mbdnode.report.style import new_figure, styled
from mbdnode.workflow.report.figures import BEYOND, FOUND
from mbdnode.workflow.results import ReportData

_KNOWN = "#b4bec7"
_BINS = 24

Columns = dict[str, np.ndarray]


@styled()
def draw_space(report: ReportData) -> Figure | None:
    """Velocity over position of every independent coordinate, and how often inputs are how large.

    None where nothing is known of the training data.
    """
    coordinates = [
        c
        for c in independent_coordinates(report)
        if c.name in report.known and c.rate in report.known
    ]
    inputs = [i.name for i in report.system.inputs if i.name in report.known]
    count = len(coordinates) + len(inputs)
    if not count:
        return None
    across = min(3, count)
    down = -(-count // across)
    figure = new_figure(6.4 if across == 1 else 9.6, 0.8 + 2.9 * down)
    places = list(figure.subplots(down, across, squeeze=False).flat)
    inside, outside = _predicted(report.held_out)
    for number, (axes, coordinate) in enumerate(zip(places, coordinates, strict=False)):
        _draw_states(axes, report, coordinate, inside, outside)
        panels.panel_title(axes, number, "")
    driven = _gather([panels.columns_by_name(run.truth) for run in report.held_out])
    for number, (axes, name) in enumerate(
        zip(places[len(coordinates) :], inputs, strict=False), len(coordinates)
    ):
        _draw_input(axes, report, name, driven.get(name))
        panels.panel_title(axes, number, "input")
    for axes in places[count:]:
        axes.remove()
    figure.legend(
        handles=_handles(bool(inside), _any(outside)), loc="outside lower center", ncols=3
    )
    return figure


def independent_coordinates(report: ReportData) -> list[Coordinate]:
    """The coordinates from which all others follow, by the system or by its constraints."""
    system, mu = report.system, resolve_parameters(report.system, report.parameters)
    start = _configuration(report)
    if system.independent is not None or start is None or not sum(constraint_counts(system, mu)):
        names = system.coordinate_names if system.independent is None else system.independent
        return [c for c in system.coordinates if c.name in names]
    t, q = start
    chosen = choose_partition(system, jnp.asarray(t), jnp.asarray(q), mu).position.independent
    return [system.coordinates[int(place)] for place in sorted(np.asarray(chosen))]


def _configuration(report: ReportData) -> tuple[float, np.ndarray] | None:
    """One that meets the constraints: of a held-out run, or of the training data."""
    if report.held_out:
        truth = report.held_out[0].truth
        return float(truth.t[0]), np.asarray(truth.q)[0]
    names = report.system.coordinate_names
    if not all(name in report.known for name in names):
        return None
    return 0.0, np.array([float(report.known[name][0]) for name in names])


def _predicted(runs: Sequence[HeldOut]) -> tuple[Columns, Columns]:
    """Predicted rows inside and outside the training data, thinned run by run."""
    inside, outside, most = [], [], panels.MOST_POINTS // max(len(runs), 1) + 1
    for run in runs:
        flags = np.asarray(run.outside, bool)[: predicted_rows(run.prediction)]
        columns = panels.columns_by_name(run.prediction)
        for found, rows in ((inside, np.flatnonzero(~flags)), (outside, np.flatnonzero(flags))):
            # Apart from each other, so that a short excursion is not thinned away.
            kept = rows[panels.thinned(len(rows), most)] if rows.size else rows
            found.append({name: values[kept] for name, values in columns.items()})
    return _gather(inside), _gather(outside)


def _gather(parts: Sequence[Columns]) -> Columns:
    if not parts:
        return {}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _any(columns: Columns) -> bool:
    return any(values.size for values in columns.values())


def _draw_states(
    axes: Axes, report: ReportData, coordinate: Coordinate, inside: Columns, outside: Columns
) -> None:
    q, v = (np.asarray(report.known[name]) for name in (coordinate.name, coordinate.rate))
    seen = [c[coordinate.name] for c in (inside, outside) if c]
    fold = coordinate.is_angle and any(np.any(np.abs(x) > np.pi) for x in (q, *seen))
    axes.plot(_turned(q, fold), v, ".", color=_KNOWN, markersize=3.5, label="known")
    limits = [(_turned(q, fold), v)]
    for columns, mark, color, size, label in (
        (inside, ".", FOUND, 2.2, "inside"),
        (outside, "x", BEYOND, 3.2, "outside"),
    ):
        if columns:
            x, w = _turned(columns[coordinate.name], fold), columns[coordinate.rate]
            axes.plot(x, w, mark, color=color, markersize=size, markeredgewidth=0.7, label=label)
            limits.append((x, w))
    panels.keep_in_view(axes.set_xlim, _near([x for x, _ in limits]), room=0.06)
    panels.keep_in_view(axes.set_ylim, _near([w for _, w in limits]), room=0.06)
    axes.set_xlabel(panels.axis_text(report.system, [coordinate.name]))
    axes.set_ylabel(panels.axis_text(report.system, [coordinate.rate]))


def _near(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The data, and predictions up to half its width away from it: some go anywhere."""
    data = columns[0][np.isfinite(columns[0])]
    if not data.size:
        return list(columns)
    low, high = float(np.min(data)), float(np.max(data))
    room = (high - low) / 2
    return [np.clip(values, low - room, high + room) for values in columns]


def _turned(q: np.ndarray, fold: bool) -> np.ndarray:
    """Angles within one turn."""
    return np.mod(q + np.pi, 2 * np.pi) - np.pi if fold else q


def _draw_input(axes: Axes, report: ReportData, name: str, driven: np.ndarray | None) -> None:
    known = np.asarray(report.known[name])
    both = known if driven is None else np.concatenate([known, driven])
    edges = np.histogram_bin_edges(both[np.isfinite(both)], _BINS)
    axes.stairs(_shares(known, edges), edges, fill=True, color=_KNOWN)
    if driven is not None:
        axes.stairs(_shares(driven, edges), edges, color=FOUND, linewidth=1.2)
    axes.set_xlabel(panels.axis_text(report.system, [name]))
    axes.set_ylabel("% of the rows")
    axes.set_ylim(bottom=0.0)


def _shares(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return 100 * np.histogram(values, edges)[0] / max(len(values), 1)


def _handles(predicted: bool, beyond: bool) -> list[Line2D]:
    def mark(shape: str, color: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=shape, color=color, markersize=6, label=label)

    handles = [mark("o", _KNOWN, "training data")]
    if predicted:
        handles.append(mark("o", FOUND, "predictions of held-out runs"))
    if beyond:
        handles.append(mark("x", BEYOND, "outside the training data"))
    return handles
