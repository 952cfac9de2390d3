"""A table as data, and its three forms: Markdown, CSV and cells for the page.

Cells keep what they are (numbers, marks, verdicts), so that Markdown shows a number as the paper
prints it and CSV gives all of its digits.
"""

import csv
import io
from collections.abc import Collection
from dataclasses import dataclass, replace

from mbdnode.formatting import as_printed


@dataclass(frozen=True)
class Verdict:
    """How a number compares with what it is held against.

    **Arguments:**

    - `kind`: the word, such as "reproduced".
    - `sentence`: with the factor, or the reason.
    """

    kind: str
    sentence: str


Cell = str | float | int | bool | Verdict | None


@dataclass(frozen=True)
class Table:
    """One table.

    **Arguments:**

    - `label`: the paper's own, such as "tab:sms_test"; empty for one that the paper has not.
    - `title`: what it shows.
    - `headings`: one for each column.
    - `rows`: one cell for each column. None is an empty cell.
    - `notes`: sentences below it.
    - `name`: of its files, if it has no label.
    """

    label: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self):
        for row in self.rows:
            if len(row) != len(self.headings):
                raise ValueError(
                    f"A row of {self.label!r} has {len(row)} cells; there must be "
                    f"{len(self.headings)}, one for each heading."
                )


def cell_text(cell: Cell) -> str:
    """A cell as people read it."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return as_printed(cell)
    if isinstance(cell, Verdict):
        return f"{cell.kind}: {cell.sentence}"
    return str(cell)


def without_columns(table: Table, names: Collection[str]) -> Table:
    """The same table without some of its columns, by heading."""
    kept = [place for place, heading in enumerate(table.headings) if heading not in names]
    return replace(
        table,
        headings=tuple(table.headings[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )


def to_markdown(table: Table) -> str:
    """A table in Markdown, with its title above and its notes below."""
    lines = [f"# {_flat(table.title)}", ""]
    lines += [f"The paper's `{_flat(table.label)}`.", ""] if table.label else []
    lines.append(_markdown_row(table.headings))
    lines.append(_markdown_row(["---"] * len(table.headings)))
    lines += [_markdown_row([cell_text(cell) for cell in row]) for row in table.rows]
    if table.notes:
        lines += ["", *(f"- {_flat(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """A table as comma-separated values; a verdict takes two columns."""
    verdicts = {
        place for row in table.rows for place, cell in enumerate(row) if isinstance(cell, Verdict)
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_csv_cells(table.headings, verdicts, lambda h: (h, f"{h} reason")))
    for row in table.rows:
        writer.writerow(_csv_cells(row, verdicts, _verdict_cells))
    return text.getvalue()


def _csv_cells(cells, verdicts: set[int], two) -> list[str]:
    flat: list[str] = []
    for place, cell in enumerate(cells):
        flat += two(cell) if place in verdicts else [_csv_cell(cell)]
    return flat


def _verdict_cells(cell: Cell) -> tuple[str, str]:
    if isinstance(cell, Verdict):
        return cell.kind, cell.sentence
    return _csv_cell(cell), ""


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return repr(cell) if isinstance(cell, float) else cell_text(cell)


def _markdown_row(cells) -> str:
    return "| " + " | ".join(_flat(cell).replace("|", "\\|") for cell in cells) + " |"


def _flat(text: str) -> str:
    """On one line, since a line ends a row."""
    return " ".join(text.split())
