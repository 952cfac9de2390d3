"""Numbers as people read them: in tables, on pages, in the terminal."""

import math
from collections.abc import Iterable

# A mean square below this is the round-off of some thousand steps in double precision; which of
# two such numbers is the smaller says nothing.
ROUND_OFF = 1e-24


def as_printed(value: float, digits: int = 2) -> str:
    """A number in the paper's notation, such as 1.3e-6; "-" for what is not a finite number."""
    if not math.isfinite(value):
        return "-"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def error_text(value: float | None) -> str:
    """A squared error for people: "1.3e-6", "2.5e-30 (round-off)", "no number"."""
    if value is None:
        return "no number"
    return f"{as_printed(value)} (round-off)" if value < ROUND_OFF else as_printed(value)


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


def plural(count: int, what: str) -> str:
    """A number of things: "1 run", "1,204 rows"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def one_of(names: Iterable[str]) -> str:
    """Names to choose from, as in a sentence: "fast, best or paper"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def percent(share: float) -> str:
    """A fraction as percent, in two digits: "0.52 %", "13 %"."""
    value = 100 * share
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0 %"
    if not 0.01 <= abs(value) < 1e5:
        return f"{as_printed(value)} %"
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"
