"""From the rows of a run to segments without holes, and columns without jumps that are no motion.

Rows that are missing, repeated or out of order are cut or merged; every row has one fate, and all
are counted. A gap in time ends a segment.

An angle that a sensor wraps to one turn is made continuous again: where a reading jumps by more
than half a turn between two samples, a whole number of turns is added so that the step is as near
as possible to the one expected: that of the measured rate, where there is one, and none at all
otherwise.

One to three samples that are far from what their neighbors say take that value: the row stays, with
what else was recorded in it.
"""

import itertools
import re
from dataclasses import replace

import numpy as np

from mbdnode.data.logs.columns import Columns
from mbdnode.data.logs.log import HUGE
from mbdnode.data.logs.reading_summary import Account
from mbdnode.data.logs.runs import Run
from mbdnode.data.signal import Outliers, find_outliers
from mbdnode.errors import UserError
from mbdnode.formatting import plural

# A step of this many medians is a gap; what is shorter is an uneven step, which training can use.
GAP = 5.0
_UNEVEN = 1.5
# Times nearer than this part of a median step are the same time, but for round-off.
_SAME = 1e-6
TURN = 2 * np.pi
# A change by more of a turn is the jump of a wrapped angle; what is one turn away from its
# neighbors, up to that part of it, may be such an angle near its jump.
_JUMP, _WHOLE = 0.75, 0.2
_ANGLES = re.compile(
    r"(^|[_ ])(theta|phi|psi|alpha|beta|gamma|delta|angle|ang|yaw|pitch|roll|heading|azimuth|"
    r"crank|rot)\d*($|[_ ])",
    re.IGNORECASE,
)


def clean(run: Run, columns: Columns) -> None:
    """Cut a run where it cannot be followed; it is left with the rows that are kept, in order.

    It gets its spans, its median step, and the account of its rows so far.
    """
    run.account += Account(missing=_drop_missing(run, columns.gaps))
    run.spans = [slice(0, len(run.t))]
    if len(run.t) < 2:
        return
    _refuse_huge(run)
    steps = np.diff(run.t)
    if np.all(steps <= 0) and np.any(steps < 0):
        run.take(slice(None, None, -1))
        run.note("warning", "time runs backwards all through, so the rows were turned round")
    edges = _restarts(run, columns.gaps)
    run.account += Account(repeated=_merge_repeated(run, edges))
    steps = np.diff(run.t)
    inside = np.ones(len(steps), bool)
    inside[[edge - 1 for edge in edges]] = False
    if inside.any():
        run.step_s = float(np.median(steps[inside]))
    edges = sorted({*edges, *_gaps(run, steps, inside, columns)})
    run.spans = [slice(a, b) for a, b in itertools.pairwise([0, *edges, len(run.t)])]


def _drop_missing(run: Run, gaps: str) -> int:
    whole, labels = np.column_stack([run.t, run.table]), ("time", *run.labels)
    good = np.isfinite(whole)
    bad = np.flatnonzero(~good.all(axis=1))
    if not len(bad):
        return 0
    if gaps == "refuse":
        column = int(np.argmin(good[bad[0]]))
        value = whole[bad[0], column]
        what = "no value" if np.isnan(value) else f"the value {value}"
        raise UserError(
            f"Column {labels[column]!r} has {what} at {run.where(bad[0])} of {run.place}; "
            f"{len(bad):,} of {len(good):,} rows have a value that is missing or not finite. Fix "
            'them, or pass gaps="split" to leave those rows out and cut the run where the hole is '
            "long."
        )
    counts = zip(labels, np.sum(~good, axis=0), strict=True)
    listed = ", ".join(f"{int(n):,} in {name!r}" for name, n in counts if n)
    run.note(
        "cut", f"{plural(len(bad), 'row')} with a value that is missing or not finite: {listed}"
    )
    run.take(np.flatnonzero(good.all(axis=1)))
    return len(bad)


def _refuse_huge(run: Run) -> None:
    whole = np.abs(np.column_stack([run.t, run.table]))
    if np.max(whole) < HUGE:
        return
    row, column = (int(i) for i in np.argwhere(whole >= HUGE)[0])
    raise UserError(
        f"Column {('time', *run.labels)[column]!r} has a value of size {whole[row, column]:.3g} at "
        f"{run.where(row)} of {run.place}. No measurement is that large; fix it, "
        'or leave the field empty and pass gaps="split".'
    )


def _restarts(run: Run, gaps: str) -> list[int]:
    back = np.flatnonzero(np.diff(run.t) < 0) + 1
    if len(back) and gaps == "refuse":
        i = int(back[0])
        raise UserError(
            f"Time goes back from {run.t[i - 1]:g} s to {run.t[i]:g} s at {run.where(i)} of "
            f"{run.place}{f', and at {len(back) - 1:,} more rows' if len(back) > 1 else ''}. Name "
            'the column that tells runs apart (run=...), sort the rows, or pass gaps="split" to '
            "begin a new run there."
        )
    if len(back):
        run.note(
            "cut", f"at {plural(len(back), 'row')} where time goes back; a new run begins there"
        )
    return back.tolist()


def _merge_repeated(run: Run, edges: list[int]) -> int:
    """Average the rows of one time; `edges` are moved along."""
    steps = np.diff(run.t)
    usual = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    same = np.concatenate([[False], (steps >= 0) & (steps <= _SAME * usual)])
    count = int(np.sum(same))
    if not count:
        return 0
    if count == len(same) - 1:
        raise UserError(
            f"Time is {run.t[0]:g} in all {len(same):,} rows of {run.place}. Name another column "
            "as the time."
        )
    group = np.cumsum(~same) - 1
    size = np.bincount(group)
    differ = np.any(run.table[1:][same[1:]] != run.table[:-1][same[1:]])
    mean = [np.bincount(group, weights=column) / size for column in run.table.T]
    alone = size[group] == 1
    table = np.column_stack(mean) if mean else run.table[~same]
    # A mean of one value is that value, but for round-off.
    table[group[alone]] = run.table[alone]
    edges[:] = [int(group[edge]) for edge in edges]
    run.t, run.rows, run.table = run.t[~same], run.rows[~same], table
    how = "their values differ, and the mean was taken" if differ else "their values are the same"
    run.note("cut", f"{plural(count, 'row')} repeating the time before; {how}")
    if count > len(same) // 4:
        run.note(
            "warning", "more than a quarter of the times are repeated; is the clock too coarse?"
        )
    return count


def _gaps(run: Run, steps: np.ndarray, inside: np.ndarray, columns: Columns) -> list[int]:
    usual, longest_s = run.step_s, columns.longest_step_s
    limit = GAP * usual if longest_s is None else longest_s
    long = np.flatnonzero(inside & (steps > limit)) + 1
    if len(long) and columns.gaps == "refuse":
        i = int(long[0])
        raise UserError(
            f"There is a gap of {steps[i - 1]:g} s after t = {run.t[i - 1]:g} s, at {run.where(i)} "
            f"of {run.place}{f', and {len(long) - 1:,} more' if len(long) > 1 else ''}; the median "
            f'step is {usual:g} s. Pass gaps="split" to cut the run there, or longest_step_s=... '
            "to allow it."
        )
    if len(long):
        longest = float(np.max(steps[long - 1]))
        run.note(
            "cut",
            f"at {plural(len(long), 'gap')} longer than {limit:g} s, the longest {longest:g} s",
        )
    uneven = inside & (steps > _UNEVEN * usual) & (steps <= limit)
    if np.any(uneven):
        run.note(
            "read",
            f"{plural(int(np.sum(uneven)), 'step')} of more than {_UNEVEN:g} times the median "
            f"({usual:.4g} s) kept as they are, up to {float(np.max(steps[uneven])):.4g} s",
        )
    return long.tolist()


def sounds_like_angle(name: str) -> bool:
    """Whether a column is an angle by its name."""
    return bool(_ANGLES.search(name))


def is_wrapped(values: np.ndarray, turn: float = TURN) -> bool:
    """Whether a column stays within one turn and jumps across most of it."""
    if len(values) < 3 or np.ptp(values) > turn * (1 + 1e-6):
        return False
    return bool(np.any(np.abs(np.diff(values)) > _JUMP * turn))


def unwrap(
    t: np.ndarray, values: np.ndarray, rate: np.ndarray | None, turn: float = TURN
) -> tuple[np.ndarray, int]:
    """A wrapped angle of one segment made continuous, and at how many places a turn was added.

    `rate` is as measured, in the same unit a second; None if it was not.
    """
    steps = np.diff(values)
    expected = 0.0 if rate is None else (rate[1:] + rate[:-1]) / 2 * np.diff(t)
    turns = np.round((expected - steps) / turn)
    lifted = values + turn * np.concatenate([[0.0], np.cumsum(turns)])
    return lifted, int(np.count_nonzero(turns))


def correct(
    t: np.ndarray,
    values: np.ndarray,
    found: Outliers,
    rate: np.ndarray | None = None,
    *,
    wraps: bool = False,
    keep: bool = False,
) -> tuple[np.ndarray, int, Outliers]:
    """A column of one segment that can be learned from.

    It is unwrapped if it `wraps`, with the help of its rate. Outliers, those `found` in the column
    as it is or those of the unwrapped one, take the expected values, if they are rare and not to be
    kept.

    **Returns:**

    The values; at how many places a turn was added or taken; and the outliers, with what is
    expected on the turn where they were read.
    """
    result, moved, turns = values.copy(), np.zeros(len(t)), 0
    if wraps and np.any(np.abs(np.diff(values)) > _JUMP * TURN):
        # Outliers would hide that an angle is wrapped, or look as if it were.
        early = _outliers_of_wrapped(values, found)
        rest = np.delete(np.arange(len(t)), early.rows)
        if is_wrapped(values[rest]):
            lifted, turns = unwrap(t[rest], values[rest], None if rate is None else rate[rest])
            moved[rest] = lifted - values[rest]
            before = np.maximum(np.searchsorted(rest, early.rows) - 1, 0)
            moved[early.rows] = moved[rest[before]]
            result = values + moved
        late = find_outliers(t[rest], result[rest])
        rows = np.append(early.rows, rest[late.rows])
        expected = np.append(early.expected + moved[early.rows], late.expected)
        order = np.argsort(rows)
        found = Outliers(rows[order], expected[order], early.are_rare and late.are_rare)
    if found.are_rare and not keep:
        result[found.rows] = found.expected
    return result, turns, replace(found, expected=found.expected - moved[found.rows])


def _outliers_of_wrapped(values: np.ndarray, found: Outliers) -> Outliers:
    """Outliers of an angle that may be wrapped, but for those that may be its own jumps."""
    turns = np.abs(values[found.rows] - found.expected) / TURN
    out = found.rows[np.abs(turns - 1) > _WHOLE]
    if np.ptp(np.delete(values, out)) > TURN * (1 + 1e-6):
        out = found.rows
    return Outliers(out, found.expected[np.isin(found.rows, out)], found.are_rare)
