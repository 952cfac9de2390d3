"""Names as people read them, and as files carry them."""

import math
import re
from collections.abc import Collection

from mbdnode.evaluation.verdict import ROUND_OFF, as_printed
from mbdnode.models import LAW
from mbdnode.report.chapters import NUMERICAL, UNTRAINED, Chapter, Entry

_MODELS = {"mbd-node": "MBD-NODE", LAW: "law", NUMERICAL: "Numerical"}
_LETTERS = {"theta": "\N{GREEK SMALL LETTER THETA}", "omega": "\N{GREEK SMALL LETTER OMEGA}"}
_DIGITS = str.maketrans(
    "0123456789", "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"
)


def model_title(name: str) -> str:
    """A model's name as the paper writes it; a law is none of the paper's."""
    return _MODELS.get(name, name.upper() if re.fullmatch(r"[a-z]{3,6}", name) else name)


def integrator_title(name: str) -> str:
    """An integrator's name as the paper writes it."""
    return name.upper() if re.fullmatch(r"[a-z]{2}\d", name) else name


def entry_title(entry: Entry, chapter: Chapter) -> str:
    """Model and integrator, and the recipe where the chapter has several.

    **Arguments:**

    - `entry`: to be named.
    - `chapter`: that it is of.

    **Returns:**

    Such as "MBD-NODE RK4" or "law RK4, best".
    """
    title = model_title(entry.model)
    if entry.integrator != "-":
        title += f" {integrator_title(entry.integrator)}"
    trained = {other.recipe for other in chapter.entries if other.recipe != UNTRAINED}
    if len(trained) > 1 and entry.recipe != UNTRAINED:
        title += f", {entry.recipe}"
    return title


def error_text(value: float | None) -> str:
    """A squared error for people: "1.3e-6", "2.5e-30 (round-off)", "no number"."""
    if value is None:
        return "no number"
    return f"{as_printed(value)} (round-off)" if value < ROUND_OFF else as_printed(value)


def letters(name: str) -> str:
    """A column's name as plain letters with accents: `theta1_dot` becomes a dotted theta."""
    stem, dotted = name.removesuffix("_dot"), name.endswith("_dot")
    match = re.fullmatch(r"([A-Za-z]+?)(\d*)", stem)
    if match is None or (len(match[1]) > 1 and match[1] not in _LETTERS):
        return name
    dot = "\N{COMBINING DOT ABOVE}" if dotted else ""
    return _LETTERS.get(match[1], match[1]) + dot + match[2].translate(_DIGITS)


def seconds_text(seconds: float) -> str:
    """A time for people: "0.42 s", "38 s", "12 min 5 s"."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"


def short_number(value: float) -> str:
    """Three digits without an exponent: "0.000412", "11.2", "1254"."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def file_name(label: str, taken: Collection[str] = ()) -> str:
    """A label as a file's name without its ending: no blanks, colons or slashes.

    **Arguments:**

    - `label`: such as "fig: MNODE_con".
    - `taken`: names that other labels have already.

    **Returns:**

    Such as "fig-MNODE_con"; with a number behind it where that is taken.
    """
    # Some file systems do not tell capital letters from small ones.
    used = {name.lower() for name in taken}
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-") or "unnamed"
    stem = stem[:80]
    name, number = stem, 2
    while name.lower() in used:
        name, number = f"{stem}-{number}", number + 1
    return name
