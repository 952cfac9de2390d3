"""What accuracy costs: the error of every model and recipe against the time of its training.

A point is on the Pareto front if no other is both as quick and as accurate, and better in one of
the two: whoever chooses a method has no reason to choose one that is not on it. What the study's
figure and the page's plots share (limits, the front as a line, names) is here too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mbdnode.formatting import ROUND_OFF, error_text, seconds_text, short_number
from mbdnode.report.style import ABOVE_ROUND_OFF, AMID_ROUND_OFF, MIN_SHOWN
from mbdnode.report.tables import Cell, Table
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.reference import Reference
from mbdnode.reproduction.report.chapters import (
    PAPER,
    UNTRAINED,
    Chapter,
    Entry,
    Method,
    Palette,
    Reproduction,
    entry_title,
    integrator_title,
    method_of,
    model_title,
)
from mbdnode.reproduction.report.paper_tables import COMPILING, seed_cells, shortened_note

NAME, TITLE = "cost-quality", "What accuracy costs"


@dataclass(frozen=True)
class Range:
    """A quantity over the seeds; a seed without an error makes the median worse, as elsewhere."""

    median: float
    min: float
    max: float


@dataclass(frozen=True)
class Point:
    """One model, integrator and recipe on one case.

    **Arguments:**

    - `entry`: what it is of.
    - `title`: for people.
    - `error`, `training_s`: over the seeds; None where half of them or more have none.
    - `compiling_s`: what compiling took, which is not in `training_s`.
    - `updates`: the median number of steps of an optimizer.
    - `on_front`: whether none is better.
    """

    entry: Entry
    title: str
    error: Range | None
    training_s: Range | None
    compiling_s: float | None
    updates: int | None
    on_front: bool = False


@dataclass(frozen=True)
class Printed:
    """An error of the paper, with the time that the paper gives for it; None if it gives none."""

    model: str
    integrator: str
    error: float
    seconds: float | None


@dataclass(frozen=True)
class CaseCosts:
    """All of one case.

    **Arguments:**

    - `title`: of the case.
    - `points`: what we have run and trained, failures included.
    - `printed`: what the paper prints and can be compared.
    """

    title: str
    points: tuple[Point, ...]
    printed: tuple[Printed, ...]

    @property
    def placed(self) -> list[tuple[Point, Range, Range]]:
        """The points that have a place, with their training seconds and errors."""
        return [
            (point, point.training_s, point.error)
            for point in self.points
            if point.training_s is not None and point.error is not None
        ]

    @property
    def front(self) -> list[tuple[float, float]]:
        """Seconds and errors of the points on the front, from the quickest on."""
        return sorted((t.median, e.median) for point, t, e in self.placed if point.on_front)


def find_front(points: Sequence[tuple[float, float] | None]) -> list[bool]:
    """Which points are on the front.

    **Arguments:**

    - `points`: cost and error of each; None for one that has no place.

    **Returns:**

    One answer for each point, in their order.
    """
    known = [point for point in points if point is not None]
    return [
        point is not None
        and not any(
            other[0] <= point[0] and other[1] <= point[1] and other != point for other in known
        )
        for point in points
    ]


def gather_costs(reproduction: Reproduction) -> tuple[CaseCosts, ...]:
    """The study's numbers.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    One item for each case on which something was trained.
    """
    return tuple(
        CaseCosts(chapter.title, points, _printed(chapter))
        for chapter in reproduction.chapters
        if (points := _points(chapter))
    )


def _points(chapter: Chapter) -> tuple[Point, ...]:
    entries = [entry for entry in chapter.entries if entry.recipe != UNTRAINED]
    errors = [_range(entry, "mse") for entry in entries]
    times = [_range(entry, "train_seconds") for entry in entries]
    front = find_front(
        [
            None if error is None or time is None else (time.median, _told_apart(error.median))
            for error, time in zip(errors, times, strict=True)
        ]
    )
    return tuple(
        Point(
            entry=entry,
            title=entry_title(entry, chapter),
            error=error,
            training_s=time,
            compiling_s=entry.compile_seconds,
            updates=None if (count := entry.median("updates")) is None else round(count),
            on_front=best,
        )
        for entry, error, time, best in zip(entries, errors, times, front, strict=True)
    )


def _told_apart(error: float) -> float:
    """An error for comparison: no round-off is smaller than another."""
    return max(error, ROUND_OFF)


def _range(entry: Entry, quantity: str) -> Range | None:
    median, found = entry.median(quantity), entry.values(quantity)
    return None if median is None else Range(median, min(found), max(found))


def _printed(chapter: Chapter) -> tuple[Printed, ...]:
    """The paper's errors, but for those of another problem and of what is not trained."""
    return tuple(
        Printed(r.model, r.integrator, r.value, _printed_seconds(chapter, r))
        for r in chapter.references
        if r.quantity == "mse" and not r.incomparable and r.model != NUMERICAL
    )


def _printed_seconds(chapter: Chapter, error: Reference) -> float | None:
    for other in chapter.references:
        same = (other.model, other.integrator) == (error.model, error.integrator)
        if same and other.quantity == "train_seconds":
            return other.value
    return None


def cost_table(reproduction: Reproduction) -> Table:
    """Error, training time and compile time of every model and recipe on every case.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table` without a label of the paper, which has no such table.
    """
    rows: list[tuple[Cell, ...]] = [
        (
            case.title,
            point.entry.title,
            point.entry.recipe,
            integrator_title(point.entry.integrator),
            *seed_cells(point.entry),
            None if point.training_s is None else short_number(point.training_s.median),
            None if point.compiling_s is None else short_number(point.compiling_s),
            point.updates,
            point.on_front,
        )
        for case in gather_costs(reproduction)
        for point in case.points
    ]
    headings = ("case", "model", "recipe", "integrator", "mse", "min", "max", "seeds")
    return Table(
        label="",
        title=TITLE,
        headings=(*headings, "train [s]", "compile [s]", "updates", "front"),
        rows=tuple(rows),
        notes=(
            "mse, time to train and updates are medians over the seeds. On the Pareto front is "
            "what no other method beats in both error and time to train on the same case.",
            COMPILING,
            *shortened_note(reproduction),
        ),
        name=NAME,
    )


def sum_up(case: CaseCosts) -> str:
    """The ends of a case's front in a sentence.

    **Arguments:**

    - `case`: any.

    **Returns:**

    Such as "Single pendulum: the quickest is ..., the most accurate ...".
    """
    placed = case.placed
    if not placed:
        return f"{case.title}: no model has an error and a time."
    if len(placed) == 1:
        return f"{case.title}: one method alone, {_told(placed[0])}."
    quickest = min(placed, key=lambda one: (one[1].median, one[2].median))
    finest = min(placed, key=lambda one: (_told_apart(one[2].median), one[1].median))
    if quickest is finest:
        return f"{case.title}: {_told(quickest)} is both the quickest and the most accurate."
    return f"{case.title}: the quickest is {_told(quickest)}; the most accurate is {_told(finest)}."


def _told(placed: tuple[Point, Range, Range]) -> str:
    point, training, error = placed
    compiling = "" if not point.compiling_s else f", compiled in {seconds_text(point.compiling_s)}"
    trained = f"trained in {seconds_text(training.median)}{compiling}"
    return f"{point.title} (mse {error_text(error.median)}, {trained})"


# A prediction that is further off has run away, and would squeeze all others.
MAX_ERROR = 1e3
MIN_SECONDS = 1e-3
# Room around the outermost marks, as a part of the axis; and the min span of one, as a factor.
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
    return AMID_ROUND_OFF if value < ROUND_OFF else min(value, MAX_ERROR)


def shown_seconds(value: float) -> float:
    """A time as it is drawn."""
    return max(value, MIN_SECONDS)


def cost_view(cases: Sequence[CaseCosts]) -> View:
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
            seconds += [training.min, training.max, end]
            errors += [error.min, error.max]
    low, high = _around([shown_error(value) for value in errors])
    band = any(value < ROUND_OFF for value in errors)
    return View(
        _around([shown_seconds(value) for value in seconds]),
        (MIN_SHOWN, max(high, ABOVE_ROUND_OFF)) if band else (low, high),
        ROUND_OFF if band else None,
    )


def _around(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = max(high / low, _SPAN) ** _ROOM
    return low / room, high * room


def stairs(case: CaseCosts, view: View) -> tuple[list[float], list[float]]:
    """The smallest error that any given time of training buys, as a line.

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
