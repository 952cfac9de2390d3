"""Statistics of a log's columns: units, sampling, gaps, noise, ranges and likely roles.

`mbdnode inspect` prints them; nothing is read into trajectories.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mbdnode.data.logs.cleaning import GAP, TURN, is_wrapped, sounds_like_angle
from mbdnode.data.logs.columns import Columns
from mbdnode.data.logs.log import AbstractLog, Sample, column_labels, take_sample
from mbdnode.data.logs.reading import Reader, check_any, find_pieces
from mbdnode.data.logs.reading_summary import Note
from mbdnode.data.logs.role_guess import Guess, guess_from
from mbdnode.data.logs.units import find_unit, why_unclear
from mbdnode.data.signal import noise_level
from mbdnode.errors import UserError
from mbdnode.formatting import plural

# Rows that are looked at; noise is told from fewer.
_MOST_ROWS, _NOISE_ROWS = 1_000_000, 20_000
# Rows and bytes that are read to see whether a log can be.
_PART, _MOST_BYTES = 400_000, 100_000_000
# Fewer cannot be split into training and validation data.
FEWEST_ROWS = 20
# The remarks on columns that hold no numbers, and on those that cannot be read.
UNREAD = (("words",), ("not read",))


@dataclass(frozen=True)
class ColumnSummary:
    """One column.

    **Arguments:**

    - `name`, `unit`: from its heading.
    - `role`, `reason`: as guessed; "-" if there is none.
    - `minimum`, `maximum`, `std`: of the finite values.
    - `noise`: the level, in the file's own unit; not a number if it cannot be told.
    - `remarks`: what is special.
    """

    name: str
    unit: str = ""
    role: str = "-"
    reason: str = ""
    minimum: float = math.nan
    maximum: float = math.nan
    noise: float = math.nan
    std: float = math.nan
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sampling:
    """The times, in seconds.

    **Arguments:**

    - `step_s`: the median step.
    - `jitter`: the standard deviation of the steps that are no gaps, as a part of the median.
    - `begin_s`, `end_s`: the first time and the last.
    - `gaps`, `longest_s`: steps of more than five medians, and the longest step.
    - `repeated`, `back`: times that repeat the one before, and that go back.
    """

    step_s: float
    jitter: float
    begin_s: float
    end_s: float
    gaps: int
    longest_s: float
    repeated: int
    back: int


@dataclass(frozen=True)
class LogSummary:
    """One log.

    **Arguments:**

    - `name`: the file, and the section.
    - `described`: the format.
    - `rows`: that were looked at.
    - `is_all`: whether those are all.
    - `columns`: in the order of the file.
    - `sampling`: None if no column seems to be the time.
    - `guess`: of the roles.
    - `runs`: how many, by the column that seems to tell them apart.
    - `warnings`: what a user should know.
    """

    name: str
    described: str
    rows: int
    is_all: bool
    columns: tuple[ColumnSummary, ...]
    sampling: Sampling | None
    guess: Guess
    runs: int
    warnings: tuple[str, ...]


def summarize(log: AbstractLog) -> LogSummary:
    """What is in a log; of a long one, in its first million rows."""
    sample = take_sample(log, _MOST_ROWS)
    guess = guess_from(log, sample)
    names = column_labels(log)
    time = names.index(guess.time) if guess.time in names else None
    columns = tuple(_column(log, i, names[i], sample, guess, time) for i in range(len(names)))
    columns += tuple(
        ColumnSummary(
            name, "", "parameter", "a single number", x, x, std=0.0, remarks=("constant",)
        )
        for name, x in log.constants.items()
    )
    raws = [heading.raw for heading in log.headings if heading.raw]
    notes = [f"{raw} is above several columns" for raw in raws if raws.count(raw) > 1]
    notes += [f"{name} cannot be read: {why}" for name, why in sample.troubles.items()]
    notes += [note.text for note in log.notes if note.kind in ("warning", "converted")]
    if time is not None and _runs_back(sample.columns[time]):
        notes.append(f"{names[time]} runs backwards all through: the rows are turned round")
    described = next(note.text for note in log.notes if note.kind == "read")
    return LogSummary(
        name=log.name,
        described=described,
        rows=sample.rows,
        is_all=sample.is_all,
        columns=columns,
        sampling=None if time is None else _sampling(log, time, sample),
        guess=guess,
        runs=_runs(log, names, guess, sample),
        warnings=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class Trial:
    """What came of reading logs with some roles.

    **Arguments:**

    - `problem`: why they cannot be read, in a sentence; empty if they can be.
    - `outliers`: those that would be replaced, by column and place.
    """

    problem: str
    outliers: tuple[Note, ...] = ()


def try_reading(files: Sequence[Path], columns: Columns) -> Trial:
    """Whether logs can be read so, as far as one can tell from the first hundred megabytes."""
    try:
        reader = Reader(find_pieces(list(files), columns), columns, most_rows=_PART)
        rows = 0
        for segment, _ in reader.segments():
            rows += len(segment)
            if rows * segment.shape[1] * segment.itemsize > _MOST_BYTES:
                break
        check_any(reader.runs)
    except UserError as error:
        return Trial(str(error))
    outliers = tuple(note for note in reader.notes if "outlier" in note.text)
    if rows < FEWEST_ROWS:
        return Trial(too_few(rows, f"'{files[0]}'" if len(files) == 1 else "these logs"))
    return Trial("", outliers)


def too_few(rows: int, where: str) -> str:
    """The sentence for logs that are too short."""
    return (
        f"There {'is' if rows == 1 else 'are'} {plural(rows, 'row')} in all in {where}; a training "
        f"and a validation split need at least {FEWEST_ROWS}. Record more, or name more logs."
    )


def check_enough_rows(views: Sequence[LogSummary]) -> None:
    """Raise `UserError` for logs whose roles cannot be told, as they have too few rows."""
    rows = sum(view.rows for view in views)
    if rows < FEWEST_ROWS and not views[0].guess.is_complete:
        raise UserError(too_few(rows, f"'{views[0].name}'" if len(views) == 1 else "these logs"))


def _runs_back(t: np.ndarray) -> bool:
    steps = np.diff(t[np.isfinite(t)])
    return bool(np.all(steps <= 0) and np.any(steps < 0))


def _runs(log: AbstractLog, names: Sequence[str], guess: Guess, sample: Sample) -> int:
    if guess.run is None:
        return 1
    number = names.index(guess.run)
    if number in sample.columns:
        return len(np.unique(sample.columns[number]))
    labels = [block.labels[0] for block in log.blocks([], [number])]
    return len(set(np.concatenate(labels)[: sample.rows]))


def _column(
    log: AbstractLog, number: int, name: str, sample: Sample, guess: Guess, time: int | None
) -> ColumnSummary:
    heading = log.headings[number]
    role, reason = guess.reasons.get(name, ("-", ""))
    summary = ColumnSummary(name, heading.unit, role, reason)
    if number not in sample.columns:
        return replace(summary, remarks=UNREAD[0] if log.is_text(number) else UNREAD[1])
    values = sample.columns[number]
    finite = values[np.isfinite(values)]
    missing = len(values) - len(finite)
    remarks = [f"{missing:,} missing"] if missing else []
    if not len(finite):
        return replace(summary, remarks=tuple(remarks))
    is_constant = sample.is_constant(number)
    if is_constant:
        remarks.append("constant")
    if wrapped := _wrapped(heading.name, heading.unit, role, finite):
        remarks.append(wrapped)
    unit = find_unit(heading.unit)
    if heading.unit and unit is None:
        why = why_unclear(heading.unit)
        remarks.append(f"unit not clear: {why}?" if why else "unit not known")
    elif unit is not None and unit.factor != 1.0:
        remarks.append(f"to {unit.si}")
    # Of an input that jumps, what noise is cannot be told.
    no_motion = is_constant or role in ("time", "run", "parameter", "input")
    return replace(
        summary,
        minimum=float(np.min(finite)),
        maximum=float(np.max(finite)),
        noise=math.nan if no_motion else _noise(sample, number, time),
        std=float(np.std(finite)),
        remarks=tuple(remarks),
    )


def _wrapped(name: str, written: str, role: str, values: np.ndarray) -> str:
    unit = find_unit(written)
    if unit is not None and not unit.is_angle:
        return ""
    turns = [TURN / unit.factor] if unit is not None else [TURN, 360.0]
    likely = unit is not None or role == "coordinate" or sounds_like_angle(name)
    if not likely or role in ("rate", "input", "time"):
        return ""
    return next((f"wrapped at {turn:.4g}" for turn in turns if is_wrapped(values, turn)), "")


def _noise(sample: Sample, number: int, time: int | None) -> float:
    """In a stretch where time increases; by the count of the rows if there is no time."""
    values = sample.columns[number][:_NOISE_ROWS]
    t = np.arange(len(values), dtype=float)
    if time is not None:
        t = sample.columns[time][:_NOISE_ROWS]
    good = np.isfinite(values) & np.isfinite(t)
    t, values = t[good], values[good]
    if _runs_back(t):
        t, values = t[::-1], values[::-1]
    if len(t) < 2:
        return math.nan
    breaks = np.flatnonzero(np.diff(t) <= 0) + 1
    longest = max(np.split(np.arange(len(t)), breaks), key=len)
    return noise_level(t[longest], values[longest])


def _sampling(log: AbstractLog, time: int, sample: Sample) -> Sampling:
    unit = find_unit(log.headings[time].unit)
    t = sample.columns[time] * (unit.factor if unit else 1.0)
    t = t[np.isfinite(t)]
    t = t[::-1] if _runs_back(t) else t
    steps = np.diff(t)
    forward = steps[steps > 0]
    step = float(np.median(forward)) if len(forward) else math.nan
    usual = forward[forward <= GAP * step]
    return Sampling(
        step_s=step,
        jitter=float(np.std(usual)) / step if len(forward) else math.nan,
        begin_s=float(t[0]),
        end_s=float(t[-1]),
        gaps=int(np.sum(forward > GAP * step)),
        longest_s=float(np.max(forward)) if len(forward) else math.nan,
        repeated=int(np.sum(steps == 0)),
        back=int(np.sum(steps < 0)),
    )
