"""What a log is, whatever its file's format: columns with headings, read block by block.

Here are the interface that every format implements (`AbstractLog`, `LogFormat`), and the sample of
a log's first rows (`take_sample`) from which roles are guessed and which an inspection shows.
"""

import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mbdnode.data.logs.reading_summary import Note
from mbdnode.data.logs.units import Heading
from mbdnode.errors import UserError

# Rows of a block: some megabytes.
BLOCK_ROWS = 100_000
# How much of a file tells its format.
START_BYTES = 1 << 17
# A file may hold so much, or so many times its own size: columns that hardly change pack well.
_UNPACKED_BYTES, _PACKED = 1_000_000_000, 100
# Rows from which roles are guessed.
_SAMPLE_ROWS = 20_000
# Squares and products of larger numbers overflow, and no measurement is that large.
HUGE = 1e100


@dataclass(frozen=True)
class Block:
    """Consecutive rows.

    **Arguments:**

    - `first`: the number of the first row in the log, from 0.
    - `numbers`: the columns that were asked for as numbers; missing values are not numbers.
    - `labels`: those that were asked for as text.
    - `truncated`: rows at the end of the file that break off, and are not in the block.
    """

    first: int
    numbers: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...] = ()
    truncated: int = 0


@dataclass(frozen=True)
class Piece:
    """A part of the logs that is read by itself.

    **Arguments:**

    - `number`: of the file, among all that are read.
    - `path`, `input_path`: the file, and that of its inputs, if they are in one of their own.
    - `log`: which of the file's logs, by number; None for all.
    - `span`: the first row, and the one after the last; None for all.
    - `part`: the number of the span in its log.
    - `rows`: how many there are, where the file says so.
    """

    number: int
    path: Path
    input_path: Path | None = None
    log: int | None = None
    span: tuple[int, int] | None = None
    part: int = 0
    rows: int | None = None


@dataclass
class AbstractLog(abc.ABC):
    """A table in a file, or in a part of a file.

    **Arguments:**

    - `path`: the file.
    - `section`: the part of it, such as an HDF5 group; empty for all of it.
    - `headings`: of the columns.
    - `constants`: single numbers that stand beside the columns, by name.
    - `notes`: what a user should know of how the file was read.
    - `left_out`: what is in the file but is no column, by name, and what it is.
    """

    path: Path
    section: str = ""
    headings: tuple[Heading, ...] = ()
    constants: dict[str, float] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @abc.abstractmethod
    def blocks(
        self, numbers: Sequence[int], labels: Sequence[int] = (), rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """Some columns, by their number; all of them must have the same length."""

    def spans(self, rows: int, most: int, label: int | None) -> list[tuple[int, int] | None]:
        """Parts that can be read without what is before them: first rows and those after the last.

        A part has so many `rows` at least, and a run with no more than `most` is not cut. `label`
        is the column that tells runs apart, by number. None is all rows, as those of a text.
        """
        return [None]

    def blocks_in(
        self,
        span: tuple[int, int] | None,
        numbers: Sequence[int],
        labels: Sequence[int] = (),
        rows: int = BLOCK_ROWS,
    ) -> Iterator[Block]:
        """The blocks of one of the `spans`."""
        assert span is None
        return self.blocks(numbers, labels, rows)

    @property
    def size(self) -> int | None:
        """How many rows there are, where the file says so."""
        return None

    def length(self, column: int) -> int | None:
        """Of one column, where columns may differ in it."""
        return None

    def place(self, row: int) -> str:
        """How a user finds a row, counted from 0 here and from 1 there."""
        return f"row {row + 1:,}"

    def label(self, column: int) -> str:
        """What a column is called: its heading, or its place if it has none."""
        return self.headings[column].raw or column_name(column)

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, as far as one can tell without reading all of it."""
        return False

    @property
    def name(self) -> str:
        """The file, with the section if there is one."""
        return f"{self.path}:{self.section}" if self.section else str(self.path)

    def warn(self, text: str) -> None:
        """Note something that a user should look at."""
        self.notes.append(Note("warning", text, self.name))

    def note(self, kind: str, text: str) -> None:
        """Note how the file was read."""
        self.notes.append(Note(kind, text, self.name))


@dataclass(frozen=True)
class LogFormat:
    """A format of files, as `mbdnode.data.logs.formats` registers it.

    **Arguments:**

    - `name`: for messages.
    - `suffixes`: that such files usually have, in small letters and with the point.
    - `open`: gives the logs of a file, one for each run; raises `UserError` for a damaged one.
    - `starts_so`: whether a file that begins with these bytes (131,072 at most) is one; None if
        bytes cannot tell, so that the suffix does.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[Path], list[AbstractLog]]
    starts_so: Callable[[bytes], bool] | None = None

    def fits(self, start: bytes, suffix: str) -> bool:
        """Whether a file is of this format: by its first bytes, else by its suffix."""
        return suffix in self.suffixes if self.starts_so is None else self.starts_so(start)


def check_expansion(path: Path, declared_bytes: int) -> None:
    """Raise `UserError` for a small file that says it holds more than anybody could measure."""
    size = path.stat().st_size
    if declared_bytes > max(_UNPACKED_BYTES, _PACKED * size):
        raise UserError(
            f"'{path}' has {size / 1e6:,.3g} MB and says that it holds {declared_bytes / 1e9:,.3g} "
            f"GB of numbers. Measurements cannot be packed {_PACKED} to 1, so it is damaged, or "
            "made to fill the memory. Write it again with what was measured."
        )


def column_name(number: int) -> str:
    """What a column without a heading is called."""
    return f"column{number + 1}"


def column_labels(log: AbstractLog) -> list[str]:
    """What each column is called: its heading, or its place if it has none or shares it."""
    raws = [heading.raw for heading in log.headings]
    return [raw if raw and raws.count(raw) == 1 else column_name(i) for i, raw in enumerate(raws)]


@dataclass
class Sample:
    """The first rows of a log.

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


def take_sample(log: AbstractLog, rows: int = _SAMPLE_ROWS) -> Sample:
    """Read the first rows.

    A column that cannot be read is named in the sample, and the others are there all the same;
    raises `UserError` if none can be read.
    """
    lengths = {i: log.length(i) for i in range(len(log.headings)) if not log.is_text(i)}
    most = max(lengths.values(), key=list(lengths.values()).count) if lengths else None
    numbers = [i for i, length in lengths.items() if length == most]
    sample = Sample()
    for i, length in lengths.items():
        if length != most:
            sample.troubles[log.label(i)] = f"it has {length:,} rows and the others {most:,}"
    try:
        _take(log, numbers, rows, sample)
    except UserError:
        sample.columns = {}
        for i in numbers:
            try:
                _take(log, [i], rows, sample)
            except UserError as error:
                sample.troubles[log.label(i)] = str(error)
        if not sample.columns:
            raise
    if not sample.rows:
        raise UserError(f"'{log.name}' has no rows of numbers. Leave it out.")
    return sample


def _take(log: AbstractLog, numbers: list[int], rows: int, sample: Sample) -> None:
    read, count = [], 0
    sample.is_all = True
    for block in log.blocks(numbers, (), min(rows, BLOCK_ROWS)):
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
            size = np.max(np.abs(values))
            log.warn(f"{log.label(i)!r} has a value of size {size:.3g}, left out here")
        sample.columns[i] = np.where(huge, np.nan, values)
