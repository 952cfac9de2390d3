"""What a page carries inside itself: its own files, data for its scripts, pictures and films.

A film is a mechanism in motion as plain data, from which the page's script draws truth and
prediction. Every part is drawn from a few numbers. Over a film each of them is a column, and one
that never changes (a radius, the pivot) is stored once.
"""

import base64
import io
import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from markupsafe import Markup
from PIL import Image

from mbdnode.multibody import AbstractSystem
from mbdnode.report.animation import parameter_values
from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.panels import thinned
from mbdnode.report.shapes import Plain, Shape
from mbdnode.report.style import INK, MUTED, SHADE
from mbdnode.trajectory import Trajectory


def asset(name: str) -> str:
    """A file that stands beside the page's template."""
    return resources.files("mbdnode.report").joinpath("page", name).read_text(encoding="utf-8")


def script_data(values: Any) -> str:
    """JSON inside a script element: no `<`, so that no text can end the element."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def small_png(png: bytes) -> tuple[Markup, int, int]:
    """A picture in few colors, which makes it a quarter of the size; and its width and height."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    small = io.BytesIO()
    few = image.quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(small, format="png")
    return Markup(base64.b64encode(small.getvalue()).decode()), image.width, image.height


_MOST_FRAMES = 361
# Coordinates beyond which nothing is drawn; how far beside the truth predictions are, of its size.
_FAR, _BESIDE = 1e4, 0.5
# Colors that change with the page's own scheme are known there by name.
_NAMED = {INK: "ink", MUTED: "muted", SHADE: "shade"}

Column = float | list[float | None]


def make_film(
    system: AbstractSystem,
    parameters: Mapping[str, Any],
    truth: Trajectory,
    predictions: Mapping[str, Trajectory],
    train_end_s: float = 0.0,
) -> dict[str, Any] | None:
    """The film of a motion and its predictions.

    **Arguments:**

    - `system`: what moves.
    - `parameters`: those of the motion.
    - `truth`: the motion.
    - `predictions`: at the same times, by title.
    - `train_end_s`: where the training range ends; zero if there is none.

    **Returns:**

    Plain data, or None for a mechanism without a drawing or without a prediction.
    """
    drawing = find_drawing(system)
    if drawing is None or not predictions:
        return None
    mu = parameter_values(system, parameters)
    rows = thinned(len(truth), _MOST_FRAMES)
    t, q = _at(rows, truth)
    ground = drawing.ground(q, mu)
    return {
        "t": [round(float(x), 4) for x in t],
        "trainEnd": train_end_s,
        "view": view_of(
            drawing,
            t,
            q,
            ground,
            mu,
            [_at(rows, prediction)[1] for prediction in predictions.values()],
        ),
        "recorded": drawing.recorded,
        "colors": list(drawing.colors),
        "ground": [_still(shape) for shape in ground],
        "looks": [look_of(shape.plain()) for shape in drawing.parts(q[0], mu)],
        "truth": _moving(drawing, t, q, mu),
        "predictions": [
            {"title": title, **_moving(drawing, *_at(rows, prediction), mu)}
            for title, prediction in predictions.items()
        ],
    }


def _at(rows: np.ndarray, motion: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(motion.t)[rows], np.asarray(motion.q)[rows]


def _moving(
    drawing: Drawing, t: np.ndarray, q: np.ndarray, mu: Mapping[str, float]
) -> dict[str, Any]:
    """The columns of all parts, and the paths, of one motion."""
    # Far away is as good as gone, and keeps the numbers short.
    q = np.where(np.abs(q) < _FAR, q, np.nan)
    frames = np.array([_numbers(drawing.parts(state, mu)) for state in q])
    paths = drawing.traces(t, q, mu)
    return {
        "columns": [_column(values) for values in frames.T],
        "paths": [[_column(values) for values in path.T] for path in paths],
    }


def _numbers(shapes: Sequence[Shape]) -> list[float]:
    return [number for shape in shapes for number in shape.plain().numbers]


def _column(values: np.ndarray) -> Column:
    """One number if it never changes, otherwise all of them; null where there is none."""
    if np.all(np.isfinite(values)) and float(np.ptp(values)) < 1e-9:
        return _short(float(values[0]))
    return [_short(float(value)) if math.isfinite(value) else None for value in values]


def _short(value: float) -> float:
    """Thousandths of a meter are less than a pixel."""
    return round(value, 3) + 0.0


def _still(shape: Shape) -> dict[str, Any]:
    plain = shape.plain()
    return {**look_of(plain), "at": [_short(number) for number in plain.numbers]}


def look_of(plain: Plain) -> dict[str, Any]:
    """What stays the same of a part, with how many numbers it has besides."""
    look = dict(plain.look)
    look["color"] = _NAMED.get(look["color"], look["color"])
    return {**look, "count": len(plain.numbers)}


def view_of(
    drawing: Drawing,
    t: np.ndarray,
    q: np.ndarray,
    ground: Sequence[Shape],
    mu: Mapping[str, float],
    others: Sequence[np.ndarray] = (),
) -> list[float]:
    """Left, bottom, right and top of all that the truth covers, with some room around it.

    Predictions may leave that by half of its size: what diverged would make all the rest small.
    """
    good = q[np.all(np.isfinite(q), axis=1)]
    corners = [point for shape in ground for point in shape.corners()]
    corners += _corners(drawing, good, mu)
    if drawing.recorded:
        corners += [tuple(point) for path in drawing.traces(t, good, mu) for point in path]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    reach = _BESIDE * float(np.max(high - low))
    least, most = low - reach, high + reach
    for other in others:
        near = other[np.all(np.abs(other) < _FAR, axis=1)]
        if beside := _corners(drawing, near, mu):
            within = np.clip(beside, least, most)
            low, high = np.minimum(low, within.min(axis=0)), np.maximum(high, within.max(axis=0))
    room = 0.04 * float(np.max(high - low))
    return [round(float(x), 3) for x in (*(low - room), *(high + room))]


def _corners(drawing: Drawing, q: np.ndarray, mu: Mapping[str, float]) -> list[tuple[float, float]]:
    """Of all parts in all of these configurations."""
    return [point for state in q for shape in drawing.parts(state, mu) for point in shape.corners()]
