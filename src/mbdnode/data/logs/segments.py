"""From a run's rows to segments that can be learned from.

`finish` cleans a run, brings inputs that were sampled at times of their own to those of the states
(`InputSignal`), unwraps angles, replaces outliers, and estimates the velocities that were not
measured. What then still looks wrong is said, and left to the user (`check_columns`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbdnode.data.logs.cleaning import Corrected, clean, correct, sounds_like_angle
from mbdnode.data.logs.columns import Columns, spelled
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.reading_summary import Account, RunSummary
from mbdnode.data.logs.resolved_columns import ResolvedColumn, ResolvedColumns, resolve_columns
from mbdnode.data.logs.runs import InputSignal, Run, runs_in_log
from mbdnode.data.signal import (
    FEWEST_ROWS,
    Rate,
    estimate_rate,
    is_even,
    without_outliers,
)
from mbdnode.errors import UserError
from mbdnode.formatting import plural

# Rows of runs that are cleaned together, at least, where there are so many.
_ROWS_TOGETHER = 50_000
# Rows from which a rate is checked.
_MOST_ROWS = 5_000
# Outliers of a column that a note names.
_NAMED = 5
_FULL_TURN_DEG = 360.0


def input_signal(log: AbstractLog, columns: Columns, time: str) -> dict[str | None, InputSignal]:
    """The inputs of a log with their own times, by run, or under None if there is one run only.

    Rows without a value are left out.
    """
    own = replace(columns, time=time, coordinates=(), rates=(), parameters=(), angles=None)
    signals: dict[str | None, InputSignal] = {}
    layout = resolve_columns(log, own)
    for run in runs_in_log(layout):
        whole = np.column_stack([run.t, run.table])
        whole = whole[np.all(np.isfinite(whole), axis=1)]
        steps = np.diff(whole[:, 0])
        if len(whole) == 0 or np.any(steps < 0):
            why = "no values" if len(whole) == 0 else "times that go back"
            raise UserError(f"The inputs of {run.place} have {why}. Fix them.")
        whole = whole[np.concatenate([[True], steps > 0])]
        signals[run.label] = InputSignal(whole[:, 0], whole[:, 1:], layout.inputs)
        left_out = len(run.t) - len(whole)
        log.note(
            "inputs",
            f"{plural(len(whole), 'sample')} of {', '.join(c.name for c in layout.inputs)}, every "
            f"{np.median(np.diff(whole[:, 0])) if len(whole) > 1 else 0:.4g} s"
            + (
                f"; {left_out:,} without a value or of a repeated time left out" if left_out else ""
            ),
        )
    return signals


def at_times(signal: InputSignal, t: np.ndarray, how: str) -> tuple[np.ndarray, np.ndarray]:
    """The inputs at the states' times, and whether the signal covers each of these.

    It covers one median step after its last sample if it is held, and none if not.
    """
    usual = float(np.median(np.diff(signal.t))) if len(signal.t) > 1 else 0.0
    end = signal.t[-1] + (usual if how == "held" else 0.0)
    covered = (t >= signal.t[0]) & (t <= end)
    if how == "held":
        last = np.clip(np.searchsorted(signal.t, t, side="right") - 1, 0, len(signal.t) - 1)
        return signal.values[last], covered
    columns = [np.interp(t, signal.t, column) for column in signal.values.T]
    return np.column_stack(columns), covered


@dataclass
class Segment:
    """A stretch without gaps.

    **Arguments:**

    - `t`: times.
    - `q`, `v`, `u`: coordinates, rates and inputs.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray


def together(runs: Iterator[Run]) -> Iterator[list[Run]]:
    """Several runs at a time, in order, as `finish` takes them."""
    some, rows = [], 0
    for run in runs:
        some.append(run)
        rows += len(run.t)
        if rows >= _ROWS_TOGETHER:
            yield some
            some, rows = [], 0
    if some:
        yield some


def finish(
    runs: Sequence[Run], layout: ResolvedColumns, fewest_rows: int
) -> list[tuple[list[Segment], RunSummary]]:
    """The segments of runs of one log, cleaned and completed, and what became of their rows.

    Many runs at a time, since some of it is quicker for all of them.
    """
    estimated = any(rate is None for rate in layout.rates)
    fewest = max(fewest_rows, FEWEST_ROWS if estimated else 2)
    for run in runs:
        clean(run, layout.columns)
        if run.signal is not None:
            _take_inputs(run, run.signal, layout.columns.interpolation)
    clear = _without_outliers(runs, len(layout.coordinates) + len(layout.measured_rates))
    return [_finished(run, fewest, layout, clear) for run in runs]


# The first row of a segment, and what was corrected of its columns.
_Made = tuple[int, list[Corrected]]
# The columns of a segment that have no outliers, by its run's identity and its first row.
_Clear = dict[tuple[int, int], np.ndarray]


def _without_outliers(runs: Sequence[Run], columns: int) -> _Clear:
    """Of all segments of one length at once; those of uneven times are not looked at."""
    by_length: dict[int, list[tuple[Run, slice]]] = {}
    for run, span in ((one, span) for one in runs for span in one.spans):
        if columns and is_even(run.t[span]):  # A log of inputs alone has none.
            by_length.setdefault(span.stop - span.start, []).append((run, span))
    found: _Clear = {}
    for length, some in by_length.items():
        tables = np.stack([run.table[span, :columns].T for run, span in some])
        clear = without_outliers(tables.reshape(-1, length)).reshape(-1, columns)
        found |= {(id(run), span.start): x for (run, span), x in zip(some, clear, strict=True)}
    return found


def _finished(
    run: Run, fewest: int, layout: ResolvedColumns, clear: _Clear
) -> tuple[list[Segment], RunSummary]:
    none = np.zeros(len(layout.table), bool)
    segments, rates, made = [], [], []
    for span in run.spans:
        count = span.stop - span.start
        if count < fewest:
            run.account += Account(too_short=count)
            continue
        own = clear.get((id(run), span.start), none)
        segment, corrected, estimated = _segment(run, span, layout, own)
        segments.append(segment)
        made.append((span.start, corrected))
        rates.append(estimated)
        run.account += Account(kept=count)
    if run.account.too_short:
        short = plural(run.account.too_short, "row")
        run.note("cut", f"{short} in segments of fewer than {fewest} rows")
    _say_turns(run, layout, made)
    _say_outliers(run, layout, made)
    _say_rates(run, layout, rates)
    if segments:
        check_columns(run, layout, segments)
    lengths = tuple(len(segment.t) for segment in segments)
    return segments, RunSummary(run.place, run.account, lengths, run.step_s)


def _take_inputs(run: Run, signal: InputSignal, how: str) -> None:
    """Add the inputs to the table, and keep the parts of the segments at which they are known."""
    values, covered = at_times(signal, run.t, how)
    run.table = np.column_stack([run.table, values])
    spans = []
    for cut in run.spans:
        inside = np.flatnonzero(np.diff(np.concatenate([[0], covered[cut], [0]]).astype(int)))
        spans += [slice(cut.start + int(a), cut.start + int(b)) for a, b in inside.reshape(-1, 2)]
    run.spans = spans
    uncovered = int(np.sum(~covered))
    run.account += Account(without_input=uncovered)
    manner = (
        "held from their own times" if how == "held" else "interpolated between their own times"
    )
    run.note("inputs", f"{manner} to those of the states")
    if uncovered:
        run.note("cut", f"{plural(uncovered, 'row')} outside the times of the inputs")


def _segment(
    run: Run, span: slice, layout: ResolvedColumns, clear: np.ndarray
) -> tuple[Segment, list[Corrected], list[Rate | None]]:
    """A segment, what was corrected of coordinates and measured rates, and the estimated rates."""
    t, table, count = run.t[span], run.table[span], len(layout.coordinates)
    keep, last = layout.columns.outliers == "keep", count + len(layout.measured_rates)
    measured = [
        correct(t, table[:, i], keep=keep, clear=bool(clear[i])) for i in range(count, last)
    ]
    # Turns are told with the help of the rate, so that must be right.
    own = iter(measured)
    rates = [None if rate is None else next(own).values for rate in layout.rates]
    positions = [
        correct(
            t,
            table[:, i],
            rates[i],
            wraps=is_angle(i, layout),
            keep=keep,
            clear=bool(clear[i]),
        )
        for i in range(count)
    ]
    estimated = [
        estimate_rate(t, made.values) if rate is None else None
        for made, rate in zip(positions, rates, strict=True)
    ]
    q = np.column_stack([made.values for made in positions]) if count else table[:, :0]
    v = [e.values if e else x for x, e in zip(rates, estimated, strict=True)]
    segment = Segment(t, q, np.column_stack([*v]) if v else q, table[:, last:])  # pyright: ignore
    return segment, [*positions, *measured], estimated


def is_angle(number: int, layout: ResolvedColumns) -> bool:
    """Whether a coordinate is an angle: as the user says; else by the unit; else by the names."""
    name, found = layout.coordinate_names[number], layout.coordinates[number]
    if layout.columns.angles is not None:
        return name in layout.columns.angles
    if found.unit is not None:
        return found.unit.is_angle
    return sounds_like_angle(name) or sounds_like_angle(found.heading.name)


def _say_turns(run: Run, layout: ResolvedColumns, made: list[_Made]) -> None:
    for i, name in enumerate(layout.coordinate_names):
        if count := sum(corrected[i].turns for _, corrected in made):
            run.note(
                "unwrapped",
                f"{name!r} was wrapped to one turn; joined at {plural(count, 'place')}",
            )


def _say_outliers(run: Run, layout: ResolvedColumns, made: list[_Made]) -> None:
    """Name the outliers of every column as they are in the file, by line and value."""
    for column, of in enumerate((*layout.coordinates, *layout.measured_rates)):
        own = [(start, corrected[column]) for start, corrected in made]
        for are_rare in (True, False):
            some = [each for each in own if each[1].are_rare == are_rare]
            places = [_named_outlier(run, of, column, *each) for each in some]
            listed = [place for several in places for place in several]
            if listed:
                _say_listed(run, of, listed, are_rare, layout.columns.outliers)


def _named_outlier(
    run: Run, of: ResolvedColumn, column: int, start: int, made: Corrected
) -> list[str]:
    unit = f" {of.unit.symbol}" if of.unit is not None else ""
    named = []
    for row, expected in zip(made.rows, made.expected, strict=True):
        value = run.table[start + row, column] / of.factor
        # An angle is expected on the turn where it was read, not on the one where it is taken to.
        moved = made.turned[row] if len(made.turned) else 0.0
        there = run.where(int(run.rows[start + row]))
        named.append(
            f"{value:.6g}{unit} at {there} (neighbors say {(expected - moved) / of.factor:.6g})"
        )
    return named


def _say_listed(run: Run, of: ResolvedColumn, listed: list[str], are_rare: bool, how: str) -> None:
    shown = ", ".join(listed[:_NAMED])
    shown += f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    what = f"{plural(len(listed), 'outlier')} of {of.label!r}"
    if not are_rare:
        run.note("warning", f"{what}, too many to be errors, kept: {shown}")
    elif how == "keep":
        run.note("warning", f"{what} kept: {shown}")
    else:
        way = 'outliers="keep" leaves them'
        run.note("replaced", f"{what} by what the neighbors say: {shown}; {way}")


def _say_rates(run: Run, layout: ResolvedColumns, rates: list[list[Rate | None]]) -> None:
    for number, name in enumerate(layout.coordinate_names):
        made = [found for segment in rates if (found := segment[number]) is not None]
        if not made:
            continue
        noise = np.median([rate.noise for rate in made])
        error = np.median([rate.typical_error for rate in made])
        widths = sorted(2 * rate.half_width + 1 for rate in made)
        run.note(
            "estimated",
            f"the rate of {name!r} from polynomials over {widths[len(widths) // 2]} rows; noise "
            f"of {name!r} {noise:.2g}, error of its rate about {error:.2g}",
        )


def check_columns(run: Run, layout: ResolvedColumns, segments: Sequence[Segment]) -> None:
    """Note what a user should look at."""
    q = np.concatenate([segment.q for segment in segments])
    longest = max(segments, key=lambda segment: len(segment.t))
    rows = slice(_MOST_ROWS)
    for i, name in enumerate(layout.coordinate_names):
        if np.ptp(q[:, i]) == 0:
            run.note("warning", f"{name!r} never changes")
            continue
        _check_degrees(run, name, layout, i, q[:, i])
        rate = layout.rates[i]
        if rate is not None and run.with_rates:
            given = longest.t[rows], longest.q[rows, i], longest.v[rows, i]
            check_rate(run, name, rate.label, *given)


def _check_degrees(
    run: Run, name: str, layout: ResolvedColumns, number: int, values: np.ndarray
) -> None:
    """Jumps of about 360 in a column without a unit are those of a compass."""
    jumps = np.abs(np.diff(values))
    found = layout.coordinates[number]
    within = np.ptp(values) <= _FULL_TURN_DEG * (1 + 1e-6)
    if found.unit is None and within and np.any(jumps > 0.9 * _FULL_TURN_DEG):
        run.note(
            "warning",
            f"{name!r} jumps by nearly 360; if it is in degrees, say so with "
            f"{spelled('units', {found.label: 'deg'})}",
        )


def check_rate(
    run: Run, name: str, rate: str, t: np.ndarray, x: np.ndarray, measured: np.ndarray
) -> None:
    """Note a rate that is not the derivative of its coordinate, or is in another unit."""
    if len(t) < max(FEWEST_ROWS, 20):
        return
    found = estimate_rate(t, x)
    size = float(np.sqrt(np.mean(found.values**2)))
    if size == 0 or found.typical_error > 0.3 * size or np.ptp(measured) == 0:
        return
    alike = float(np.corrcoef(found.values, measured)[0, 1]) if np.ptp(found.values) > 0 else 0.0
    ratio = float(np.dot(found.values, measured) / np.dot(found.values, found.values))
    if alike > 0.9 and not 0.8 < ratio < 1.25:
        run.note(
            "warning",
            f"{rate!r} is {ratio:.4g} times the derivative of {name!r}; if a unit is missing, give "
            f"it with {spelled('units', {rate: '...'})}",
        )
    elif alike < 0.5:
        run.note("warning", f"{rate!r} does not look like the derivative of {name!r}")
