"""A mechanism on its axes: the ground, where it has been, how it stands at the end."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from mbdnode.errors import UserError
from mbdnode.multibody import AbstractMechanism
from mbdnode.report.drawings import find_drawing
from mbdnode.report.shapes import Joint
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
    for path, colour in zip(drawing.traces(t, q, mu), drawing.colours, strict=True):
        _draw_path(axes, path, colour)
    for number, moment in enumerate(_moments(len(q), drawing.poses)):
        for shape in drawing.parts(q[moment], mu):
            if not isinstance(shape, Joint):  # A pin that shows through a ghost is clutter.
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


def _draw_path(axes: Axes, path: np.ndarray, colour: str, most: int = 2_000) -> None:
    """A line that fades towards the past."""
    path = path[:: max(1, len(path) // most)]
    segments = np.stack([path[:-1], path[1:]], axis=1)
    shades = np.tile(to_rgba(colour), (len(segments), 1))
    shades[:, 3] = np.linspace(0.15, 0.85, len(segments))
    axes.add_collection(
        LineCollection(
            list(segments), colors=shades, linewidths=1.1, capstyle="butt", zorder=_PATHS
        )
    )
