"""The figure of a simulation: the mechanism, its motion, its phase portrait, what it conserves.

The mechanism stands on its axes with the ground, where it has been and its last pose. Several
simulations go side by side into an overview.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from mbdnode.errors import UserError
from mbdnode.evaluation import energy
from mbdnode.multibody import AbstractMechanism, Coordinate, constraint_counts, resolve_parameters
from mbdnode.report.drawings import find_drawing
from mbdnode.report.panels import draw_motion, draw_portrait, draw_residuals, time_axis
from mbdnode.report.shapes import JointShape
from mbdnode.report.style import INK, MUTED, new_figure, styled
from mbdnode.trajectory import Trajectory

# What covers what.
_GROUND, _GHOSTS, _PATHS, _POSE = 2, 3, 4, 5


def draw_scenery(
    axes: Axes, mechanism: AbstractMechanism, trajectory: Trajectory, mu: Mapping[str, float]
) -> None:
    """Draw a mechanism's last pose, ghosts of earlier ones, and the paths of its moving points.

    **Arguments:**

    - `axes`: to draw on; they lose their frame.
    - `mechanism`: one that has a drawing.
    - `trajectory`, `mu`: its motion and its parameters.
    """
    drawing = find_drawing(mechanism)
    if drawing is None:
        raise UserError(
            f"There is no drawing of {type(mechanism).__name__}; add one to report/drawings.py."
        )
    kept = trajectory.kept
    t, q = np.asarray(kept.t), np.asarray(kept.q)
    for shape in drawing.ground(q, mu):
        shape.draw(axes, 1.0, _GROUND)
    for path, color in zip(drawing.traces(t, q, mu), drawing.colors, strict=True):
        _draw_path(axes, path, color)
    for number, moment in enumerate(_moments(len(q), drawing.poses)):
        for shape in drawing.parts(q[moment], mu):
            if not isinstance(shape, JointShape):  # A pin that shows through a ghost is clutter.
                shape.draw(axes, 0.14 + 0.03 * number, _GHOSTS)
    for level, shape in enumerate(drawing.parts(q[-1], mu), _POSE):
        shape.draw(axes, 1.0, level)
    # The limits may grow beyond the drawing, so that every picture fills its place in a grid.
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.03)
    axes.autoscale_view()
    axes.axis("off")


def _moments(count: int, poses: int) -> list[int]:
    """The start and then evenly on, short of the end."""
    return np.linspace(0, count - 1, poses + 1).astype(int)[:-1].tolist()


def _draw_path(axes: Axes, path: np.ndarray, color: str, most: int = 2_000) -> None:
    """A line that fades toward the past."""
    path = path[:: max(1, len(path) // most)]
    segments = np.stack([path[:-1], path[1:]], axis=1)
    shades = np.tile(to_rgba(color), (len(segments), 1))
    shades[:, 3] = np.linspace(0.15, 0.85, len(segments))
    axes.add_collection(
        LineCollection(
            list(segments), colors=shades, linewidths=1.1, capstyle="butt", zorder=_PATHS
        )
    )


@dataclass(frozen=True)
class Scene:
    """What a figure shows.

    **Arguments:**

    - `name`, `title`: of the case.
    - `mechanism`, `trajectory`, `parameters`: what moved, how, with which values.
    - `train_end_s`: where the training range ends; zero if there is none.
    """

    name: str
    title: str
    mechanism: AbstractMechanism
    trajectory: Trajectory
    parameters: Mapping[str, Any]
    train_end_s: float = 0.0


Panel = Callable[[Axes], None]


@styled()
def draw_case(scene: Scene) -> Figure:
    """Coordinates and velocities over time, phase portraits, energy, residuals and a drawing.

    **Arguments:**

    - `scene`: what to show.

    **Returns:**

    A figure, for `save`.
    """
    columns = [(1.0, _drawing(scene)), (1.5, _motion(scene)), (1.0, _character(scene))]
    widths, shown = zip(*((width, panels) for width, panels in columns if panels), strict=True)
    figure = new_figure(13.0, max(5.4, 2.0 + 1.5 * max(map(len, shown))))
    figure.suptitle(scene.title, fontsize=13)
    parts = figure.subfigures(1, len(shown), squeeze=False, width_ratios=widths, wspace=0.03)
    for part, panels in zip(parts[0], shown, strict=True):
        places = part.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, panel in zip(places, panels, strict=True):
            panel(axes)
        part.align_ylabels(places)
    return figure


def _drawing(scene: Scene) -> list[Panel]:
    if find_drawing(scene.mechanism) is None:
        return []
    return [lambda axes: draw_scenery(axes, scene.mechanism, scene.trajectory, values(scene))]


def _motion(scene: Scene) -> list[Panel]:
    groups = _groups(scene)
    positions = [_over_time(scene, members, rates=False) for members in groups]
    velocities = [_over_time(scene, members, rates=True) for members in groups]
    return [*positions, *velocities]


def _character(scene: Scene) -> list[Panel]:
    panels = [_portrait(scene, members) for members in _groups(scene)]
    mu = resolve_parameters(scene.mechanism, scene.parameters)
    if scene.mechanism.potential_energy(scene.trajectory.q[0], mu) is not None:
        panels.append(lambda axes: _plot_energy(axes, scene))
    if sum(constraint_counts(scene.mechanism, mu)):
        panels.append(lambda axes: _plot_residuals(axes, scene))
    return panels


def _groups(scene: Scene) -> list[list[Coordinate]]:
    """The coordinates that move, by unit."""
    groups: dict[str, list[Coordinate]] = {}
    for index, coordinate in enumerate(scene.mechanism.coordinates):
        if np.ptp(np.asarray(scene.trajectory.kept.q[:, index])) > 1e-9:
            groups.setdefault(coordinate.unit, []).append(coordinate)
    return list(groups.values())


def _over_time(scene: Scene, members: Sequence[Coordinate], *, rates: bool) -> Panel:
    def panel(axes: Axes) -> None:
        names = [coordinate.rate if rates else coordinate.name for coordinate in members]
        draw_motion(axes, scene.mechanism, {"": scene.trajectory.kept}, names)
        _time_axis(axes, scene)
        _legend(axes)

    return panel


def _portrait(scene: Scene, members: Sequence[Coordinate]) -> Panel:
    def panel(axes: Axes) -> None:
        draw_portrait(axes, members, {"": scene.trajectory.kept})
        _legend(axes)

    return panel


def _plot_energy(axes: Axes, scene: Scene) -> None:
    kept = scene.trajectory.kept
    joules = np.asarray(energy(scene.mechanism, kept, scene.parameters))
    label, unit = "energy", "J"
    if scene.mechanism.conservative and not np.any(kept.u):
        label = "energy change"
        joules, unit = _magnified(joules - joules[0], unit)
    axes.plot(kept.t, joules, color=INK, linewidth=0.9)
    axes.set_ylabel(f"{label} [{unit}]")
    _time_axis(axes, scene)


def _plot_residuals(axes: Axes, scene: Scene) -> None:
    draw_residuals(axes, {"": scene.trajectory.kept})
    _time_axis(axes, scene)
    _legend(axes)


def _magnified(values: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Small values as multiples of a power of ten, which goes into the unit."""
    largest = float(np.max(np.abs(values)))
    if largest == 0.0 or largest > 0.1:
        return values, unit
    exponent = math.floor(math.log10(largest))
    return values / 10.0**exponent, rf"$10^{{{exponent}}}$ {unit}".strip()


def _time_axis(axes: Axes, scene: Scene) -> None:
    kept = scene.trajectory.kept
    axes.set_xlabel("t [s]")
    time_axis(axes, np.asarray(kept.t), scene.train_end_s)
    if scene.train_end_s > 0:
        start, end = float(kept.t[0]), scene.train_end_s
        wide = end - start > 0.3 * float(kept.t[-1] - kept.t[0])
        axes.annotate(
            "training range",
            (end if wide else start, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right" if wide else "left",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
        )


def _legend(axes: Axes) -> None:
    """Above the axes, where it hides nothing; a single line is named by the axis."""
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=8, borderaxespad=0.1)


def values(scene: Scene) -> dict[str, float]:
    """Every parameter's value."""
    mu = resolve_parameters(scene.mechanism, scene.parameters)
    return {name: float(value) for name, value in mu.items()}


@styled()
def draw_overview(scenes: Sequence[Scene], columns: int = 4) -> Figure:
    """One small drawing for each scene, with the trail of its motion.

    **Arguments:**

    - `scenes`: of mechanisms that have drawings.
    - `columns`: how many stand side by side.

    **Returns:**

    A figure, for `save`.
    """
    rows = math.ceil(len(scenes) / columns)
    figure = new_figure(3.3 * columns, 2.9 * rows)
    for number, scene in enumerate(scenes):
        axes = figure.add_subplot(rows, columns, number + 1)
        draw_scenery(axes, scene.mechanism, scene.trajectory, values(scene))
        axes.set_title(scene.name, fontsize=10, color=INK, pad=6)
    return figure
