"""From a run's rows to segments that can be learned from.

`finish` cleans a run, brings inputs that were sampled at times of their own to those of the states
(`InputSignal`), unwraps angles, replaces outliers, and estimates the velocities that were not
measured. What then still looks wrong is said, and left to the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbdnode.data.logs.cleaning import clean, correct, sounds_like_angle
from mbdnode.data.logs.columns import Columns, spelled
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.reading_summary import Account, RunSummary
from mbdnode.data.logs.resolved_columns import ResolvedColumn, ResolvedColumns, resolve_columns
from mbdnode.data.logs.runs import Run, runs_in_log
from mbdnode.data.signal import FEWEST_ROWS, Outliers, estimate_rate, outliers_of_columns
from mbdnode.errors import UserError
from mbdnode.formatting import plural

# Rows from which a rate is checked, at most and at least.
_MOST_ROWS, _FEWEST_CHECKED = 5_000, 20
# Outliers of a column that a note names.
_NAMED = 5
_FULL_TURN_DEG = 360.0


@dataclass(frozen=True)
class InputSignal:
    """Inputs with their own times: increasing, in seconds, and values `(n, inputs)` in SI."""

    t: np.ndarray
    values: np.ndarray
    columns: tuple[ResolvedColumn, ...]


def input_signal(log: AbstractLog, columns: Columns) -> dict[str | None, InputSignal]:
    """The inputs of a log with their own times, by run, or under None if there is one run only.

    Rows without a value are left out.
    """
    time = columns.input_time or columns.time
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
        more = f"; {left_out:,} without a value or of a repeated time left out" if left_out else ""
        log.note(
            "inputs",
            f"{plural(len(whole), 'sample')} of {', '.join(c.name for c in layout.inputs)}, every "
            f"{np.median(np.diff(whole[:, 0])) if len(whole) > 1 else 0:.4g} s{more}",
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


def finish(
    run: Run, signal: InputSignal | None, fewest_rows: int, check_rates: bool
) -> tuple[list[np.ndarray], RunSummary]:
    """The segments of a run, cleaned and completed, and what became of its rows.

    A segment is a table of times, coordinates, rates and inputs.

    **Arguments:**

    - `run`: as it was read.
    - `signal`: its inputs, if they have times of their own.
    - `fewest_rows`: of a segment that is kept.
    - `check_rates`: whether measured rates are compared with the derivatives of their coordinates,
        which takes longer than all the rest.
    """
    layout = run.layout
    clean(run, layout.columns)
    if signal is not None:
        _take_inputs(run, signal, layout.columns.interpolation)
    _drop_short(run, max(fewest_rows, FEWEST_ROWS if None in layout.rates else 2))
    count = len(layout.coordinates)
    last = count + len(layout.measured_rates)
    found = [outliers_of_columns(run.t[s], run.table[s, :last].T) for s in run.spans]
    # Turns are told with the help of the rate, so that must be right.
    for i in range(count, last):
        _correct(run, i, [own[i] for own in found])
    rates, measured = [], iter(range(count, last))
    for i, rate in enumerate(layout.rates):
        place = None if rate is None else next(measured)
        _correct(run, i, [own[i] for own in found], place)
        rates.append(_estimated(run, i) if place is None else run.table[:, place])
    if run.spans:
        _check_columns(run, rates, check_rates)
    table = np.column_stack([run.t, run.table[:, :count], *rates, run.table[:, last:]])
    segments = [table[span] for span in run.spans]
    return segments, RunSummary(run.place, run.account, tuple(map(len, segments)), run.step_s)


def _take_inputs(run: Run, signal: InputSignal, how: str) -> None:
    """Add the inputs to the table, and keep the parts of the segments at which they are known."""
    values, covered = at_times(signal, run.t, how)
    run.table = np.column_stack([run.table, values])
    spans = []
    for cut in run.spans:
        inside = np.flatnonzero(np.diff(np.concatenate([[0], covered[cut], [0]]).astype(int)))
        spans += [slice(cut.start + int(a), cut.start + int(b)) for a, b in inside.reshape(-1, 2)]
    run.spans = spans
    manner = (
        "held from their own times" if how == "held" else "interpolated between their own times"
    )
    run.note("inputs", f"{manner} to those of the states")
    if uncovered := int(np.sum(~covered)):
        run.account += Account(without_input=uncovered)
        run.note("cut", f"{plural(uncovered, 'row')} outside the times of the inputs")


def _drop_short(run: Run, fewest: int) -> None:
    kept = [span for span in run.spans if span.stop - span.start >= fewest]
    rows, left = (sum(s.stop - s.start for s in spans) for spans in (run.spans, kept))
    run.spans = kept
    run.account += Account(kept=left, too_short=rows - left)
    if rows > left:
        run.note("cut", f"{plural(rows - left, 'row')} in segments of fewer than {fewest} rows")


def _correct(run: Run, place: int, found: Sequence[Outliers], rate: int | None = None) -> None:
    """Unwrap a coordinate, and replace the outliers of a column; both are said."""
    of, turns = run.layout.table[place], 0
    wraps = place < len(run.layout.coordinates) and is_angle(place, run.layout)
    keep = run.layout.columns.outliers == "keep"
    listed: dict[bool, list[str]] = {True: [], False: []}
    for span, own in zip(run.spans, found, strict=True):
        given = None if rate is None else run.table[span, rate]
        t, values = run.t[span], run.table[span, place]
        corrected, more, outliers = correct(t, values, own, given, wraps=wraps, keep=keep)
        listed[outliers.are_rare] += _named_outliers(run, of, values, span.start, outliers)
        run.table[span, place] = corrected
        turns += more
    if turns:
        name = run.layout.coordinate_names[place]
        run.note(
            "unwrapped", f"{name!r} was wrapped to one turn; joined at {plural(turns, 'place')}"
        )
    for are_rare, some in listed.items():
        if some:
            _say_outliers(run, of, some, are_rare, keep)


def is_angle(number: int, layout: ResolvedColumns) -> bool:
    """Whether a coordinate is an angle: as the user says; else by the unit; else by the names."""
    name, found = layout.coordinate_names[number], layout.coordinates[number]
    if layout.columns.angles is not None:
        return name in layout.columns.angles
    if found.unit is not None:
        return found.unit.is_angle
    return sounds_like_angle(name) or sounds_like_angle(found.heading.name)


def _named_outliers(
    run: Run, of: ResolvedColumn, values: np.ndarray, start: int, outliers: Outliers
) -> list[str]:
    """As they are in the file, by line and value."""
    unit = f" {of.unit.symbol}" if of.unit is not None else ""
    return [
        f"{values[row] / of.factor:.6g}{unit} at {run.where(start + row)} (neighbors say "
        f"{expected / of.factor:.6g})"
        for row, expected in zip(outliers.rows, outliers.expected, strict=True)
    ]


def _say_outliers(
    run: Run, of: ResolvedColumn, listed: list[str], are_rare: bool, keep: bool
) -> None:
    shown = ", ".join(listed[:_NAMED])
    shown += f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    what = f"{plural(len(listed), 'outlier')} of {of.label!r}"
    if not are_rare:
        run.note("warning", f"{what}, too many to be errors, kept: {shown}")
    elif keep:
        run.note("warning", f"{what} kept: {shown}")
    else:
        way = 'outliers="keep" leaves them'
        run.note("replaced", f"{what} by what the neighbors say: {shown}; {way}")


def _estimated(run: Run, place: int) -> np.ndarray:
    """The rate of a coordinate; it is not a number outside of the segments."""
    name, values = run.layout.coordinate_names[place], np.full(len(run.t), np.nan)
    rates = []
    for span in run.spans:
        rates.append(estimate_rate(run.t[span], run.table[span, place]))
        values[span] = rates[-1].values
    if rates:
        noise = np.median([rate.noise for rate in rates])
        error = np.median([rate.typical_error for rate in rates])
        widths = sorted(2 * rate.half_width + 1 for rate in rates)
        run.note(
            "estimated",
            f"the rate of {name!r} from polynomials over {widths[len(widths) // 2]} rows; noise "
            f"of {name!r} {noise:.2g}, error of its rate about {error:.2g}",
        )
    return values


def _check_columns(run: Run, rates: Sequence[np.ndarray], check_rates: bool) -> None:
    """Note what a user should look at."""
    longest = max(run.spans, key=lambda span: span.stop - span.start)
    rows = slice(longest.start, min(longest.stop, longest.start + _MOST_ROWS))
    layout = run.layout
    for i, (name, found) in enumerate(
        zip(layout.coordinate_names, layout.coordinates, strict=True)
    ):
        q = np.concatenate([run.table[span, i] for span in run.spans])
        if np.ptp(q) == 0:
            run.note("warning", f"{name!r} never changes")
            continue
        # Jumps of about 360 in a column without a unit are those of a compass.
        within = np.ptp(q) <= _FULL_TURN_DEG * (1 + 1e-6)
        if found.unit is None and within and np.any(np.abs(np.diff(q)) > 0.9 * _FULL_TURN_DEG):
            run.note(
                "warning",
                f"{name!r} jumps by nearly 360; if it is in degrees, say so with "
                f"{spelled('units', {found.label: 'deg'})}",
            )
        rate = layout.rates[i]
        if rate is not None and check_rates:
            _check_rate(run, name, rate.label, run.t[rows], run.table[rows, i], rates[i][rows])


def _check_rate(
    run: Run, name: str, rate: str, t: np.ndarray, x: np.ndarray, measured: np.ndarray
) -> None:
    """Note a rate that is not the derivative of its coordinate, or is in another unit."""
    if len(t) < _FEWEST_CHECKED:
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
