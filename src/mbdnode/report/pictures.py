"""Pictures of a mechanism by Matplotlib: one pose, a motion with its paths, an animated GIF."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from PIL import Image

from mbdnode.data.files import replace_file
from mbdnode.errors import UserError
from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.multibody import AbstractSystem, resolve_parameters
from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.shapes import Disc
from mbdnode.report.style import INK, new_figure, styled
from mbdnode.trajectory import Trajectory

Values = Mapping[str, float]
# What covers what.
_GROUND, _GHOSTS, _PATHS, _POSE, _NAMES = 2, 3, 4, 5, 200
# A film has at most so many pictures and takes at most so long to watch.
_MOST_FRAMES, _LONGEST_S, _RATE = 150, 10.0, 20.0
_WIDTH_IN = 6.0
# Coordinates beyond which nothing is drawn; how far beside the truth predictions are, of its size.
FAR, _BESIDE = 1e4, 0.5


def parameter_values(
    mechanism: AbstractSystem, parameters: Mapping[str, Any] | None
) -> dict[str, float]:
    """Every parameter as a plain number."""
    mu = resolve_parameters(mechanism, parameters)
    return {name: float(value) for name, value in mu.items()}


def draw_pose(axes: Axes, drawing: Drawing, q: np.ndarray, mu: Values) -> None:
    """Draw what moves, in one pose."""
    for level, shape in enumerate(drawing.parts(q, mu), _POSE):
        shape.draw(axes, 1.0, level)


def draw_ground(axes: Axes, drawing: Drawing, motion: np.ndarray, mu: Values) -> None:
    """Draw what stands still, as far as a motion reaches."""
    for shape in drawing.ground(motion, mu):
        shape.draw(axes, 1.0, _GROUND)


def view_of(
    drawing: Drawing, q: np.ndarray, mu: Values, others: Sequence[np.ndarray] = ()
) -> np.ndarray:
    """The lower left and the upper right of all that a motion covers, with some room around it.

    **Arguments:**

    - `drawing`, `mu`: of the mechanism.
    - `q`: the motion; rows that are not finite are left out.
    - `others`: predictions of it. They may leave its view by half of its size: what diverged would
        make all the rest small.

    **Returns:**

    Two points.
    """
    good = q[np.all(np.isfinite(q), axis=1)]
    ground = [point for shape in drawing.ground(q, mu) for point in shape.corners()]
    corners = [*ground, *_corners(drawing, good, mu)]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    reach = _BESIDE * float(np.max(high - low))
    least, most = low - reach, high + reach
    for other in others:
        near = other[np.all(np.abs(other) < FAR, axis=1)]
        if beside := _corners(drawing, near, mu):
            within = np.clip(beside, least, most)
            low, high = np.minimum(low, within.min(axis=0)), np.maximum(high, within.max(axis=0))
    room = 0.05 * float(np.max(high - low))
    return np.array([low - room, high + room])


def _corners(drawing: Drawing, q: np.ndarray, mu: Values) -> list[tuple[float, float]]:
    """Of all parts in all of these configurations."""
    return [point for state in q for shape in drawing.parts(state, mu) for point in shape.corners()]


def make_stage(view: np.ndarray, title: str = "") -> tuple[Figure, Axes]:
    """Axes of equal scale that hold the view, in a figure of its shape."""
    wide, high = view[1] - view[0]
    figure = new_figure(_WIDTH_IN, float(np.clip(_WIDTH_IN * high / wide, 2.4, 7.0)) + 0.3)
    axes = figure.add_subplot()
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(view[0, 0], view[1, 0])
    axes.set_ylim(view[0, 1], view[1, 1])
    axes.axis("off")
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    return figure, axes


def fill_place(axes: Axes, room: float) -> None:
    """Equal scales; the limits grow beyond the drawing, so that it fills its place in a grid."""
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(room)
    axes.autoscale_view()
    axes.axis("off")


def draw_scenery(axes: Axes, mechanism: AbstractSystem, trajectory: Trajectory, mu: Values) -> None:
    """Draw a mechanism's last pose, ghosts of earlier ones, and the paths of its moving points."""
    drawing, kept = _needed(mechanism), trajectory.kept
    t, q = np.asarray(kept.t), np.asarray(kept.q)
    draw_ground(axes, drawing, q, mu)
    for path, color in zip(drawing.traces(t, q, mu), drawing.colors, strict=True):
        _draw_fading(axes, path, color)
    # The start and then evenly on, short of the end.
    moments = np.linspace(0, len(q) - 1, drawing.poses + 1).astype(int)[:-1]
    for number, moment in enumerate(moments):
        for shape in drawing.parts(q[moment], mu):
            # A pin that shows through a ghost is clutter.
            if not isinstance(shape, Disc) or shape.edge != INK:
                shape.draw(axes, 0.14 + 0.03 * number, _GHOSTS)
    draw_pose(axes, drawing, q[-1], mu)
    fill_place(axes, 0.03)


def _needed(mechanism: AbstractSystem) -> Drawing:
    drawing = find_drawing(mechanism)
    if drawing is None:
        raise UserError(
            f"There is no drawing of {type(mechanism).__name__}; add one to report/drawings.py."
        )
    return drawing


def _draw_fading(axes: Axes, path: np.ndarray, color: str, most: int = 2_000) -> None:
    """A line that fades toward the past."""
    path = path[:: max(1, len(path) // most)]
    segments = np.stack([path[:-1], path[1:]], axis=1)
    shades = np.tile(to_rgba(color), (len(segments), 1))
    shades[:, 3] = np.linspace(0.15, 0.85, len(segments))
    look: dict[str, Any] = {"linewidths": 1.1, "capstyle": "butt", "zorder": _PATHS}
    axes.add_collection(LineCollection(list(segments), colors=shades, **look))


@styled()
def draw_mechanism(
    mechanism: AbstractPlanar | SpatialMechanism,
    q: np.ndarray,
    parameters: Mapping[str, Any] | None = None,
) -> Figure:
    """A mechanism in one configuration, with the names of its bodies."""
    drawing, mu = _needed(mechanism), parameter_values(mechanism, parameters)
    q = np.asarray(q, float)
    figure, axes = make_stage(view_of(drawing, q[None], mu), mechanism.description.name)
    draw_ground(axes, drawing, q[None], mu)
    draw_pose(axes, drawing, q, mu)
    paper: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.8}
    for name, (x, y), color in drawing.labels(q):
        look = {"fontsize": 8, "color": color, "zorder": _NAMES}
        axes.annotate(name, (x, y), xytext=(7, 7), textcoords="offset points", bbox=paper, **look)
    return figure


@styled()
def save_animation(
    mechanism: AbstractSystem,
    trajectory: Trajectory,
    path: Path,
    parameters: Mapping[str, Any] | None = None,
    title: str = "",
) -> None:
    """Write the motion as an animated GIF, at its own speed where that takes no more than 10 s.

    **Arguments:**

    - `mechanism`: one that has a drawing.
    - `trajectory`: a single one; rows after a failure are left out.
    - `path`: where to; an existing file is replaced whole or not at all.
    - `parameters`: those of the run, if not the defaults.
    - `title`: above the picture, before the time.
    """
    drawing, mu = _needed(mechanism), parameter_values(mechanism, parameters)
    kept = trajectory.kept
    t, q = np.asarray(kept.t), np.asarray(kept.q)
    lasts = min(float(t[-1] - t[0]), _LONGEST_S)
    count = int(np.clip(lasts * _RATE, 2, min(_MOST_FRAMES, max(len(t), 2))))
    moments = np.linspace(t[0], t[-1], count)
    rows = np.clip(np.searchsorted(t, moments), 0, len(t) - 1)
    figure, axes = make_stage(view_of(drawing, q[rows], mu))
    draw_ground(axes, drawing, q, mu)
    still, frames = set(axes.get_children()), []
    for row in rows:
        for artist in set(axes.get_children()) - still:
            artist.remove()
        paths = drawing.traces(t[: row + 1], q[: row + 1], mu)
        for line, color in zip(paths, drawing.colors, strict=True):
            axes.plot(*line.T, color=color, linewidth=1.0, alpha=0.55, zorder=_PATHS)
        draw_pose(axes, drawing, q[row], mu)
        label = f"{title}   t = {t[row]:.2f} s".lstrip()
        axes.set_title(label, fontsize=9, color=INK, loc="left")
        frames.append(_picture(figure))
        figure.set_layout_engine("none")  # The first frame has found the places of everything.
    _write_gif(frames, max(1000 * lasts / count, 20.0), path)


def _picture(figure: Figure) -> Image.Image:
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _write_gif(frames: Sequence[Image.Image], each_ms: float, path: Path) -> None:
    # One palette for all frames, or colors would flicker; and the paper is to stay white.
    found = np.reshape(frames[len(frames) // 2].quantize(127).getpalette() or [], (-1, 3))
    found = found[np.min(found, axis=1) < 245]
    palette = Image.new("P", (1, 1))
    palette.putpalette([255, 255, 255, *found.reshape(-1).tolist()])
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]

    def fill(file):
        drawn[0].save(
            file, format="GIF", save_all=True, append_images=drawn[1:], duration=each_ms, loop=0
        )

    replace_file(path, fill)
