"""The look of printed tables."""

import os
import sys

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def new_console() -> Console:
    """A console as wide as the terminal; as wide as a table needs where there is no terminal."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 100, highlight=False)


def new_table(console: Console, *headings: str, numbers: tuple[str, ...], folding: str) -> Table:
    """An empty table.

    **Arguments:**

    - `console`: where it will be printed; a narrow one gets narrow gaps.
    - `headings`: of the columns; the first is the rows' name.
    - `numbers`: those to align on the right.
    - `folding`: the one that takes several lines when the table would be too wide.

    **Returns:**

    A table, for `add_row`.
    """
    gap = 1 if console.width >= 96 else 0
    table = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            escape(heading),
            style="bold" if number == 0 else "",
            justify="right" if heading in numbers else "left",
            no_wrap=heading != folding,
            min_width=6 if heading == folding else None,
            overflow="fold",
        )
    return table
