"""One quiet look for every figure.

Figures are built on the Agg canvas without pyplot, so drawing one leaves no state behind and
needs no display.
"""

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler

from mbdnode.data.files import replace_file
from mbdnode.formatting import ROUND_OFF

# Where squared errors that are round-off are drawn, where the band around them ends, and up to
# where an axis goes at least, for the band to be seen as one.
AMID_ROUND_OFF, MIN_SHOWN, ABOVE_ROUND_OFF = ROUND_OFF / 10**1.5, ROUND_OFF / 1e3, 1e3 * ROUND_OFF
INK = "#1f2d3a"
MUTED = "#7b8794"
FAINT = "#d9dfe5"
SHADE = "#eef3f8"
PAPER = "#ffffff"
# Colors that a page changes with its scheme, by the names that it has for them.
NAMED = {INK: "ink", MUTED: "muted", SHADE: "shade", FAINT: "line", PAPER: "back"}
# The first six are distinguishable with any kind of color vision, and in print by their lightness;
# the rest are for figures that also tell their marks apart by shape.
COLORS = (
    *("#24618e", "#d9772b", "#3b9a78", "#a54a7d", "#c2a033", "#6c6fb5"),
    *("#8a4b2d", "#4f9bb5", "#c0426b", "#5d6b2f"),
)

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler("color", COLORS),
    "axes.formatter.useoffset": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.4,
    "text.color": INK,
    "figure.facecolor": "white",
    "agg.path.chunksize": 10_000,
}


# Matplotlib's settings are global, and a worker may draw in several threads.
_TURN = threading.RLock()


@contextmanager
def styled() -> Iterator[None]:
    """The house style inside a `with`, or as a decorator."""
    with _TURN, matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width_in: float, height_in: float) -> Figure:
    """An empty figure of that size, on its own canvas."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_round_off(axes: Axes, values: np.ndarray) -> np.ndarray:
    """Mark the band of round-off on an axis of squared errors, if some lie in it.

    The values as they are to be drawn: all round-off at one height, in the band.
    """
    values = np.asarray(values)
    inside = values < ROUND_OFF
    if not np.any(inside):
        return values
    axes.set_ylim(MIN_SHOWN, 3 * max(float(np.nanmax(values)), ABOVE_ROUND_OFF))
    mark_round_off(axes)
    return np.where(inside, AMID_ROUND_OFF, values)


def mark_round_off(axes: Axes) -> None:
    """Shade the band of round-off and name it; the limits of the axes reach beyond it."""
    axes.axhspan(MIN_SHOWN, ROUND_OFF, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
    axes.text(
        0.99,
        2 * ROUND_OFF,
        "round-off",
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="bottom",
        fontsize=8,
        color=MUTED,
    )


def save_figure(figure: Figure, path: str | Path, dpi: int = 120) -> None:
    """Write a figure as PNG or, by its suffix, as SVG; a file is replaced whole or not at all.

    **Arguments:**

    - `figure`: what `draw_case`, `draw_overview` or `draw_mechanism` returned.
    - `path`: where to.
    - `dpi`: pixels for each inch of a PNG.
    """
    drawn, path = io.BytesIO(), Path(path)
    kind = "svg" if path.suffix.lower() == ".svg" else "png"
    # Without a date, and with names of its parts that are not random, the same drawing is the
    # same file.
    metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {}
    with styled(), matplotlib.rc_context({"svg.hashsalt": "mbdnode"}):
        figure.savefig(drawn, format=kind, dpi=dpi, metadata=metadata)
    replace_file(path, lambda file: file.write(drawn.getvalue()))


_LETTERS = {"theta": r"\theta", "omega": r"\omega", "phi": r"\varphi", "alpha": r"\alpha"}


def symbol(name: str) -> str:
    """A name as mathematics: `theta1_dot` becomes a dotted theta with an index."""
    stem, dotted = (name.removesuffix("_dot"), name.endswith("_dot"))
    match = re.fullmatch(r"([A-Za-z]+?)(\d*)", stem)
    if match is None or (len(match[1]) > 1 and match[1] not in _LETTERS):
        return name
    letter = _LETTERS.get(match[1], match[1])
    letter = rf"\dot{{{letter}}}" if dotted else letter
    return f"${letter}_{{{match[2]}}}$" if match[2] else f"${letter}$"
