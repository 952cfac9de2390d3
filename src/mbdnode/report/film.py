"""A mechanism in motion as plain data: what the page's script needs to draw truth and prediction.

Every part is drawn from a few numbers. Over a film each of them is a column, and one that never
changes (a radius, the pivot) is stored once.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.panels import Predicted, thinned
from mbdnode.report.shapes import Plain, Shape
from mbdnode.report.style import INK, MUTED
from mbdnode.reproduction.report.chapters import Chapter
from mbdnode.reproduction.report.system_figures import parameter_values

_MOST_FRAMES = 361
# Colours that change with the page's own scheme are known there by name.
_NAMED = {INK: "ink", MUTED: "muted"}

Column = float | list[float | None]


def make_film(chapter: Chapter, shown: Sequence[Predicted]) -> dict[str, Any] | None:
    """The film of a chapter.

    **Arguments:**

    - `chapter`: what moves.
    - `shown`: whose predictions to show.

    **Returns:**

    Plain data, or None for a mechanism without a drawing or without a prediction.
    """
    drawing = find_drawing(chapter.mechanism)
    if drawing is None or not shown:
        return None
    mu, truth = parameter_values(chapter), shown[0].truth
    rows = thinned(len(truth), _MOST_FRAMES)
    t, q = np.asarray(truth.t)[rows], np.asarray(truth.q)[rows]
    ground = drawing.ground(q, mu)
    return {
        "t": [round(float(x), 4) for x in t],
        "trainEnd": chapter.train_end_s,
        "view": _view(drawing, t, q, ground, mu),
        "recorded": drawing.recorded,
        "colours": list(drawing.colours),
        "ground": [_still(shape) for shape in ground],
        "looks": [_look(shape.plain()) for shape in drawing.parts(q[0], mu)],
        "truth": _moving(drawing, t, q, mu),
        "predictions": [_prediction(drawing, one, rows, mu) for one in shown],
    }


def _prediction(
    drawing: Drawing, one: Predicted, rows: np.ndarray, mu: Mapping[str, float]
) -> dict[str, Any]:
    t, q = np.asarray(one.prediction.t)[rows], np.asarray(one.prediction.q)[rows]
    return {"title": one.title, **_moving(drawing, t, q, mu)}


def _moving(
    drawing: Drawing, t: np.ndarray, q: np.ndarray, mu: Mapping[str, float]
) -> dict[str, Any]:
    """The columns of all parts, and the paths, of one motion."""
    # Far away is as good as gone, and keeps the numbers short.
    q = np.where(np.abs(q) < 1e4, q, np.nan)
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
    """Thousandths of a metre are less than a pixel."""
    return round(value, 3) + 0.0


def _still(shape: Shape) -> dict[str, Any]:
    plain = shape.plain()
    return {**_look(plain), "at": [_short(number) for number in plain.numbers]}


def _look(plain: Plain) -> dict[str, Any]:
    look = dict(plain.look)
    look["colour"] = _NAMED.get(look["colour"], look["colour"])
    return {**look, "count": len(plain.numbers)}


def _view(
    drawing: Drawing,
    t: np.ndarray,
    q: np.ndarray,
    ground: Sequence[Shape],
    mu: Mapping[str, float],
) -> list[float]:
    """Left, bottom, right and top of all that the truth covers, with some room around it."""
    good = q[np.all(np.isfinite(q), axis=1)]
    corners = [point for shape in ground for point in shape.corners()]
    for state in good:
        corners += [point for shape in drawing.parts(state, mu) for point in shape.corners()]
    if drawing.recorded:
        corners += [tuple(point) for path in drawing.traces(t, good, mu) for point in path]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    room = 0.04 * float(np.max(high - low))
    return [round(float(x), 3) for x in (*(low - room), *(high + room))]
