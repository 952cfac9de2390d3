"""What a page carries inside itself: its own files, data for its scripts, pictures and films.

A film is a mechanism in motion as plain data, from which the page's script draws truth and
prediction. Every part is drawn from a few numbers. Over a film each of them is a column, and one
that never changes (a radius, the pivot) is stored once.
"""

import base64
import io
import json
import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup
from PIL import Image

from mbdnode.data.files import replace_file
from mbdnode.multibody import AbstractSystem
from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.panels import thinned
from mbdnode.report.pictures import FAR, Values, parameter_values, view_of
from mbdnode.trajectory import Trajectory


def asset(name: str) -> str:
    """A file that stands beside the page's template."""
    return resources.files("mbdnode.report").joinpath("page", name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:
    """A page, or a part of one, from its template; text is escaped, and `Markup` is not.

    In a template, `json` makes data for a script element.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["json"] = lambda data: Markup(script_data(data))
    return environment.get_template(template).render(values)


def script_data(values: Any) -> str:
    """JSON inside a script element: no `<`, so that no text can end the element."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def small_png(png: bytes, dpi: int) -> dict[str, Any]:
    """A picture in few colors, a quarter of the bytes, in the figure's own size on a screen."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    small = io.BytesIO()
    few = image.quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(small, format="png")
    width, height = (round(pixels * _SCREEN_DPI / dpi) for pixels in image.size)
    data = Markup(base64.b64encode(small.getvalue()).decode())
    return {"data": data, "width": width, "height": height}


def write_page(text: str, path: Path) -> None:
    """Write a page; an existing file is replaced whole or not at all."""
    # A name in it may hold bytes that are no text.
    replace_file(path, lambda file: file.write(text.encode("utf-8", errors="replace")))


_MOST_FRAMES, _SCREEN_DPI = 361, 96

Column = float | list[float | None]


def make_film(
    system: AbstractSystem,
    parameters: Mapping[str, Any],
    truth: Trajectory,
    predictions: Mapping[str, Trajectory],
    train_end_s: float = 0.0,
) -> dict[str, Any] | None:
    """The film of a motion and its predictions by title; None without a drawing or prediction."""
    drawing = find_drawing(system)
    if drawing is None or not predictions:
        return None
    mu = parameter_values(system, parameters)
    rows = thinned(len(truth), _MOST_FRAMES)
    t, q = _at(rows, truth)
    others = [_at(rows, prediction) for prediction in predictions.values()]
    return {
        "t": [round(float(x), 4) for x in t],
        "trainEnd": train_end_s,
        "view": plain_view(view_of(drawing, q, mu, [q for _, q in others])),
        "recorded": drawing.paper is not None,
        "colors": list(drawing.colors),
        "ground": [
            {**shape.look, "at": [_short(number) for number in shape.numbers]}
            for shape in drawing.ground(q, mu)
        ],
        "looks": [shape.look for shape in drawing.parts(q[0], mu)],
        "truth": _moving(drawing, t, q, mu),
        "predictions": [
            {"title": title, **_moving(drawing, *motion, mu)}
            for title, motion in zip(predictions, others, strict=True)
        ],
    }


def plain_view(view: np.ndarray) -> list[float]:
    """Left, bottom, right and top, for a page."""
    return [round(float(x), 3) for x in view.reshape(-1)]


def _at(rows: np.ndarray, motion: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(motion.t)[rows], np.asarray(motion.q)[rows]


def _moving(drawing: Drawing, t: np.ndarray, q: np.ndarray, mu: Values) -> dict[str, Any]:
    """The columns of all parts, and the paths, of one motion."""
    # Far away is as good as gone, and keeps the numbers short.
    q = np.where(np.abs(q) < FAR, q, np.nan)
    frames = [[x for shape in drawing.parts(row, mu) for x in shape.numbers] for row in q]
    paths = drawing.traces(t, q, mu)
    return {
        "columns": [_column(values) for values in np.transpose(frames)],
        "paths": [[_column(values) for values in path.T] for path in paths],
    }


def _column(values: np.ndarray) -> Column:
    """One number if it never changes, otherwise all of them; null where there is none."""
    if np.all(np.isfinite(values)) and float(np.ptp(values)) < 1e-9:
        return _short(float(values[0]))
    return [_short(float(value)) if math.isfinite(value) else None for value in values]


def _short(value: float) -> float:
    """Thousandths of a meter are less than a pixel."""
    return round(value, 3) + 0.0
