"""Figures as data for the page's plots: the same lines, in which one can zoom and read values.

A figure is drawn once, by Matplotlib. Its lines, shaded ranges, limits and labels, and where each
panel stands, are read off it. What has other parts, such as a mechanism, is shown as a picture.
"""

import math
import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.report.panels import thinned
from mbdnode.report.style import NAMED, styled

_MOST_POINTS, _DIGITS = 600, 4
# Colors that change with the page's own scheme are known there by name or by place.
_DASHES = {"-": "solid", "--": "dash", ":": "dot"}
_SYMBOLS = {
    "o": "circle",
    "s": "square",
    "D": "diamond",
    "^": "triangle-up",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
}
_SHAPES = {"steps-post": "hv", "default": "linear"}
_GREEK = {
    r"\theta": "\N{GREEK SMALL LETTER THETA}",
    r"\omega": "\N{GREEK SMALL LETTER OMEGA}",
    r"\varphi": "\N{GREEK SMALL LETTER PHI}",
    r"\alpha": "\N{GREEK SMALL LETTER ALPHA}",
}
_DIGITS_BELOW = {ord("0") + digit: 0x2080 + digit for digit in range(10)}


@styled()
def read_figure(figure: Figure) -> dict[str, Any] | None:
    """A figure that has been laid out, as plain data; None for one with parts that are no lines."""
    shown = [axes for axes in figure.axes if axes.axison]
    if not shown or any(axes.collections for axes in figure.axes):
        return None
    # The legend below is replaced by buttons.
    tops = [legend.get_window_extent().y1 for legend in figure.legends]
    low = max(tops, default=0.0) / figure.bbox.height
    width, height = figure.get_size_inches() * 80
    panels = [_panel(axes, low) for axes in shown]
    names = {line["name"]: line["color"] for panel in panels for line in panel["lines"]}
    return {
        "width": round(width),
        "height": round(height * (1 - low)),
        "panels": panels,
        "names": {name: color for name, color in names.items() if name},
    }


def _panel(axes: Axes, low: float) -> dict[str, Any]:
    place, inside = axes.get_position(), axes.transData.inverted()
    boxes = [(patch, patch.get_window_extent().transformed(inside)) for patch in axes.patches]
    return {
        "x": [place.x0, place.x1],
        "y": [(place.y0 - low) / (1 - low), (place.y1 - low) / (1 - low)],
        "title": axes.get_title(loc="left"),
        "across": _axis(axes.get_xlabel(), axes.get_xscale(), axes.get_xlim(), axes.xaxis),
        "up": _axis(axes.get_ylabel(), axes.get_yscale(), axes.get_ylim(), axes.yaxis),
        "shades": [
            {"corners": list(map(float, box.extents)), "color": _color(patch.get_facecolor())}
            for patch, box in boxes
        ],
        "words": [text.get_text() for text in axes.texts],
        "lines": _lines(axes),
    }


def _axis(label: str, scale: str, limits: tuple[float, float], axis: Any) -> dict[str, Any]:
    side = "labelbottom" if axis.axis_name == "x" else "labelleft"
    return {
        "label": plain_text(label),
        "type": scale,
        "range": [math.log10(end) if scale == "log" else float(end) for end in limits],
        "ticks": bool(axis.get_tick_params().get(side, True)),
    }


def _lines(axes: Axes) -> list[dict[str, Any]]:
    found, name = [], ""
    for line in axes.get_lines():
        label = str(line.get_label())
        if label == "_nolegend_":  # The second piece of the line before.
            label = name
        # What Matplotlib calls a line by itself, such as a mark at a start.
        name = "" if label.startswith("_") else label
        found.append({**_data(axes, line), **_look(line), "name": plain_text(name)})
    return found


def _data(axes: Axes, line: Line2D) -> dict[str, Any]:
    x, y = (np.asarray(values, float) for values in line.get_data(orig=False))
    across, _ = line.get_transform().contains_branch_seperately(axes.transData)
    if not across:  # From one side of the panel to the other.
        x = np.asarray(axes.get_xlim())
    # Breaks in a line are not thinned away.
    rows = thinned(len(x), _MOST_POINTS if np.all(np.isfinite(x + y)) else len(x))
    return {"x": _numbers(x[rows]), "y": _numbers(y[rows])}


def _look(line: Line2D) -> dict[str, Any]:
    mark = _SYMBOLS.get(str(line.get_marker()))
    is_open, alpha = line.get_markerfacecolor() == "white", line.get_alpha()
    return {
        "color": _color(line.get_color()),
        "dash": _DASHES.get(str(line.get_linestyle())),
        "width": float(line.get_linewidth()),
        "opacity": 1.0 if alpha is None else float(alpha),
        "shape": _SHAPES[line.get_drawstyle()],
        "mark": f"{mark}-open" if mark and is_open else mark,
        "size": 1.6 * float(line.get_markersize()),
        "text": line.get_gid(),
    }


def _color(color: Any) -> str:
    """Its name on the page, or what it is."""
    found = to_hex(color)
    return NAMED.get(found, found)


def _numbers(values: np.ndarray) -> list[float | None]:
    """Short numbers; JSON has no other word than null for what is not a number."""
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]


def plain_text(text: str) -> str:
    """A label without mathematics: a dotted theta with an index as plain letters."""

    def letters(found: re.Match[str]) -> str:
        dotted, letter, index = found[1], found[2], found[3] or ""
        accent = "\N{COMBINING DOT ABOVE}" if dotted else ""
        return _GREEK.get(letter, letter) + accent + index.translate(_DIGITS_BELOW)

    shown = re.sub(r"\$(\\dot\{)?(\\?\w+?)\}?(?:_\{(\d+)\})?\$", letters, text)
    return shown.replace(r"\$", "$")
