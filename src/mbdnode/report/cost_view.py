"""What the study's figure and the page's plots share: limits, the front as a line, names."""

from collections.abc import Sequence
from dataclasses import dataclass

from mbdnode.evaluation.verdict import ROUND_OFF
from mbdnode.report.chapters import PAPER
from mbdnode.report.cost_quality import CaseCosts
from mbdnode.report.palette import Method, Palette, method_of
from mbdnode.report.style import ABOVE_ROUND_OFF, AMID_ROUND_OFF, LEAST_SHOWN
from mbdnode.report.titles import model_title

# A prediction that is further off has run away, and would squeeze all others.
GREATEST_ERROR = 1e3
LEAST_SECONDS = 1e-3
# Room around the outermost marks, as a part of the axis; and the least span of one, as a factor.
_ROOM, _SPAN = 0.06, 100.0


@dataclass(frozen=True)
class View:
    """The limits of both axes, the same for all cases.

    **Arguments:**

    - `seconds`, `errors`: min and max.
    - `round_off`: where the band of round-off ends, if something lies in it.
    """

    seconds: tuple[float, float]
    errors: tuple[float, float]
    round_off: float | None = None


def shown_error(value: float) -> float:
    """An error as it is drawn: all round-off alike, and nothing beyond the axis."""
    return AMID_ROUND_OFF if value < ROUND_OFF else min(value, GREATEST_ERROR)


def shown_seconds(value: float) -> float:
    """A time as it is drawn."""
    return max(value, LEAST_SECONDS)


def view_of(cases: Sequence[CaseCosts]) -> View:
    """Limits that hold all marks, bars and compile times.

    **Arguments:**

    - `cases`: at least one that has a point with a place.

    **Returns:**

    A `View`.
    """
    seconds = [one.seconds for case in cases for one in case.printed if one.seconds is not None]
    errors = [one.error for case in cases for one in case.printed]
    for case in cases:
        for point, training, error in case.placed:
            end = training.median + (point.compiling_s or 0.0)
            seconds += [training.least, training.greatest, end]
            errors += [error.least, error.greatest]
    low, high = _around([shown_error(value) for value in errors])
    band = any(value < ROUND_OFF for value in errors)
    return View(
        _around([shown_seconds(value) for value in seconds]),
        (LEAST_SHOWN, max(high, ABOVE_ROUND_OFF)) if band else (low, high),
        ROUND_OFF if band else None,
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = max(high / low, _SPAN) ** _ROOM
    return low / room, high * room


def stairs(case: CaseCosts, view: View) -> tuple[list[float], list[float]]:
    """The least error that any given time of training buys, as a line.

    **Arguments:**

    - `case`: with at least one point that has a place.
    - `view`: the line goes from its upper edge to its right one.

    **Returns:**

    Seconds and errors of its corners.
    """
    front = [(shown_seconds(t), shown_error(e)) for t, e in case.front]
    x, y = [front[0][0]], [view.errors[1]]
    for seconds, error in front:
        x += [seconds, seconds]
        y += [y[-1], error]
    return [*x, view.seconds[1]], [*y, y[-1]]


def named_methods(cases: Sequence[CaseCosts], palette: Palette) -> list[tuple[Method, str]]:
    """The methods that have a mark, in the palette's order, each with its name.

    **Arguments:**

    - `cases`: all that are drawn.
    - `palette`: the report's.

    **Returns:**

    Methods and names; the recipe is named where there are several.
    """
    found = {method_of(point.entry) for case in cases for point, _, _ in case.placed}
    several = len({recipe for _, recipe in found}) > 1
    return [
        (method, model_title(method[0]) + (f", {method[1]}" if several else ""))
        for method in sorted(found, key=lambda method: palette.methods[method])
    ]


def printed_methods(cases: Sequence[CaseCosts], palette: Palette) -> list[tuple[Method, str]]:
    """The methods of which an open mark or a dotted line is the paper's, each with its name.

    **Arguments:**

    - `cases`: all that are drawn.
    - `palette`: the report's.

    **Returns:**

    Methods and names, in the palette's order.
    """
    found = {(one.model, PAPER) for case in cases for one in case.printed}
    return [
        (method, f"{model_title(method[0])}, printed in the paper")
        for method in sorted(found, key=lambda method: palette.methods[method])
    ]
