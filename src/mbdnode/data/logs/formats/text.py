"""Text files of any size, parsed by PyArrow in blocks of whole lines.

Comments, blank lines and runs of spaces are taken out first, since PyArrow knows none of them. When
it refuses a block, the lines are looked at one by one to say which of them is wrong, and why.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from mbdnode.data.arrow import seconds_since, to_floats, to_words
from mbdnode.data.logs.formats.text_dialect import (
    COMMENT,
    MISSING,
    STAMP,
    encoding_of,
    find_form,
    is_number,
    split_line,
)
from mbdnode.data.logs.log import BLOCK_ROWS, AbstractLog, Block, LogFormat, column_name
from mbdnode.errors import UserError
from mbdnode.formatting import plural

_COMMENTS = re.compile(rf"^{COMMENT.pattern}.*(?:\n|\Z)", re.MULTILINE)
_BLANKS = re.compile(r"^[ \t]*\n", re.MULTILINE)
_EDGES = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)
_SPACES = re.compile(r"[ \t]+")


class DelimitedLog(AbstractLog):
    """A CSV file or a relative of it."""

    def __init__(self, path: Path):
        super().__init__(path)
        self.form = find_form(path)
        self.headings = self.form.headings
        self.note("read", self.form.described)
        if self.form.preamble:
            lines = plural(self.form.preamble, "line")
            self.note("read", f"{lines} above the headings passed over")
        for warning in self.form.warnings:
            self.warn(warning)
        self._comments = 0
        # Time stamps have a zone like the first, or none.
        self._stamped: dict[int, pa.DataType] = {}
        for i in range(len(self.headings)):
            found = [STAMP.match(field) for field in self._sample(i)]
            if found and all(found):
                zone = "UTC" if found[0] and found[0]["zone"] else None
                self._stamped[i] = pa.timestamp("ns", zone)

    def _sample(self, column: int) -> list[str]:
        """Values at the beginning of a column."""
        fields = (row[column] for row in self.form.sample if column < len(row))
        return [field for field in fields if field not in MISSING]

    def is_text(self, column: int) -> bool:
        """Whether no value of the sample is a number or a time stamp."""
        decimal, fields = self.form.decimal, self._sample(column)
        return bool(fields) and not any(is_number(f, decimal) or STAMP.match(f) for f in fields)

    def blocks(
        self, numbers: Sequence[int], labels: Sequence[int] = (), rows: int = BLOCK_ROWS
    ) -> Iterator[Block]:
        """The columns, block by block."""
        first, origins = 0, {}
        self._comments = 0
        for text, is_last in self._texts(rows):
            text, truncated = self._without_broken_end(text) if is_last else (text, 0)
            if not text.strip("\n"):
                if truncated:
                    none = (np.zeros(0),)
                    yield Block(first, none * len(numbers), none * len(labels), truncated)
                continue
            table = self._parse(text, first, numbers, labels)
            columns = []
            for i in numbers:
                column = table.column(column_name(i)).combine_chunks()
                if i in self._stamped:
                    if i not in origins:
                        text = f"{self.label(i)!r} from time stamps to seconds since the first"
                        self.note("converted", text)
                    seconds, origins[i] = seconds_since(column, origins.get(i))
                    columns.append(seconds)
                else:
                    columns.append(to_floats(column))
            words = [to_words(table.column(column_name(i)).combine_chunks()) for i in labels]
            yield Block(first, tuple(columns), tuple(words), truncated)
            first += table.num_rows
        if self._comments:
            self.note("read", f"{plural(self._comments, 'comment line')} passed over")

    def place(self, row: int) -> str:
        """The line of a row, found by counting."""
        count = -self.form.skipped
        with self._open() as file:
            for number, line in enumerate(file, 1):
                if COMMENT.match(line) or not line.strip(" \t\n\ufeff"):
                    continue
                if count == row:
                    return f"line {number:,}"
                count += 1
        return super().place(row)

    def _open(self):
        return open(self.path, encoding=self.form.encoding, errors="replace")

    def _texts(self, rows: int) -> Iterator[tuple[str, bool]]:
        """Whole lines without comments, and whether they are the last."""
        width = sum(len(f) + 1 for f in self.form.sample[0])
        size = max(rows * width, 1 << 12)
        skipped, rest = self.form.skipped, ""
        with self._open() as file:
            while True:
                read = file.read(size)
                text = (rest + read).lstrip("\ufeff") if rest or read else ""
                if read:
                    text, _, rest = text.rpartition("\n")
                    if not text:
                        continue
                    text += "\n"
                # A file that breaks off has no newline at its end; comments are then no line.
                text = self._plain(text)
                while skipped and text:
                    _, _, text = text.partition("\n")
                    skipped -= 1
                yield text, not read
                if not read:
                    return

    def _plain(self, text: str) -> str:
        text, count = _COMMENTS.subn("", text)
        text = _BLANKS.sub("", text)
        self._comments += count
        if self.form.delimiter == " ":
            text = _SPACES.sub("\t", _EDGES.sub("", text))
        return text

    def _without_broken_end(self, text: str) -> tuple[str, int]:
        """Without a last line that has too few fields and no end: the writer was stopped there."""
        body, newline, last = text.rpartition("\n")
        if last and len(split_line(last, self._delimiter)) < len(self.headings):
            self.warn("the file ends in the middle of a row, which was cut")
            return body + newline, 1
        if last:
            self.warn("the last line has no end; if the writer was stopped, its value may be cut")
        return text, 0

    @property
    def _delimiter(self) -> str:
        """Between the columns of a plain text."""
        return "\t" if self.form.delimiter == " " else self.form.delimiter

    def _parse(self, text: str, first: int, numbers, labels) -> pa.Table:
        names = [column_name(i) for i in range(len(self.headings))]
        types = {column_name(i): pa.string() for i in labels}
        types |= {column_name(i): self._stamped.get(i, pa.float64()) for i in numbers}
        try:
            table = pyarrow.csv.read_csv(
                pa.py_buffer(text.encode("utf-8", errors="replace")),
                pyarrow.csv.ReadOptions(column_names=names, block_size=max(len(text) * 4, 64)),
                pyarrow.csv.ParseOptions(delimiter=self._delimiter),
                pyarrow.csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    decimal_point=self.form.decimal,
                    null_values=[*MISSING, "nan", "NaN", "NAN"],
                    quoted_strings_can_be_null=True,
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            self._explain(text, first, numbers)
            raise UserError(
                f"'{self.path}' cannot be read as {self.form.described}: {error}"
            ) from error
        # A quote that is open takes the rows that follow into its field.
        if table.num_rows != text.count("\n") + (not text.endswith("\n")):
            self._explain(text, first, [])
            raise UserError(
                f"'{self.path}' has {text.count(chr(10)):,} lines from {self.place(first)} on, but "
                f"{table.num_rows:,} rows. Look for quotes and odd characters there."
            )
        return table

    def _explain(self, text: str, first: int, numbers: Sequence[int]) -> None:
        """Raise `UserError` for the first line that is wrong."""
        for count, line in enumerate(text.splitlines()):
            fields = split_line(line, self._delimiter)
            if line.count('"') % 2:
                raise UserError(
                    f"'{self.path}' has a quote that is not closed at {self.place(first + count)}: "
                    f"{line.strip()[:60]!r}. Fix that line."
                )
            if len(fields) != len(self.headings):
                raise UserError(
                    f"'{self.path}' has {plural(len(fields), 'field')} at "
                    f"{self.place(first + count)}, but there are {len(self.headings)} columns: "
                    f"{line.strip()[:60]!r}. Fix or remove that line."
                )
            for i in numbers:
                if wrong := fields[i] not in MISSING and self._fault(i, fields[i]):
                    raise UserError(
                        f"Column {self.label(i)!r} has {fields[i]!r}, which {wrong}, at "
                        f"{self.place(first + count)} of '{self.path}'. "
                        "Fix it, or leave the field empty where there is no value."
                    )

    def _fault(self, column: int, field: str) -> str:
        """Why a field cannot be read, if it cannot."""
        if column not in self._stamped:
            return "" if is_number(field, self.form.decimal) else "is not a number"
        found, zone = STAMP.match(field), self._stamped[column].tz
        if not found:
            return "is not a time stamp like the others"
        if bool(found["zone"]) == bool(zone):
            return ""
        return f"is a time stamp {'without' if zone else 'with'} a zone, unlike the first"


TEXT = LogFormat(
    name="delimited text",
    suffixes=(".csv", ".tsv", ".txt", ".dat"),
    starts_so=lambda start: encoding_of(start) is not None,
    open=lambda path: [DelimitedLog(path)],
)
