"""How a text file is laid out: encoding, delimiter, decimal mark, comments and headings.

All of it is told from the beginning of the file: of several delimiters the one that takes the
lines apart into the same number of fields, nearly all of them numbers, is meant.
"""

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

from mbdnode.data.logs.log import START_BYTES
from mbdnode.data.logs.units import Heading, find_unit, looks_like_unit, read_heading
from mbdnode.errors import UserError

_SAMPLE_LINES = 200
_MOST_COLUMNS = 5_000
_LONGEST_HEADING = 300
# A spreadsheet writes "#N/A" where there is no value.
COMMENT = re.compile(r"[ \t]*[#%](?!N/A)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|[+-]?(nan|inf|infinity)$", re.I)
STAMP = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.]\d+)?)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?$")
MISSING = ("", "NA", "N/A", "n/a", "na", "null", "NULL", "None", "none", "-", "--", "#N/A")
_WORD = re.compile(r"[^\W\d]\S*$")
_NAMES_OF_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", " ": "spaces", "|": "bar"}


@dataclass(frozen=True)
class TextForm:
    """The layout.

    **Arguments:**

    - `encoding`: as Python calls it.
    - `delimiter`: one character; a space stands for any run of spaces and tabs.
    - `decimal`: "." or ",".
    - `headings`: one for each column.
    - `skipped`: lines before the first row, comments and blank lines not counted.
    - `sample`: the fields of the first rows.
    - `warnings`: what is not certain.
    - `preamble`: how many of the skipped lines stand above the headings.
    """

    encoding: str
    delimiter: str
    decimal: str
    headings: tuple[Heading, ...]
    skipped: int
    sample: list[list[str]]
    warnings: list[str]
    preamble: int

    @property
    def described(self) -> str:
        """In words."""
        mark = ", decimal comma" if self.decimal == "," else ""
        return f"{self.encoding} text, {_NAMES_OF_DELIMITERS[self.delimiter]} between columns{mark}"


def find_form(path: Path) -> TextForm:
    """The layout, from the beginning of a file.

    Raises `UserError` for a file that is not text, or has no rows of numbers.
    """
    encoding, lines = _first_lines(path)
    comments, body = _without_comments(lines)
    if not body:
        raise UserError(f"'{path}' has no rows, only blank lines or comments. Leave it out.")
    delimiter, decimal = _delimiter(body)
    rows = [split_line(line, delimiter) for line in body]
    if max(map(len, rows)) > _MOST_COLUMNS:
        raise UserError(
            f"'{path}' has {max(map(len, rows)):,} values in one line; a log has at most "
            f"{_MOST_COLUMNS:,} columns, and a line for each time. Turn it round."
        )
    above = next((i for i, row in enumerate(rows) if _is_data(row, decimal)), None)
    if above is None:
        raise UserError(
            f"'{path}' has no row of numbers in its first {len(lines):,} lines; it begins with "
            f"{body[0][:60]!r}. A log has a row of numbers for each time."
        )
    # Rows without any value just before the first number are rows, not headings.
    while above > 1 and _is_blank(rows[above - 1]):
        above -= 1
    # The lines above the first row that have as many fields as it.
    count = len(rows[above])
    titles = [i for i in range(above) if len(rows[i]) == count and not _is_blank(rows[i])]
    last = titles[-1] if titles else above - 1
    units = rows[titles.pop()] if len(titles) > 1 and _are_units(rows[last]) else None
    warnings: list[str] = []
    if titles:
        names = rows[titles[-1]]
    elif above:
        names = _from_shorter_line(path, rows, above, delimiter, warnings)
    else:
        names = _from_comment(comments, count, delimiter, warnings)
    headings = _headings(path, names, units)
    if last < above - 1:
        raise UserError(
            f"'{path}' has the line {body[above - 1][:60]!r} between its headings and its first "
            "row of numbers, and it is neither. Fix or remove it; a quote may be missing."
        )
    if encoding == "latin-1":
        warnings.append("not UTF-8, so it was read as Latin-1; look at its headings")
    sample, preamble = rows[above : above + _SAMPLE_LINES], max(above - 1 - (units is not None), 0)
    return TextForm(encoding, delimiter, decimal, headings, above, sample, warnings, preamble)


def _first_lines(path: Path) -> tuple[str, list[str]]:
    """The encoding of a text, and its whole lines in the part that is looked at."""
    with open(path, "rb") as file:
        start = file.read(START_BYTES)
    encoding = encoding_of(start)
    if encoding is None:
        raise UserError(f"'{path}' is not a text file. Save it as one, or in its own format.")
    text = start.decode(encoding, errors="replace")
    lines = re.split(r"\r\n|\r|\n", text.lstrip("\ufeff"))
    if len(start) == START_BYTES and len(lines) == 1:
        raise UserError(
            f"'{path}' begins with a line of more than {START_BYTES:,} bytes, {text[:60]!r}...; a "
            f"log has a line for each time, and a heading at most {_LONGEST_HEADING} characters. "
            "Shorten its headings, or write a row for each time."
        )
    if len(start) == START_BYTES:
        lines.pop()  # It may be cut.
    return encoding, lines[: _SAMPLE_LINES + 100]


def encoding_of(start: bytes) -> str | None:
    """The encoding of a text by its first bytes, as Python calls it; None if this is no text."""
    if start.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = start[0::2].count(0), start[1::2].count(0)
    for some, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if some > len(start) // 4 and others < len(start) // 100 + 1:
            return name
    odd_ones = sum(start.count(code) for code in (*range(9), *range(14, 27), *range(28, 32), 127))
    if 0 in start or odd_ones > len(start) / 100:
        return None
    try:
        # A character may be cut at the end of what was read.
        start[: max(len(start) - 4, 1)].decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 8:
            return "latin-1"
    return "utf-8"


def _without_comments(lines: list[str]) -> tuple[list[str], list[str]]:
    """The comments before the first other line, and all lines that are none."""
    comments, body = [], []
    for line in lines:
        if COMMENT.match(line):
            if not body:
                comments.append(line.strip().lstrip("#%").strip())
        elif line.strip():
            body.append(line)
    return comments, body


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of a line, without quotes and blanks around them."""
    if delimiter == " ":
        line = re.sub(r"[ \t]+", " ", line.strip())
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        fields = line.split(delimiter)
    return [field.strip() for field in fields]


def is_number(text: str, decimal: str) -> bool:
    """Whether a field is a number with this decimal mark."""
    return bool(_NUMBER.match(text.replace(",", ".") if decimal == "," else text))


def _is_data(fields: list[str], decimal: str) -> bool:
    """Whether a row is one of values: at least half of it, so that one bad value is no heading."""
    good = sum(is_number(f, decimal) or bool(STAMP.match(f)) for f in fields)
    return good > 0 and 2 * good >= sum(f not in MISSING for f in fields)


def _is_blank(fields: list[str]) -> bool:
    return all(f in MISSING for f in fields)


def _delimiter(body: list[str]) -> tuple[str, str]:
    """The delimiter and the decimal mark that leave the most lines alike and the most numbers."""
    best, found = (-1.0, 0.0), (",", ".")
    lines = body[-_SAMPLE_LINES:]
    for delimiter in (",", ";", "\t", "|", " "):
        rows = [split_line(line, delimiter) for line in lines]
        counts = [len(row) for row in rows]
        usual = max(set(counts), key=counts.count)
        alike = [row for row in rows if len(row) == usual]
        for decimal in (".",) if delimiter == "," else (".", ","):
            values = [f for row in alike for f in row]
            good = sum(is_number(f, decimal) or bool(STAMP.match(f)) for f in values)
            filled = sum(f not in MISSING for f in values)
            score = len(alike) / len(rows) * good / max(filled, 1)
            # The headings are parted like the values.
            score += 0.5 * (usual > 1 and len(split_line(body[0], delimiter)) == usual)
            # Of equals, the one that finds columns at all.
            if (score, min(usual, 2)) > best and (usual > 1 or good):
                best, found = (score, min(usual, 2)), (delimiter, decimal)
    return found


def _headings(path: Path, names: list[str], units: list[str] | None) -> tuple[Heading, ...]:
    """Of every column; what a line of units says goes before what stands in the name."""
    headings = [read_heading(name) for name in names]
    if units is not None:
        written = [unit.strip().strip("[]()") for unit in units]
        both = zip(headings, written, strict=True)
        headings = [replace(heading, unit=unit or heading.unit) for heading, unit in both]
    longest = max(len(heading.raw) for heading in headings)
    if longest > _LONGEST_HEADING:
        raise UserError(
            f"'{path}' has a heading of {longest:,} characters; a heading has at most "
            f"{_LONGEST_HEADING}. Shorten it."
        )
    return tuple(headings)


def _from_shorter_line(path, rows, above: int, delimiter: str, warnings: list[str]) -> list[str]:
    """The line above the first row, which has other than its number of fields."""
    short, count = rows[above - 1], len(rows[above])
    one_less = len(short) == count - 1
    if one_less and all(not row[-1] for row in rows[above:] if row):
        return [*short, ""]  # A delimiter at the end of every row.
    if one_less or (delimiter == " " and len(short) <= count):
        return _aligned(short, count, warnings)
    raise UserError(
        f"'{path}' has {len(short)} {'heading' if len(short) == 1 else 'headings'} "
        f"({', '.join(short[:8])}) but {count} values in its first row, taken as "
        f"{_NAMES_OF_DELIMITERS[delimiter]}-separated. Give every column one heading; a "
        "decimal comma needs another delimiter."
    )


def _from_comment(
    comments: list[str], count: int, delimiter: str, warnings: list[str]
) -> list[str]:
    """The last comment above the first row, if it has the names of columns; else none."""
    for between in (delimiter, ",", " ") if comments else ():
        words = split_line(comments[-1], between)
        if len(words) == count:
            return words
    words = comments[0].split() if len(comments) == 1 else []
    if words and len(words) < count and all(map(_WORD.match, words)):
        return _aligned(words, count, warnings)
    warnings.append("no headings were found; the columns are called column1, column2, ...")
    return [""] * count


def _aligned(words: list[str], count: int, warnings: list[str]) -> list[str]:
    """Fewer headings than columns: what has none (trial, time) usually stands on the left."""
    warnings.append(
        f"{len(words)} {'heading' if len(words) == 1 else 'headings'} for {count} columns, taken "
        f"as those of the last; the others are called column1 to column{count - len(words)}"
    )
    return [""] * (count - len(words)) + words


def _are_units(fields: list[str]) -> bool:
    """Whether a line gives units: in brackets, or all of them known."""
    filled = [f for f in fields if f not in MISSING]
    if not filled:
        return False
    bracketed = all(f[0] in "[(" and f[-1] in "])" for f in filled)
    known = any(find_unit(f) is not None for f in filled)
    return bracketed or (known and all(looks_like_unit(f) for f in filled))
