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


@styled()
def draw_case(scene: Scene) -> Figure:
    """Coordinates and velocities over time, phase portraits, energy, residuals and a drawing.

    **Arguments:**

    - `scene`: what to show.

    **Returns:**

    A figure, for `save_figure`.
    """
    mechanism, motion = scene.mechanism, {"": scene.trajectory.kept}
    units: dict[str, list[Coordinate]] = {}
    for coordinate in moving(mechanism, scene.trajectory):
        units.setdefault(coordinate.unit, []).append(coordinate)
    groups = list(units.values())
    names = [[c.name for c in group] for group in groups] + [[c.rate for c in g] for g in groups]
    mu = resolve_parameters(mechanism, scene.parameters)
    has_energy = mechanism.potential_energy(scene.trajectory.q[0], mu) is not None
    columns: list[tuple[float, list[tuple[Callable[..., None], tuple[Any, ...]]]]] = [
        (1.0, [(_draw_scenery, (scene,))] * (find_drawing(mechanism) is not None)),
        (1.5, [(draw_motion, (mechanism, motion, some, scene.train_end_s)) for some in names]),
        (
            1.0,
            [(draw_portrait, (group, motion)) for group in groups]
            + [(_draw_energy, (scene,))] * has_energy
            + [(draw_residuals, (motion, scene.train_end_s))]
            * (sum(constraint_counts(mechanism, mu)) > 0),
        ),
    ]
    widths, shown = zip(*((width, panels) for width, panels in columns if panels), strict=True)
    figure = new_figure(13.0, max(5.4, 2.0 + 1.5 * max(map(len, shown))))
    figure.suptitle(scene.title, fontsize=13)
    parts = figure.subfigures(1, len(shown), squeeze=False, width_ratios=widths, wspace=0.03)
    for part, panels in zip(parts[0], shown, strict=True):
        places = part.subplots(len(panels), 1, squeeze=False)[:, 0]
        for axes, (draw, given) in zip(places, panels, strict=True):
            draw(axes, *given)
            if axes.get_xlabel() == "t [s]":
                _name_training_range(axes, scene)
            # Above the axes, where it hides nothing; a single line is named by the axis.
            if len(axes.get_legend_handles_labels()[1]) > 1:
                look = {"bbox_to_anchor": (0.0, 1.0), "ncols": 8, "borderaxespad": 0.1}
                axes.legend(loc="lower left", **look)
        part.align_ylabels(places)
    return figure


def _draw_scenery(axes: Axes, scene: Scene) -> None:
    mu = parameter_values(scene.mechanism, scene.parameters)
    draw_scenery(axes, scene.mechanism, scene.trajectory, mu)


def _draw_energy(axes: Axes, scene: Scene) -> None:
    kept = scene.trajectory.kept
    joules = np.asarray(energy(scene.mechanism, kept, scene.parameters))
    label, unit = "energy", "J"
    if scene.mechanism.conservative and not np.any(kept.u):
        label = "energy change"
        joules, unit = _magnified(joules - joules[0], unit)
    axes.plot(kept.t, joules, color=INK, linewidth=0.9)
    axes.set_ylabel(f"{label} [{unit}]")
    time_axis(axes, np.asarray(kept.t), scene.train_end_s)


def _magnified(values: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Small values as multiples of a power of ten, which goes into the unit."""
    largest = float(np.max(np.abs(values)))
    if largest == 0.0 or largest > 0.1:
        return values, unit
    exponent = math.floor(math.log10(largest))
    return values / 10.0**exponent, rf"$10^{{{exponent}}}$ {unit}".strip()


def _name_training_range(axes: Axes, scene: Scene) -> None:
    t, end = np.asarray(scene.trajectory.kept.t), scene.train_end_s
    if end > 0:
        wide = end - t[0] > 0.3 * (t[-1] - t[0])
        axes.annotate(
            "training range",
            (end if wide else float(t[0]), 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="right" if wide else "left",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
        )


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
