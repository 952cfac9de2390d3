"""What a page carries inside itself: its own files, data for its scripts, pictures."""

import base64
import io
import json
from importlib import resources
from typing import Any

from markupsafe import Markup
from PIL import Image


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
