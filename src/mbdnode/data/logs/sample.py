"""The first rows of a log, all columns of numbers: what a guess and an inspection look at."""

from dataclasses import dataclass, field

import numpy as np

from mbdnode.data.logs.log import AbstractLog, column_name
from mbdnode.errors import UserError

ROWS = 20_000
# Squares and products of larger numbers overflow, and no measurement is that large.
HUGE = 1e100


@dataclass
class Sample:
    """Rows of a log.

    **Arguments:**

    - `columns`: by number; columns of words are not there.
    - `troubles`: why a column is not there, by its name.
    - `rows`: how many were read.
    - `is_all`: whether that is all there are.
    """

    columns: dict[int, np.ndarray] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    is_all: bool = True

    def is_constant(self, number: int) -> bool:
        """Whether a column never changes."""
        values = self.columns[number]
        values = values[np.isfinite(values)]
        return len(values) == 0 or bool(np.ptp(values) == 0)


def take_sample(log: AbstractLog, rows: int = ROWS) -> Sample:
    """Read the first rows.

    **Arguments:**

    - `log`: the log.
    - `rows`: how many at most.

    **Returns:**

    A `Sample`. A column that cannot be read is named in it, and the others are there all the same;
    raises `UserError` if none can be read.
    """
    numbers = [i for i in range(len(log.headings)) if not log.is_text(i)]
    lengths = {i: getattr(log, "length", lambda i: None)(i) for i in numbers}
    most = max(lengths.values(), key=list(lengths.values()).count) if lengths else None
    sample = Sample()
    for i in numbers:
        if lengths[i] != most:
            name = log.headings[i].raw or column_name(i)
            sample.troubles[name] = f"it has {lengths[i]:,} rows and the others {most:,}"
    together = [i for i in numbers if lengths[i] == most]
    try:
        _take(log, together, rows, sample)
    except UserError as error:
        if len(together) < 2:
            raise
        sample.columns, first = {}, error
        for i in together:
            try:
                _take(log, [i], rows, sample)
            except UserError as own:
                sample.troubles[log.headings[i].raw or column_name(i)] = str(own)
        if not sample.columns:
            raise first from None
    if not sample.rows:
        raise UserError(f"'{log.name}' has no rows of numbers. Leave it out.")
    return sample


def _take(log: AbstractLog, numbers: list[int], rows: int, sample: Sample) -> None:
    read, count = [], 0
    sample.is_all = True
    for block in log.blocks(numbers, (), min(rows, 100_000)):
        read.append(block.numbers)
        count += len(block.numbers[0])
        if count >= rows:
            sample.is_all = log.size is not None and log.size <= rows
            break
    sample.rows = min(count, rows)
    for place, i in enumerate(numbers):
        values = np.concatenate([part[place] for part in read])[:rows] if read else np.zeros(0)
        huge = np.abs(values) > HUGE
        if np.any(huge):
            name = log.headings[i].raw or column_name(i)
            log.warn(f"{name!r} has a value of size {np.max(np.abs(values)):.3g}, left out here")
        sample.columns[i] = np.where(huge, np.nan, values)
