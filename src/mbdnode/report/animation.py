"""A motion as an animated GIF, of any mechanism that has a drawing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from mbdnode.data.files import replace_file
from mbdnode.errors import UserError
from mbdnode.multibody import AbstractSystem, resolve_parameters
from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.style import INK, new_figure, styled
from mbdnode.trajectory import Trajectory

# A film has at most so many pictures and takes at most so long to watch.
_MOST_FRAMES, _LONGEST_S, _RATE = 150, 10.0, 20.0
_WIDTH_IN = 6.0


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
    drawing, mu = find_drawing(mechanism), parameter_values(mechanism, parameters)
    if drawing is None:
        raise UserError(
            f"There is no drawing of {type(mechanism).__name__}; add one to report/drawings.py."
        )
    kept = trajectory.kept
    t, q = np.asarray(kept.t), np.asarray(kept.q)
    lasts = min(float(t[-1] - t[0]), _LONGEST_S)
    count = int(np.clip(lasts * _RATE, 2, min(_MOST_FRAMES, max(len(t), 2))))
    moments = np.linspace(t[0], t[-1], count)
    rows = np.clip(np.searchsorted(t, moments), 0, len(t) - 1)
    figure, axes = make_stage(stage_view(drawing, q[rows], mu), title="")
    draw_ground(axes, drawing, q, mu)
    still, frames = set(axes.get_children()), []
    for row in rows:
        for artist in set(axes.get_children()) - still:
            artist.remove()
        _draw_paths(axes, drawing, t[: row + 1], q[: row + 1], mu)
        draw_parts(axes, drawing, q[row], mu)
        label = f"{title}   t = {t[row]:.2f} s".lstrip()
        axes.set_title(label, fontsize=9, color=INK, loc="left")
        frames.append(_picture(figure))
        figure.set_layout_engine("none")  # The first frame has found the places of everything.
    _write_gif(frames, max(1000 * lasts / count, 20.0), path)


def parameter_values(
    mechanism: AbstractSystem, parameters: Mapping[str, Any] | None
) -> dict[str, float]:
    """Every parameter as a plain number."""
    mu = resolve_parameters(mechanism, parameters)
    return {name: float(value) for name, value in mu.items()}


def stage_view(drawing: Drawing, q: np.ndarray, mu: Mapping[str, float]) -> np.ndarray:
    """The lower left and upper right of all poses, with some room."""
    corners = [point for shape in drawing.ground(q, mu) for point in shape.corners()]
    for state in q:
        corners += [point for shape in drawing.parts(state, mu) for point in shape.corners()]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    room = 0.06 * float(np.max(high - low))
    return np.array([low - room, high + room])


def make_stage(view: np.ndarray, title: str) -> tuple[Figure, Axes]:
    """Axes of equal scale that hold the view, in a figure of its shape."""
    wide, high = view[1] - view[0]
    figure = new_figure(_WIDTH_IN, float(np.clip(_WIDTH_IN * high / wide, 2.4, 7.0)) + 0.3)
    axes = figure.add_subplot()
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(view[0, 0], view[1, 0])
    axes.set_ylim(view[0, 1], view[1, 1])
    axes.axis("off")
    if title:
        axes.set_title(title, fontsize=10, color=INK, loc="left")
    return figure, axes


def draw_ground(axes: Axes, drawing: Drawing, motion: np.ndarray, mu: Mapping[str, float]) -> None:
    """What stands still."""
    for shape in drawing.ground(motion, mu):
        shape.draw(axes, 1.0, 2)


def draw_parts(axes: Axes, drawing: Drawing, state: np.ndarray, mu: Mapping[str, float]) -> None:
    """What moves, in one pose."""
    for level, shape in enumerate(drawing.parts(state, mu), 5):
        shape.draw(axes, 1.0, level)


def _draw_paths(axes: Axes, drawing: Drawing, t, q, mu: Mapping[str, float]) -> None:
    for path, color in zip(drawing.traces(t, q, mu), drawing.colors, strict=True):
        axes.plot(*path.T, color=color, linewidth=1.0, alpha=0.55, zorder=4)


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
