"""The figure of a simulation: the mechanism, its motion, its phase portrait, what it conserves.

Several simulations go side by side into an overview.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.evaluation import energy
from mbdnode.multibody import AbstractMechanism, Coordinate, constraint_counts, resolve_parameters
from mbdnode.report.drawings import find_drawing
from mbdnode.report.panels import draw_motion, draw_portrait, draw_residuals, moving, time_axis
from mbdnode.report.pictures import draw_scenery, parameter_values
from mbdnode.report.style import INK, MUTED, new_figure, styled
from mbdnode.trajectory import Trajectory


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
    return [lambda axes: _draw_scenery(axes, scene)]


def _draw_scenery(axes: Axes, scene: Scene) -> None:
    mu = parameter_values(scene.mechanism, scene.parameters)
    draw_scenery(axes, scene.mechanism, scene.trajectory, mu)


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
    for coordinate in moving(scene.mechanism, scene.trajectory):
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
        _draw_scenery(axes, scene)
        axes.set_title(scene.name, fontsize=10, color=INK, pad=6)
    return figure
