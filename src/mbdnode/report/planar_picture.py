"""A mechanism from a file as a picture, with the names of its bodies."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.data.atomic import replace_file
from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.report import animation
from mbdnode.report.planar_drawing import body_colour, planar_drawing
from mbdnode.report.planar_layout import layout_of, place
from mbdnode.report.style import styled


@styled()
def draw_mechanism(
    mechanism: AbstractPlanar,
    q: np.ndarray,
    parameters: Mapping[str, Any] | None = None,
) -> Figure:
    """A mechanism in one configuration, with the names of its bodies.

    **Arguments:**

    - `mechanism`: from a file.
    - `q`: its coordinates.
    - `parameters`: values other than the defaults.

    **Returns:**

    A figure, for `save_picture`.
    """
    drawing, mu = planar_drawing(mechanism), animation.parameter_values(mechanism, parameters)
    q = np.asarray(q, float)
    view = animation.view_of(drawing, q[None], mu)
    figure, axes = animation.make_stage(view, title=mechanism.description.name)
    animation.draw_ground(axes, drawing, q[None], mu)
    animation.draw_parts(axes, drawing, q, mu)
    _write_names(axes, mechanism, q)
    return figure


def save_picture(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure; the suffix, .png or .svg, says how. A file is replaced whole or not at all.

    **Arguments:**

    - `figure`: to be written.
    - `path`: where to.
    - `dpi`: pixels for each inch of a PNG.
    """
    drawn = io.BytesIO()
    kind = path.suffix.lower().removeprefix(".")
    # Without a date, and with names of its parts that are not random, the same drawing is the
    # same file.
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with styled(), matplotlib.rc_context({"svg.hashsalt": "mbdnode"}):
        figure.savefig(drawn, format=kind, dpi=dpi, metadata=metadata)
    replace_file(path, lambda file: file.write(drawn.getvalue()))


def _write_names(axes: Axes, mechanism, q: np.ndarray) -> None:
    """Each body's name beside the middle of what is drawn of it."""
    description = mechanism.description
    layout = layout_of(description)
    for name, outline in layout.outlines.items():
        x, y = np.mean(place(q, description, name, outline), axis=0)
        axes.annotate(
            name,
            (x, y),
            xytext=(7, 7),
            textcoords="offset points",
            fontsize=8,
            color=body_colour(description, name),
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.8},
            zorder=200,
        )
